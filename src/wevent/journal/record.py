"""Values that go into a journal and come out of it; a slot as it is stored.

A record of a slot has its charges and its release, never a count. It is stored as a short `SlotEntry`. The entry names its
population, charges and histogram by their SHA-256, and these are stored once as blobs. So the chain hash of an entry covers
everything that the slot shows and charges.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.mechanism import ErrorModel, Measurement
from wevent.core.requirements import Population, Requirement
from wevent.errors import InvalidJournal, StorageFailed
from wevent.journal.database import Database, maybe_row, only_row, stored_bytes
from wevent.journal.terms import Epoch, NewVersion, Terms
from wevent.publisher.confidence import (
    LEVEL,
    OutcomeWord,
    counts_everyone,
    interval_of,
    is_whole_error,
    outcome_word,
    traits_of,
)
from wevent.publisher.release import Release

RecordKind = Literal["published", "repeated", "nullified", "elsewhere"]

KINDS: tuple[RecordKind, ...] = ("published", "repeated", "nullified", "elsewhere")
_KIND_OF: dict[OutcomeWord, RecordKind] = {
    "fresh": "published",
    "repeated": "repeated",
    "estimated": "repeated",
    "nullified": "nullified",
}
_SAMPLE = 512  # values that show whether compressing helps
_ZLIB_LEVEL = 2  # of noisy counts 2 to 10 % longer than level 6, in a seventh to a half of its time
_ESTIMATE = ErrorModel("estimate", 0.0, 0.0)  # scale and variance are those of the standard error that is stored


@dataclass(frozen=True, eq=False)
class Shown:
    """The histogram that a slot shows, stored once for the slot that first shows it.

    Attributes:
        slot: the slot that first showed it.
        values: per cell; never −0.0.
        std_error: per cell, None before the first measurement.
        measured: the measurement made in that slot, None if the values changed without one.
        text: rendered parts, made once and reused by repeats.
    """

    slot: int
    values: FloatArray
    std_error: FloatArray | None
    measured: Measurement | None
    text: dict[str, bytes] = field(default_factory=dict)

    @cached_property
    def data(self) -> bytes:
        """The histogram as it is stored."""
        return encode_shown(self)

    @cached_property
    def digest(self) -> bytes:
        """The hash that names the histogram in the journal."""
        return hashlib.sha256(self.data).digest()


@dataclass(frozen=True, eq=False)
class Group:
    """A population in force.

    Attributes:
        population: the classes and their sizes.
        turnover: users who joined plus users who left since slot 1 (`Publisher.turnover`).
        data: as JSON, `turnover`, `classes` (window, nano-epsilons, size, users counted in their own class) and
            `unregistered` (see `of`).
        text: rendered parts, made once.
    """

    population: Population
    turnover: int
    data: bytes
    text: dict[str, bytes] = field(default_factory=dict)

    @cached_property
    def digest(self) -> bytes:
        """The hash that names the population in the journal."""
        return hashlib.sha256(self.data).digest()

    @classmethod
    def of(cls, population: Population, turnover: int, unregistered: tuple[int, int, int, int] | None = None) -> Group:
        """Return the group of a population.

        Args:
            population: the classes and their sizes.
            turnover: users who joined plus users who left since slot 1.
            unregistered: window and nano-epsilons of the class that unregistered users are counted in, how many at most,
                and how many known ids were kept out of it. None if unregistered users are not counted.
        """
        rows = [
            (held.window, held.nano, size, own)
            for (held, size), own in zip(population.items(), population.own.tolist(), strict=True)
        ]
        data = msgspec.json.encode({"turnover": turnover, "classes": rows, "unregistered": unregistered})
        return cls(population, turnover, data)

    @classmethod
    def from_data(cls, data: bytes) -> Group:
        """Return the group that was stored."""
        stored = msgspec.json.decode(data)
        sizes, own = dict[Requirement, int](), dict[Requirement, int]()
        for window, nano, size, counted in stored["classes"]:
            requirement = Requirement.from_nano(window, nano)
            sizes[requirement], own[requirement] = size, counted
        return cls(Population(sizes, own), stored["turnover"], data)


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A committed slot. Nothing of it is public before its transaction ends.

    Attributes:
        slot: its number.
        kind: outcome of the step, or "elsewhere": released by another copy of the journal, never drawn or emitted.
        epoch: the active configuration version.
        group: the population in force.
        probe, publication: nano-epsilons charged to each class.
        threshold: θ, None without a plan.
        dissimilarity: the noisy distance, None if it was not measured.
        shown: the histogram; None for "elsewhere".
        measured: the slot of the last measurement behind it, of this version; None before the first.
    """

    slot: int
    kind: RecordKind
    epoch: Epoch
    group: Group
    probe: IntArray
    publication: IntArray
    threshold: int | None
    dissimilarity: float | None
    shown: Shown | None
    measured: int | None = None

    @property
    def outcome(self) -> OutcomeWord:
        """The outcome, in the words of a release."""
        assert self.kind != "elsewhere", "a slot released elsewhere has no release"
        return outcome_word(self.kind, estimate=self._is_estimate())

    @property
    def is_empty(self) -> bool:
        """Whether nothing was measured yet: the zeros have no meaning."""
        return self.shown is not None and self.measured is None and self.shown.std_error is None

    def interval(self) -> tuple[FloatArray, FloatArray] | None:
        """Return the 95 % interval per cell, None without a valid one; see `wevent.publisher.confidence`."""
        shown, terms = self.shown, self.epoch.terms
        if shown is None or shown.std_error is None:
            return None
        fresh = self.kind == "published"
        measured = shown.measured if fresh else None
        law = _ESTIMATE if self._is_estimate() else None if measured is None else measured.error
        everyone = fresh and counts_everyone(self.publication, self.group.population.sizes, self.threshold)
        if law is None or not is_whole_error(law, traits_of(terms), terms, fresh=fresh, everyone=everyone):
            return None
        return interval_of(shown.values, shown.std_error, law, LEVEL)

    def _is_estimate(self) -> bool:
        """Return whether the numbers are those of a filter, or of a foreign mechanism that did not measure."""
        shown, traits = self.shown, traits_of(self.epoch.terms)
        if shown is None or shown.std_error is None:
            return False
        return shown.measured is None if traits is None else traits.filtered

    def entry(self) -> SlotEntry:
        """Return what is stored of the slot itself."""
        shown = self.shown
        return SlotEntry(
            self.slot,
            KINDS.index(self.kind),
            self.epoch.number,
            self.epoch.digest,
            self.group.digest,
            hash_charges(self.probe),
            hash_charges(self.publication),
            self.threshold,
            self.dissimilarity,
            0 if shown is None else shown.slot,
            b"" if shown is None else shown.digest,
            0 if self.measured is None else self.measured,
        )

    def blobs(self) -> dict[bytes, bytes]:
        """Return what the entry names, as stored, by hash."""
        found = {self.group.digest: self.group.data}
        for charges in (self.probe, self.publication):
            if key := hash_charges(charges):
                found[key] = encode_charges(charges)
        if self.shown is not None:
            found[self.shown.digest] = self.shown.data
        return found


class SlotEntry(msgspec.Struct, frozen=True, array_like=True):
    """The payload of a slot, element by element as in docs/reference/journal-format.md; an empty hash names nothing."""

    slot: int
    kind: int
    version: int
    version_digest: bytes
    population: bytes
    probe: bytes
    publication: bytes
    threshold: int | None
    dissimilarity: float | None
    shown: int
    histogram: bytes
    measured: int

    @property
    def blobs(self) -> tuple[bytes, ...]:
        """Hashes of everything that the entry names."""
        return tuple(key for key in (self.population, self.probe, self.publication, self.histogram) if key)


Hook = Callable[[str], None]
"""Called at each labelled step of the commit protocol. Kill tests use it."""


def no_hook(step: str) -> None:
    """Do nothing between the steps."""


class Batch(NamedTuple):
    """Slots that one transaction stores.

    Attributes:
        records: consecutive slots, the next one first.
        position: input position after them; None leaves it as it is.
        state: `Publisher.state()` after the last of them, None in most batches.
        emitted: last slot known to have been emitted.
    """

    records: Sequence[Record]
    position: Any
    state: bytes | None
    emitted: int


@dataclass(frozen=True, slots=True)
class Head:
    """Head of a journal.

    Attributes:
        committed: last committed slot, 0 before the first.
        emitted: last slot known to have been emitted; it may lag behind the truth, never run ahead.
        position: input position.
        digest: chain hash after the last committed slot.
        epoch: the active configuration version.
        copied: whether this is a backup that was not restored yet.
        first: first slot still kept (retention drops older ones).
        unsafe: reasons why the guarantee is weaker: "seeded noise", "start auto", "started over".
    """

    committed: int
    emitted: int
    position: Any
    digest: bytes
    epoch: Epoch
    copied: bool
    first: int
    unsafe: tuple[str, ...]

    @property
    def next_slot(self) -> int:
        return self.committed + 1

    @property
    def pinned(self) -> Terms | None:
        """The pinned configuration, None before the first slot: a start without slots pins nothing."""
        return self.epoch.terms if self.committed or self.copied else None


class Loaded(NamedTuple):
    """Head of a journal and state to resume from.

    Attributes:
        head: head of the journal.
        state: `Publisher.state()` of some committed slot, None before the first was stored.
        since: slots committed after that state.
        last: last committed slot.
    """

    head: Head
    state: bytes | None
    since: list[Record]
    last: Record | None


class Emitted(Protocol):
    """A journal, or a selection of its releases, as an output reads it; see `wevent.journal.Journal`."""

    @property
    def identity(self) -> str: ...

    def head(self) -> Head: ...

    def releases(self, first: int = 1) -> Iterator[Record]: ...

    def read_note(self) -> bytes: ...

    def write_note(self, data: bytes, *, force: bool = False) -> None: ...


class Revision(NamedTuple):
    """A state of the registry.

    Attributes:
        number: how often memberships have changed. −1: unknown.
        chain: hash over all of these states, hexadecimal, so that two copies that went on separately differ.
    """

    number: int
    chain: str


NO_REVISION = Revision(-1, "")


class Writer(NamedTuple):
    """A process that publishes into a journal, its host, and the time it began."""

    pid: int
    host: str
    since: str


def of_release(
    release: Release, measured: Measurement | None, epoch: Epoch, group: Group, last: Record | None
) -> Record:
    """Return the record of a step: the histogram of the last slot is shared if this one shows the same.

    Args:
        release: result of the publisher's step.
        measured: `publisher.measured`.
        epoch: the active configuration version.
        group: the population in force.
        last: the slot before, None for the first one of a version.
    """
    shown = None if last is None else last.shown
    if measured is not None or shown is None or not _same(release, shown):
        values = release.histogram + 0.0  # −0.0 would not survive the way through integers
        shown = Shown(release.slot, values, release.std_error, measured)
    return Record(
        release.slot,
        _KIND_OF[release.outcome],
        epoch,
        group,
        release.probe_charges,
        release.publication_charges,
        release.threshold,
        release.dissimilarity,
        shown,
        release.slot if measured is not None else None if last is None else last.measured,
    )


def chain_hash(previous: bytes, payload: bytes) -> bytes:
    """Return the chain hash after an entry."""
    return hashlib.sha256(previous + payload).digest()


def hash_charges(charges: IntArray) -> bytes:
    """Return the hash that names charges, empty if no user was charged."""
    raw = charges.astype("<i8").tobytes()
    return hashlib.sha256(raw).digest() if raw.strip(b"\0") else b""


def encode_charges(charges: IntArray) -> bytes:
    """Return charges as little-endian int64, compressed when that is shorter."""
    raw = charges.astype("<i8").tobytes()
    packed = zlib.compress(raw, _ZLIB_LEVEL)
    return b"z" + packed if len(packed) < len(raw) else b"r" + raw


def decode_charges(data: bytes) -> IntArray:
    """Return the counterpart of `encode_charges`."""
    raw = zlib.decompress(data[1:]) if data[:1] == b"z" else data[1:]
    return np.frombuffer(raw, dtype="<i8").astype(np.int64)


def encode_shown(shown: Shown) -> bytes:
    """Return values, standard error and measurement, each as short as it can be without losing a bit."""
    stored: list[Any] | None = None
    if (measured := shown.measured) is not None:
        kind = measured.values.dtype.kind
        exact = kind != "i" or bool((np.abs(shown.values) < 2.0**53).all())  # larger ones are rounded in a histogram
        same = exact and np.array_equal(measured.values, shown.values)
        own = None if same else _pack(measured.values)
        stored = [kind, own, list(measured.error), measured.composition, measured.users]
        if measured.anchor is not None or measured.lean is not None:  # a measurement of two sums
            anchor = None if measured.anchor is None else [_pack(measured.anchor[0]), list(measured.anchor[1])]
            stored += [anchor, None if measured.lean is None else _pack(measured.lean)]
    error: Any = None
    if shown.std_error is not None:
        first = float(shown.std_error[0])
        error = first if bool((shown.std_error == first).all()) else _pack(shown.std_error)
    return msgspec.msgpack.encode([_pack(shown.values), error, stored])


def decode_shown(slot: int, data: bytes) -> Shown:
    """Return the counterpart of `encode_shown`."""
    values_data, error, stored = msgspec.msgpack.decode(data)
    values = _unpack(values_data)
    std_error = None if error is None else np.full(len(values), error) if isinstance(error, float) else _unpack(error)
    measured = None
    if stored is not None:
        kind, own, law, composition, users, *second = stored
        anchor, lean = second or (None, None)
        typed = (values if own is None else _stored(own)).astype(np.int64 if kind == "i" else np.float64)
        measured = Measurement(
            typed,
            ErrorModel(*law),
            composition,
            users,
            None if anchor is None else (_unpack(anchor[0]), ErrorModel(*anchor[1])),
            None if lean is None else _unpack(lean),
        )
    shown = Shown(slot, values, std_error, measured)
    vars(shown)["data"] = data  # another zlib may pack the same values differently
    return shown


def _same(release: Release, last: Shown) -> bool:
    if not np.array_equal(release.histogram, last.values):
        return False
    if release.std_error is None or last.std_error is None:
        return release.std_error is last.std_error
    return np.array_equal(release.std_error, last.std_error)


def _pack(values: npt.NDArray[Any]) -> bytes:
    """Return whole numbers as int64, others as float64; compressed."""
    whole = values.dtype.kind == "i" or bool(np.all(np.abs(values) < 2.0**53) and np.all(values == np.floor(values)))
    stored = values.astype("<i8" if whole else "<f8")
    sample = stored[:: len(stored) // _SAMPLE + 1].tobytes()
    helps = len(zlib.compress(sample, _ZLIB_LEVEL)) < 0.9 * len(sample)  # of most floats it saves 2 %
    return (b"i" if whole else b"f") + zlib.compress(stored.tobytes(), _ZLIB_LEVEL if helps else 0)


def _stored(data: bytes) -> npt.NDArray[Any]:
    """Return values as they were packed: whole numbers of any size stay whole."""
    return np.frombuffer(zlib.decompress(data[1:]), dtype="<i8" if data[:1] == b"i" else "<f8")


def _unpack(data: bytes) -> FloatArray:
    return _stored(data).astype(np.float64)


_PAGE = 64  # slots that are read in one view
_CACHE_SIZE = 256  # blobs
_STATE_ROW_OVERHEAD = 1024  # bytes of a row beside the state, at most


class Transaction(msgspec.Struct, frozen=True, array_like=True):
    """Everything that one commit stores of its slots, as bytes: storing it again stores the same.

    Attributes:
        before, after: chain hashes before the first and after the last of its slots.
        entries: encoded `SlotEntry` of consecutive slots.
        blobs: hashes and contents of all that entries name and that may not be stored yet.
        position: where the input stands after them, as JSON; None leaves it.
        state: `Publisher.state()` after the last of them, None in most transactions.
        emitted: last slot known to have been emitted.
        version: the pending version that starts with the first slot; None without one.
    """

    first: int
    before: bytes
    after: bytes
    entries: list[bytes]
    blobs: list[tuple[bytes, bytes]]
    position: bytes | None
    state: bytes | None
    emitted: int
    version: NewVersion | None = None

    @property
    def last(self) -> int:
        """The last slot; `first - 1` without slots."""
        return self.first + len(self.entries) - 1


class SlotLog:
    """Slots of a journal. Writes happen inside the caller's transaction.

    Args:
        database: the journal's connection.
        version_of: returns the configuration version of a number.
    """

    def __init__(self, database: Database, version_of: Callable[[int], Epoch]) -> None:
        self._database, self._version_of = database, version_of
        self.clear_cache()

    def clear_cache(self) -> None:
        """Discard what is known of stored blobs: a transaction was lost, or blobs were deleted."""
        self._stored = set[bytes]()  # the last ones that were sent
        self._values = dict[tuple[bytes, int], Any]()  # decoded ones

    # Write

    def build(self, batch: Batch, end: tuple[int, bytes]) -> Transaction:
        """Return the transaction that appends slots after `end`, the last slot and its chain hash."""
        first, chain = end[0] + 1, end[1]
        entries, blobs = [], dict[bytes, bytes]()
        for record in batch.records:
            payload = msgspec.msgpack.encode(record.entry())
            chain = chain_hash(chain, payload)
            entries.append(payload)
            blobs.update((key, data) for key, data in record.blobs().items() if key not in self._stored)
        position = None if batch.position is None else msgspec.json.encode(batch.position)
        return Transaction(first, end[1], chain, entries, list(blobs.items()), position, batch.state, batch.emitted)

    def append(self, transaction: Transaction) -> None:
        """Store a transaction; a slot that is there already fails it."""
        chain, rows = transaction.before, []
        for slot, payload in enumerate(transaction.entries, transaction.first):
            chain = chain_hash(chain, payload)
            rows.append((slot, payload, chain))
        self._database.executemany("INSERT INTO blobs VALUES (?, ?) ON CONFLICT DO NOTHING", transaction.blobs)
        self._database.executemany("INSERT INTO slots VALUES (?, ?, ?)", rows)
        if len(self._stored) > _CACHE_SIZE:
            self._stored.clear()
        self._stored.update(key for key, _ in transaction.blobs)

    def advance(self, transaction: Transaction) -> None:
        """Store the end of the chain, the input position, and the state if there is one."""
        position = None if transaction.position is None else transaction.position.decode()
        self._database.execute(
            "UPDATE head SET committed = ?, chain = ?, position = coalesce(?, position),"
            " emitted = CASE WHEN emitted < ? THEN ? ELSE emitted END",
            (transaction.last, transaction.after, position, transaction.emitted, transaction.emitted),
        )
        state = transaction.state
        if state is None or len(state) + _STATE_ROW_OVERHEAD > self._database.largest_value:
            return  # without a newer state more slots are replayed
        self._database.execute("DELETE FROM state")
        row = (transaction.last, state, hashlib.sha256(state).digest())
        self._database.execute("INSERT INTO state VALUES (?, ?, ?)", row)

    def drop_before(self, first: int, anchor: bytes) -> None:
        """Delete the slots before `first` and the blobs that only they name; `anchor` is the chain hash before it."""
        run = self._database.execute
        run("UPDATE head SET first = ?, anchor = ?", (first, anchor))
        run("DELETE FROM slots WHERE slot < ?", (first,))
        kept: set[bytes] = set()
        for (payload,) in run("SELECT payload FROM slots"):
            kept.update(_decode_entry(payload).blobs)
        gone = [(key,) for (key,) in run("SELECT hash FROM blobs").fetchall() if stored_bytes(key) not in kept]
        self._database.executemany("DELETE FROM blobs WHERE hash = ?", gone)
        self.clear_cache()

    # Read

    def end(self) -> tuple[int, bytes]:
        """Return the last committed slot and its chain hash."""
        with self._database.readable():
            committed, chain = only_row(self._database, "SELECT committed, chain FROM head")
            return committed, stored_bytes(chain)

    def chain_at(self, slot: int) -> bytes | None:
        """Return the chain hash after a kept slot, or right before the first one; None elsewhere."""
        query = "SELECT chain FROM slots WHERE slot = ? UNION ALL SELECT anchor FROM head WHERE first = ? + 1 LIMIT 1"
        row = maybe_row(self._database, query, (slot, slot))
        return None if row is None else stored_bytes(row[0])

    def is_elsewhere(self, slot: int) -> bool:
        """Return whether another copy of the journal released a slot."""
        row = maybe_row(self._database, "SELECT payload FROM slots WHERE slot = ?", (slot,))
        return row is not None and KINDS[_decode_entry(row[0]).kind] == "elsewhere"

    def state(self) -> tuple[int, bytes | None]:
        """Return the stored state and its slot; (0, None) without one."""
        row = maybe_row(self._database, "SELECT slot, data, digest FROM state")
        if row is None:
            return 0, None
        slot, state, digest = row
        if hashlib.sha256(state).digest() != stored_bytes(digest):
            raise self._database.damaged()
        return slot, stored_bytes(state)

    def records(self, first: int) -> Iterator[Record]:
        """Yield the kept slots from `first` on, each verified against the chain.

        Raises:
            InvalidJournal: at the first slot that differs from what was stored.
            StorageFailed: if the writer drops slots that are still to be yielded.
        """
        wanted = first
        while True:
            page, damage = self._database.read(lambda slot=wanted: self._page(slot))  # type: ignore[misc]
            if page and wanted > first and page[0].slot != wanted:
                raise StorageFailed(
                    f"The publisher dropped slot {wanted} while releases were read (--keep).",
                    "Read them again, or publish with a larger --keep.",
                    path=self._database.name,
                )
            yield from page
            if damage is not None:
                raise damage
            if len(page) < _PAGE:
                return
            wanted = page[-1].slot + 1

    def _page(self, first: int) -> tuple[list[Record], InvalidJournal | None]:
        """Return up to a page of slots, and the error of the slot behind them if it is damaged."""
        page: list[Record] = []
        try:
            with self._database.readable():
                query = "SELECT slot, payload, chain FROM slots WHERE slot >= ? ORDER BY slot LIMIT ?"
                found = self._database.execute(query, (first, _PAGE)).fetchall()
                if not found:
                    return page, None
                chain = self.chain_at(found[0][0] - 1)
                if chain is None:
                    raise self._database.damaged()
                blobs = self._fetch(stored_bytes(payload) for _, payload, _ in found)
                for slot, payload, after in found:
                    chain = chain_hash(chain, stored_bytes(payload))
                    entry = _decode_entry(payload)
                    if chain != stored_bytes(after) or entry.slot != slot or slot != found[0][0] + len(page):
                        raise self._database.damaged()
                    page.append(self._to_record(entry, blobs))
        except InvalidJournal as damage:
            return page, damage
        return page, None

    def _fetch(self, payloads: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the blobs of a page with one query, except those that are cached."""
        wanted = {key for payload in payloads for key in _decode_entry(payload).blobs}
        wanted -= {key for key, _ in self._values}
        if not wanted:
            return {}
        query = f"SELECT hash, data FROM blobs WHERE hash IN ({', '.join('?' * len(wanted))})"
        return {stored_bytes(key): stored_bytes(data) for key, data in self._database.execute(query, tuple(wanted))}

    def _to_record(self, entry: SlotEntry, blobs: dict[bytes, bytes]) -> Record:
        version = self._version_of(entry.version)
        if version.digest != entry.version_digest:
            raise self._database.damaged()
        group: Group = self._value(entry.population, 0, blobs, Group.from_data)
        probe, publication = (
            self._value(key, 0, blobs, decode_charges) if key else np.zeros(len(group.population), dtype=np.int64)
            for key in (entry.probe, entry.publication)
        )
        return Record(
            entry.slot,
            KINDS[entry.kind],
            version,
            group,
            probe,
            publication,
            entry.threshold,
            entry.dissimilarity,
            self._value(entry.histogram, entry.shown, blobs, partial(decode_shown, entry.shown))
            if entry.histogram
            else None,
            entry.measured or None,
        )

    def _value(self, key: bytes, slot: int, blobs: dict[bytes, bytes], decode: Callable[[bytes], Any]) -> Any:
        """Return what a blob holds, checked against its hash; recent ones are cached, histograms by their slot too."""
        found = self._values.get((key, slot))
        if found is None:
            data = blobs.get(key)
            if data is None:
                data = stored_bytes(only_row(self._database, "SELECT data FROM blobs WHERE hash = ?", (key,))[0])
            found = decode(data)
            digest = hash_charges(found) if isinstance(found, np.ndarray) else found.digest
            if digest != key:
                raise self._database.damaged()
            if len(self._values) >= _CACHE_SIZE:
                self._values.clear()
            self._values[key, slot] = found
        return found


def _decode_entry(payload: Any) -> SlotEntry:
    return msgspec.msgpack.decode(stored_bytes(payload), type=SlotEntry)
