"""What was drawn and may not be stored yet, as bytes: whoever writes the journal next stores this, and draws nothing.

A database keeps what it was given before a commit, on its pages and in its write-ahead log, also of transactions that come
to nothing. Two draws of one slot would be two outputs for one charge, to whoever can read these (spec 10). So a draw is
written down outside before any of it is sent, and from then on it is the draw of its slots.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from wevent.journal.coming import Coming
from wevent.journal.contents import Batch, Revision
from wevent.journal.record import KINDS, Group, Record, Shown, decode_shown
from wevent.journal.terms import Epoch, decode_terms, encode_terms
from wevent.people.membership import Change

_CHARGES = "<i8"


class WaitingEpoch(NamedTuple):
    """An epoch that waits for its first slot, and what it waits with.

    Attributes:
        epoch: the epoch.
        coming: what comes with it.
        imported: the file that was imported last when it was planned.
        before: how many of the queued changes were asked for before it; None: all.
    """

    epoch: Epoch
    coming: Coming
    imported: bytes | None
    before: int | None


class WaitingDraft(msgspec.Struct, frozen=True, array_like=True):
    """`WaitingEpoch`, as it is written."""

    number: int
    first: int
    terms: bytes
    unsafe: tuple[str, ...]
    changes: list[tuple[str, str, tuple[int, int] | None, str | None]]
    file: bytes | None
    imported: bytes | None
    before: int | None

    @classmethod
    def of(cls, planned: WaitingEpoch) -> WaitingDraft:
        """As it is written."""
        epoch, coming, imported, before = planned
        changes = [tuple(change) for change in coming.changes]
        return cls(
            epoch.number,
            epoch.first,
            encode_terms(epoch.terms),
            coming.unsafe,
            changes,  # type: ignore[arg-type]
            coming.imported,
            imported,
            before,
        )

    def planned(self) -> WaitingEpoch:
        """As it was."""
        epoch = Epoch(self.number, self.first, decode_terms(self.terms))
        changes = [Change(*change) for change in self.changes]  # type: ignore[arg-type]
        return WaitingEpoch(epoch, Coming(epoch.terms, self.unsafe, changes, self.file), self.imported, self.before)


class SlotDraft(msgspec.Struct, frozen=True, array_like=True):
    """A record, as it is written: a histogram that an earlier slot stored is named by that slot."""

    slot: int
    kind: int
    epoch: int
    group: bytes
    probe: bytes
    publication: bytes
    threshold: int | None
    dissimilarity: float | None
    shown_at: int
    shown: bytes | None
    measured: int | None

    @classmethod
    def of(cls, record: Record) -> SlotDraft:
        """As it is written."""
        shown = record.shown
        return cls(
            record.slot,
            KINDS.index(record.kind),
            record.epoch.number,
            record.group.data,
            record.probe.astype(_CHARGES).tobytes(),
            record.publication.astype(_CHARGES).tobytes(),
            record.threshold,
            record.dissimilarity,
            0 if shown is None else shown.slot,
            shown.data if shown is not None and shown.slot == record.slot else None,
            record.measured,
        )

    def record(self, epoch: Epoch, shown: Shown | None) -> Record:
        """As it was."""
        return Record(
            self.slot,
            KINDS[self.kind],
            epoch,
            Group.from_data(self.group),
            np.frombuffer(self.probe, dtype=_CHARGES).astype(np.int64),
            np.frombuffer(self.publication, dtype=_CHARGES).astype(np.int64),
            self.threshold,
            self.dissimilarity,
            shown,
            self.measured,
        )


class Draft(msgspec.Struct, frozen=True):
    """What one transaction is about to store.

    Attributes:
        journal: the id of the journal.
        revision: of the memberships that were counted under.
        before: the end of its hash chain before the first of the slots.
        slots: charges and releases.
        position, state, emitted: see `Batch`.
        planned: the epoch that is stored with them, if one waits.
    """

    journal: str
    revision: Revision
    before: bytes
    slots: list[SlotDraft]
    position: Any
    state: bytes | None
    emitted: int
    planned: WaitingDraft | None = None

    @classmethod
    def of(cls, journal: str, revision: Revision, before: bytes, batch: Batch, planned: WaitingEpoch | None) -> Draft:
        """Of a batch with slots."""
        slots = [SlotDraft.of(record) for record in batch.records]
        rest = batch.position, batch.state, batch.emitted
        return cls(journal, revision, before, slots, *rest, None if planned is None else WaitingDraft.of(planned))

    @property
    def last(self) -> int:
        """Its last slot."""
        return self.slots[-1].slot

    @property
    def follows(self) -> tuple[str, Revision, int, bytes]:
        """What it was drawn for: the journal, its memberships, the next slot, and the end of the hash chain before it."""
        return self.journal, self.revision, self.slots[0].slot, self.before

    def batch(self, epoch_of: Callable[[int], Epoch], shown_of: Callable[[int], Shown]) -> Batch:
        """The batch again.

        Args:
            epoch_of: the epoch of a number.
            shown_of: the histogram that a slot before these first showed.
        """
        drawn: dict[int, Shown] = {}
        records = []
        for one in self.slots:
            if one.shown is not None:
                drawn[one.slot] = decode_shown(one.slot, one.shown)
                drawn[one.slot].text["data"] = one.shown  # byte for byte what the hash chain will have
            shown = None if not one.shown_at else drawn.get(one.shown_at) or shown_of(one.shown_at)
            records.append(one.record(epoch_of(one.epoch), shown))
        return Batch(records, self.position, self.state, self.emitted)


def encode_draft(draft: Draft) -> bytes:
    """A draft as bytes."""
    return msgspec.msgpack.encode(draft)


def decode_draft(data: bytes) -> Draft:
    """The counterpart of `encode_draft`."""
    return msgspec.msgpack.decode(data, type=Draft)
