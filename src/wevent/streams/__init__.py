"""Where events come from: a slot clock, files and lines, all ending in counted slots."""
