"""When and how much: one file per policy."""
