"""Simulation: streams whose truth is known, so that errors can be measured. Its output is not private."""
