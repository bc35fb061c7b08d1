"""The paper's experiments, all of them, with what came out (spec 13)."""
