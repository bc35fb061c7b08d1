"""What the registry adds up to: a keyed digest that follows every row that comes, goes or changes (spec 10).

Each row has a digest under the journal's own key; the registry's is their sum modulo 2^256. Adding or dropping a row adds
or subtracts its digest, so erasing and forgetting cost nothing extra, and a row that changed by itself no longer adds up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import apsw

from wevent.holdout import Key, Restore

_MODULUS = 1 << 256


class MemberRow(NamedTuple):
    """A membership as it is stored.

    Attributes:
        user: the id, or the digest of an erased one.
        window, nano: the requirement.
        level: the words it came from, None for numbers.
        since: the slot boundary since which the registry knows the id without a break. Later than `last`: only a note
            that the id was unknown until then and may have been counted as a stranger through `last`.
        first: the first slot in which it counts.
        last: the last slot of membership, None while it lasts.
    """

    user: str
    window: int
    nano: int
    level: str | None
    since: int
    first: int
    last: int | None

    @property
    def key(self) -> Key:
        """The requirement."""
        return self.window, self.nano


def member_rows(database: apsw.Connection, where: str = "", values: tuple[Any, ...] = ()) -> Iterator[MemberRow]:
    """Stored memberships, all of them or those that fit a condition."""
    query = f"SELECT user, window, nano, level, since, first, last FROM members {where}"
    rows: Iterator[Any] = database.execute(query, values)
    return (MemberRow(*row) for row in rows)


class Fingerprint:
    """The sum, while a transaction changes rows.

    Args:
        salt: the journal's key.
        stored: the sum before, as stored.
    """

    def __init__(self, salt: bytes, stored: bytes = bytes(32)) -> None:
        self._salt = salt
        self._sum = int.from_bytes(stored, "big")

    def add(self, row: MemberRow) -> None:
        """A row comes."""
        self._sum += row_digest(row, self._salt)

    def drop(self, row: MemberRow) -> None:
        """A row goes."""
        self._sum -= row_digest(row, self._salt)

    def add_restore(self, restore: Restore) -> None:
        """A restore was written down."""
        self._sum += restore_digest(restore, self._salt)

    def value(self) -> bytes:
        """The sum, as it is stored."""
        return (self._sum % _MODULUS).to_bytes(32, "big")


def row_digest(row: MemberRow, salt: bytes) -> int:
    """The digest of one membership; the text is unambiguous: numbers, then the level with its length, then the id."""
    user, window, nano, level, since, first, last = row
    size, words = (-1, "") if level is None else (len(level), level)
    text = f"{window},{nano},{since},{first},{-1 if last is None else last},{size},{words}{user}"
    return int.from_bytes(hashlib.blake2b(text.encode(), key=salt[:64], digest_size=32).digest(), "big")


def restore_digest(restore: Restore, salt: bytes) -> int:
    """The digest of one restore."""
    text = f"restore,{restore.slot},{restore.widest},{restore.proven},{int(restore.same_epoch)},"
    changed = b"-" if restore.changed is None else b"+" + restore.changed
    return int.from_bytes(hashlib.blake2b(text.encode() + changed, key=salt[:64], digest_size=32).digest(), "big")
