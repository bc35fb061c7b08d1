"""Rows that change within one transaction, by the rules of `wevent.people.membership_history`."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from wevent.journal.tables.database import Database, only_row
from wevent.journal.tables.fingerprint import SELECT_ROWS, Fingerprint, member_rows
from wevent.journal.tables.registry_moves import ERASED_RANGE, Moves
from wevent.people.classes import ClassHistory
from wevent.people.membership import Change, Enrolment, check_ids, erased_id
from wevent.people.membership_history import Boundary, Membership

_PORTION = 1 << 15  # changes that are at hand at once
_MANY = 64  # changes that are worth looking at together
_ASKED = 'WHERE "user" IN (SELECT "user" FROM changes WHERE id <= ?)'


class Work:
    """Rows that change within one transaction, and what they add up to.

    Rows of the users at hand are changed in memory; `flush` stores what came of it.

    Attributes:
        fingerprint: follows every row that is stored.
        changed: whether any membership changed.
    """

    def __init__(self, database: Database, salt: bytes, stored: bytes, classes: ClassHistory) -> None:
        self._database = database
        self._salt = salt
        self._classes = classes
        self._held: dict[str, list[Membership]] = {}  # rows per id as they are to be
        self._stored: dict[str, list[Membership]] = {}  # and as they are
        erased = 'SELECT EXISTS (SELECT 1 FROM members WHERE "user" >= ? AND "user" < ?)'
        self._any_erased = bool(only_row(database, erased, ERASED_RANGE)[0])
        self.fingerprint = Fingerprint(salt, stored)
        self.changed = False

    def drop_expired(self, slot: int, limit: int | None) -> bool:
        """Drop rows that are no longer kept in a slot (`ClassHistory.kept_through`); return whether there were any.

        Args:
            slot: the slot.
            limit: maximum number of rows. The others are dropped later; they affect no count.
        """
        where = 'WHERE last IS NOT NULL AND last <= ? AND last + "window" <= ?'
        bound, dropped = (slot - self._classes.min_kept_slots, slot), 0
        while limit is None or dropped < limit:
            size = _PORTION if limit is None else min(_PORTION, limit - dropped)
            part = list(member_rows(self._database, f"{where} LIMIT ?", (*bound, size)))
            self._delete(part)
            dropped += len(part)
            if len(part) < size:
                break
        return dropped > 0

    def is_first(self, slot: int) -> bool:
        """Whether the registry has no rows, and users who join at a slot were not counted before."""
        (known,) = only_row(self._database, "SELECT EXISTS (SELECT 1 FROM members)")
        return not known and not self._classes.unregistered_before(slot)

    def fill(self, slot: int) -> bool:
        """Register everybody in the queue at once if `is_first`; whether that was so."""
        query = "SELECT count(*) FILTER (WHERE action <> 'set'), count(DISTINCT \"user\"), count(*) FROM changes"
        others, users, rows = only_row(self._database, query)
        if others or users != rows or not self.is_first(slot):
            return False
        self._database.execute(
            'INSERT INTO members SELECT "user", "window", nano, level, ?, NULL FROM changes ORDER BY "user"', (slot,)
        )
        self.fingerprint.add_all(self._database)
        return True

    def enrol(self, everybody: Enrolment, slot: int) -> None:
        """Register everybody, if `is_first`. The database stores some thousands while their digests are worked out."""
        with ThreadPoolExecutor(1, "wevent-enrol") as storing:
            stored = None
            for users, codes, words in everybody.sorted_portions():
                check_ids(users)
                kinds: dict[tuple[int, str | None], int] = {}
                each = [kinds.setdefault(kind, len(kinds)) for kind in zip(codes, words, strict=True)]
                rows = [Membership("", *everybody.keys.distinct[code], level, slot, None) for code, level in kinds]
                alike = [(row.window, row.nano, row.level) for row in rows]
                if stored is not None:
                    stored.result()
                stored = storing.submit(self._database.enrol, users, each, alike, slot)
                self.fingerprint.add_alike(rows, each, users)
            if stored is not None:
                stored.result()

    def apply_queue(self, slot: int, most: int) -> int:
        """The first `most` queued changes, in their order, in force from `slot` on; returns how many there were."""
        done, boundary = 0, Boundary(self._classes, slot, self._salt)
        while done < most:
            query = 'SELECT id, action, "user", "window", nano, level FROM changes ORDER BY id LIMIT ?'
            queued: list[Any] = self._database.execute(query, (min(_PORTION, most - done),)).fetchall()
            if not queued:
                break
            last = queued[-1][0]
            for _, action, user, window, nano, level in self._move(queued, slot, last):
                self.apply(Change(action, user, None if window is None else (window, nano), level), boundary)
            self.flush()
            self._database.execute("DELETE FROM changes WHERE id <= ?", (last,))
            done += len(queued)
        return done

    def _move(self, queued: list[Any], slot: int, last: int) -> list[Any]:
        """Put the plain ones of many changes in force at once; returns the others, with the rows of their users at hand."""
        if len(queued) >= _MANY:
            moves = Moves(self._database, self._salt, self._classes, slot)
            rows: Iterable[Any] = self._database.execute(f"{SELECT_ROWS} {_ASKED}", (last,))
            queued = moves.apply(queued, rows, self.fingerprint)
            self.changed |= moves.changed
        users = dict.fromkeys(user for _, _, user, *_ in queued)
        if len(users) >= _MANY:
            self._hold(users, _ASKED, (last,))
        return queued

    def apply(self, change: Change, boundary: Boundary) -> None:
        """One change, in force from the boundary's slot on."""
        before = self._of(change.user)
        after = boundary.apply(before, change)
        if change.action == "erase":
            self._any_erased = True
        self._keep(change.user, after)
        self.changed |= after != before

    def flush(self) -> None:
        """Store what the rows at hand have become."""
        gone: list[Membership] = []
        come: list[Membership] = []
        for user, rows in self._held.items():
            before = self._stored.get(user, [])
            gone += [row for row in before if row not in rows]
            come += [row for row in rows if row not in before]
        self._delete(gone)
        self._database.executemany("INSERT INTO members VALUES (?, ?, ?, ?, ?, ?)", come)
        self.fingerprint.add(come)
        self._held, self._stored = {}, {}

    def _delete(self, rows: list[Membership]) -> None:
        self._database.executemany(
            'DELETE FROM members WHERE "user" = ? AND first = ? AND "window" = ? AND nano = ?',
            ((row.user, row.first, row.window, row.nano) for row in rows),
        )
        self.fingerprint.drop(rows)

    def _hold(self, users: Iterable[str], where: str, values: tuple[Any, ...]) -> None:
        """Have the rows of these users at hand, all that fit a condition."""
        for user in users:
            self._held[user], self._stored[user] = [], []
        for row in member_rows(self._database, where, values):
            if row.user in self._held:
                self._held[row.user].append(row)
                self._stored[row.user].append(row)

    def _rows(self, name: str) -> list[Membership]:
        if name not in self._held:
            self._hold([name], 'WHERE "user" = ?', (name,))
        return self._held[name]

    def _of(self, user: str) -> list[Membership]:
        """All rows of an id, under its name or its erased form."""
        rows = self._rows(user)
        return rows + self._rows(erased_id(user, self._salt)) if self._any_erased else list(rows)

    def _keep(self, user: str, rows: list[Membership]) -> None:
        """These are all rows of an id, under its name or its erased form."""
        self._rows(user)
        self._held[user] = [row for row in rows if row.user == user]
        if self._any_erased:
            digest = erased_id(user, self._salt)
            self._rows(digest)
            self._held[digest] = [row for row in rows if row.user == digest]
