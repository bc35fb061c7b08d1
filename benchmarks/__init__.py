"""Speed and accuracy against peers and limits, as ratios within one run: never asserted by the clock inside tests."""
