"""Live events: taken in, stored encrypted until their slot closes, and counted once."""
