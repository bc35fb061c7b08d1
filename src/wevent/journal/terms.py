"""Configuration versions of a journal: the pinned settings that the guarantee rests on (spec 10). Pure."""

from __future__ import annotations

import datetime
import hashlib
import logging
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from wevent.core.budget import NANO
from wevent.core.options import Options, option_kinds, option_text, option_values
from wevent.core.requirements import Levels
from wevent.errors import InvalidJournal, InvalidRequirement, SettingsDiffer
from wevent.people.classes import ClassHistory, Key, Restore, VersionClasses, find_unregistered_class
from wevent.people.membership import Change
from wevent.settings.values import format_time, span_text

if TYPE_CHECKING:
    from wevent.journal.journal import Journal

_log = logging.getLogger("wevent.journal.terms")

SEEDED = "seeded noise"
"""Entry of the privacy statement for a journal that drew noise which can be repeated."""

_RELATIONS = {
    "add_remove": "in some slots of one span of `window` slots a user is in a cell in one stream and absent in the "
    "other; hiding which cell a present user was in costs up to twice epsilon",
    "replace": "in the slots of one span of `window` slots a user's record is any other",
}


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
    def widest(self) -> int:
        """The widest declared window."""
        return max(window for window, _ in self.declared)

    @property
    def number_of_cells(self) -> int:
        return self.cells if isinstance(self.cells, int) else len(self.cells)

    @property
    def has_clock(self) -> bool:
        """True if slots have times; with a slot column they have numbers alone."""
        return (self.origin_us, self.length_us) != NO_CLOCK

    @property
    def slot_length_us(self) -> int | None:
        """The length of a slot, None without a clock."""
        return self.length_us if self.has_clock else None

    def slot_span(self, slot: int) -> tuple[str | None, str | None]:
        """Return the start and the end of a slot, in UTC; None for both without a clock."""
        if not self.has_clock:
            return None, None
        start = self.origin_us + (slot - 1) * self.length_us
        return format_time(start), format_time(start + self.length_us)

    def slot_start(self, slot: int) -> datetime.datetime | None:
        """Return the start of a slot; None without a clock."""
        start, _ = self.slot_span(slot)
        return None if start is None else datetime.datetime.fromisoformat(start)

    @property
    def level_table(self) -> Levels | None:
        """The levels that users may choose, None if only numbers were declared."""
        if self.levels is None:
            return None
        return Levels(self.levels["privacy"], self.levels["window"], self.levels.get("combined", {}))

    def differing(self, other: Terms) -> list[str]:
        """Return the names of the settings in which two terms differ."""
        mine, its = msgspec.to_builtins(self, enc_hook=str), msgspec.to_builtins(other, enc_hook=str)
        return [name for name in (*PERMANENT, *EPOCHAL) if mine[name] != its[name]]

    def check_same(self, other: Terms) -> None:
        """Refuse to resume with other settings, naming them.

        Raises:
            SettingsDiffer: with the names, and those of them that no version can change.
        """
        names = self.differing(other)
        if not names:
            return
        permanent = tuple(name for name in names if name in PERMANENT)
        defaults = {
            name: (getattr(Options(), name), kind.shown) for name, kind in option_kinds().items() if kind.of_mechanism
        }
        implied = [  # a new mechanism brings its own defaults
            name for name in names if "mechanism" in names and getattr(other, name) in defaults.get(name, ())
        ]
        shown = ", ".join(_shown(name, self, other) for name in names if name not in implied)
        raise SettingsDiffer(
            f"The settings differ from those that this journal was started with: {shown}.",
            "These stay for the life of a journal: use them again, or start another journal (epsilons then add up)."
            if permanent
            else "Use them again, or say --reconfigure to go on with the new ones (every charge is kept).",
            names=tuple(names),
            permanent=permanent,
        )


NO_CLOCK = (0, 1)
"""Origin and length of slots that have numbers and no times: settings give no slot less than a millisecond."""

PERMANENT = ("stream", "origin_us", "length_us", *(name for name, kind in option_kinds().items() if kind.permanent))
"""Settings that stay for the life of a journal: its charges mean nothing under other values."""

EPOCHAL = tuple(entry.name for entry in fields(Terms) if entry.name not in PERMANENT)
"""Settings that a new configuration version may change; every charge stays."""


class Epoch(msgspec.Struct, frozen=True, dict=True):
    """A configuration version.

    Attributes:
        number: 1, 2, 3, …
        first: its first slot.
        terms: its settings.
        text: the settings as they are stored; a later version of this program has more options than the journal.
    """

    number: int
    first: int
    terms: Terms
    text: bytes = b""

    @cached_property
    def digest(self) -> bytes:
        """Hash of the settings; the hash chain covers it."""
        return hashlib.sha256(self.text or encode_terms(self.terms)).digest()

    @cached_property
    def classes(self) -> VersionClasses:
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
    """Return canonical JSON: sorted keys, no spaces. It is stored and hashed."""
    return msgspec.json.encode(terms, order="sorted", enc_hook=str)


def decode_terms(data: bytes | str) -> Terms:
    """Return the counterpart of `encode_terms`; an option that the journal lacks has its default.

    Raises:
        InvalidJournal: for an option that this version lacks.
    """
    unknown = sorted(msgspec.json.decode(data).keys() - {*PERMANENT, *EPOCHAL})
    if unknown:
        raise InvalidJournal(
            f"This version does not have options of the journal: {', '.join(unknown)}.",
            "Upgrade wevent; the journal is untouched.",
        )
    return replace(msgspec.json.decode(data, type=Terms))  # decoded, an object has no default of its own to be compared


def levels_to_plain(levels: Levels | None) -> dict[str, dict[str, Any]] | None:
    """Return a level table as it is pinned: epsilons as text, so that 0.1 stays 0.1."""
    if levels is None:
        return None
    plain: dict[str, dict[str, Any]] = {
        "privacy": {word: str(epsilon) for word, epsilon in levels.privacy.items()},
        "window": dict(levels.window),
    }
    return {**plain, "combined": dict(levels.combined)} if levels.combined else plain


def _shown(name: str, mine: Terms, its: Terms) -> str:
    values = [getattr(terms, name) for terms in (mine, its)]
    if len("".join(map(str, values))) > 80:
        return f"{name} (differs)"
    if name in ("origin_us", "length_us"):
        text = format_time if name == "origin_us" else span_text
        values = [
            text(value) if terms.has_clock else "slot numbers" for value, terms in zip(values, (mine, its), strict=True)
        ]
        name = "start" if name == "origin_us" else "slot"
    before, after = map(option_text, values)
    return f"{name} ({before} in the journal, {after} now)"


class NewVersion(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """A configuration version that begins, and the changes of the registry that come with it.

    Attributes:
        number: its number.
        first: its first slot.
        terms: its settings, encoded.
        unsafe: reasons why the guarantee is weaker.
        changes: changes of the registry.
        imported: digest of the requirements file that they come from.
        imported_before: digest of the file that was imported last when the version was requested.
        held_after: last request that the registry may apply before its first slot.
    """

    number: int
    first: int
    terms: bytes
    unsafe: tuple[str, ...]
    changes: list[Change]
    imported: bytes | None = None
    imported_before: bytes | None = None
    held_after: int | None = None

    @cached_property
    def epoch(self) -> Epoch:
        """The version without its changes."""
        return Epoch(self.number, self.first, decode_terms(self.terms), self.terms)


def changes_to_queue(
    terms: Terms, changes: Iterable[Change], since: Iterable[Change], levels: Mapping[str, str | None] | None
) -> list[Change]:
    """Return the changes to queue with the first slot of a version: the requests made meanwhile, then its own changes.

    A user who requested anything meanwhile gets that, and none of the version's changes. A requested level has the numbers
    of the version's table; a level that it lacks keeps the numbers it had. After another requirements file was imported
    meanwhile, only new numbers of levels that users hold are left of the version's changes: that file is the later one.

    ▲ A request for a class that the version does not declare becomes "remove": no user counts under a weaker requirement
    than the requested one, and the publisher goes on.

    Args:
        terms: settings of the version.
        changes: its own changes.
        since: the requests, in order.
        levels: the level that every member holds, if another file was imported meanwhile; None otherwise.
    """
    requests, refused = list[Change](), set[Key]()
    for change in since:
        if change.level is not None and terms.level_table is not None:
            try:
                change = change._replace(key=terms.level_table.choose(change.level).key)
            except InvalidRequirement:
                change = change._replace(level=None)
        if change.key is not None and change.key not in terms.declared:
            refused.add(change.key)
            change = Change("remove", change.user)
        requests.append(change)
    for window, nano in sorted(refused):
        _log.warning(
            "a requirement was requested that the new configuration version does not allow: window %d, epsilon %g. The user "
            "is not counted until a request for a declared one (private: do not publish this line)",
            window,
            nano / NANO,
        )
    asked = {change.user for change in requests}
    kept = (change for change in changes if change.user not in asked)
    if levels is not None:
        kept = (change for change in kept if change.level is not None and levels.get(change.user) == change.level)
    return [*requests, *kept]


def privacy_statement(journal: Journal) -> dict[str, Any]:
    """Return everything that a reader of the releases may want to know about their privacy (spec 1 and 10)."""
    head = journal.head()
    terms = head.epoch.terms
    return {
        "promise": "(w, epsilon)-EPDP: for every user and any two neighbouring streams the probability of any set of "
        "outputs differs by at most a factor e^epsilon, epsilon and window being the user's own",
        "neighbours": terms.neighbours,
        "neighbouring_streams": _RELATIONS[terms.neighbours],
        "sensitivity": terms.sensitivity,
        "max_cells_per_user": terms.max_cells_per_user,
        "stream": terms.stream,
        "slot_length_us": terms.slot_length_us,
        "slot_origin": format_time(terms.origin_us) if terms.has_clock else None,
        "epochs": [_public(epoch) for epoch in journal.epochs()],
        "slots": head.committed,
        "charges": "integer nano-epsilons; every window of every class stays within its epsilon (wevent verify)",
        "composition": "another journal over the same people adds its epsilons to these",
        "unsafe": list(head.unsafe),
        "versions": program_versions(),
    }


def _public(epoch: Epoch) -> dict[str, Any]:
    terms, unregistered = epoch.terms, epoch.classes.unregistered
    return {
        "number": epoch.number,
        "first_slot": epoch.first,
        **option_values(terms),
        "cells": terms.number_of_cells,
        "classes": [{"window": window, "epsilon": nano / NANO} for window, nano in terms.declared],
        "unknown_users": None
        if unregistered is None
        else {"number": terms.unknown_users, "window": unregistered[0], "epsilon": unregistered[1] / NANO},
    }


def program_versions() -> dict[str, str]:
    """Return the versions of the programs that make releases."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import, seldom needed

    found = {"python": platform.python_version()}
    for package in ("wevent", "opendp"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found
