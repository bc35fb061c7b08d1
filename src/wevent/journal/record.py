"""One slot as a journal keeps it: charges and release, never a count; and the hash chain over slots.

A slot is stored as a short `SlotEntry`. The entry names its population, charges and histogram by their SHA-256, and these
are stored once as blobs. So the chain hash of an entry covers all that the slot shows and charges.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from wevent.core.arrays import FloatArray, IntArray
from wevent.core.mechanism import Measurement, NoiseError
from wevent.core.requirements import Population, Requirement
from wevent.journal.terms import Epoch
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
_SAMPLE = 512  # values, from which it is told whether compressing helps
_ZLIB_LEVEL = 2  # of noisy counts 2 to 10 % longer than level 6, in a seventh to a half of its time
_ESTIMATE = NoiseError("estimate", 0.0, 0.0)  # scale and variance are those of the standard error that is stored


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """The histogram that a slot shows, stored once for the slot that first shows it.

    Attributes:
        slot: the slot that first showed it.
        values: per cell; never −0.0.
        std_error: per cell, None before the first measurement.
        measured: the measurement made in that slot, None if the values changed without one.
    """

    slot: int
    values: FloatArray
    std_error: FloatArray | None
    measured: Measurement | None
    text: dict[str, bytes] = field(default_factory=dict)  # rendered parts, made once and reused by repeats

    @property
    def data(self) -> bytes:
        """The bytes that are stored."""
        if "data" not in self.text:
            self.text["data"] = encode_shown(self)
        return self.text["data"]

    @property
    def digest(self) -> bytes:
        """The hash that names the histogram in the journal."""
        if "digest" not in self.text:
            self.text["digest"] = hashlib.sha256(self.data).digest()
        return self.text["digest"]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """A population in force, with what the chain and the database know of it.

    Attributes:
        population: the classes and their sizes.
        turnover: users who joined plus users who left since slot 1 (`Publisher.turnover`).
        data: as JSON, `turnover`, `classes` (window, nano-epsilons, size, users counted in their own class) and
            `unregistered` (see `of`).
        digest: of the data.
    """

    population: Population
    turnover: int
    data: bytes
    digest: bytes
    text: dict[str, bytes] = field(default_factory=dict)  # rendered parts, made once

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
        return cls(population, turnover, data, hashlib.sha256(data).digest())

    @classmethod
    def from_data(cls, data: bytes) -> Group:
        """From stored bytes."""
        stored = msgspec.json.decode(data, type=_StoredGroup)
        requirements = [Requirement.from_nano(window, nano) for window, nano, _, _ in stored.classes]
        sizes, own = ([row[column] for row in stored.classes] for column in (2, 3))
        population = Population(dict(zip(requirements, sizes, strict=True)), dict(zip(requirements, own, strict=True)))
        return cls(population, stored.turnover, data, hashlib.sha256(data).digest())


class _StoredGroup(msgspec.Struct):
    turnover: int
    classes: list[tuple[int, int, int, int]]


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A committed slot: all of it is public but nothing of it was, before its transaction ended.

    Attributes:
        slot: its number.
        kind: what the step came to, or "elsewhere": released by another copy of the journal, never drawn or emitted.
        epoch: the terms in force.
        group: the population in force.
        probe, publication: nano-epsilons charged to each class.
        threshold: θ, None without a plan.
        dissimilarity: the noisy distance, None if it was not measured.
        shown: the histogram; None for "elsewhere".
        measured: the slot of the last measurement behind it, of this epoch; None before the first.
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
        """What the slot came to, in the words of a release."""
        assert self.kind != "elsewhere", "a slot released elsewhere has no release"
        return outcome_word(self.kind, estimate=self._is_estimate())

    @property
    def is_empty(self) -> bool:
        """Whether nothing was measured yet: zeros that say nothing."""
        return self.shown is not None and self.measured is None and self.shown.std_error is None

    def interval(self) -> tuple[FloatArray, FloatArray] | None:
        """The 95 % interval per cell, None where no honest one is known; see `wevent.publisher.confidence`."""
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
        """Whether the numbers are a filter's; of a mechanism that is not built in, whether they came without measuring."""
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

    def digest(self, previous: bytes) -> bytes:
        """Return the chain hash after this slot, given the one before."""
        return chain_hash(previous, msgspec.msgpack.encode(self.entry()))


class SlotEntry(msgspec.Struct, frozen=True, array_like=True):
    """What is stored of a slot; hashes are SHA-256 of what blobs contain, empty for none.

    Attributes:
        slot: its number.
        kind: place in `KINDS`.
        version: number of the configuration version.
        version_digest: of the pinned configuration.
        population: hash of the population.
        probe, publication: hashes of the charges as little-endian int64; empty if nobody was charged.
        threshold, dissimilarity: see `Record`.
        shown: slot that first showed the histogram, 0 without one.
        histogram: hash of the histogram.
        measured: slot of the last measurement, 0 for none.
    """

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


def chain_hash(previous: bytes, payload: bytes) -> bytes:
    """Return the chain hash after an entry."""
    return hashlib.sha256(previous + payload).digest()


def hash_charges(charges: IntArray) -> bytes:
    """Return the hash that names charges, empty if nobody was charged."""
    raw = charges.astype("<i8").tobytes()
    return hashlib.sha256(raw).digest() if raw.strip(b"\0") else b""


def of_release(
    release: Release, measured: Measurement | None, epoch: Epoch, group: Group, last: Record | None
) -> Record:
    """The record of a step: the histogram of the last slot is shared if this one shows the same.

    Args:
        release: what the publisher made.
        measured: `publisher.measured`.
        epoch: the terms in force.
        group: the population in force.
        last: the slot before, None for the first one of an epoch.
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


def encode_charges(charges: IntArray) -> bytes:
    """Charges as little-endian int64, compressed when that is shorter; empty if nothing was charged."""
    raw = charges.astype("<i8").tobytes()
    if not raw.strip(b"\0"):
        return b""
    packed = zlib.compress(raw, _ZLIB_LEVEL)
    return b"z" + packed if len(packed) < len(raw) else b"r" + raw


def decode_charges(data: bytes | None, classes: int) -> IntArray:
    """The counterpart of `encode_charges`."""
    if not data:
        return np.zeros(classes, dtype=np.int64)
    raw = zlib.decompress(data[1:]) if data[:1] == b"z" else data[1:]
    return np.frombuffer(raw, dtype="<i8").astype(np.int64)


def encode_shown(shown: Shown) -> bytes:
    """Values, standard error and measurement, each as short as it can be without losing a bit."""
    measured: Any = None
    if shown.measured is not None:
        kind = shown.measured.values.dtype.kind
        exact = kind != "i" or bool((np.abs(shown.values) < 2.0**53).all())  # larger ones are rounded in a histogram
        same = exact and np.array_equal(shown.measured.values, shown.values)
        own = None if same else _pack(shown.measured.values)
        measured = [kind, own, list(shown.measured.error), shown.measured.composition, shown.measured.users]
        measured += _encode_second(shown.measured)
    error: Any = None
    if shown.std_error is not None:
        first = float(shown.std_error[0])
        error = first if bool((shown.std_error == first).all()) else _pack(shown.std_error)
    return msgspec.msgpack.encode([_pack(shown.values), error, measured])


def decode_shown(slot: int, data: bytes) -> Shown:
    """The counterpart of `encode_shown`."""
    values_data, error, measured_data = msgspec.msgpack.decode(data)
    values = _unpack(values_data)
    std_error = None if error is None else np.full(len(values), error) if isinstance(error, float) else _unpack(error)
    measured = None
    if measured_data is not None:
        kind, own, law, *weighed = measured_data  # composition, users, and what there is of a second sum
        raw = values if own is None else _stored(own)
        composition, users = weighed[:2] or (0.0, 0)
        anchor, lean = _decode_second(weighed[2:])
        typed = raw.astype(np.int64 if kind == "i" else np.float64)
        measured = Measurement(typed, NoiseError(*law), composition, users, anchor, lean)
    return Shown(slot, values, std_error, measured, {"data": data})


def _encode_second(measured: Measurement) -> list[Any]:
    """Anchor and lean; nothing for a measurement of one sum, as journals had it before there were two."""
    if measured.anchor is None and measured.lean is None:
        return []
    anchor = None if measured.anchor is None else [_pack(measured.anchor[0]), list(measured.anchor[1])]
    return [anchor, None if measured.lean is None else _pack(measured.lean)]


def _decode_second(stored: list[Any]) -> tuple[tuple[FloatArray, NoiseError] | None, FloatArray | None]:
    """The counterpart of `_encode_second`."""
    anchor, lean = stored or (None, None)
    second = None if anchor is None else (_unpack(anchor[0]), NoiseError(*anchor[1]))
    return second, None if lean is None else _unpack(lean)


def _same(release: Release, last: Shown) -> bool:
    if not np.array_equal(release.histogram, last.values):
        return False
    if release.std_error is None or last.std_error is None:
        return release.std_error is last.std_error
    return np.array_equal(release.std_error, last.std_error)


def _pack(values: npt.NDArray[Any]) -> bytes:
    """Whole numbers as int64, others as float64; compressed."""
    whole = values.dtype.kind == "i" or bool(np.all(np.abs(values) < 2.0**53) and np.all(values == np.floor(values)))
    stored = values.astype("<i8" if whole else "<f8")
    sample = stored[:: len(stored) // _SAMPLE + 1].tobytes()
    helps = len(zlib.compress(sample, _ZLIB_LEVEL)) < 0.9 * len(sample)  # of most floats it saves 2 %
    return (b"i" if whole else b"f") + zlib.compress(stored.tobytes(), _ZLIB_LEVEL if helps else 0)


def _stored(data: bytes) -> npt.NDArray[Any]:
    """As they were packed: whole numbers stay whole, whatever their size."""
    return np.frombuffer(zlib.decompress(data[1:]), dtype="<i8" if data[:1] == b"i" else "<f8")


def _unpack(data: bytes) -> FloatArray:
    return _stored(data).astype(np.float64)
