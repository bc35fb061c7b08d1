"""Audits of mechanisms: exact, and as a black box."""
