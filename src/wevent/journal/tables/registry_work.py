"""Memberships that change within one transaction: many users at once, each by the rules of `wevent.people.histories`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from wevent.journal.tables.database import Database, only_row
from wevent.journal.tables.fingerprint import SELECT_ROWS, Fingerprint, member_rows
from wevent.journal.tables.registry_moves import ERASED_RANGE, Moves
from wevent.people.histories import Boundary, Membership, after_restore, moved
from wevent.people.holdout import HoldOut, Key, Restore, bucket_of, erased_id
from wevent.people.membership import Change, Enrolment, check_ids

_PORTION = 1 << 15  # changes that are at hand at once
_MANY = 64  # changes that are worth looking at together
_ASKED = 'WHERE "user" IN (SELECT "user" FROM changes WHERE id <= ?)'


class Work:
    """Rows that change within one transaction, and what they add up to.

    Rows of the users at hand are changed in memory; `flush` stores what came of it.

    Attributes:
        fingerprint: follows every row that is stored.
        changed: the buckets of ids whose membership changed.
    """

    def __init__(self, database: Database, salt: bytes, stored: bytes, holdout: HoldOut) -> None:
        self._database = database
        self._salt = salt
        self._holdout = holdout
        self._held: dict[str, list[Membership]] = {}  # rows per id as they are to be
        self._stored: dict[str, list[Membership]] = {}  # and as they are
        erased = 'SELECT EXISTS (SELECT 1 FROM members WHERE "user" >= ? AND "user" < ?)'
        self._any_erased = bool(only_row(database, erased, ERASED_RANGE)[0])
        self.fingerprint = Fingerprint(salt, stored)
        self.changed: set[int] = set()

    def forget(self, slot: int) -> None:
        """Drop memberships that ended so long ago that they hold nobody out."""
        where, bound = "WHERE last IS NOT NULL AND last <= ?", (self._holdout.forgotten_through(slot),)
        ended = member_rows(self._database, where, bound)
        while part := list(itertools.islice(ended, _PORTION)):
            self.fingerprint.drop(part)
        self._database.execute(f"DELETE FROM members {where}", bound)

    def nobody_waits(self, slot: int, keys: Iterable[Key]) -> bool:
        """Whether nobody is or was registered, and whoever joins under these requirements counts at once."""
        (known,) = only_row(self._database, "SELECT EXISTS (SELECT 1 FROM members)")
        if known or self._holdout.as_stranger(slot) or self._holdout.restores:
            return False
        return all(self._holdout.first_slot(key, slot, (), 0, slot) == slot for key in keys)

    def fill(self, slot: int) -> bool:
        """Register everybody in the queue at once if nobody ever was and nobody can be held out; whether that was so."""
        query = "SELECT count(*) FILTER (WHERE action <> 'set'), count(DISTINCT \"user\"), count(*) FROM changes"
        others, users, rows = only_row(self._database, query)
        keys: list[Any] = self._database.execute('SELECT DISTINCT "window", nano FROM changes').fetchall()
        if others or users != rows or not self.nobody_waits(slot, keys):
            return False
        self._database.execute(
            'INSERT INTO members SELECT "user", "window", nano, level, ?, ?, NULL FROM changes ORDER BY "user"',
            (slot, slot),
        )
        self.fingerprint.add_all(self._database)
        return True

    def enrol(self, everybody: Enrolment, slot: int) -> None:
        """Register everybody, if `nobody_waits`. The database stores some thousands while their digests are worked out."""
        with ThreadPoolExecutor(1, "wevent-enrol") as storing:
            stored = None
            for users, codes, words in everybody.sorted_portions():
                check_ids(users)
                kinds: dict[tuple[int, str | None], int] = {}
                each = [kinds.setdefault(kind, len(kinds)) for kind in zip(codes, words, strict=True)]
                rows = [
                    Membership("", *everybody.keys.distinct[code], level, slot, slot, None) for code, level in kinds
                ]
                alike = [(row.window, row.nano, row.level) for row in rows]
                if stored is not None:
                    stored.result()
                stored = storing.submit(self._database.enrol, users, each, alike, slot)
                self.fingerprint.add_alike(rows, each, users)
            if stored is not None:
                stored.result()

    def apply_queue(self, slot: int, most: int) -> int:
        """The first `most` queued changes, in their order, in force from `slot` on; returns how many there were."""
        done, boundary = 0, Boundary(self._holdout, slot, self._salt)
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
            moves = Moves(self._database, self._salt, self._holdout, slot)
            if moves.possible:
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
        after = boundary.after(before, change)
        if change.action == "erase":
            self._any_erased = True
        self._keep(change.user, after)
        if moved(before, after):
            self.changed.add(bucket_of(change.user, self._salt))

    def hold_out(self, restore: Restore) -> int:
        """End at M every membership that has to wait after it, and let it begin anew; how many there are."""
        lasting = member_rows(self._database, "WHERE last IS NULL")
        held = [row.user for row in lasting if after_restore([row], restore, self._salt) != [row]]
        erased = [erased_id(user, self._salt) for user in held] if self._any_erased else []
        if held:  # all their rows in one look: a database elsewhere takes its time to answer
            self._hold([*held, *erased], "", ())
        for user in held:
            self._keep(user, after_restore(self._of(user), restore, self._salt))
        return len(held)

    def flush(self) -> None:
        """Store what the rows at hand have become."""
        gone: list[Membership] = []
        come: list[Membership] = []
        for user, rows in self._held.items():
            before = self._stored.get(user, [])
            gone += [row for row in before if row not in rows]
            come += [row for row in rows if row not in before]
        self._database.executemany(
            'DELETE FROM members WHERE "user" = ? AND first = ? AND "window" = ? AND nano = ?',
            ((row.user, row.first, row.window, row.nano) for row in gone),
        )
        self._database.executemany("INSERT INTO members VALUES (?, ?, ?, ?, ?, ?, ?)", come)
        self.fingerprint.drop(gone)
        self.fingerprint.add(come)
        self._held, self._stored = {}, {}

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
