"""How a slot is measured: one file per estimator."""
