"""The exact audit: likelihood ratios of neighbouring streams, computed from the laws of the draws."""

from wevent.auditing.exact.exact_audit import audit_exactly
from wevent.auditing.exact.option_sets import variants

__all__ = ["audit_exactly", "variants"]
