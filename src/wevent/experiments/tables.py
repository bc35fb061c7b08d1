"""Rows of figures as columns, which data frames are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def as_columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Each name with its values, row by row.

    >>> as_columns([{"mechanism": "pft", "amre": 1.0}, {"mechanism": "pba", "amre": 2.0}])
    {'mechanism': ['pft', 'pba'], 'amre': [1.0, 2.0]}
    """
    columns: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return columns
