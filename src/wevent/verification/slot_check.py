"""Check of all kept slots: order, hash chain, blobs, outcomes, and the charges of every class in every window."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wevent.verification.journal_reader import ELSEWHERE, PUBLISHED, JournalTables, SlotRow, StoredEntry
from wevent.verification.membership_check import NANO, Run, find_unordered

_Array = npt.NDArray[np.int64]
_Key = tuple[int, int]
_KINDS = 4
_STRETCH = 16384  # slots that are added up at once
_CACHE_SIZE = 4096  # blobs
_CHANGED = "a blob that the slot names is missing or is not what was committed"


class PinnedVersion(NamedTuple):
    """First slot of a configuration version, and the SHA-256 of its pinned configuration."""

    first: int
    digest: bytes


class _Charges(NamedTuple):
    """Charges of one slot for one purpose."""

    values: _Array
    is_some: bool
    is_negative: bool


class _Population(NamedTuple):
    """Stored classes and sizes, and the requirements of the classes."""

    stored: dict[str, Any]
    keys: list[_Key]


class SlotCheck:
    """One pass over the slots of a journal.

    Args:
        reader: the journal.
        versions: configuration versions by number.
        add: reports a problem of a slot.

    Attributes:
        runs: consecutive slots with one stored population, for the check of memberships.
        elsewhere: first and last slots of stretches that another copy of the journal released.
        sums: largest spend of any window, by class.
    """

    def __init__(self, reader: JournalTables, versions: dict[int, PinnedVersion], add: Callable[..., None]) -> None:
        self._reader, self._versions, self._add = reader, versions, add
        self._charges: dict[bytes, _Charges] = {}
        self._populations: dict[bytes, _Population] = {}
        self._changed: set[bytes] = set()  # named blobs that are not what they are named by
        self._histograms: set[bytes] = set()  # named in the page before
        self._shown: tuple[int, bytes] | None = None
        self._run: tuple[bytes, int, bool] = (b"", 0, False)
        self._stretch: list[tuple[_Array, _Array]] = []  # charges for the probe and for the publication
        self._stretch_first, self._stretch_keys, self._stretch_elsewhere = 0, list[_Key](), False
        self.runs: list[Run] = []
        self.elsewhere: list[tuple[int, int]] = []
        self.sums: dict[_Key, WindowSums] = {}

    def run(self, first: int, chain: bytes) -> tuple[int, bytes]:
        """Check all slots.

        Args:
            first: first slot that the journal keeps.
            chain: chain hash before it.

        Returns:
            The last slot and its chain hash.
        """
        expected = first
        for page in self._reader.slot_pages():
            self._load([row.entry for row in page])
            for row in page:
                if row.slot != expected:
                    self._add(expected, f"slots {expected} to {row.slot - 1} are missing")
                expected = row.slot + 1
                chain = self._check_chain(row, chain)
                self._check_outcome(row.slot, row.entry)
                self._collect(row.slot, row.entry)
        self._close_stretch()
        return expected - 1, chain

    def _check_chain(self, row: SlotRow, before: bytes) -> bytes:
        slot, payload, entry, stored = row
        if hashlib.sha256(before + payload).digest() != stored or entry.slot != slot:
            self._add(slot, "the hash chain is broken: what is stored is not what was committed")
        version, following = self._versions.get(entry.version), self._versions.get(entry.version + 1)
        if (
            version is None
            or entry.version_digest != version.digest
            or slot < version.first
            or (following is not None and slot >= following.first)
        ):
            self._add(slot, "the configuration version is not the one that the slot was committed under")
        named = entry.population, entry.probe, entry.publication, entry.histogram
        if not self._changed.isdisjoint(named):
            self._changed.difference_update(named)  # reported once
            self._add(slot, _CHANGED)
        return stored

    def _check_outcome(self, slot: int, entry: StoredEntry) -> None:
        """Check that a slot shows its own histogram or that of the slot before, and charges what its outcome costs."""
        kind, shown, before = entry.kind, (entry.shown, entry.histogram), self._shown
        self._shown = shown if kind != ELSEWHERE else None
        if kind == ELSEWHERE:
            fits = shown == (0, b"")
        else:
            is_repeat = kind != PUBLISHED and 0 < entry.shown < slot and before in (None, shown)
            fits = 0 <= kind < _KINDS and entry.histogram != b"" and (entry.shown == slot or is_repeat)
        if not fits:
            self._add(slot, "the release does not fit the slot's outcome")
        probe, publication = self._charges_of(entry.probe), self._charges_of(entry.publication)
        if kind == PUBLISHED and (publication is None or not publication.is_some):
            self._add(slot, "a fresh release was charged to nobody")
        if any(charges is not None and charges.is_negative for charges in (probe, publication)):
            self._add(slot, "a charge is negative")

    # Blobs

    def _load(self, entries: list[StoredEntry]) -> None:
        """Read the populations and charges that slots name, and check the hashes of their histograms."""
        self._read_blobs({entry.population for entry in entries}, self._populations, self._read_population)
        charges = {name for entry in entries for name in (entry.probe, entry.publication) if name}
        self._read_blobs(charges, self._charges, self._read_charges)
        histograms = {entry.histogram for entry in entries if entry.histogram}
        new = histograms - self._histograms
        self._changed |= new - self._reader.intact_blobs(new)
        self._histograms = histograms

    def _read_blobs(
        self, names: Collection[bytes], cache: dict[bytes, Any], read: Callable[[bytes, bytes], Any]
    ) -> None:
        if len(cache) > _CACHE_SIZE:
            cache.clear()
        wanted = [name for name in names if name not in cache]
        cache.update((name, read(name, data)) for name, data in self._reader.blobs(wanted))
        if not cache.keys() >= set(wanted):
            raise LookupError(_CHANGED)

    def _read_population(self, name: bytes, data: bytes) -> _Population:
        self._check_hash(name, data)
        stored = json.loads(data)
        return _Population(stored, [(window, nano) for window, nano, *_ in stored["classes"]])

    def _read_charges(self, name: bytes, data: bytes) -> _Charges:
        raw = zlib.decompress(data[1:]) if data[:1] == b"z" else data[1:]
        self._check_hash(name, raw)
        values = np.frombuffer(raw, dtype="<i8").astype(np.int64)
        return _Charges(values, bool(values.any()), bool((values < 0).any()))

    def _check_hash(self, name: bytes, content: bytes) -> None:
        if hashlib.sha256(content).digest() != name:
            self._changed.add(name)

    def _charges_of(self, name: bytes) -> _Charges | None:
        return self._charges[name] if name else None

    # Charges and populations of consecutive slots

    def _collect(self, slot: int, entry: StoredEntry) -> None:
        """Collect the charges of a slot, to be added up with those of others with the same classes."""
        is_elsewhere, population = entry.kind == ELSEWHERE, self._populations[entry.population]
        if population.keys != self._stretch_keys:
            if population.keys != sorted(set(population.keys)):
                self._add(slot, "the classes are not in order")
            self._close_stretch()
        elif (slot, is_elsewhere) != (self._stretch_first + len(self._stretch), self._stretch_elsewhere):
            self._close_stretch()
        if not self._stretch:
            self._stretch_first, self._stretch_keys, self._stretch_elsewhere = slot, population.keys, is_elsewhere
        nothing = np.zeros(len(population.keys), dtype=np.int64)
        probe, publication = (
            nothing if charges is None else charges.values
            for charges in (self._charges_of(entry.probe), self._charges_of(entry.publication))
        )
        if not len(probe) == len(publication) == len(nothing):
            raise ValueError("charges of other classes")
        self._stretch.append((probe, publication))
        if len(self._stretch) == _STRETCH:
            self._close_stretch()
        self._extend_run(slot, entry, population, is_elsewhere)

    def _extend_run(self, slot: int, entry: StoredEntry, population: _Population, is_elsewhere: bool) -> None:
        if is_elsewhere:
            is_next = bool(self.elsewhere) and self.elsewhere[-1][1] == slot - 1
            self.elsewhere.append((self.elsewhere.pop()[0] if is_next else slot, slot))
        run = entry.population, entry.version, is_elsewhere
        if self.runs and self._run == run and self.runs[-1].last == slot - 1:
            self.runs[-1] = self.runs[-1]._replace(last=slot)
        else:
            self._run = run
            self.runs.append(Run(slot, slot, population.stored, is_elsewhere))

    def _close_stretch(self) -> None:
        """Add up the collected slots class by class, and compare classes."""
        if not self._stretch:
            return
        keys, first = self._stretch_keys, self._stretch_first
        probes, publications = (np.stack(part) for part in zip(*self._stretch, strict=True))
        if not self._stretch_elsewhere:
            for row, key in find_unordered(keys, probes, publications):
                self._report(first + row, "a class was charged more than a looser one", key)
        spends = np.ascontiguousarray(np.maximum(probes + publications, 0).T)
        for key, spend in zip(keys, spends, strict=True):
            for over in self.sums.setdefault(key, WindowSums(*key)).feed(first, spend):
                amounts = {"spend": over.spend / NANO, "limit": over.limit / NANO}
                self._report(over.slot, "a window was charged more than its epsilon", key, **amounts)
        self._stretch = []

    def _report(self, slot: int, problem: str, key: _Key, **facts: float) -> None:
        self._add(slot, problem, window=key[0], epsilon=key[1] / NANO, **facts)


class Overspent(NamedTuple):
    """A window that holds more than it may; `slot` is its last slot."""

    slot: int
    spend: int
    limit: int


class WindowSums:
    """The spend of every window of one class, fed slot by slot in stretches.

    Args:
        window: w, in slots.
        limit: ε in nano-epsilons.

    Attributes:
        worst: the largest spend of any window so far.
    """

    def __init__(self, window: int, limit: int) -> None:
        self.window, self.limit = window, limit
        self.worst = 0
        self._next: int | None = None
        self._tail = np.zeros(0, dtype=np.int64)  # the charges of the last w − 1 slots

    def feed(self, first: int, charges: npt.NDArray[np.int64]) -> list[Overspent]:
        """Add the charges of slots first, first + 1, …; slots that were left out charged nothing.

        A charge above the limit is a finding by itself and is counted as limit + 1, so that no sum can overflow.
        """
        gap = 0 if self._next is None else min(first - self._next, self.window)
        before = np.concatenate((self._tail, np.zeros(gap, dtype=np.int64)))[-(self.window - 1) :]
        before = before if self.window > 1 else before[:0]
        sums = np.concatenate(([0], np.cumsum(np.concatenate((before, np.minimum(charges, self.limit + 1))))))
        ends = np.arange(len(before) + 1, len(sums))
        spends = sums[ends] - sums[np.maximum(ends - self.window, 0)]
        self._tail = np.concatenate((before, charges))[-(self.window - 1) :] if self.window > 1 else self._tail
        self._next = first + len(charges)
        self.worst = max(self.worst, int(spends.max(initial=0)))
        over = np.flatnonzero(spends > self.limit)
        return [Overspent(first + int(index), int(spends[index]), self.limit) for index in over.tolist()]
