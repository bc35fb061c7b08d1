"""The slots of a journal file, each checked against the hash chain before anybody sees it (spec 10)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw

from wevent.journal.record import KINDS, Record, decode_charges
from wevent.journal.sqlite.shelf import Shelf
from wevent.journal.sqlite.storage import damaged, maybe_row, only_row, readable
from wevent.journal.terms import Epoch

SHOWN_ANCHOR = "anchor_shown"
"""The fact that keeps the digest of the histogram which the first kept slot shows, if that slot did not make it."""

_SELECT = "SELECT slot, kind, epoch, population, probe, publication, threshold, dissimilarity, shown, link FROM slots"


class SlotChain:
    """Reads the table `slots`.

    Args:
        database: the journal's connection.
        path: its file, for messages.
        shelf: what slots point to.
        epoch: the epoch of a number.
    """

    def __init__(self, database: apsw.Connection, path: Path, shelf: Shelf, epoch: Callable[[int], Epoch]) -> None:
        self._database, self._path, self._shelf, self._epoch = database, path, shelf, epoch

    def records(self, first: int) -> Iterator[Record]:
        """The slots from `first` on, in order. Nothing of a slot is given out that its link does not confirm.

        Raises:
            InvalidJournal: at the first slot that is not what was stored.
        """
        with readable(self._path):
            rows: Iterator[Any] = self._database.execute(f"{_SELECT} WHERE slot >= ? ORDER BY slot", (first - 1,))
            row = next(rows, None)
            if row is None:
                return
            if row[0] < first:
                link, row = row[9], next(rows, None)
            else:
                link = self._anchor(row[0])
        known = row[0] if row is not None else 0
        while row is not None:
            with readable(self._path):
                record = self._record(row)
                link = record.digest(link)
                if link != row[9]:
                    raise damaged(self._path)
                if record.shown is not None and record.shown.slot < known:
                    self._check_shown(record)
                    known = record.shown.slot
            yield record
            with readable(self._path):
                row = next(rows, None)

    def link_at(self, slot: int) -> bytes | None:
        """The hash chain's link at a committed slot that is still kept, or right before the first one that is."""
        query = "SELECT link FROM slots WHERE slot = ? UNION ALL SELECT anchor FROM head WHERE first = ? + 1 LIMIT 1"
        row = maybe_row(self._database, query, (slot, slot))
        return None if row is None else bytes(row[0])

    def keep_shown(self, first: int) -> bytes | None:
        """The digest of a histogram that stays while the slot that made it goes: what slot `first` shows."""
        query = (
            "SELECT data FROM histograms JOIN slots ON histograms.slot = shown WHERE slots.slot >= ?"
            " AND shown < ? LIMIT 1"
        )
        row = maybe_row(self._database, query, (first, first))
        return None if row is None else hashlib.sha256(row[0]).digest()

    def _record(self, row: tuple[Any, ...]) -> Record:
        slot, kind, epoch, group, probe, publication, threshold, dissimilarity, shown, _ = row
        population = self._shelf.group(group)
        classes = len(population.population)
        return Record(
            slot,
            KINDS[kind],
            self._epoch(epoch),
            population,
            decode_charges(self._shelf.charges(probe), classes),
            decode_charges(self._shelf.charges(publication), classes),
            threshold,
            dissimilarity,
            self._shelf.shown(shown) if shown else None,
        )

    def _anchor(self, slot: int) -> bytes:
        """The link before the first slot that is kept."""
        anchor, first = only_row(self._database, "SELECT anchor, first FROM head")
        if slot != first:
            raise damaged(self._path)
        return bytes(anchor)

    def _check_shown(self, record: Record) -> None:
        """A histogram that an earlier slot made: that slot's link confirms it, or what was kept when it was dropped."""
        shown = record.shown
        assert shown is not None
        row = maybe_row(self._database, f"{_SELECT} WHERE slot = ?", (shown.slot,))
        if row is not None:
            link = self.link_at(shown.slot - 1)
            if link is None or row[8] != shown.slot or self._record(row).digest(link) != row[9]:
                raise damaged(self._path)
            return
        kept = maybe_row(self._database, "SELECT value FROM facts WHERE name = ?", (SHOWN_ANCHOR,))
        if kept is not None and kept[0] != hashlib.sha256(shown.data).digest():
            raise damaged(self._path)
