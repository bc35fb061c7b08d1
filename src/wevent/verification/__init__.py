"""Verification of journals by code that shares nothing with what it checks."""

from wevent.verification.verification import Report, verify_journal

__all__ = ["Report", "verify_journal"]
