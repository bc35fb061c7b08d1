"""An audit of a journal: windows, slots, hash chain and settings, read straight from its tables.

Independent on purpose: it knows the format as documented (docs/reference/journal-format.md) and shares no code with
the ledger, the publisher or the journal.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import struct
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wevent.auditing.memberships import JournalRows, RestoreRow, Run, Version, check_memberships, find_unordered
from wevent.auditing.opened_journal import OpenedJournal, opened_database, opened_file
from wevent.auditing.outside_mark import OutsideMarks, look_outside
from wevent.auditing.window_sums import NANO, WindowSums
from wevent.errors import InvalidJournal
from wevent.journal.place import PostgresPlace, journal_place

_Array = npt.NDArray[np.int64]
_PUBLISHED, _ELSEWHERE, _KINDS = 0, 3, 4
_HEAD = struct.Struct("<QBqdQ")
_STRETCH = 16384  # slots that are added up at once
_MOST = 1000  # findings that are listed one by one
_SLOTS = (
    "SELECT slots.slot, kind, epoch, population, probe, publication, threshold, dissimilarity, shown, link, data"
    " FROM slots LEFT JOIN histograms ON histograms.slot = slots.slot AND slots.shown = slots.slot ORDER BY slots.slot"
)
_MEMBERS = 'SELECT "user", "window", nano, level, first, last FROM members'
_ERASED = ("erased:", "erased;")  # ids from the first to before the second are digests
_PINNED = ("stream", "origin_us", "length_us", "neighbours", "max_cells_per_user")


@dataclass
class Report:
    """What an audit found.

    Attributes:
        slots: how many slots it checked, from `first` on.
        classes: (window, nano-epsilons) → the largest spend of any window, nano-epsilons.
        violations: what is wrong, in slot order; empty: nothing.
        unsafe: what weakens the promise without breaking it.
        elsewhere: the first and last slots of stretches that another copy of the journal released: a backup was restored.
        marked: the last slot that is noted outside the journal; None if nothing could be seen there.
        mark_unseen: why nothing could be seen, so that a missing end would not be noticed; None if something was.
    """

    first: int = 1
    slots: int = 0
    classes: dict[tuple[int, int], int] = field(default_factory=dict)
    violations: list[dict[str, Any]] = field(default_factory=list)
    unsafe: list[str] = field(default_factory=list)
    elsewhere: list[tuple[int, int]] = field(default_factory=list)
    marked: int | None = None
    mark_unseen: str | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.violations

    def to_dict(self) -> dict[str, Any]:
        """Plain types, ready for JSON; epsilons as numbers."""
        return {
            "ok": self.ok,
            "first": self.first,
            "slots": self.slots,
            "classes": [
                {"window": window, "epsilon": nano / NANO, "worst_window_spend": worst / NANO}
                for (window, nano), worst in sorted(self.classes.items())
            ],
            "released_elsewhere": [{"first": first, "last": last} for first, last in self.elsewhere],
            "marked": self.marked,
            "mark_unseen": self.mark_unseen,
            "unsafe": self.unsafe,
            "violations": self.violations,
        }


def audit_journal(path: str | Path | PostgresPlace) -> Report:
    """Check a journal; it may be in use.

    Args:
        path: its file, or the address of its database.

    Raises:
        InvalidJournal: if it cannot be read as a journal at all.
        StorageFailed: if its database does not answer.
    """
    if not isinstance(path, (str, Path, PostgresPlace)):
        raise InvalidJournal("the path of a journal", type(path).__name__, "Give the name of its file.", path=None)
    place = journal_place(path)
    outside = look_outside(place)
    with opened_file(place) if isinstance(place, Path) else opened_database(place) as database:
        try:
            return _Audit(database, outside).run()
        finally:
            _charges.cache_clear()


class _Audit:
    """One pass over the slots of a journal."""

    def __init__(self, database: OpenedJournal, outside: OutsideMarks) -> None:
        self._database, self._outside = database, outside
        self._report = Report()
        self._sums: dict[tuple[int, int], WindowSums] = {}
        self._stretch: list[tuple[_Array, _Array]] = []  # charges of the probe and of the publication
        self._stretch_first, self._stretch_elsewhere = 0, False
        self._group: tuple[int, list[tuple[int, int]], bytes] = (0, [], b"")
        self._runs: list[Run] = []
        self._run: tuple[tuple[int, int], bool] = ((0, 0), False)
        self._population: dict[str, Any] = {}

    def run(self) -> Report:
        database = self._database
        query = "SELECT committed, link, first, anchor, copied FROM head"
        committed, link, first, anchor, copied = _row(database, query)
        self._report.first = first
        unsafe = json.loads(_row(database, "SELECT value FROM facts WHERE name = 'unsafe'")[0])
        self._report.unsafe = unsafe
        if "seeded noise" in unsafe:
            self._add(first, "noise was seeded: whoever knows the seed can undo it")
        epochs = self._check_epochs()
        last, end = self._check_slots(epochs, first, anchor)
        if last != committed:
            self._add(last + 1, f"slots up to {committed} were committed, but the last one stored is {last}")
        if end != link:
            self._add(last, "the hash chain does not end where the journal says")
        self._check_end(committed, is_backup=bool(copied))
        self._check_people(committed)
        self._report.classes = {key: sums.worst for key, sums in self._sums.items()}
        self._report.violations.sort(key=lambda violation: violation["slot"])
        return self._report

    def _check_end(self, committed: int, *, is_backup: bool) -> None:
        """The journal goes on to the slot that is noted outside, and has what was noted: nothing was cut off.

        A backup that was not put to use may lie where another journal was.
        """
        said = _row(self._database, "SELECT value FROM facts WHERE name = 'id'")[0]
        identity = said if isinstance(said, str) else bytes(said).decode()
        newest, own = self._outside.newest, self._outside.of(identity)
        self._report.mark_unseen = self._outside.unseen
        if newest is not None and newest.journal != identity and newest.committed > 0 and not is_backup:
            self._add(committed + 1, f"slot {newest.committed} of another journal is noted in {self._outside.place}")
        if own is None:
            self._report.mark_unseen = self._outside.unseen or f"{self._outside.place} is of another journal"
            return
        self._report.marked = own.committed
        if own.committed > committed:
            self._add(
                committed + 1,
                f"slot {own.committed} is noted in {self._outside.place}, and the journal ends with {committed}: its end is "
                "missing, or it is an old copy",
            )
        for link, kind in self._database.rows("SELECT link, kind FROM slots WHERE slot = ?", (own.committed,)):
            if bytes(link).hex() != own.link and kind != _ELSEWHERE:
                self._add(own.committed, f"another release of it is noted in {self._outside.place}: two copies went on")

    def _check_people(self, committed: int) -> None:
        """Check the rows of users, and the classes and sizes of every slot against them."""
        database = self._database
        facts: dict[str, Any] = dict(database.rows("SELECT name, value FROM facts"))
        journal = JournalRows(
            itertools.chain(
                database.rows(f'{_MEMBERS} WHERE "user" >= ? AND "user" < ? ORDER BY "user"', _ERASED),
                database.rows(f'{_MEMBERS} WHERE "user" < ? OR "user" >= ? ORDER BY "user"', _ERASED),
            ),
            [RestoreRow(*row) for row in database.rows("SELECT slot, silent_through, doubted FROM restores")],
            [Version.from_terms(first, terms) for first, terms in self._versions],
            self._runs,
            facts["salt"],
            facts["registry"],
            committed,
            int(facts.get("complete_from", 1)),
        )
        check_memberships(journal, self._add)

    def _follow(self, slot: int, group: tuple[int, int], elsewhere: bool) -> None:
        """Collect slots with one population and epoch, and those that were released elsewhere."""
        if elsewhere:
            known = self._report.elsewhere
            begun = known.pop()[0] if known and known[-1][1] == slot - 1 else slot
            known.append((begun, slot))
        if self._runs and self._run == (group, elsewhere) and self._runs[-1].last == slot - 1:
            self._runs[-1] = self._runs[-1]._replace(last=slot)
            return
        self._run = group, elsewhere
        self._runs.append(Run(slot, slot, self._population, elsewhere))

    def _check_epochs(self) -> dict[int, bytes]:
        """Settings: pinned ones never change, declared classes are legal. Returns the digest of each."""
        epochs: dict[int, bytes] = {}
        pinned: list[Any] | None = None
        self._versions: list[tuple[int, Any]] = []
        for number, first, text in self._database.rows("SELECT number, first, terms FROM epochs ORDER BY number"):
            terms = json.loads(text)
            found = [terms[name] for name in _PINNED]
            pinned = pinned or found
            if found != pinned:
                self._add(first, f"epoch {number} changes a setting that is pinned for the life of a journal")
            declared = frozenset((window, nano) for window, nano in terms["declared"])
            if not declared or any(not 2 * window <= nano <= 50 * NANO for window, nano in declared):
                self._add(first, f"epoch {number} declares a class that no promise can be built on")
            self._versions.append((first, terms))
            epochs[number] = hashlib.sha256(text.encode()).digest()
        return epochs

    def _check_slots(self, epochs: dict[int, bytes], first: int, link: bytes) -> tuple[int, bytes]:
        """Every slot once and in order, every link of the chain, every charge. Returns the last slot and its link."""
        expected = first
        for row in self._database.rows(_SLOTS):
            slot, kind, epoch, group, probe, publication, threshold, dissimilarity, shown, stored, own = row
            if slot != expected:
                self._add(expected, f"slots {expected} to {slot - 1} are missing")
            expected = slot + 1
            if group != self._group[0]:
                self._open_group(group, slot)
            self._follow(slot, (group, epoch), kind == _ELSEWHERE)
            first_part = _charges(self._database, probe, len(self._group[1]))
            second_part = _charges(self._database, publication, len(self._group[1]))
            self._check_slot(slot, kind, shown, (first_part, second_part))
            head = _HEAD.pack(
                slot,
                kind,
                -1 if threshold is None else threshold,
                math.nan if dissimilarity is None else dissimilarity,
                shown,
            )
            digest = epochs.get(epoch, b"")
            parts = link, digest, self._group[2], head, first_part.raw, second_part.raw, _stored_bytes(own)
            link = hashlib.sha256(b"".join(parts)).digest()
            if link != stored:
                self._add(slot, "the hash chain is broken: what is stored is not what was committed")
                link = stored
            self._collect(slot, (first_part.values, second_part.values), kind == _ELSEWHERE)
        self._close_stretch()
        self._report.slots = expected - first
        return expected - 1, link

    def _check_slot(self, slot: int, kind: int, shown: int, charges: tuple[_Charges, _Charges]) -> None:
        if not 0 <= kind < _KINDS or (kind == _PUBLISHED and shown != slot) or (kind == _ELSEWHERE) != (shown == 0):
            self._add(slot, "the release does not fit the slot's outcome")
        if kind == _PUBLISHED and not charges[1].some:
            self._add(slot, "a fresh release was charged to nobody")
        if charges[0].negative or charges[1].negative:
            self._add(slot, "a charge is negative")

    def _collect(self, slot: int, charges: tuple[_Array, _Array], elsewhere: bool) -> None:
        if (slot, elsewhere) != (self._stretch_first + len(self._stretch), self._stretch_elsewhere):
            self._close_stretch()
        if not self._stretch:
            self._stretch_first, self._stretch_elsewhere = slot, elsewhere
        self._stretch.append(charges)
        if len(self._stretch) == _STRETCH:
            self._close_stretch()

    def _close_stretch(self) -> None:
        """Add up the collected slots, class by class, and compare classes."""
        if not self._stretch:
            return
        probes, publications = (np.stack(part) for part in zip(*self._stretch, strict=True))
        if not self._stretch_elsewhere:
            for row, key in find_unordered(self._group[1], probes, publications):
                problem = "a class was charged more than a looser one"
                self._add(self._stretch_first + row, problem, window=key[0], epsilon=key[1] / NANO)
        matrix = np.maximum(probes + publications, 0)
        for column, key in enumerate(self._group[1]):
            sums = self._sums.setdefault(key, WindowSums(*key))
            for over in sums.feed(self._stretch_first, np.ascontiguousarray(matrix[:, column])):
                self._add(
                    over.slot,
                    "a window was charged more than its epsilon",
                    window=key[0],
                    epsilon=key[1] / NANO,
                    spend=over.spend / NANO,
                    limit=over.limit / NANO,
                )
        self._stretch = []

    def _open_group(self, group: int, slot: int) -> None:
        """Another population is in force from this slot on."""
        self._close_stretch()
        data = _stored_bytes(_row(self._database, "SELECT data FROM populations WHERE id = ?", (group,))[0])
        self._population = json.loads(data)
        rows = [(window, nano) for window, nano, *_ in self._population["classes"]]
        if rows != sorted(set(rows)):
            self._add(slot, "the classes are not in order")
        self._group = group, rows, hashlib.sha256(data).digest()

    def _add(self, slot: int, problem: str, **facts: Any) -> None:
        if len(self._report.violations) < _MOST:
            self._report.violations.append({"slot": slot, "problem": problem, **facts})


def _row(database: OpenedJournal, query: str, values: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    for row in database.rows(query, values):
        return tuple(row)
    raise LookupError(f"no row: {query}")


def _stored_bytes(value: Any) -> bytes:
    """Bytes as they are stored, none for null. A number in their place is damage: `bytes` would make as many zeros of it."""
    return b"" if value is None else memoryview(value).tobytes()


class _Charges(NamedTuple):
    """What one slot charges for one purpose."""

    values: _Array
    raw: bytes
    some: bool
    negative: bool


@lru_cache(maxsize=4096)
def _charges(database: OpenedJournal, number: int, classes: int) -> _Charges:
    raw = b"\0" * (8 * classes)
    if number:
        data = _stored_bytes(_row(database, "SELECT data FROM charges WHERE id = ?", (number,))[0])
        raw = zlib.decompress(data[1:]) if data[:1] == b"z" else data[1:]
    values = np.frombuffer(raw, dtype="<i8").astype(np.int64)
    if len(values) != classes:
        raise ValueError("charges of other classes")
    return _Charges(values, raw, bool(values.any()), bool((values < 0).any()))
