"""Part of a journal's releases: some slots, some cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import msgspec
import numpy as np

from wevent.core.arrays import IntArray
from wevent.errors import InvalidCells, InvalidOption
from wevent.journal import Journal
from wevent.journal.record import Head, Record, Shown
from wevent.journal.terms import Epoch
from wevent.outputs.lines import cell_labels
from wevent.settings.values import parse_time
from wevent.streams.clock import SlotClock

_MAX_SLOT = 1 << 62


class Selection:
    """Releases of a journal for an output, up to a slot (None: the last) and cut to some cells (None: all)."""

    def __init__(self, journal: Journal, last: int | None = None, cells: Iterable[str] | None = None) -> None:
        self._journal, self._last = journal, last
        self._wanted = None if cells is None else frozenset(cells)
        self._epochs: dict[int, tuple[Epoch, IntArray]] = {}
        self._shown: tuple[Shown, Shown] | None = None  # the last one that was cut, and what came of it
        if self._wanted is not None:
            known = {str(cell) for epoch in journal.epochs() for cell in cell_labels(epoch.terms.cells)}
            unknown = sorted(self._wanted - known)
            if unknown or not self._wanted:
                named = ", ".join(map(repr, unknown[:5])) + (", …" if len(unknown) > 5 else "")
                raise InvalidCells(
                    f"The journal declares no cells {named}." if unknown else "No cells are chosen.",
                    f"It has {len(known)}, such as {', '.join(sorted(known)[:5])}.",
                    cells=unknown,
                )

    @property
    def identity(self) -> str:
        return self._journal.identity

    def releases(self, first: int = 1) -> Iterator[Record]:
        for record in self._journal.releases(first):
            if self._last is not None and record.slot > self._last:
                return
            yield record if self._wanted is None else self._cut(record)

    def head(self) -> Head:
        head = self._journal.head()
        return head if self._last is None else replace(head, committed=min(head.committed, self._last))

    def read_note(self) -> bytes:
        return b""  # the note beside the journal describes its whole output

    def write_note(self, data: bytes, *, force: bool = False) -> None:
        return

    def _cut(self, record: Record) -> Record:
        epoch, rows = self._epoch(record.epoch)
        shown = record.shown
        if shown is not None:
            if self._shown is None or self._shown[0] is not shown:
                measured, std_error = shown.measured, shown.std_error
                cut = Shown(
                    shown.slot,
                    shown.values[rows],
                    None if std_error is None else std_error[rows],
                    None if measured is None else measured._replace(values=measured.values[rows]),
                )
                self._shown = shown, cut
            shown = self._shown[1]
        return replace(record, epoch=epoch, shown=shown)

    def _epoch(self, epoch: Epoch) -> tuple[Epoch, IntArray]:
        """Return the version as if it had only those cells, and the columns of these."""
        assert self._wanted is not None
        if epoch.number not in self._epochs:
            labels = list(cell_labels(epoch.terms.cells))
            rows = [row for row, label in enumerate(labels) if str(label) in self._wanted]
            terms = replace(epoch.terms, cells=[labels[row] for row in rows])
            cut = msgspec.structs.replace(epoch, terms=terms, text=b"")
            self._epochs[epoch.number] = cut, np.array(rows, dtype=np.int64)
        return self._epochs[epoch.number]


def parse_slots(head: Head, begin: str | None, end: str | None, prefix: str = "") -> tuple[int | None, int | None]:
    """Return the first and last slot of a range that is given by slot numbers or times; `prefix` is for names in errors.

    A time stands for the first slot that starts then or later, and at the end for the last one that starts before.
    """
    first = None if begin is None else _parse_slot(head, begin, "from", prefix)
    last = None if end is None else _parse_slot(head, end, "to", prefix)
    if first is not None and last is not None and last < first:
        problem = f"The last slot is before the first ({prefix}from {begin} {prefix}to {end})."
        raise InvalidOption(problem, "Swap them.", option="to", value=end)
    return first, last


def _parse_slot(head: Head, text: str, option: str, prefix: str) -> int:
    is_number = text.isascii() and text.isdecimal()
    if is_number and len(text) <= 4000 and int(text):
        return min(int(text), _MAX_SLOT)
    terms = head.pinned
    if is_number or terms is None or terms.slot_length_us is None:
        problem = f"{prefix}{option} {text} is neither the number of a slot nor a time."
        raise InvalidOption(problem, "Slots are numbered from 1 on.", option=option, value=text)
    clock, time_us = SlotClock(terms.origin_us, terms.length_us), parse_time(text, f"{prefix}{option}", 0)
    before = clock.slot_of(time_us - 1)  # the last slot that starts before
    return before if option == "to" else max(1, before + 1)
