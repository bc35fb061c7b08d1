"""Requested changes, the rows of requirements that users hold and held, and the roster of a slot (spec 10, 15.1). Pure.

Every registry stores these rows. A row that ended is kept while its requirement is in force.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import BoolArray, IntArray
from wevent.core.budget import NANO
from wevent.core.limits import MAX_LABEL_BYTES, MAX_WINDOW
from wevent.core.requirements import Population, Requirement
from wevent.counting.labels import Labels
from wevent.counting.roster import Roster
from wevent.counting.string_column import StringColumn
from wevent.errors import InvalidMembership
from wevent.people.classes import ClassHistory, Key, find_corner, find_counting_class, to_requirements

ERASED = "erased:"
"""Prefix of the digests of erased ids. No user may register such an id."""

_ID = re.compile(f"(?!{ERASED})[^\0\n\r\ud800-\udfff]+")
_AT_ONCE = 1 << 14
_WINDOW_BITS = MAX_WINDOW.bit_length()  # with at most 50 · 10⁹ nano-epsilons both fit in 64 bits


class Change(NamedTuple):
    """Requested change of one user. It takes effect at the next slot boundary.

    Attributes:
        action: "set" (join or change), "remove" (leave) or "erase" (leave, and replace the id by a digest).
        user: the id.
        key: the requirement, for "set".
        level: the level it was chosen by ("High/Small"), None for numbers.
    """

    action: Literal["set", "remove", "erase"]
    user: str
    key: Key | None = None
    level: str | None = None


class KeyColumn(Sequence[Key]):
    """The requirement of each of many users: a place in a short list.

    Args:
        distinct: the requirements that occur.
        codes: for each user which of them.
    """

    def __init__(self, distinct: list[Key], codes: npt.NDArray[np.integer[Any]]) -> None:
        self.distinct = distinct
        self.codes = codes

    @classmethod
    def of(cls, keys: Iterable[Key]) -> KeyColumn:
        """Return the column of these requirements."""
        numbers: dict[Key, int] = {}
        codes = np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), dtype=np.int32)
        return cls(list(numbers), codes)

    @classmethod
    def of_columns(cls, windows: IntArray, nanos: IntArray) -> KeyColumn:
        """Return the column of these windows and nano-epsilons."""
        both, codes = np.unique(nanos << _WINDOW_BITS | windows, return_inverse=True)
        distinct = zip((both & (1 << _WINDOW_BITS) - 1).tolist(), (both >> _WINDOW_BITS).tolist(), strict=True)
        return cls(list(distinct), codes)

    def sizes(self) -> dict[Key, int]:
        """Return the number of users that hold each requirement."""
        return dict(zip(self.distinct, np.bincount(self.codes, minlength=len(self.distinct)).tolist(), strict=True))

    def where(self, chosen: IntArray | slice) -> KeyColumn:
        """Return the column of some users. Requirements that none of them holds are not among the distinct ones."""
        used, codes = np.unique(self.codes[chosen], return_inverse=True)
        return KeyColumn([self.distinct[code] for code in used.tolist()], codes)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, place: Any) -> Any:
        return self.distinct[self.codes[place]]

    def __iter__(self) -> Iterator[Key]:
        return map(self.distinct.__getitem__, self.codes)


class Enrolment:
    """Users to register, as columns: `Change("set", …)` for each, without one object per user.

    Args:
        users: the ids, each once.
        keys: the requirement of each.
        words: the level each was chosen by; None for numbers.
    """

    def __init__(
        self, users: npt.NDArray[np.int64] | StringColumn, keys: KeyColumn, words: Sequence[str | None] | None = None
    ) -> None:
        self.users = (
            users if isinstance(users, StringColumn) else StringColumn.from_texts(list(map(str, users.tolist())))
        )
        self.keys, self.words = keys, words

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Change]:
        return (change for portion in self.portions(np.arange(len(self))) for change in portion)

    def portions(self, order: IntArray) -> Iterator[list[Change]]:
        """Yield the changes in an order, some thousands at a time."""
        for start in range(0, len(self), _AT_ONCE):
            rows = order[start : start + _AT_ONCE]
            words = [None] * len(rows) if self.words is None else [self.words[row] for row in rows.tolist()]
            columns = (
                self.users.where(rows).compact().texts(),
                map(self.keys.distinct.__getitem__, self.keys.codes[rows]),
                words,
            )
            yield [Change("set", user, key, level) for user, key, level in zip(*columns, strict=True)]


Changes = Sequence[Change] | Enrolment
"""Requested changes, one by one or as columns."""


def erased_id(user: str, salt: bytes) -> str:
    """Return the keyed digest under which the rows of an erased id are kept."""
    return ERASED + hashlib.blake2b(user.encode(), key=salt[:64], digest_size=20).hexdigest()


class Membership(NamedTuple):
    """A requirement that a user holds or held.

    Attributes:
        user: the id, or the digest of an erased one.
        window, nano: the requirement.
        level: the level it was chosen by, None for numbers.
        first: first slot. 0: the id was unknown through `last` and may have been counted as an unregistered user.
        last: last slot, None while it is held.
    """

    user: str
    window: int
    nano: int
    level: str | None
    first: int
    last: int | None

    @property
    def key(self) -> Key:
        """The requirement."""
        return self.window, self.nano


History = Sequence[Membership]
"""Every row of one user, under the id and under the digest of it."""


class Boundary:
    """A slot boundary at which changes take effect.

    Args:
        classes: classes of the journal.
        slot: first slot after the boundary.
        salt: key of the digests of ids.
    """

    def __init__(self, classes: ClassHistory, slot: int, salt: bytes) -> None:
        self._classes, self._slot, self._salt = classes, slot, salt
        self._unregistered = classes.unregistered_before(slot)

    def apply(self, history: History, change: Change) -> list[Membership]:
        """Return the rows of a user after a change."""
        if change.action != "set" or change.key is None:
            rows = self._end(history)
            return [self._erase(row) for row in rows] if change.action == "erase" else rows
        current = find_current(history)
        if current is not None and current.key == change.key:
            return [row._replace(level=change.level) if row is current else row for row in history]
        # an erased id may register again
        rows = [Membership(change.user, *row[1:]) for row in self._end(history)]
        if not history:  # the id was unknown, so it may have been counted as unregistered
            rows = [Membership(change.user, *key, None, 0, last) for key, last in self._unregistered]
        before = next((row for row in rows if row.key == change.key and row.last == self._slot - 1 and row.first), None)
        if before is not None:  # undone at the same boundary: one continuous membership
            rows.remove(before)
            return [*rows, before._replace(level=change.level, last=None)]
        return [*rows, Membership(change.user, *change.key, change.level, self._slot, None)]

    def _end(self, history: History) -> list[Membership]:
        current = find_current(history)
        return end_current(
            history, self._slot if current is None else self._classes.last_held(current.key, self._slot) + 1
        )

    def _erase(self, row: Membership) -> Membership:
        name = row.user if row.user.startswith(ERASED) else erased_id(row.user, self._salt)
        return row._replace(user=name, level=None)


def end_current(history: History, slot: int) -> list[Membership]:
    """Return the rows after the current membership ended before a slot. One that never began leaves no trace."""
    ended = (Membership(*row[:5], slot - 1) if row.last is None else row for row in history)
    return [row for row in ended if row.last is not None and row.last >= row.first]


def find_current(history: History) -> Membership | None:
    """Return the requirement that a user holds, None for a user who left."""
    return next((row for row in history if row.last is None), None)


def find_in_force(history: History, slot: int) -> set[Key]:
    """Return the requirements in force for a user in a slot, as far as the user's own rows go."""
    return {row.key for row in history if row.first <= slot and (row.last is None or slot < row.last + row.window)}


def drop_expired(history: Iterable[Membership], classes: ClassHistory, slot: int) -> list[Membership]:
    """Return the rows that are still kept in a slot."""
    return [row for row in history if row.last is None or classes.kept_through(row.window, row.last) >= slot]


class KnownIds:
    """Ids that are never counted as unregistered although they are no members: they left, or were erased.

    A requirement of theirs may still be in force, which the class of unregistered users does not cover (spec 15.1).

    Args:
        ids: ids with rows in the registry and no current membership, erased ids as digests.
        salt: key of the digests.
    """

    def __init__(self, ids: Iterable[str] = (), salt: bytes = b"") -> None:
        self._ids = frozenset(ids)
        self._salt = salt
        self._erased = any(name.startswith(ERASED) for name in self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def excludes(self, names: list[str]) -> BoolArray:
        """Return for each id that is not on the roster whether it may not be counted as unregistered."""
        excluded = np.array([name in self._ids or name.startswith(ERASED) for name in names], dtype=np.bool_)
        if self._erased:
            excluded |= [erased_id(name, self._salt) in self._ids for name in names]
        return excluded


def check_id(user: str) -> None:
    """Raise `InvalidMembership` for an id that no event or requirements file can have, or that looks like an erased one."""
    size = len(user.encode(errors="surrogatepass"))
    if size > MAX_LABEL_BYTES or not _ID.fullmatch(user):
        fix = f"Choose one of 1 to {MAX_LABEL_BYTES} bytes without NULs and line breaks that does not begin with {ERASED!r}."
        raise InvalidMembership("No user can have this id.", fix)


def check_epoch(checked: int | None, stored: int) -> None:
    """Raise `InvalidMembership` for changes checked against the terms of an earlier epoch than the last one stored."""
    if checked is not None and checked < stored:
        raise InvalidMembership("A new configuration version began at this moment. Nothing was changed.", "Ask again.")


def check_declared(key: Key, declared: Iterable[Key]) -> None:
    """Raise `InvalidMembership` for a requirement that users may not choose (spec 15.1, rule 2)."""
    if key not in declared:
        shown = f"{key[0]},{key[1] / NANO:g}"
        raise InvalidMembership(
            f"The requirement {shown} (window, epsilon) was not declared.",
            f"Choose a declared one, or declare it in a new configuration version (publish --reconfigure --declare {shown}).",
            requirement=key,
        )


def id_column(users: list[str] | StringColumn) -> npt.NDArray[np.int64] | StringColumn:
    """Return ids as int64 if each is a canonical whole number, else as text: numbers are found ten times faster."""
    texts = users if isinstance(users, StringColumn) else StringColumn.from_texts(users)
    numbers, whole = texts.whole_numbers()
    return numbers if len(texts) and whole.all() else texts


def differences(
    current: Mapping[str, tuple[Key, str | None]], wanted: Mapping[str, tuple[Key, str | None]]
) -> list[Change]:
    """Return the changes that turn the current registry into the requested one."""
    changes = [
        Change("set", user, key, level) for user, (key, level) in wanted.items() if current.get(user) != (key, level)
    ]
    changes += [Change("remove", user) for user in current if user not in wanted]
    return changes


class MemberColumns(NamedTuple):
    """Members as columns: ids, and the requirement that each holds."""

    users: StringColumn
    keys: KeyColumn


class TailColumns(NamedTuple):
    """Requirements that were held and may still be in force, as columns: ids, requirements, last slots held."""

    users: StringColumn
    keys: KeyColumn
    lasts: IntArray


NO_TAILS = TailColumns(
    StringColumn.from_texts(()), KeyColumn([], np.zeros(0, dtype=np.int32)), np.zeros(0, dtype=np.int64)
)


class Rosters:
    """Rosters of consecutive slots for one state of the registry.

    The counting classes change when a requirement is no longer in force; the members do not.

    Args:
        members: every member.
        tails: every requirement that ended. Rows of users who are no members are ignored.
        classes: classes of the journal.
        limit: maximum number of unregistered users that a slot counts.
        known: ids that are never counted as unregistered.
    """

    def __init__(
        self,
        members: MemberColumns,
        tails: TailColumns = NO_TAILS,
        *,
        classes: ClassHistory,
        limit: int = 0,
        known: KnownIds | None = None,
    ) -> None:
        self._keys = members.keys
        self._classes = classes
        self._limit = limit
        self._roster = Roster(
            id_column(members.users),
            np.zeros(len(members.keys), dtype=np.int64),
            _NOBODY,
            is_stranger=None if known is None else lambda names: ~known.excludes(names),
        )
        rows = self._roster.find(Labels.of(tails.users))
        found = np.flatnonzero(rows >= 0)
        self._tail_rows, self._tail_keys = rows[found], KeyColumn(tails.keys.distinct, tails.keys.codes[found])
        windows = _to_array(tails.keys.distinct)[:, 0]
        self._tail_ends = tails.lasts[found] + windows[self._tail_keys.codes]  # first slot in which it is not in force

    def next_change(self, slot: int) -> int | None:
        """Return the next slot whose roster differs although no user changes, None if there is none."""
        ends = self._tail_ends[self._tail_ends > slot]
        changes = [self._classes.next_change(slot), int(ends.min()) if len(ends) else None]
        return min((change for change in changes if change is not None), default=None)

    def at(self, slot: int) -> Roster:
        """Return the roster of a slot; nobody is on it while a version may have been lost."""
        in_force = np.flatnonzero(self._tail_ends > slot)
        live = self._classes.live(slot).union(self._keys.distinct, self._tail_keys.where(in_force).distinct)
        live |= {find_corner(live)}
        if self._classes.is_silent(slot):
            return Roster(id_column([]), _NO_ROWS, Population(dict.fromkeys(to_requirements(live), 0)))
        corners = self._find_corners(slot, in_force)
        order = {key: row for row, key in enumerate(sorted(live))}
        counted = np.array([order[find_counting_class([key], live)] for key in corners.distinct], dtype=np.int64)
        own = np.array([order[key] for key in self._keys.distinct], dtype=np.int64)
        rows = counted[corners.codes]
        sizes = np.bincount(rows, minlength=len(order))
        own_sizes = np.bincount(rows[rows == own[self._keys.codes]], minlength=len(order))
        unregistered = self._classes.unregistered_class(slot)
        row = None if unregistered is None else order[unregistered]
        if row is not None:  # counted on top of the members of the class, up to the declared number
            sizes[row] += self._limit
            own_sizes[row] += self._limit * (unregistered == self._classes.version_at(slot).unregistered)
        requirements = to_requirements(live)
        population = Population(
            dict(zip(requirements, sizes.tolist(), strict=True)),
            dict(zip(requirements, own_sizes.tolist(), strict=True)),
        )
        return self._roster.reclassify(
            rows, population, unknown_row=row, unknown_limit=0 if row is None else self._limit
        )

    def _find_corners(self, slot: int, in_force: IntArray) -> KeyColumn:
        """Return for each member the widest window and the smallest epsilon of the requirements in force."""
        doubted = self._classes.doubted(slot)
        distinct = [find_corner([key, *doubted]) for key in self._keys.distinct]
        if not len(in_force):
            return KeyColumn(distinct, self._keys.codes)
        users, places = np.unique(self._tail_rows[in_force], return_inverse=True)  # members in transition
        windows, nanos = _to_array(distinct)[self._keys.codes[users]].T.copy()
        tails = _to_array(self._tail_keys.distinct)[self._tail_keys.codes[in_force]]
        np.maximum.at(windows, places, tails[:, 0])
        np.minimum.at(nanos, places, tails[:, 1])
        moved, codes = KeyColumn.of_columns(windows, nanos), self._keys.codes.astype(np.int64)
        codes[users] = moved.codes + len(distinct)
        return KeyColumn(distinct + moved.distinct, codes)


def _to_array(keys: list[Key]) -> IntArray:
    return np.array(keys, dtype=np.int64).reshape(-1, 2)


_NO_ROWS: IntArray = np.zeros(0, dtype=np.int64)
_NOBODY = Population({Requirement.from_nano(1, 2): 0})
