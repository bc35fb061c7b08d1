"""Deployments that are broken on purpose: what the accountant of a whole life has to see."""

from __future__ import annotations

from typing import Any

from wevent.journal.tables.table_registry import TableRegistry
from wevent.people.holdout import HoldOut, Restore

BROKEN: dict[str, tuple[Any, str, Any]] = {
    "a change waits for nothing": (HoldOut, "first_slot", lambda self, key, asked, past, bucket, since: asked),
    "a restore holds nobody out": (Restore, "doubts", lambda self, bucket: False),
    "a joiner was no stranger": (HoldOut, "as_stranger", lambda self, slot: []),
    "strangers change class at once": (HoldOut, "strangers_from", lambda self: 1 if self.reigns[-1].unknown else None),
    "whom the registry knows is a stranger": (TableRegistry, "apart", lambda self, slot: []),
}
"""One of the product's checks each, disabled: where it is, its name, what stands there instead."""

HURT = {  # a life in which people do lose too much; in others most often nothing happens
    "a change waits for nothing": 0,
    "a restore holds nobody out": 8,
    "a joiner was no stranger": 2,
    "strangers change class at once": 10,
    "whom the registry knows is a stranger": 1,
}
