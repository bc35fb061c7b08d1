"""A registry of plain lists, for tests: every rule is `wevent.people`'s, nothing is clever."""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np

from wevent.counting.string_column import StringColumn
from wevent.errors import StaleJournal
from wevent.journal import Registry
from wevent.journal.record import Revision
from wevent.people.classes import ClassHistory, Key, Restore
from wevent.people.membership import (
    Boundary,
    Change,
    KeyColumn,
    MemberColumns,
    Membership,
    TailColumns,
    check_epoch,
    check_id,
    drop_expired,
    erased_id,
    find_current,
)

_UNCHANGED = Revision(0, "")


@dataclass
class StoredRegistry:
    """What a registry stores.

    Attributes:
        salt: the key of digests of ids.
        histories: memberships by id, or by the digest of an erased one.
        queue: changes that wait.
        restores: in slot order.
        copied: whether it is that of a backup.
        revision: state of the registry.
        by_request: users who joined by request.
        together: whether all queued changes take effect at once.
    """

    salt: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    histories: dict[str, tuple[Membership, ...]] = field(default_factory=dict)
    queue: tuple[Change, ...] = ()
    restores: tuple[Restore, ...] = ()
    copied: bool = False
    revision: Revision = _UNCHANGED
    by_request: frozenset[str] = frozenset()
    together: bool = False


class MemoryRegistry(Registry):
    """Another implementation of every method of `Registry`.

    Args:
        stored: what is stored now.
        transaction: within it, `stored` may be changed: all of it or nothing.
        witness: stores a revision outside the journal, before it is committed.
        epochs: how many are stored.
    """

    def __init__(
        self,
        stored: Callable[[], StoredRegistry],
        transaction: Callable[[], AbstractContextManager[object]],
        witness: Callable[[Revision], None],
        epochs: Callable[[], int],
    ) -> None:
        self._epochs = epochs
        self._stored, self._transaction, self._witness = stored, transaction, witness
        self.before: int | None = None  # queued changes that may be applied before the first slot of the next epoch

    @property
    def salt(self) -> bytes:
        return self._stored().salt

    def members(self) -> list[Membership]:
        return [row for row in self._every_row() if row.last is None]

    def rows(self) -> MemberColumns:
        rows = sorted((row for row in self._every_row() if row.last is None), key=lambda row: row.user.encode())
        return MemberColumns(StringColumn.from_texts([row.user for row in rows]), KeyColumn.of(row.key for row in rows))

    def tails(self, slot: int) -> TailColumns:
        rows = [row for row in self._every_row() if row.last is not None and row.last + row.window > slot]
        lasts = np.array([row.last for row in rows], dtype=np.int64)
        return TailColumns(
            StringColumn.from_texts([row.user for row in rows]), KeyColumn.of(row.key for row in rows), lasts
        )

    def former_ids(self) -> list[str]:
        return [user for user, rows in self._stored().histories.items() if find_current(rows) is None]

    def holds(self, user: str) -> bool:
        wishes = [change for change in self._stored().queue if change.user == user]
        if wishes:
            return wishes[-1].action == "set"
        return find_current(self._stored().histories.get(user, ())) is not None

    def remembers(self, user: str) -> bool:
        return user in self._stored().histories

    def histories(self, users: Iterable[str]) -> Iterator[list[Membership]]:
        return (self._history(user) for user in users)

    def turnover(self, slot: int) -> int:
        joined = {row.user for row in self._every_row() if row.first == slot}
        left = {row.user for row in self._every_row() if row.last == slot - 1 and row.first}
        return len(joined ^ left)

    def sizes(self) -> dict[Key, int]:
        return dict(Counter(row.key for row in self._every_row() if row.last is None))

    def joined_by_request(self) -> frozenset[str]:
        return self._stored().by_request

    def file_imported(self, since: Iterable[Change]) -> None:
        """Whoever is registered is in a file now, but for those who asked since. Inside a transaction."""
        stored = self._stored()
        stored.by_request &= {change.user for change in since if change.action == "set"}

    def ask(self, changes: Iterable[Change], epoch: int | None = None, *, by_request: bool = False) -> int:
        wishes = tuple(changes)
        for change in wishes:
            check_id(change.user)
        if self._stored().copied:
            raise StaleJournal("the journal", "a backup", "Restore it first.", committed=0, released=None)
        check_epoch(epoch, self._epochs())
        with self._transaction():
            stored = self._stored()
            stored.queue += wishes
            stored.by_request -= {change.user for change in wishes if change.action != "set"}
            if by_request:
                stored.by_request |= {change.user for change in wishes if change.action == "set"}
        return len(wishes)

    def pending(self) -> int:
        return len(self._stored().queue)

    def queued(self) -> list[Change]:
        return list(self._stored().queue)

    def last_request(self) -> int:
        return len(self._stored().queue)

    def apply(self, slot: int, classes: ClassHistory, most: int | None = None) -> int:
        with self._transaction():
            stored = self._stored()
            most = None if stored.together else most
            room = len(list(self._every_row())) if most is None else most
            for user, rows in list(stored.histories.items()):
                dropped = [row for row in rows if row not in drop_expired(rows, classes, slot)][:room]
                self._keep({user}, [row for row in rows if row not in dropped])
                room -= len(dropped)
            limits = [limit for limit in (most, self.before) if limit is not None]
            stored.together &= self.before is not None
            number = min([len(stored.queue), *limits])
            boundary, changed = Boundary(classes, slot, stored.salt), False
            for change in stored.queue[:number]:
                before = self._history(change.user)
                after = boundary.apply(before, change)
                self._keep({change.user, erased_id(change.user, self.salt)}, after)
                changed |= after != before
            stored.queue = stored.queue[number:]
            if changed:
                self.advance()
        if self.before is not None:
            self.before -= number
        return number

    def next_expiry(self, classes: ClassHistory) -> int | None:
        ended = [(row.window, row.last) for row in self._every_row() if row.last is not None]
        return min((classes.kept_through(*row) + 1 for row in ended), default=None)

    def restores(self) -> tuple[Restore, ...]:
        return self._stored().restores

    def revision(self) -> Revision:
        return self._stored().revision

    def check(self) -> None:
        assert all(rows for rows in self._stored().histories.values())

    def store_restore(self, restore: Restore, beyond: int = 0) -> None:
        """Store what slots released elsewhere leave in doubt. Inside a transaction."""
        self._stored().restores += (restore,)
        self.advance(beyond)

    def _every_row(self) -> Iterator[Membership]:
        return (row for rows in self._stored().histories.values() for row in rows)

    def _history(self, user: str) -> list[Membership]:
        histories = self._stored().histories
        return [*histories.get(user, ()), *histories.get(erased_id(user, self.salt), ())]

    def _keep(self, users: set[str], rows: list[Membership]) -> None:
        histories = self._stored().histories
        for user in users:
            histories[user] = tuple(row for row in rows if row.user == user)
            if not histories[user]:
                del histories[user]

    def advance(self, beyond: int = 0) -> None:
        stored = self._stored()
        state = f"{stored.revision} {sorted(stored.histories.items())} {stored.restores}"
        stored.revision = Revision(max(stored.revision.number, beyond) + 1, hashlib.sha256(state.encode()).hexdigest())
        self._witness(stored.revision)
