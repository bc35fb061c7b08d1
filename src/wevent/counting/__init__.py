"""One slot's events become class × cell counts: cells, look-ups, the roster."""
