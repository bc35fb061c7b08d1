"""Undo each repair in turn: at least one test must fail. `python -m tests.mutants` prints the table."""
