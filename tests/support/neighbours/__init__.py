"""Neighbouring runs: the same command over inputs that differ in one user's records, and all that can be seen of both."""
