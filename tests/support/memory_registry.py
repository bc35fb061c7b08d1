"""A registry of plain lists, for tests: every rule is `wevent.people`'s, nothing is clever."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np

from wevent.counting.spelling import Spelled
from wevent.errors import StaleJournal
from wevent.journal.contents import ClassSize, Member, MemberColumns
from wevent.people.histories import Boundary, Membership, after_restore, current_of, moved
from wevent.people.holdout import BUCKETS, HoldOut, Key, Restore, bucket_of, erased_id
from wevent.people.membership import Change, KeyColumn, check_epoch, check_id


@dataclass
class StoredRegistry:
    """What a registry stores.

    Attributes:
        salt: the key of digests of ids.
        histories: memberships by id, or by the digest of an erased one.
        queue: changes that wait.
        restores: in slot order.
        copied: whether it is that of a backup.
        revision: how often memberships have changed, and a random token of that time.
        by_request: the digests of people who joined by request.
    """

    salt: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    histories: dict[str, tuple[Membership, ...]] = field(default_factory=dict)
    queue: tuple[Change, ...] = ()
    restores: tuple[Restore, ...] = ()
    copied: bool = False
    revision: tuple[int, str] = (0, "")
    by_request: frozenset[str] = frozenset()


@dataclass
class Evidence:
    """Which buckets of ids changed in which revision, kept outside the journal: of one incarnation of it."""

    owner: str = ""
    tokens: dict[int, str] = field(default_factory=dict)
    changed: dict[int, set[int]] = field(default_factory=dict)

    def continue_with(self, owner: str, revision: tuple[int, str]) -> None:
        """Go on with these, or begin anew with a revision."""
        if self.owner != owner or self.tokens.get(revision[0]) != revision[1]:
            self.owner, self.tokens, self.changed = owner, dict([revision]), {}

    def changed_since(self, owner: str, revision: tuple[int, str]) -> bytes | None:
        """A bit per bucket, None if nothing is known of the revision."""
        if self.owner != owner or self.tokens.get(revision[0]) != revision[1]:
            return None
        bits = np.zeros(BUCKETS, dtype=np.bool_)
        for number, buckets in self.changed.items():
            if number > revision[0]:
                bits[sorted(buckets)] = True
        return np.packbits(bits, bitorder="little").tobytes()


class MemoryRegistry:
    """See `wevent.journal.contract.Registry`.

    Args:
        stored: what is stored now.
        transaction: within it, `stored` may be changed: all of it or nothing.
        note: told the buckets that change, before anybody can rely on the change.
        epochs: how many are stored.
    """

    def __init__(
        self,
        stored: Callable[[], StoredRegistry],
        transaction: Callable[[], AbstractContextManager[object]],
        note: Callable[[set[int], tuple[int, str], tuple[int, str]], None],
        epochs: Callable[[], int],
    ) -> None:
        self._epochs = epochs
        self._stored, self._transaction, self._note = stored, transaction, note
        self.before: int | None = None  # queued changes asked for before the epoch that waits for its first slot

    @property
    def salt(self) -> bytes:
        return self._stored().salt

    def members(self) -> list[Member]:
        return [Member(row.user, row.key, row.level, row.first) for row in self._current()]

    def rows(self) -> MemberColumns:
        rows = sorted(self._current(), key=lambda row: row.user.encode())
        firsts = np.array([row.first for row in rows], dtype=np.int64)
        return MemberColumns(Spelled.of([row.user for row in rows]), KeyColumn.of(row.key for row in rows), firsts)

    def apart(self, slot: int) -> list[str]:
        counted = {row.user for row in self._current() if row.first <= slot}
        return [user for user in self._stored().histories if user not in counted]

    def holds(self, user: str) -> bool:
        wishes = [change for change in self._stored().queue if change.user == user]
        if wishes:
            return wishes[-1].action == "set"
        return current_of(self._stored().histories.get(user, ())) is not None

    def counts_from(self, user: str) -> int | None:
        row = current_of(self._stored().histories.get(user, ()))
        return None if row is None else row.first

    def remembers(self, user: str) -> bool:
        return user in self._stored().histories

    def histories(self, users: Iterable[str]) -> Iterator[list[Membership]]:
        return (self._history(user) for user in users)

    def turnover(self, slot: int) -> int:
        rows = [row for history in self._stored().histories.values() for row in history]
        joined = {row.user for row in rows if row.first == slot}
        left = {row.user for row in rows if row.last == slot - 1}
        return len(joined ^ left)

    def sizes(self, slot: int) -> dict[Key, ClassSize]:
        held: dict[Key, list[bool]] = {}
        for row in self._current():
            held.setdefault(row.key, []).append(row.first > slot)
        return {key: ClassSize(len(waits), sum(waits)) for key, waits in held.items()}

    def joined_by_request(self) -> frozenset[str]:
        return self._stored().by_request

    def file_imported(self, since: Iterable[Change]) -> None:
        """Whoever is registered is in a file now, but for those who asked since. Inside a transaction."""
        stored = self._stored()
        stored.by_request &= {erased_id(change.user, stored.salt) for change in since if change.action == "set"}

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
            digests = {change.user: erased_id(change.user, stored.salt) for change in wishes}
            stored.by_request -= {digests[change.user] for change in wishes if change.action != "set"}
            if by_request:
                stored.by_request |= {digests[change.user] for change in wishes if change.action == "set"}
        return len(wishes)

    def pending(self) -> int:
        return len(self._stored().queue)

    def queued(self) -> list[Change]:
        return list(self._stored().queue)

    def apply(self, slot: int, holdout: HoldOut, most: int | None = None) -> int:
        with self._transaction():
            stored = self._stored()
            self._forget(slot, holdout)
            limits = [limit for limit in (most, self.before) if limit is not None]
            number = min([len(stored.queue), *limits])
            boundary, changed = Boundary(holdout, slot, stored.salt), set()
            for change in stored.queue[:number]:
                before = self._history(change.user)
                after = boundary.after(before, change)
                self._keep(change.user, after)
                if moved(before, after):
                    changed.add(bucket_of(change.user, stored.salt))
            stored.queue = stored.queue[number:]
            if changed:
                before_change = self._advance()
                self._note(changed, before_change, stored.revision)
        if self.before is not None:
            self.before -= number
        return number

    def first_forgotten(self, holdout: HoldOut) -> int | None:
        ends = [row.last for rows in self._stored().histories.values() for row in rows if row.last is not None]
        return holdout.forgotten_from(min(ends)) if ends else None

    def restores(self) -> tuple[Restore, ...]:
        return self._stored().restores

    def check(self) -> None:
        assert all(rows for rows in self._stored().histories.values())

    def hold_out(self, restore: Restore, holdout: HoldOut) -> int:
        """After slots released elsewhere: whose membership there is not proven waits. Inside a transaction."""
        stored, held = self._stored(), 0
        self._forget(restore.slot + 1, holdout)
        for row in list(self._current()):
            before = self._history(row.user)
            after = after_restore(before, restore, stored.salt)
            held += moved(before, after)
            self._keep(row.user, after)
        stored.restores += (restore,)
        self._advance()
        return held

    def _current(self) -> Iterator[Membership]:
        return (row for rows in self._stored().histories.values() for row in rows if row.last is None)

    def _history(self, user: str) -> list[Membership]:
        histories = self._stored().histories
        return [*histories.get(user, ()), *histories.get(erased_id(user, self.salt), ())]

    def _keep(self, user: str, rows: Iterable[Membership]) -> None:
        rows, histories = list(rows), self._stored().histories
        for name in (user, erased_id(user, self.salt)):
            histories[name] = tuple(row for row in rows if row.user == name)
            if not histories[name]:
                del histories[name]

    def _forget(self, slot: int, holdout: HoldOut) -> None:
        end, histories = holdout.forgotten_through(slot), self._stored().histories
        for name, rows in list(histories.items()):
            histories[name] = tuple(row for row in rows if row.last is None or row.last > end)
            if not histories[name]:
                del histories[name]

    def _advance(self) -> tuple[int, str]:
        stored = self._stored()
        before, stored.revision = stored.revision, (stored.revision[0] + 1, secrets.token_hex(8))
        return before
