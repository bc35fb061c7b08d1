"""Changes that users may ask for, and columns of many users. Pure (spec 10)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import BoolArray, IntArray
from wevent.core.budget import NANO
from wevent.core.limits import MAX_LABEL_BYTES
from wevent.counting.string_column import StringColumn
from wevent.errors import InvalidMembership
from wevent.people.classes import Key

ERASED = "erased:"
"""Prefix of the digests of erased ids. No user may register such an id."""

_NOT_IN_IDS = "\0\n\r"
_AT_ONCE = 1 << 14
Portion = tuple[list[str], list[int], Sequence[str | None]]


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


def find_used(numbers: npt.NDArray[np.integer[Any]]) -> tuple[IntArray, IntArray]:
    """Return the distinct numbers from 0 on, ascending, and for each number its place among them.

    Like `np.unique`, without sorting millions of small numbers.
    """
    size = int(numbers.max(initial=0)) + 1
    if size > len(numbers):
        return np.unique(numbers, return_inverse=True)
    is_used = np.zeros(size, dtype=np.bool_)
    is_used[numbers] = True
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[numbers]


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
        sizes, size_codes = find_used(windows)
        both, codes = np.unique(nanos * len(sizes) + size_codes, return_inverse=True)  # at most 50 · 10⁹ nano-epsilons
        places, found = both % max(len(sizes), 1), both // max(len(sizes), 1)
        return cls(list(zip(sizes[places].tolist(), found.tolist(), strict=True)), codes)

    def sizes(self) -> dict[Key, int]:
        """Return the number of users that hold each requirement."""
        return dict(zip(self.distinct, np.bincount(self.codes, minlength=len(self.distinct)).tolist(), strict=True))

    def where(self, chosen: IntArray | slice) -> KeyColumn:
        """Return the column of some users. Requirements that none of them holds are not among the distinct ones."""
        used, codes = find_used(self.codes[chosen])
        return KeyColumn([self.distinct[code] for code in used.tolist()], codes)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, place: Any) -> Any:
        return self.distinct[self.codes[place]]

    def __iter__(self) -> Iterator[Key]:
        for start in range(0, len(self), _AT_ONCE):
            yield from map(self.distinct.__getitem__, self.codes[start : start + _AT_ONCE].tolist())


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
        self.users, self.keys, self.words = users, keys, words

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Change]:
        for users, codes, words in self.portions(np.arange(len(self))):
            for user, code, level in zip(users, codes, words, strict=True):
                yield Change("set", user, self.keys.distinct[code], level)

    def sorted_portions(self) -> Iterator[Portion]:
        """Yield users, places of their keys, and levels, in about the order of ids, some thousands at a time."""
        return self.portions(self.users.order() if isinstance(self.users, StringColumn) else _text_order(self.users))

    def portions(self, order: IntArray) -> Iterator[Portion]:
        """Yield the same in another order."""
        for start in range(0, len(self), _AT_ONCE):
            rows = order[start : start + _AT_ONCE]
            users = self.users.where(rows).compact() if isinstance(self.users, StringColumn) else self.users[rows]
            words = [None] * len(rows) if self.words is None else [self.words[row] for row in rows.tolist()]
            yield list(map(str, users.tolist())), self.keys.codes[rows].tolist(), words


Changes = Sequence[Change] | Enrolment
"""Requested changes, one by one or as columns."""


def _text_order(numbers: npt.NDArray[np.int64]) -> IntArray:
    """Return the order of whole numbers by their texts, signs aside."""
    sizes = np.abs(numbers)
    digits = np.searchsorted(10 ** np.arange(1, 19), sizes, side="right") + 1
    return np.lexsort((digits, sizes * 10 ** (18 - digits)))


def erased_id(user: str, salt: bytes) -> str:
    """Return the keyed digest under which the rows of an erased id are kept."""
    return ERASED + hashlib.blake2b(user.encode(), key=salt[:64], digest_size=20).hexdigest()


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
        return np.array([self._excludes(name) for name in names], dtype=np.bool_)

    def _excludes(self, name: str) -> bool:
        if name in self._ids or name.startswith(ERASED):
            return True
        return self._erased and erased_id(name, self._salt) in self._ids


def check_id(user: str) -> None:
    """Refuse an id that no user can be registered under.

    Raises:
        InvalidMembership: for an empty id, one that looks like an erased one, one that is no text, one with a NUL or of too
            many bytes, which no event has, or one with a line break, which no requirements file can hold.
    """
    try:
        user.encode()
    except UnicodeEncodeError:
        raise InvalidMembership(
            "an id in UTF-8", "other bytes", "Write it in UTF-8, as events and requirements have it."
        ) from None
    if any(sign in user for sign in _NOT_IN_IDS):
        raise InvalidMembership("an id without NULs and line breaks", "one with such a character", "Choose another id.")
    size = len(user.encode())
    if size > MAX_LABEL_BYTES:
        raise InvalidMembership(
            f"an id of at most {MAX_LABEL_BYTES} bytes, without NULs",
            f"one of {size} bytes",
            "No event can have such an id: use a shorter one.",
        )
    if not user or user.startswith(ERASED):
        raise InvalidMembership(
            f"an id that is not empty and does not begin with {ERASED!r}",
            "an empty one" if not user else "one that does",
            "Erased users are kept under such names for a while: choose another id.",
        )


def check_ids(users: list[str]) -> None:
    """Refuse ids as `check_id` does."""
    together = "".join(users)
    is_plain = together.isascii() and max(map(len, users), default=0) <= MAX_LABEL_BYTES
    if not is_plain or "" in users or any(sign in together for sign in (*_NOT_IN_IDS, ERASED)):
        for user in users:
            check_id(user)


def check_epoch(checked: int | None, stored: int) -> None:
    """Refuse changes that were checked against the terms of an earlier epoch than the last one that is stored.

    Raises:
        InvalidMembership: if they were.
    """
    if checked is not None and checked < stored:
        raise InvalidMembership(
            f"a change under the terms of epoch {stored}",
            f"one that was checked against those of epoch {checked}",
            "A new epoch began at this moment and nothing was changed: ask again.",
        )


def check_declared(key: Key, declared: Iterable[Key]) -> None:
    """Refuse a requirement that was not declared: users choose declared classes only (spec 15.1, rule 2).

    Raises:
        InvalidMembership: if it was not declared.
    """
    if key not in declared:
        shown = f"{key[0]},{key[1] / NANO:g}"
        raise InvalidMembership(
            "a requirement that was declared",
            f"{shown} (window, epsilon)",
            f"Choose a declared one, or start a new epoch that declares it (publish --new-epoch --declare {shown}).",
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
