"""Checks of the promise by code that shares nothing with what it checks."""

from wevent.auditing.journal_audit import Report, audit_journal

__all__ = ["Report", "audit_journal"]
