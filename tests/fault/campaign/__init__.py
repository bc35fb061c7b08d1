"""Faults at random against the real commands: kills, power cuts, damaged files. `python -m tests.fault.campaign`."""
