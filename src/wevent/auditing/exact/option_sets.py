"""The options that a mechanism can be audited with: each alone, and some together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wevent.core.requirements import Population, Requirement
from wevent.errors import InvalidOption
from wevent.publisher.publisher import Publisher

_TRIED: tuple[Mapping[str, Any], ...] = (
    {},
    {"neighbours": "replace"},
    {"max_cells_per_user": 2},
    {"neighbours": "replace", "max_cells_per_user": 2},
    {"refund": True},
    {"threshold": "std"},
    {"estimator": "weighting"},
    {"estimator": "weighting", "refund": True},
    {"smoothing": "filter"},
    {"class_weights": "calibrated"},
    {"class_weights": "equal"},
    {"class_weights": "budget"},
    {"seasonality": (3.0,), "special_days": (3, 5)},
    {"nonnegative": True, "round": True},
    {"neighbours": "replace", "known_total": 5, "round": True},
    {
        "neighbours": "replace",
        "max_cells_per_user": 2,
        "estimator": "weighting",
        "smoothing": "filter",
        "refund": True,
    },
)


def variants(mechanism: str) -> list[dict[str, Any]]:
    """Sets of options that the mechanism takes, its own first."""
    return [dict(options) for options in _TRIED if _takes(mechanism, options)]


def _takes(mechanism: str, options: Mapping[str, Any]) -> bool:
    try:
        Publisher(Population({Requirement(2, 1): 1}), 4, mechanism, **options)
    except InvalidOption:
        return False
    return True
