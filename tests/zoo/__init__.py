"""A zoo of plausible bugs: each is put into the real code at run time, and at least one named audit catches it."""
