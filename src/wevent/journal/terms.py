"""The terms a journal pins: what the promise rests on and must not change unnoticed (spec 10)."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import msgspec

from wevent.core.requirements import Levels, Requirement
from wevent.core.settings import Options, option_kinds, option_text
from wevent.errors import InvalidJournal, SettingsDiffer
from wevent.people.classes import ClassHistory, Restore, VersionClasses, find_unregistered_class

SEEDED = "seeded noise"
"""What the privacy statement says of a journal that drew noise which can be repeated."""


@dataclass(frozen=True, kw_only=True)
class Terms(Options):
    """The pinned settings of a stream, its options among them; everything here is public.

    Attributes:
        stream: the stream's id.
        origin_us: where slot 1 starts, microseconds since 1970 (UTC); 0 for slots that have numbers and no times.
        length_us: how long a slot is; 1, which no clock has, for slots that have numbers and no times.
        cells: the number of cells, or their labels.
        declared: (window, nano-epsilons) of the classes that exist from the start.
        levels: {"privacy": {…}, "window": {…}}, with "combined" if such names are declared; None for numbers.
        unknown_users: how many unregistered users a slot may count; 0 rejects them.
    """

    stream: str
    origin_us: int
    length_us: int
    cells: int | list[Any]
    declared: list[tuple[int, int]]
    levels: dict[str, dict[str, Any]] | None = None
    unknown_users: int = 0

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """The declared classes."""
        return tuple(Requirement.from_nano(*key) for key in self.declared)

    @property
    def widest(self) -> int:
        """The widest declared window."""
        return max(window for window, _ in self.declared)

    @property
    def number_of_cells(self) -> int:
        """How many there are."""
        return self.cells if isinstance(self.cells, int) else len(self.cells)

    @property
    def has_clock(self) -> bool:
        """Whether slots have times; with a slot column they have numbers alone."""
        return (self.origin_us, self.length_us) != NO_CLOCK

    @property
    def slot_length_us(self) -> int | None:
        """How long a slot is, None without a clock."""
        return self.length_us if self.has_clock else None

    def slot_span(self, slot: int) -> tuple[str | None, str | None]:
        """Where a slot starts and where it ends, in UTC; None for both without a clock."""
        if not self.has_clock:
            return None, None
        start = self.origin_us + (slot - 1) * self.length_us
        return time_text(start), time_text(start + self.length_us)

    def slot_start(self, slot: int) -> datetime.datetime | None:
        """Return the start of a slot; None without a clock."""
        start, _ = self.slot_span(slot)
        return None if start is None else datetime.datetime.fromisoformat(start)

    @property
    def level_table(self) -> Levels | None:
        """The words that people may choose and what they stand for, None if only numbers were declared."""
        if self.levels is None:
            return None
        return Levels(self.levels["privacy"], self.levels["window"], self.levels.get("combined", {}))

    def differing(self, other: Terms) -> list[str]:
        """The names of the settings in which two terms differ."""
        mine, its = msgspec.to_builtins(self, enc_hook=str), msgspec.to_builtins(other, enc_hook=str)
        return [name for name in (*PERMANENT, *EPOCHAL) if mine[name] != its[name]]

    def check_same(self, other: Terms) -> None:
        """Refuse to resume with other settings, naming them.

        Raises:
            SettingsDiffer: with the names, and which of them no epoch can change.
        """
        names = self.differing(other)
        if not names:
            return
        permanent = [name for name in names if name in PERMANENT]
        shown = ", ".join(_shown(name, self, other) for name in names)
        raise SettingsDiffer(
            "the settings this journal was started with",
            f"others: {shown}",
            "These stay for the life of a journal: use them again, or start another journal (epsilons then add up)."
            if permanent
            else "Use them again, or say --new-epoch to go on with the new ones (every charge is kept).",
            names=tuple(names),
            permanent=tuple(permanent),
        )


NO_CLOCK = (0, 1)
"""Origin and length of slots that have numbers and no times: settings give no slot less than a millisecond."""

PERMANENT = ("stream", "origin_us", "length_us", *(name for name, kind in option_kinds().items() if kind.permanent))
"""What stays for the life of a journal: its charges mean nothing under other values."""

EPOCHAL = tuple(entry.name for entry in fields(Terms) if entry.name not in PERMANENT)
"""What an explicit new epoch may change; every charge stays."""


class Epoch(msgspec.Struct, frozen=True, dict=True):
    """Terms in force from a slot on.

    Attributes:
        number: 1, 2, 3, …
        first: its first slot.
        terms: the settings.
        text: the terms as they are stored; a later version of this program knows more options than the journal.
    """

    number: int
    first: int
    terms: Terms
    text: bytes = b""

    @cached_property
    def digest(self) -> bytes:
        """What the hash chain knows of it."""
        return hashlib.sha256(self.text or encode_terms(self.terms)).digest()

    @cached_property
    def classes(self) -> VersionClasses:
        """Classes of users."""
        declared, terms = frozenset(self.terms.declared), self.terms
        return VersionClasses(
            self.first, declared, find_unregistered_class(declared, terms.unknown_users, terms.neighbours)
        )


def class_history(epochs: Iterable[Epoch], restores: Iterable[Restore] = ()) -> ClassHistory:
    """Return the classes of a journal over time."""
    return ClassHistory((epoch.classes for epoch in epochs), restores)


def hash_versions(epochs: Iterable[Epoch], restores: Iterable[Restore] = ()) -> str:
    """Return a hash over configuration versions and over restores that may have lost one, hexadecimal."""
    parts = [epoch.first.to_bytes(8, "little") + epoch.digest for epoch in epochs]
    parts += [f"{restore.slot},{restore.silent_through};".encode() for restore in restores if restore.silent_through]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def encode_terms(terms: Terms) -> bytes:
    """Canonical JSON: sorted keys, no spaces; what is stored and hashed."""
    return msgspec.json.encode(terms, order="sorted", enc_hook=str)


def decode_terms(data: bytes | str) -> Terms:
    """The counterpart of `encode_terms`; an option that the journal does not know has its default.

    Raises:
        InvalidJournal: for an option that this program does not know.
    """
    unknown = sorted(msgspec.json.decode(data).keys() - {*PERMANENT, *EPOCHAL})
    if unknown:
        raise InvalidJournal(
            "a journal with options that this version knows",
            f"one with {', '.join(unknown)}",
            "Upgrade wevent; the journal is untouched.",
        )
    return replace(msgspec.json.decode(data, type=Terms))  # decoded, an object has no default of its own to be compared


def levels_to_plain(levels: Levels | None) -> dict[str, dict[str, Any]] | None:
    """A level table as it is pinned: epsilons as text, so that 0.1 stays 0.1."""
    if levels is None:
        return None
    plain: dict[str, dict[str, Any]] = {
        "privacy": {word: str(epsilon) for word, epsilon in levels.privacy.items()},
        "window": dict(levels.window),
    }
    return {**plain, "combined": dict(levels.combined)} if levels.combined else plain  # as journals had it before


_TIMES = {"length_us": "slot", "origin_us": "start"}  # the names people know


def time_text(time_us: int) -> str:
    """Microseconds since 1970 as text, in UTC."""
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=time_us)
    return moment.isoformat(timespec="microseconds" if moment.microsecond else "seconds") + "Z"


def _seconds_text(length_us: int) -> str:
    whole, part = divmod(length_us, 1_000_000)
    return f"{whole}.{part:06d}".rstrip("0").rstrip(".") + "s"


def _shown(name: str, mine: Terms, its: Terms) -> str:
    before, after = getattr(mine, name), getattr(its, name)
    if len(f"{before}{after}") > 80:
        return f"{name} (differs)"
    if name in _TIMES:
        text = time_text if name == "origin_us" else _seconds_text
        before, after = (
            text(value) if terms.has_clock else "slot numbers" for value, terms in ((before, mine), (after, its))
        )
        name = _TIMES[name]
    return f"{name} ({option_text(before)} in the journal, {option_text(after)} now)"
