"""What is published from measurements: one file per smoother. Pure post-processing: it costs nothing."""
