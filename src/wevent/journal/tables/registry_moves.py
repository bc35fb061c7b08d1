"""Plain changes, many at once: who joins, leaves or goes from one requirement to another, and has no other past.

What becomes of such a user depends on the old and the new requirement alone, so it is worked out once for all who are
alike, by the same rule (`wevent.people.membership_history`). Everybody else is left to `wevent.journal.tables.registry_work`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from wevent.journal.tables.database import Database
from wevent.journal.tables.fingerprint import Fingerprint, row_text
from wevent.people.classes import ClassHistory
from wevent.people.membership import ERASED, Change
from wevent.people.membership_history import Boundary, Membership, find_current

ERASED_RANGE = (ERASED, ERASED[:-1] + chr(ord(ERASED[-1]) + 1))
"""Erased ids are from the one on and before the other."""

_ERASED_SIZE = 20  # bytes of the digest of an erased id


class _Kind(NamedTuple):
    """What becomes of users that are alike: rows as text without the id, and the new row."""

    gone: bytes | None
    ended: bytes | None
    come: bytes | None
    new: tuple[Any, ...] | None


class Moves:
    """Plain changes of one transaction that take effect in one slot.

    Args:
        database: the journal's connection.
        salt: its key.
        classes: classes of the journal.
        slot: the slot.

    Attributes:
        changed: whether any membership changed.
    """

    def __init__(self, database: Database, salt: bytes, classes: ClassHistory, slot: int) -> None:
        self._database, self._slot = database, slot
        self._boundary = Boundary(classes, slot, salt)
        self._keyed = hashlib.blake2b(key=salt[:64], digest_size=_ERASED_SIZE).copy
        self._kinds: dict[Any, _Kind] = {}
        self._unregistered = bool(classes.unregistered_before(slot))
        erased: list[Any] = database.execute(
            'SELECT DISTINCT "user" FROM members WHERE "user" >= ? AND "user" < ?',
            ERASED_RANGE,
        ).fetchall()
        self._erased = frozenset(user for (user,) in erased)
        self.changed = False

    def apply(self, queued: list[Any], rows: Iterable[Any], fingerprint: Fingerprint) -> list[Any]:
        """Put what is plain among queued changes in force.

        Args:
            queued: rows of the queue: id, action, user, window, nano, level.
            rows: every stored membership of their users.
            fingerprint: follows.

        Returns:
            The changes that are not plain.
        """
        apart = {user for user, number in Counter(asked[2] for asked in queued).items() if number > 1}
        only: dict[str, Any] = {}
        for stored in rows:
            if stored[0] in only:
                apart.add(stored[0])
            only[stored[0]] = stored
        left, ended, come = [], [], []
        gone_texts: list[bytes] = []
        come_texts: list[bytes] = []
        for asked in queued:
            _, action, user, window, nano, level = asked
            row: Any = only.get(user)
            kind = None
            if user not in apart and (row is not None or not self._unregistered):
                kind = self._kind(row and row[1:], action, window, nano, level)
            if kind is None or not self._is_plain(name := user.encode()):
                left.append(asked)
                continue
            if kind.gone is not None and kind.ended is not None:
                gone_texts.append(kind.gone + name)
                come_texts.append(kind.ended + name)
                ended.append((user, row[4], row[1], row[2]))
            if kind.come is not None and kind.new is not None:
                come_texts.append(kind.come + name)
                come.append((user, *kind.new))
        self._store(ended, come)
        self.changed = bool(ended or come)
        fingerprint.exchange(gone_texts, come_texts)
        return left

    def _store(self, ended: list[Any], come: list[Any]) -> None:
        last = self._slot - 1
        query = f'UPDATE members SET last = {last:d} WHERE "user" = ? AND first = ? AND "window" = ? AND nano = ?'
        self._database.executemany(query, ended)
        self._database.executemany("INSERT INTO members VALUES (?, ?, ?, ?, ?, ?)", come)

    def _is_plain(self, name: bytes) -> bool:
        """Whether an id was never erased."""
        if not self._erased:
            return True
        keyed = self._keyed()
        keyed.update(name)
        return ERASED + keyed.hexdigest() not in self._erased

    def _kind(self, row: Any, *change: Any) -> _Kind | None:
        """What becomes of all who have such a row, or none, and ask for such a change; None if that is not plain."""
        alike = row, change
        if alike not in self._kinds:
            self._kinds[alike] = self._worked_out(None if row is None else Membership("", *row), *change)
        kind = self._kinds[alike]
        return kind if kind.gone is not None or kind.come is not None else None

    def _worked_out(self, row: Membership | None, action: str, window: Any, nano: Any, level: Any) -> _Kind:
        nothing = _Kind(None, None, None, None)
        key = None if action != "set" or window is None else (window, nano)
        if row is None and key is None:
            return nothing
        if row is not None and (row.last is not None or row.first >= self._slot or row.key == key):
            return nothing
        if action not in ("set", "remove"):
            return nothing
        change = Change("remove" if key is None else "set", "", key, level)  # whoever it is
        after = self._boundary.apply([] if row is None else [row], change)
        ended = next((row_text(left) for left in after if left.last is not None), None)
        new = find_current(after)
        gone = None if row is None else row_text(row)
        return _Kind(gone, ended, *((None, None) if new is None else (row_text(new), new[1:])))
