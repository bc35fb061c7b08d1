"""Where randomness comes from: `SecureNoise` for people, `SeededNoise` for simulation."""

from wevent.noise.secure import SecureNoise
from wevent.noise.seeded import SeededNoise

__all__ = ["SecureNoise", "SeededNoise"]
