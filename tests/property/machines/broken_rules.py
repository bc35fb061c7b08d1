"""Wrong rules that are easy to write: the machine must find each of them, or it could not find the next one.

Some are those of `tests.support.broken_lives`, which the accountant of a whole life has to see, too.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.fault.broken import EmitsBeforeCommit
from tests.property.machines.life_machine import LifeMachine
from tests.property.machines.stores import MemoryStore
from tests.support.broken_lives import BROKEN
from tests.support.memory_journal import MemoryJournal
from wevent.journal import Journal
from wevent.journal.record import Batch, Hook, no_hook
from wevent.people import membership
from wevent.publishing import staleness

_charge_elsewhere = staleness._charge_elsewhere


class EmitsFirst(LifeMachine):
    """After a crash a slot is drawn again, and goes out with other numbers."""

    make_store = MemoryStore
    publication = EmitsBeforeCommit


class FreeJournal(MemoryJournal):
    """Stores releases without what they cost."""

    def commit(self, batch: Batch, at: Hook = no_hook) -> None:
        free = [dataclasses.replace(one, probe=one.probe * 0, publication=one.publication * 0) for one in batch.records]
        super().commit(batch._replace(records=free, state=None), at)


class ForgetsCharges(LifeMachine):
    """After every start the ledger is empty."""

    make_store = staticmethod(lambda folder: MemoryStore(folder, FreeJournal))


def _costs_nothing(journal: Journal, through: int) -> Batch:
    batch = _charge_elsewhere(journal, through)
    free = [dataclasses.replace(record, publication=record.publication * 0) for record in batch.records]
    return batch._replace(records=free, state=None)


def _is_not_closed(journal: Journal, through: int) -> Batch:
    return Batch((), None, None, through)


_OF_LIVES = (
    "an earlier requirement is forgotten",
    "a restore leaves nothing in doubt",
    "a joiner was not unregistered",
)
Patch = tuple[Any, str, Any]
BROKEN_RULES: dict[str, Patch] = {
    **{name: BROKEN[name] for name in _OF_LIVES},
    "who leaves is forgotten": (
        *(membership, "end_current"),
        lambda history, slot: [row for row in history if row.last is not None],
    ),
    "slots released elsewhere cost nothing": (staleness, "_charge_elsewhere", _costs_nothing),
    "slots released elsewhere are drawn": (staleness, "_charge_elsewhere", _is_not_closed),
}
BROKEN_MACHINES = {"a slot goes out before it is stored": EmitsFirst, "charges are not stored": ForgetsCharges}


def broken(name: str, patching: pytest.MonkeyPatch) -> type[LifeMachine]:
    """The machine over what is broken."""
    if name in BROKEN_MACHINES:
        return BROKEN_MACHINES[name]
    patching.setattr(*BROKEN_RULES[name])
    return type("BrokenLife", (LifeMachine,), {"make_store": MemoryStore})
