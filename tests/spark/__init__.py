"""Spark: one session for all of it, in one process; what is killed has a process of its own."""
