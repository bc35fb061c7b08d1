"""The registry in a journal file: who holds which requirement since when; the rules are in `wevent.people.holdout`."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import apsw

from wevent.errors import StaleJournal
from wevent.journal.contract import Member
from wevent.journal.sqlite.evidence import Revision
from wevent.journal.sqlite.fingerprint import Fingerprint, MemberRow, charged_text, member_rows
from wevent.journal.sqlite.storage import clear_errors, damaged, maybe_row, only_row, readable, transaction
from wevent.people.holdout import HoldOut, Past, Restore, bucket_of, erased_id
from wevent.people.membership import Change, check_id

Note = Callable[[Iterable[int] | None, Revision, Revision], None]
"""Told which buckets of ids (None: any) change from which revision to which, before that is committed."""

_TOKEN = re.compile("[0-9a-f]{16}")


class SqliteRegistry:
    """See `wevent.journal.contract.Registry`.

    Any process may `ask`; only the holder of the writer's lock may `apply`. So a change takes effect exactly
    between two slots, whoever asked.

    Args:
        database: the journal's connection.
        path: its file, for messages.
        note: writes evidence of changes beside the journal.
    """

    def __init__(self, database: apsw.Connection, path: Path, note: Note) -> None:
        self._database = database
        self._path = path
        self._note = note

    def members(self) -> list[Member]:
        """Everybody who is registered, those held out included."""
        with clear_errors(self._path):
            rows = self._database.execute("SELECT user, window, nano, level, first FROM members WHERE last IS NULL")
            return [Member(user, (window, nano), level, first) for user, window, nano, level, first in rows]

    def rows(self) -> list[tuple[str, int, int, int]]:
        """Everybody as (user, window, nano-epsilons, first slot): `members` for rosters of millions."""
        with clear_errors(self._path):
            query = "SELECT user, window, nano, first FROM members WHERE last IS NULL"
            found: list[Any] = self._database.execute(query).fetchall()
            return found

    def apart(self, slot: int) -> list[str]:
        """The ids that the registry knows, erased ones as digests, and does not count in a slot: no strangers either."""
        query = (
            "SELECT DISTINCT user FROM members WHERE user NOT IN"
            " (SELECT user FROM members WHERE last IS NULL AND first <= ?)"
        )
        return [user for (user,) in self._database.execute(query, (slot,))]

    def first_forgotten(self, widest: int) -> int | None:
        """The first slot in which some past membership holds nobody out any more; None without any."""
        (last,) = only_row(self._database, "SELECT min(last) FROM members WHERE last IS NOT NULL")
        return None if last is None else int(last) + widest

    def holds(self, user: str) -> bool:
        """Whether a user is registered, queued changes counted in."""
        row = maybe_row(self._database, "SELECT action FROM changes WHERE user = ? ORDER BY id DESC LIMIT 1", (user,))
        if row is not None:
            return bool(row[0] == "set")
        query = "SELECT 1 FROM members WHERE user = ? AND last IS NULL"
        return maybe_row(self._database, query, (user,)) is not None

    def remembers(self, user: str) -> bool:
        """Whether the id is still there, of somebody who left and may have to be held out."""
        return maybe_row(self._database, "SELECT 1 FROM members WHERE user = ?", (user,)) is not None

    def ask(self, changes: Iterable[Change]) -> int:
        """Queue changes for the next slot boundary.

        Raises:
            StaleJournal: for a backup: memberships decided after it are lost, so it takes no change (spec 10).
            InvalidMembership: for an id that nobody can have.
        """
        with clear_errors(self._path), transaction(self._database):
            committed, copied = only_row(self._database, "SELECT committed, copied FROM head")
            if copied:
                raise StaleJournal(
                    "the journal",
                    f"a backup that ends with slot {committed}",
                    "The registry of a copy takes no change: restore it first (wevent restore).",
                    committed=committed,
                    released=None,
                )
            before = self.pending()
            self._database.executemany(
                "INSERT INTO changes (action, user, window, nano, level) VALUES (?, ?, ?, ?, ?)",
                (_queued(one) for one in changes),
            )
            return self.pending() - before

    def pending(self) -> int:
        """How many changes are queued."""
        return int(only_row(self._database, "SELECT count(*) FROM changes")[0])

    def queued(self) -> list[Change]:
        """The queued changes, in order."""
        rows = self._database.execute("SELECT action, user, window, nano, level FROM changes ORDER BY id")
        return [
            Change(action, user, None if window is None else (window, nano), level)
            for action, user, window, nano, level in rows
        ]

    def restores(self) -> tuple[Restore, ...]:
        """Every restore of this journal, in slot order; none for the first format, which knew of none."""
        if int(self._database.pragma("user_version")) < 2:
            return ()
        query = "SELECT slot, widest, proven, same_epoch, changed, charged FROM restores ORDER BY slot"
        return tuple(
            Restore(slot, widest, proven, bool(same), changed, frozenset(map(tuple, json.loads(charged))))
            for slot, widest, proven, same, changed, charged in self._database.execute(query)
        )

    def revision(self) -> Revision:
        """How many times memberships have changed, and a random token of that time.

        Raises:
            InvalidJournal: if what is stored is neither.
        """
        with readable(self._path):
            number, token = int(self._fact("revision")), str(self._fact("token"))
            if number < 0 or not _TOKEN.fullmatch(token):
                raise damaged(self._path)
        return Revision(number, token)

    def check(self) -> None:
        """Refuse rows that are not those that were stored: digests must add up to the one that followed every change.

        Raises:
            InvalidJournal: if they do not. The first format has no digests: nothing is checked.
        """
        if int(self._database.pragma("user_version")) < 2:
            return
        with clear_errors(self._path):
            found = Fingerprint(self._fact("salt"))
            found.add_all(self._database)
            for restore in self.restores():
                found.add_restore(restore)
            if found.value() != self._fact("registry"):
                raise damaged(self._path)

    def apply(self, slot: int, holdout: HoldOut) -> int:
        """Put the queued changes in force from `slot` on (spec 10); forget memberships that hold out nobody."""
        with clear_errors(self._path), transaction(self._database):
            work = _Work(self._database, self._fact("salt"), self._fact("registry"), holdout)
            work.forget(slot)
            number = self.pending()
            filled = number > 0 and work.fill(slot)
            if not filled:
                for change in self.queued():
                    work.apply(change, slot)
            self._database.execute("DELETE FROM changes")
            self._put("registry", work.fingerprint.value())
            if filled or work.changed:
                before, after = self.revision(), self._advance()
                self._note(None if filled else work.changed, before, after)  # before anybody can rely on the change
            return number

    def settle(self, restore: Restore, holdout: HoldOut) -> int:
        """After slots released elsewhere: whose membership there is not proven waits. Inside a transaction.

        Args:
            restore: what is known of these slots.
            holdout: the rule so far, without the restore.

        Returns:
            How many members wait.
        """
        work = _Work(self._database, self._fact("salt"), self._fact("registry"), holdout)
        work.forget(restore.slot + 1)  # as it was forgotten there: who is unknown may have been a stranger
        held = work.settle(restore)
        work.fingerprint.add_restore(restore)
        same, charged = int(restore.same_epoch), charged_text(restore.charged)
        self._database.execute(
            "INSERT INTO restores VALUES (?, ?, ?, ?, ?, ?)",
            (restore.slot, restore.widest, restore.proven, same, charged, restore.changed),
        )
        self._put("registry", work.fingerprint.value())
        self._advance()
        return held

    def _advance(self) -> Revision:
        after = Revision(self.revision().number + 1, secrets.token_hex(8))
        self._put("revision", after.number)
        self._put("token", after.token)
        return after

    def _fact(self, name: str) -> Any:
        return only_row(self._database, "SELECT value FROM facts WHERE name = ?", (name,))[0]

    def _put(self, name: str, value: Any) -> None:
        self._database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))


def _queued(change: Change) -> tuple[Any, ...]:
    check_id(change.user)
    return change.action, change.user, *(change.key or (None, None)), change.level


class _Work:
    """Rows that change within one transaction, and what they add up to.

    Attributes:
        fingerprint: follows every row.
        changed: the buckets of ids whose membership changed.
    """

    def __init__(self, database: apsw.Connection, salt: bytes, stored: bytes, holdout: HoldOut) -> None:
        self._database = database
        self._salt = salt
        self._holdout = holdout
        self.fingerprint = Fingerprint(salt, stored)
        self.changed: set[int] = set()

    def forget(self, slot: int) -> None:
        """Drop memberships that ended so long ago that they hold nobody out."""
        ended = member_rows(self._database, "WHERE last IS NOT NULL AND last <= ?", (slot - self._holdout.widest,))
        for row in list(ended):
            self._remove(row)

    def fill(self, slot: int) -> bool:
        """Register everybody at once if nobody ever was and nobody can be held out; whether that was so."""
        known, others, users, rows = only_row(
            self._database,
            "SELECT EXISTS (SELECT 1 FROM members), sum(action <> 'set'), count(DISTINCT user), count(*) FROM changes",
        )
        if known or others or users != rows or self._holdout.as_stranger(slot) or self._holdout.restores:
            return False
        keys: list[Any] = self._database.execute("SELECT DISTINCT window, nano FROM changes").fetchall()
        if any(self._holdout.first_slot(key, slot, (), 0, slot) > slot for key in keys):
            return False
        self._database.execute(
            "INSERT INTO members SELECT user, window, nano, level, ?, ?, NULL FROM changes ORDER BY user", (slot, slot)
        )
        self.fingerprint.add_all(self._database)
        return True

    def apply(self, change: Change, slot: int) -> None:
        """One change, in force from `slot` on."""
        rows = self._of(change.user)
        current = next((row for row in rows if row.last is None), None)
        if change.action != "set" or change.key is None:
            self._end(current, slot)
            if change.action == "erase":
                self._erase(change.user)
            return
        if current is not None and current.key == change.key:
            if current.level != change.level:
                self._remove(current)
                self._insert(current._replace(level=change.level))
            return
        self._end(current, slot)
        past = [Past(row.key, slot - 1 if row.last is None else row.last) for row in rows if row.first < slot]
        if not rows:
            past = self._holdout.as_stranger(slot)
            for one in past:
                self._insert(MemberRow(change.user, *one.key, None, slot, one.last, one.last))
        bucket = bucket_of(change.user, self._salt)
        since = min((row.since for row in rows), default=slot)
        first = self._holdout.first_slot(change.key, slot, past, bucket, since)
        self._insert(MemberRow(change.user, *change.key, change.level, since, first, None))
        self.changed.add(bucket)

    def settle(self, restore: Restore) -> int:
        """End at M every membership that has to wait after it, and let it begin anew after its wait."""
        held = 0
        for row in list(member_rows(self._database, "WHERE last IS NULL")):
            waits = restore.wait(row.key, bucket_of(row.user, self._salt), row.since)
            if waits > row.first:
                self._remove(row)
                if row.first <= restore.slot:
                    self._insert(row._replace(last=restore.slot))
                self._insert(row._replace(first=waits))
                held += 1
        return held

    def _of(self, user: str) -> list[MemberRow]:
        """All rows of an id, under its name or its erased form."""
        return list(member_rows(self._database, "WHERE user IN (?, ?)", (user, erased_id(user, self._salt))))

    def _end(self, current: MemberRow | None, slot: int) -> None:
        """End a membership before `slot`; one that never began leaves no trace."""
        if current is None:
            return
        self._remove(current)
        if current.first < slot:
            self._insert(current._replace(last=slot - 1))
        self.changed.add(bucket_of(current.user, self._salt))

    def _erase(self, user: str) -> None:
        """Replace the id by a keyed digest for as long as the hold-out needs it."""
        digest = erased_id(user, self._salt)
        for row in self._of(user):
            if row.user == user:
                self._remove(row)
                self._insert(row._replace(user=digest, level=None))

    def _insert(self, row: MemberRow) -> None:
        same = "WHERE user = ? AND first = ? AND window = ? AND nano = ?"
        for there in list(member_rows(self._database, same, (row.user, row.first, row.window, row.nano))):
            self._remove(there)  # the same membership again: the later end counts
            row = row._replace(last=None if there.last is None or row.last is None else max(there.last, row.last))
        self._database.execute("INSERT INTO members VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        self.fingerprint.add(row)

    def _remove(self, row: MemberRow) -> None:
        self._database.execute(
            "DELETE FROM members WHERE user = ? AND first = ? AND window = ? AND nano = ?",
            (row.user, row.first, row.window, row.nano),
        )
        self.fingerprint.drop(row)
