"""The slots of a journal, each checked against the hash chain before anybody sees it (spec 10)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from wevent.journal.record import KINDS, Record, decode_charges
from wevent.journal.tables.database import ALL, Database, maybe_row, only_row, stored_bytes
from wevent.journal.tables.shelf import Shelf
from wevent.journal.terms import Epoch

SHOWN_ANCHOR = "anchor_shown"
"""The fact that keeps the digest of the histogram which the first kept slot shows, if that slot did not make it."""

MEASURED_ANCHOR = "anchor_measured"
"""The fact that keeps the last measured slot among those that were dropped, and its epoch."""

_Measured = tuple[int, int]  # a slot that was measured, and the number of its epoch

_SELECT = "SELECT slot, kind, epoch, population, probe, publication, threshold, dissimilarity, shown, link FROM slots"


class SlotChain:
    """Reads the table `slots`.

    Args:
        database: the journal's connection.
        shelf: what slots point to.
        epoch: the epoch of a number.
    """

    def __init__(self, database: Database, shelf: Shelf, epoch: Callable[[int], Epoch]) -> None:
        self._database, self._shelf, self._epoch = database, shelf, epoch

    def records(self, first: int, most: int = ALL) -> Iterator[Record]:
        """The slots from `first` on, in order. Nothing of a slot is given out that its link does not confirm.

        Args:
            first: the first slot.
            most: how many at least are given out, if there are so many; one more if the slot before is not kept.

        Raises:
            InvalidJournal: at the first slot that is not what was stored.
        """
        with self._database.readable():
            query, limit = f"{_SELECT} WHERE slot >= ? ORDER BY slot LIMIT ?", min(most + 1, ALL)
            rows = iter(self._database.execute(query, (first - 1, limit)))
            row = next(rows, None)
            if row is None:
                return
            if row[0] < first:
                link, row = row[9], next(rows, None)
            else:
                link = self._anchor(row[0])
            known = row[0] if row is not None else 0
            measured = self.measured_before(known)
        while row is not None:
            with self._database.readable():
                record = self._record(row, measured)
                if record.measured is not None:
                    measured = record.measured, record.epoch.number
                link = record.digest(link)
                if link != row[9]:
                    raise self._database.damaged()
                if record.shown is not None and record.shown.slot < known:
                    self._check_shown(record)
                    known = record.shown.slot
            yield record
            with self._database.readable():
                row = next(rows, None)

    def link_at(self, slot: int) -> bytes | None:
        """The hash chain's link at a committed slot that is still kept, or right before the first one that is."""
        query = "SELECT link FROM slots WHERE slot = ? UNION ALL SELECT anchor FROM head WHERE first = ? + 1 LIMIT 1"
        row = maybe_row(self._database, query, (slot, slot))
        return None if row is None else stored_bytes(row[0])

    def keep_shown(self, first: int) -> bytes | None:
        """The digest of a histogram that stays while the slot that made it goes: what slot `first` shows."""
        query = (
            "SELECT data FROM histograms JOIN slots ON histograms.slot = shown WHERE slots.slot >= ?"
            " AND shown < ? LIMIT 1"
        )
        row = maybe_row(self._database, query, (first, first))
        return None if row is None else hashlib.sha256(row[0]).digest()

    def measured_before(self, slot: int) -> _Measured | None:
        """The last slot before this one that was measured, and its epoch; None if none was, or it is no longer known.

        A journal that dropped slots before this fact was kept knows it only of a histogram that still shows it.
        """
        query = "SELECT slot, epoch FROM slots WHERE slot < ? AND kind = ? ORDER BY slot DESC LIMIT 1"
        row = maybe_row(self._database, query, (slot, KINDS.index("published")))
        if row is not None:
            return row[0], row[1]
        kept = maybe_row(self._database, "SELECT value FROM facts WHERE name = ?", (MEASURED_ANCHOR,))
        return None if kept is None else msgspec.json.decode(kept[0], type=_Measured)

    def _record(self, row: tuple[Any, ...], before: _Measured | None = None) -> Record:
        """A row as a record; `before` is the last slot measured before it, and its epoch."""
        slot, kind, epoch, group, probe, publication, threshold, dissimilarity, shown_at, _ = row
        population = self._shelf.group(group)
        classes = len(population.population)
        shown = self._shelf.shown(shown_at) if shown_at else None
        measured = before[0] if before is not None and before[1] == epoch else None
        if KINDS[kind] == "published" or (measured is None and shown is not None and shown.measured is not None):
            measured = shown_at
        return Record(
            slot,
            KINDS[kind],
            self._epoch(epoch),
            population,
            decode_charges(self._shelf.charges(probe), classes),
            decode_charges(self._shelf.charges(publication), classes),
            threshold,
            dissimilarity,
            shown,
            measured,
        )

    def _anchor(self, slot: int) -> bytes:
        """The link before the first slot that is kept."""
        anchor, first = only_row(self._database, "SELECT anchor, first FROM head")
        if slot != first:
            raise self._database.damaged()
        return stored_bytes(anchor)

    def _check_shown(self, record: Record) -> None:
        """A histogram that an earlier slot made: that slot's link confirms it, or what was kept when it was dropped."""
        shown = record.shown
        assert shown is not None
        row = maybe_row(self._database, f"{_SELECT} WHERE slot = ?", (shown.slot,))
        if row is not None:
            link = self.link_at(shown.slot - 1)
            if link is None or row[8] != shown.slot or self._record(row).digest(link) != row[9]:
                raise self._database.damaged()
            return
        kept = maybe_row(self._database, "SELECT value FROM facts WHERE name = ?", (SHOWN_ANCHOR,))
        if kept is not None and kept[0] != hashlib.sha256(shown.data).digest():
            raise self._database.damaged()
