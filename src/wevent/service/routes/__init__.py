"""The calls of the API, a module for each kind of caller."""
