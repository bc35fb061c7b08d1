"""Audits of mechanisms: exact computations, and tests of a deployment from outside."""
