"""The exact audit: likelihood ratios of neighbouring streams, computed from the distributions of the draws."""
