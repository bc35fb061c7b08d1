"""A registry of plain lists that stores nothing: the oracle of what queries do. Every rule is that of `wevent.people`."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from wevent.counting.string_column import StringColumn
from wevent.journal import Registry
from wevent.journal.record import Revision
from wevent.people.classes import ClassHistory, Key
from wevent.people.membership import (
    Boundary,
    Change,
    KeyColumn,
    MemberColumns,
    Membership,
    TailColumns,
    drop_expired,
    erased_id,
    find_current,
)


class PlainRegistry(Registry):
    """Changes applied one by one to the memberships of each id, or of the digest of an erased one."""

    salt = b""

    def __init__(self) -> None:
        self.salt = secrets.token_bytes(32)
        self.kept: dict[str, tuple[Membership, ...]] = {}
        self._queue: list[Change] = []
        self._revisions = 0

    def members(self) -> list[Membership]:
        return [row for row in self._every_row() if row.last is None]

    def rows(self) -> MemberColumns:
        rows = sorted(self.members(), key=lambda row: row.user.encode())
        return MemberColumns(StringColumn.from_texts([row.user for row in rows]), KeyColumn.of(row.key for row in rows))

    def tails(self, slot: int) -> TailColumns:
        rows = [row for row in self._every_row() if row.last is not None and row.last + row.window > slot]
        lasts = np.array([row.last for row in rows], dtype=np.int64)
        return TailColumns(
            StringColumn.from_texts([row.user for row in rows]), KeyColumn.of(row.key for row in rows), lasts
        )

    def former_ids(self) -> list[str]:
        return [user for user, rows in self.kept.items() if find_current(rows) is None]

    def remembers(self, user: str) -> bool:
        return user in self.kept

    def histories(self, users: Iterable[str]) -> Iterator[list[Membership]]:
        return (self._history(user) for user in users)

    def turnover(self, slot: int) -> int:
        joined = {row.user for row in self._every_row() if row.first == slot}
        left = {row.user for row in self._every_row() if row.last == slot - 1 and row.first}
        return len(joined ^ left)

    def sizes(self) -> dict[Key, int]:
        return dict(Counter(row.key for row in self.members()))

    def ask(self, changes: Iterable[Change], epoch: int | None = None, *, by_request: bool = False) -> int:
        wishes = list(changes)
        self._queue += wishes
        return len(wishes)

    def apply(self, slot: int, classes: ClassHistory, most: int | None = None) -> int:
        for user, rows in list(self.kept.items()):
            self._keep({user}, drop_expired(rows, classes, slot))
        boundary, changed, number = Boundary(classes, slot, self.salt), False, len(self._queue)
        for change in self._queue:
            before = self._history(change.user)
            after = boundary.apply(before, change)
            self._keep({change.user, erased_id(change.user, self.salt)}, after)
            changed |= after != before
        self._queue.clear()
        self._revisions += changed
        return number

    def next_expiry(self, classes: ClassHistory) -> int | None:
        ended = [(row.window, row.last) for row in self._every_row() if row.last is not None]
        return min((classes.kept_through(*row) + 1 for row in ended), default=None)

    def revision(self) -> Revision:
        return Revision(self._revisions, "")

    def check(self) -> None:
        assert all(rows for rows in self.kept.values())

    def _every_row(self) -> Iterator[Membership]:
        return (row for rows in self.kept.values() for row in rows)

    def _history(self, user: str) -> list[Membership]:
        return [*self.kept.get(user, ()), *self.kept.get(erased_id(user, self.salt), ())]

    def _keep(self, users: set[str], rows: Iterable[Membership]) -> None:
        rows = list(rows)
        for user in users:
            self.kept[user] = tuple(row for row in rows if row.user == user)
            if not self.kept[user]:
                del self.kept[user]
