"""What tests stand on: independent re-computations, adversaries and deliberately broken pieces; never shipped."""
