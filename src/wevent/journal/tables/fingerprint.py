"""What the registry adds up to: a keyed digest that follows every row that comes, goes or changes (spec 10).

Each row has a digest of 32 bytes under the journal's own key; the registry's is their sum, four 64-bit lanes that wrap.
Adding or dropping a row adds or subtracts its digest, so erasing and forgetting cost nothing extra, and a row that changed
by itself no longer adds up.
"""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from wevent.journal.tables.database import Database
from wevent.people.classes import Key, Restore
from wevent.people.membership_history import Membership

_SIZE = 32
_LANES = "<u8"
ROW_TEXT = (
    "\"window\" || ',' || nano || ',' || first || ',' || coalesce(last, -1) || ',' ||"
    " CASE WHEN level IS NULL THEN '-1,' ELSE length(level) || ',' || level END || "
)
"""`row_text` in SQL, without the id: millions of rows are added up at once."""

SELECT_ROWS = 'SELECT "user", "window", nano, level, first, last FROM members'


def member_rows(database: Database, where: str = "", values: tuple[Any, ...] = ()) -> Iterator[Membership]:
    """Stored memberships, all of them or those that fit a condition."""
    return (Membership(*row) for row in database.execute(f"{SELECT_ROWS} {where}", values))


class Fingerprint:
    """The sum, while a transaction changes rows.

    Args:
        salt: the journal's key.
        stored: the sum before, as stored.
    """

    def __init__(self, salt: bytes, stored: bytes = bytes(_SIZE)) -> None:
        self._salt = salt
        self._sum = np.frombuffer(stored, dtype=_LANES).copy()

    def add(self, rows: Iterable[Membership]) -> None:
        """Rows come."""
        self._sum += _lanes([row_text(row) for row in rows], self._salt)

    def drop(self, rows: Iterable[Membership]) -> None:
        """Rows go."""
        self._sum -= _lanes([row_text(row) for row in rows], self._salt)

    def exchange(self, gone: list[bytes], come: list[bytes]) -> None:
        """Rows go and others come, as `row_text`."""
        self._sum += _lanes(come, self._salt)
        self._sum -= _lanes(gone, self._salt)

    def add_alike(self, rows: Iterable[Membership], each: Iterable[int], users: Iterable[str]) -> None:
        """Rows come that are like few rows without an id: for each user which of them."""
        starts = [row_text(row) for row in rows]
        self._sum += _lanes(list(map(operator.add, map(starts.__getitem__, each), map(str.encode, users))), self._salt)

    def add_all(self, database: Database) -> None:
        """Every stored membership comes."""
        for texts in database.member_texts():
            self._sum += _lanes(texts, self._salt)

    def add_restore(self, restore: Restore) -> None:
        """A restore was written down."""
        text = f"restore,{restore.slot},{restore.silent_through},{encode_keys(restore.doubted)}"
        self._sum += _lanes([text.encode()], self._salt)

    def value(self) -> bytes:
        """The sum, as it is stored."""
        return self._sum.tobytes()


def encode_keys(keys: Iterable[Key]) -> str:
    """Return requirements as they are stored."""
    return json.dumps(sorted(keys), separators=(",", ":"))


def row_text(row: Membership) -> bytes:
    """One membership as text, unambiguous: numbers, then the level with its length, then the id."""
    user, window, nano, level, first, last = row
    size, words = (-1, "") if level is None else (len(level), level)
    return f"{window},{nano},{first},{-1 if last is None else last},{size},{words}{user}".encode()


def _lanes(texts: list[bytes], salt: bytes) -> npt.NDArray[np.uint64]:
    """The sum of keyed digests, lane by lane; it wraps."""
    keyed = hashlib.blake2b(key=salt, digest_size=_SIZE).copy  # taking the key in once saves a third of the time
    digests: list[bytes] = []
    for text in texts:
        hashed = keyed()
        hashed.update(text)
        digests.append(hashed.digest())
    lanes = np.frombuffer(b"".join(digests), dtype=_LANES).reshape(-1, 4)
    total: npt.NDArray[np.uint64] = lanes.sum(axis=0, dtype=np.uint64)
    return total
