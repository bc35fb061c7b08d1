"""Independent check of memberships: rows of users against the classes, sizes and charges of every slot (spec 15.5).

The module reads tables and shares no code with the registry or its rules. Rows that are no longer in force are
dropped. From slot `complete_from` on no row is missing, and sizes are compared exactly. In earlier slots the remaining rows
give lower bounds. So run the check at least once per window.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import islice, pairwise
from operator import ne
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

NANO = 1_000_000_000
"""Budgets are whole billionths of epsilon."""
Key = tuple[int, int]
Add = Callable[..., None]
Row = tuple[str, int, int, str | None, int, int | None]
"""User, window, nano-epsilons, level, first and last slot, as stored."""
Path = tuple[tuple[int, int, int, int], ...]
"""Window, nano-epsilons, first and last slot of every row of a user."""
State = tuple[frozenset[Key], Key | None]
"""Requirements in force for a user, and the one that the user holds. None: a known id that is no member."""

_Words = npt.NDArray[np.uint64]
_EVER = 1 << 62
_ERASED = "erased:"
_PORTION = 1 << 15
_PATH_KEY = secrets.randbits(64) | 1  # nobody can choose paths that collide
_FORMER: State = frozenset(), None


class Version(NamedTuple):
    """Classes of a configuration version, its class of unregistered users, and how many of them a slot counts."""

    first: int
    declared: frozenset[Key]
    unregistered: Key | None
    limit: int

    @classmethod
    def from_terms(cls, first: int, terms: Any) -> Version:
        """Read stored settings."""
        declared = frozenset((window, nano) for window, nano in terms["declared"])
        limit, (window, nano) = int(terms.get("unknown_users", 0)), _corner(declared)
        unregistered = (window, nano if terms["neighbours"] == "replace" else nano // 2) if limit else None
        return cls(first, declared, unregistered, limit)

    @property
    def classes(self) -> frozenset[Key]:
        """Declared classes and that of unregistered users."""
        return self.declared | ({self.unregistered} if self.unregistered else set())


class RestoreRow(NamedTuple):
    """Slots through `slot` were released elsewhere; `doubted` is a JSON list of requirements, as stored."""

    slot: int
    silent_through: int
    doubted: str

    @property
    def keys(self) -> frozenset[Key]:
        """Requirements in doubt."""
        return frozenset((window, nano) for window, nano in json.loads(self.doubted))


class Run(NamedTuple):
    """Consecutive slots with one stored population."""

    first: int
    last: int
    population: dict[str, Any]
    elsewhere: bool


class JournalRows(NamedTuple):
    """Tables of a journal.

    Attributes:
        rows: rows of users. Rows of one id are adjacent, and erased ids come first.
        stored: checksum of the registry.
        complete_from: slot at whose boundary rows were last dropped: no row that is in force from there on is missing.
    """

    rows: Iterable[Row]
    restores: list[RestoreRow]
    versions: list[Version]
    runs: list[Run]
    salt: bytes
    stored: bytes
    committed: int
    complete_from: int


def check_memberships(journal: JournalRows, add: Add) -> None:
    """Report everything that the rules forbid: `add(slot, problem, **facts)`."""
    paths, checksum = _read_paths(journal)
    if checksum != journal.stored:
        add(journal.committed, "the registry does not add up: a membership is not what was stored")
    rules = _Rules(journal.versions, journal.restores)
    for restore in journal.restores:
        if restore.keys and not rules.version(restore.slot).classes <= restore.keys:
            add(restore.slot, "a restore leaves out a requirement that users may have held in slots released elsewhere")
    for path in paths:
        _check_path(journal, rules, path, add)
    _Sweep(journal, rules, paths, add).run()


def find_unordered(
    keys: list[Key], probes: npt.NDArray[np.int64], publications: npt.NDArray[np.int64]
) -> Iterator[tuple[int, Key]]:
    """Yield the first row in which a class was charged more than a looser one, for each such pair, and the class.

    Rows are slots, columns are classes.
    """
    for one, strict in enumerate(keys):
        for other, loose in enumerate(keys):
            if one != other and _is_as_strict(strict, loose):
                wrong = (probes[:, one] > probes[:, other]) | (publications[:, one] > publications[:, other])
                if wrong.any():
                    yield int(wrong.argmax()), strict


def _is_as_strict(one: Key, other: Key) -> bool:
    return one[0] >= other[0] and one[1] <= other[1]


def _corner(keys: Iterable[Key]) -> Key:
    windows, nanos = zip(*keys, strict=True)
    return max(windows), min(nanos)


@lru_cache(maxsize=1 << 14)
def _counting_class(required: frozenset[Key], live: frozenset[Key]) -> Key | None:
    """Return the loosest of these classes that is at least as strict as all requirements."""
    corner = _corner(required)
    fitting = (key for key in live if _is_as_strict(key, corner))
    return max(fitting, key=lambda key: (Fraction(key[1], key[0]), key[1], -key[0]), default=None)


class _Rules(NamedTuple):
    """Classes that follow from versions and restores."""

    versions: list[Version]
    restores: list[RestoreRow]

    def version(self, slot: int) -> Version:
        return next((one for one in reversed(self.versions) if one.first <= slot), self.versions[0])

    def live(self, slot: int) -> frozenset[Key]:
        live = set(self.version(slot).classes)
        for before, after in pairwise(self.versions):
            dropped = before.classes - after.classes
            live |= {key for key in dropped if after.first <= slot <= after.first + key[0] - 1}
        return frozenset(live | {_corner(live)})

    def doubted(self, slot: int) -> frozenset[Key]:
        return frozenset(key for one in self.restores for key in one.keys if one.slot < slot <= one.slot + key[0] - 1)

    def is_silent(self, slot: int) -> bool:
        return any(one.slot < slot <= one.silent_through for one in self.restores)

    def unregistered(self, slot: int) -> Key | None:
        """Return the class that unregistered users are counted in."""
        own, live = self.version(slot).unregistered, self.live(slot)
        widest = _corner(live)[0]
        doubted = any(one.keys and one.slot < slot <= one.slot + widest - 1 for one in self.restores)
        if own is None or doubted or self.is_silent(slot):
            return None
        return _counting_class(frozenset({own, *self.unregistered_before(slot)}), live)

    def unregistered_before(self, slot: int) -> dict[Key, int]:
        """Return the classes in force in which an id may have been counted as unregistered, each with its last slot."""
        last: dict[Key, int] = {}
        for version, end in zip(self.versions, [one.first - 1 for one in self.versions[1:]] + [_EVER], strict=True):
            if version.unregistered and version.first < slot:
                last[version.unregistered] = min(end, slot - 1)
        return {key: end for key, end in last.items() if slot <= end + key[0] - 1}

    def widest(self, slot: int) -> int:
        """Return for how many slots an id that left in a slot is kept at least, for any window of the id."""
        past = [one for one in self.versions if one.first <= slot]
        return max((key[0] for one in past for key in one.classes), default=1) if any(one.limit for one in past) else 1

    def changes(self) -> set[int]:
        """Return the slots in which classes may change."""
        starts = [one.first for one in self.versions] + [one.slot + 1 for one in self.restores]
        keys = frozenset[Key]().union(*(one.classes for one in self.versions), *(one.keys for one in self.restores))
        ends = {start + window - less for start in starts for window, _ in {*keys, (1, 0)} for less in (0, 1)}
        return ends | {one.silent_through + 1 for one in self.restores}


def _read_paths(journal: JournalRows) -> tuple[Counter[Path], bytes]:
    """Return how many users have which path, and the checksum of all rows. An id and its digest are one user."""
    total = 0
    for slot, silent_through, doubted in journal.restores:
        text = f"{slot},{silent_through},{doubted}".encode()
        total += int.from_bytes(hashlib.blake2b(text, key=journal.salt, digest_size=8).digest(), "little")
    paths: Counter[Path] = Counter()
    erased: dict[str, Path] = {}
    for rows in _read_portions(journal.rows):
        users, windows, nanos, levels, firsts, lasts = zip(*rows, strict=True)
        ends = [-1 if last is None else last for last in lasts]
        numbers = np.array([windows, nanos, firsts, ends]).astype(np.uint64)
        total += int(_hash_rows(users, numbers, levels, journal.salt).sum(dtype=np.uint64))
        starts = np.flatnonzero(np.array([True, *map(ne, users, users[1:])]))
        spans = list(pairwise([*starts.tolist(), len(rows)]))
        is_apart = np.zeros(len(starts), dtype=np.bool_)
        if erased or users[0].startswith(_ERASED):
            for place, (start, end) in enumerate(spans):
                user, path = users[start], _to_path(rows[start:end])
                digest = hashlib.blake2b(user.encode(), key=journal.salt[:64], digest_size=20).hexdigest()
                if user.startswith(_ERASED):
                    erased[user] = path
                elif _ERASED + digest in erased:
                    paths[tuple(sorted(path + erased.pop(_ERASED + digest)))] += 1
                else:
                    continue
                is_apart[place] = True
        alike = np.add.reduceat(_mix(_weigh(numbers, _PATH_KEY), _PATH_KEY), starts)[~is_apart]
        _, found, counts = np.unique(alike, return_index=True, return_counts=True)
        for place, number in zip(np.flatnonzero(~is_apart)[found].tolist(), counts.tolist(), strict=True):
            paths[_to_path(rows[slice(*spans[place])])] += number
    paths.update(erased.values())
    return paths, (total % (1 << 64)).to_bytes(8, "little")


def _read_portions(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield some thousands of rows at a time, all rows of a user together."""
    reading, portion = iter(rows), list[Row]()
    while more := list(islice(reading, _PORTION)):
        portion += more
        end = next((place for place in range(len(portion), 0, -1) if portion[place - 1][0] != portion[-1][0]), 0)
        if end:
            yield portion[:end]
        portion = portion[end:]
    if portion:
        yield portion


def _to_path(rows: Iterable[Row]) -> Path:
    return tuple(
        sorted((window, nano, first, _EVER if last is None else last) for _, window, nano, _, first, last in rows)
    )


def _hash_rows(users: Sequence[str], numbers: _Words, levels: Sequence[str | None], salt: bytes) -> _Words:
    """Return the hash of every row, as documented in docs/reference/journal-format.md."""
    user_key, level_key, number_key, key = (word | 1 for word in struct.unpack("<4Q", salt[:32]))
    hashes = _weigh(_to_words(users), user_key) + _weigh(numbers, number_key)
    if any(levels):
        hashes += _weigh(_to_words([level or "" for level in levels]), level_key)
    return _mix(hashes, key)


def _to_words(texts: Sequence[str]) -> _Words:
    """Return texts as UTF-8 in words of eight bytes, a row per word, with zeros behind the end of a text."""
    encoded = [text.encode() for text in texts]
    count = -(-max(map(len, encoded)) // 8)
    return np.array(encoded, dtype=f"S{8 * max(1, count)}").view("<u8").reshape(len(texts), -1).T


def _weigh(words: _Words, key: int) -> _Words:
    """Add up the hashes of the words of each row: word i is hashed with key to the power of i + 1."""
    total = np.zeros(words.shape[1], dtype=np.uint64)
    for number, column in enumerate(words, start=1):
        total += _mix(column, pow(key, number, 1 << 64))
    return total


def _mix(words: _Words, key: int) -> _Words:
    product = words * np.uint64(key)
    return (product ^ (product >> np.uint64(32))) * np.uint64(key)


def _known_from(path: Path) -> int:
    """Return the first slot in which the registry knew an id. First slot 0 of a row: the id was unknown before."""
    noted = [last + 1 for _, _, first, last in path if not first]
    return max(noted) if noted else min(first for _, _, first, _ in path)


def _check_path(journal: JournalRows, rules: _Rules, path: Path, add: Add) -> None:
    """Check that a user held one requirement at a time, and that rows say where the user may have been unregistered."""
    for (_, last), (first, _) in pairwise(sorted(row[2:] for row in path if row[2])):
        if first <= last:
            add(first, "a user holds two requirements at once")
    known = _known_from(path)
    if known < journal.complete_from:
        return  # rows that were dropped may have made the id known earlier
    for key, end in rules.unregistered_before(known).items():
        is_kept = end + key[0] - 1 > journal.committed
        if is_kept and not any(row[:2] == key and row[3] >= end for row in path):
            problem = "a user who joined may have been counted as unregistered, and no row says so"
            add(known, problem, window=key[0], epsilon=key[1] / NANO)


def _find_changes(journal: JournalRows, rules: _Rules, paths: Counter[Path]) -> dict[int, Counter[State]]:
    """Return by how many users each state grows in which slot."""
    changes: dict[int, Counter[State]] = defaultdict(Counter)
    begin, end = (journal.runs[0].first if journal.runs else 1), journal.committed + 1
    for path, number in paths.items():
        known = _known_from(path)
        gone = max(last + max(window, rules.widest(last)) for window, _, _, last in path)
        points = {known, gone}.union(*((first, last + 1, last + window) for window, _, first, last in path))
        for slot, following in pairwise(sorted({min(max(point, begin), end) for point in points})):
            held = [row[:2] for row in path if row[2] and row[2] <= slot <= row[3]]
            in_force = frozenset(row[:2] for row in path if row[2] <= slot <= row[3] + row[0] - 1)
            if held or known <= slot < gone:
                state: State = (in_force, held[-1]) if held else _FORMER
                changes[slot][state] += number
                changes[following][state] -= number
    return changes


class _Sweep:
    """One pass over the slots in which the states of users, the classes or the population change."""

    def __init__(self, journal: JournalRows, rules: _Rules, paths: Counter[Path], add: Add) -> None:
        self._journal, self._rules, self._add = journal, rules, add
        self._changes = _find_changes(journal, rules, paths)
        self._states: Counter[State] = Counter()
        self._required: Counter[Key] = Counter()  # number of users per requirement in force
        self._ruled, self._doubted = rules.live(0), rules.doubted(0)
        self._live: frozenset[Key] = frozenset()
        self._sizes: Counter[Key] = Counter()
        self._own: Counter[Key] = Counter()
        self._reported: set[tuple[str, Key | None]] = set()

    def run(self) -> None:
        ruled, runs = self._rules.changes(), iter(self._journal.runs)
        points = {*ruled, *self._changes, *(run.first for run in self._journal.runs), self._journal.complete_from}
        run = next(runs, None)
        for slot in sorted(points):
            while run is not None and run.last < slot:
                run = next(runs, None)
                self._reported.clear()
            self._move(slot, self._changes.get(slot, Counter()), is_ruled=slot in ruled)
            if run is not None and run.first <= slot:
                self._check(slot, run)

    def _move(self, slot: int, moved: Counter[State], *, is_ruled: bool) -> None:
        """Put users in their states of a slot. Count all of them again if the classes changed."""
        self._states.update(moved)
        for (required, _), number in moved.items():
            self._required.update(dict.fromkeys(required, number))
        before = self._live, self._doubted
        if is_ruled:
            self._ruled, self._doubted = self._rules.live(slot), self._rules.doubted(slot)
        live = self._ruled.union(key for key, number in self._required.items() if number)
        self._live = live | {_corner(live)}
        if (self._live, self._doubted) != before:
            moved = self._states = +self._states
            self._sizes, self._own = Counter(), Counter()
        for (required, held), number in moved.items():
            if held is not None:
                counted = _counting_class(required | self._doubted, self._live) or (0, 0)
                self._sizes[counted] += number
                self._own[counted] += number * (held == counted)

    def _check(self, slot: int, run: Run) -> None:
        """Compare a stored population with the states of users."""
        used = {(window, nano): (size, own) for window, nano, size, own in run.population["classes"]}
        is_silent, version = self._rules.is_silent(slot), self._rules.version(slot)
        live = version.declared if run.elsewhere else self._ruled if is_silent else self._live
        for missing in live - used.keys():
            self._report(slot, "a live class is missing", missing)
        if run.elsewhere:
            return
        counted = self._check_unregistered(slot, run, version)
        if slot < self._journal.complete_from and not is_silent:
            self._check_bounds(slot, {key: size - counted.get(key, 0) for key, (size, _) in used.items()})
            return
        for key in used.keys() | self._sizes.keys():
            size, own = (0, 0) if is_silent else (self._sizes[key], self._own[key])
            size += counted.get(key, 0)
            own += counted.get(key, 0) * (key == version.unregistered)
            if used.get(key, (0, 0))[0] != size:
                self._report(slot, "the size of a class is not the number of users that the rules count in it", key)
            elif used.get(key, (0, 0))[1] != own:
                self._report(slot, "the number of users who are counted in their own class is wrong", key)

    def _check_unregistered(self, slot: int, run: Run, version: Version) -> dict[Key, int]:
        """Return how many unregistered users a slot may have counted in which class."""
        expected, stored = self._rules.unregistered(slot), run.population["unregistered"]
        found = None if stored is None else (stored[0], stored[1])
        if found != expected or (stored and stored[2] != version.limit):
            problem = "unregistered users were not counted in the class that the rules give"
            self._report(slot, problem, found or expected)
        if stored and stored[3] < self._states[_FORMER]:
            self._report(slot, "known ids may have been counted as unregistered users", found)
        return {} if found is None else {found: stored[2]}

    def _check_bounds(self, slot: int, members: dict[Key, int]) -> None:
        """Check that each class and its stricter ones together counted all users who are known to need that."""
        corners: Counter[Key] = Counter()
        for (required, held), number in self._states.items():
            if held is not None:
                corners[_corner(required | self._doubted)] += number
        for key in members:
            least = sum(number for corner, number in corners.items() if _is_as_strict(corner, key))
            if sum(size for other, size in members.items() if _is_as_strict(other, key)) < least:
                self._report(slot, "users were counted in a looser class than a requirement in force allows", key)

    def _report(self, slot: int, problem: str, key: Key | None) -> None:
        """Report a problem once per run and class."""
        if (problem, key) not in self._reported:
            self._reported.add((problem, key))
            self._add(slot, problem, **({} if key is None else {"window": key[0], "epsilon": key[1] / NANO}))
