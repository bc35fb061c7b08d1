"""Verification of journals by code that shares nothing with what it checks."""

from wevent.verification.verification import Report, audit_journal

__all__ = ["Report", "audit_journal"]
