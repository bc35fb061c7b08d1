"""Registry in tables: the requirements that users hold and held. The rules are in `wevent.people`."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from wevent.counting.string_column import StringColumn
from wevent.errors import StaleJournal
from wevent.journal.contents import Revision
from wevent.journal.tables.database import ALL, Database, maybe_row, only_row
from wevent.journal.tables.facts import UPSERT, Facts
from wevent.journal.tables.fingerprint import SELECT_ROWS, Fingerprint, encode_keys, member_rows
from wevent.journal.tables.registry_moves import ERASED_RANGE
from wevent.journal.tables.registry_work import Work
from wevent.people.classes import ClassHistory, Key, Restore
from wevent.people.membership import Change, Enrolment, KeyColumn, check_epoch, check_id, erased_id
from wevent.people.membership_history import History, Membership
from wevent.people.rosters import MemberColumns, TailColumns

IMPORTED = 2  # fact "changes lost": the registry was imported again, and its changes are still queued
_AT_ONCE = 1 << 14
_FEW = 256  # people who leave at once
_REQUEST = "by request "  # facts of this name and a digest: people who joined by themselves
_REQUESTED = "name > 'by request ' AND name < 'by request!'"

Witness = Callable[[Revision], None]
"""Stores a state of the registry outside the journal, before it is committed."""

_CHAIN = re.compile("[0-9a-f]{64}")


class TableRegistry:
    """See `wevent.journal.contract.Registry`.

    Any process may `ask`; only the holder of the writer's lock may `apply`. So a change takes effect exactly
    between two slots, whoever asked.

    Args:
        database: the journal's connection.
        witness: stores every new state of the registry beside the journal.
    """

    def __init__(self, database: Database, witness: Witness) -> None:
        self._database = database
        self._facts = Facts(database)
        self._witness = witness
        self._summed: bytes | None = None  # what the rows added up to when all of them were stored here
        self._enrolled: MemberColumns | None = None  # and the rows, until they are asked for
        self._before: int | None = None  # queued changes asked for before the epoch that waits for its first slot
        self._in_force: Revision | None = None  # what this writer counts under

    @property
    def salt(self) -> bytes:
        """The key of digests of ids; it stays in the journal and its copies."""
        return self._facts.data("salt")

    def members(self) -> list[Membership]:
        with self._database.clear_errors():
            return list(member_rows(self._database, "WHERE last IS NULL"))

    def rows(self) -> MemberColumns:
        enrolled, self._enrolled = self._enrolled, None
        if enrolled is not None and self._summed == self._facts.data("registry"):
            return enrolled
        users, numbers, after = [StringColumn.from_texts(())], [np.empty((0, 2), dtype=np.int64)], ""
        with self._database.readable():
            while True:
                names, values, last = self._database.member_columns(after)
                if last is None:
                    break
                users.append(StringColumn.from_separated(names))
                numbers.append(np.fromstring(values, dtype=np.int64, sep=" ").reshape(-1, 2))
                after = last
        found = np.concatenate(numbers)
        return MemberColumns(StringColumn.joined(users), KeyColumn.of_columns(found[:, 0], found[:, 1]))

    def tails(self, slot: int) -> TailColumns:
        query = 'SELECT "user", "window", nano, last FROM members WHERE last IS NOT NULL AND last + "window" > ?'
        with self._database.readable():
            rows = self._database.execute(query, (slot,)).fetchall()
        numbers = np.array([row[1:] for row in rows], dtype=np.int64).reshape(-1, 3)
        keys = KeyColumn.of_columns(numbers[:, 0], numbers[:, 1])
        return TailColumns(StringColumn.from_texts([row[0] for row in rows]), keys, numbers[:, 2])

    def former_ids(self) -> list[str]:
        query = (
            'SELECT DISTINCT "user" FROM members WHERE last IS NOT NULL AND NOT EXISTS (SELECT 1 FROM members AS held'
            ' WHERE held."user" = members."user" AND held.last IS NULL)'
        )
        return [user for (user,) in self._database.execute(query)]

    def next_expiry(self, classes: ClassHistory) -> int | None:
        query = 'SELECT min(last + CASE WHEN "window" > ? THEN "window" ELSE ? END) FROM members WHERE last IS NOT NULL'
        (ends,) = only_row(self._database, query, (classes.min_kept_slots,) * 2)
        return None if ends is None else int(ends)

    def holds(self, user: str) -> bool:
        """Whether a user is registered, queued changes counted in."""
        row = maybe_row(self._database, 'SELECT action FROM changes WHERE "user" = ? ORDER BY id DESC LIMIT 1', (user,))
        if row is not None:
            return bool(row[0] == "set")
        query = 'SELECT 1 FROM members WHERE "user" = ? AND last IS NULL'
        return maybe_row(self._database, query, (user,)) is not None

    def remembers(self, user: str) -> bool:
        return maybe_row(self._database, 'SELECT 1 FROM members WHERE "user" = ?', (user,)) is not None

    def histories(self, users: Iterable[str]) -> Iterator[History]:
        """See `Registry.histories`; some thousands at a time."""
        query = 'SELECT 1 FROM members WHERE "user" >= ? AND "user" < ? LIMIT 1'
        erased = maybe_row(self._database, query, ERASED_RANGE)
        salt = None if erased is None else self.salt
        asking = iter(users)
        while names := list(itertools.islice(asking, _AT_ONCE)):
            digests = [] if salt is None else [erased_id(name, salt) for name in names]
            found: dict[str, list[Membership]] = {name: [] for name in (*names, *digests)}
            for row in self._database.among(SELECT_ROWS, list(found)):
                found[row[0]].append(Membership(*row))
            yield from (
                (found[name] for name in names)
                if salt is None
                else (found[name] + found[digest] for name, digest in zip(names, digests, strict=True))
            )

    def turnover(self, slot: int) -> int:
        joined = 'SELECT "user" FROM members WHERE first = ?'
        left = 'SELECT "user" FROM members WHERE last = ? AND first > 0'  # a note is no membership that ended
        query = f"SELECT count(*) FROM ({joined} EXCEPT {left}) AS joined"
        query += f" UNION ALL SELECT count(*) FROM ({left} EXCEPT {joined}) AS gone"
        with self._database.readable():
            return sum(count for (count,) in self._database.execute(query, (slot, slot - 1, slot - 1, slot)))

    def sizes(self) -> dict[Key, int]:
        query = 'SELECT "window", nano, count(*) FROM members WHERE last IS NULL GROUP BY "window", nano'
        with self._database.readable():
            return {(window, nano): users for window, nano, users in self._database.execute(query)}

    def ask(self, changes: Iterable[Change], epoch: int | None = None, *, by_request: bool = False) -> int:
        """Queue changes for the next slot boundary; see `Registry.ask`."""
        rows = [_queued(change) for change in changes]  # before the transaction: a publisher waits for its end
        marks = self._request_marks(user for action, user, *_ in rows if action == "set") if by_request else []
        self._database.write(lambda: self._queue(rows, marks, epoch))
        return len(rows)

    def _queue(self, rows: list[Any], marks: list[str], epoch: int | None) -> None:
        """Store queued changes; inside a transaction. The registry of a copy takes none (spec 10)."""
        committed, copied = only_row(self._database, "SELECT committed, copied FROM head")
        if copied:
            raise StaleJournal(
                "the journal",
                f"a backup that ends with slot {committed}",
                "The registry of a copy takes no change: restore it first (wevent restore).",
                committed=committed,
                released=None,
            )
        check_epoch(epoch, only_row(self._database, "SELECT count(*) FROM epochs")[0])
        self._database.executemany(
            'INSERT INTO changes (action, "user", "window", nano, level) VALUES (?, ?, ?, ?, ?)', rows
        )
        self._forget_requests(user for action, user, *_ in rows if action != "set")
        self._database.executemany(UPSERT, ((mark, b"") for mark in marks))

    def joined_by_request(self) -> frozenset[str]:
        marks = self._database.execute(f"SELECT name FROM facts WHERE {_REQUESTED}")
        return frozenset(name.removeprefix(_REQUEST) for (name,) in marks)

    def file_imported(self, since: Iterable[Change]) -> None:
        """Whoever is registered is in a file now, but for those who asked since it was read; inside a transaction."""
        marks = self._request_marks(change.user for change in since if change.action == "set")
        kept = [mark for mark in marks if self._facts.get(mark) is not None]
        self._database.execute(f"DELETE FROM facts WHERE {_REQUESTED}")
        self._database.executemany(UPSERT, ((mark, b"") for mark in kept))

    def _request_marks(self, users: Iterable[str]) -> list[str]:
        salt = self.salt
        return [_REQUEST + digest for digest in sorted({erased_id(user, salt) for user in users})]

    def _forget_requests(self, users: Iterable[str]) -> None:
        """Who leaves is no longer somebody who joined by request; inside a transaction.

        All who joined so are looked at only where many leave: they may be everybody, and the publisher waits meanwhile.
        """
        leaving = list(users)
        marked = self.joined_by_request() if len(leaving) > _FEW else None
        if not leaving or marked == frozenset():
            return
        salt = self.salt
        gone = {erased_id(user, salt) for user in leaving}
        marks = sorted(gone if marked is None else gone & marked)
        self._database.executemany("DELETE FROM facts WHERE name = ?", ((_REQUEST + digest,) for digest in marks))

    def pending(self) -> int:
        """How many changes are queued."""
        return int(only_row(self._database, "SELECT count(*) FROM changes")[0])

    def queued(self) -> list[Change]:
        """The queued changes, in order."""
        rows = self._database.execute('SELECT action, "user", "window", nano, level FROM changes ORDER BY id')
        return [
            Change(action, user, None if window is None else (window, nano), level)
            for action, user, window, nano, level in rows
        ]

    def restores(self) -> tuple[Restore, ...]:
        query = "SELECT slot, silent_through, doubted FROM restores ORDER BY slot"
        return tuple(
            Restore(slot, silent_through, tuple((window, nano) for window, nano in json.loads(doubted)))
            for slot, silent_through, doubted in self._database.execute(query)
        )

    def revision(self) -> Revision:
        """See `Registry.revision`.

        Raises:
            InvalidJournal: if what is stored is none.
        """
        with self._database.readable():
            number, chain = self._facts.number("revision"), self._facts.text("registry chain")
            if number < 0 or not _CHAIN.fullmatch(chain):
                raise self._database.damaged()
        return Revision(number, chain)

    def check(self) -> None:
        """Refuse rows that are not those that were stored: digests must add up to the one that followed every change.

        Raises:
            InvalidJournal: if they do not.
        """
        with self._database.clear_errors():
            if self._summed is not None and self._summed == self._facts.data("registry"):
                return  # stored by this very writer, row by row
            self._database.read(self._check)

    def _check(self) -> None:
        """`check`, in one view: a publisher may put changes in force meanwhile."""
        found = Fingerprint(self.salt)
        found.add_all(self._database)
        for restore in self.restores():
            found.add_restore(restore)
        if found.value() != self._facts.data("registry"):
            raise self._database.damaged()

    def apply(self, slot: int, classes: ClassHistory, most: int | None = None) -> int:
        if self._before is not None:
            most = self._before if most is None else min(most, self._before)
        before = self.revision()
        number, self._in_force = self._database.write(lambda: self._put_in_force(slot, classes, most))
        if self._in_force != before:
            self._witness(self._in_force)
        if self._before is not None:
            self._before -= number
        return number

    def counted_under(self) -> Revision:
        """The revision that slots are counted under now."""
        return self._in_force or self.revision()

    def check_in_force(self, through: int) -> None:
        """Refuse to go on with memberships that are not those this writer counted under; inside a transaction.

        ▲ A database that was put back to between two slots has all of them, and not who joined or left since: whoever was
        counted would be known to nobody, and would join as an id that nobody knows (spec 10).

        Args:
            through: the last slot that was drawn under them.

        Raises:
            StaleJournal: if they differ.
        """
        if self._in_force is None or self.revision() == self._in_force:
            return
        (committed,) = only_row(self._database, "SELECT committed FROM head")
        raise StaleJournal(
            "the memberships that were put in force here",
            "a journal that does not know them",
            "It was restored, or a standby took over that had not received everything: nothing more goes out. Publish with "
            f"--released-through {through}; changes of the registry that were lost have to be asked for again.",
            committed=int(committed),
            released=through,
        )

    def _put_in_force(self, slot: int, classes: ClassHistory, most: int | None) -> tuple[int, Revision]:
        """`apply`, inside a transaction; how many changes, and the revision that is in force then."""
        self.check_in_force(slot - 1)
        work = self._work(classes)
        if self._facts.number("changes lost") == IMPORTED:  # what a restore lost takes effect before the next slot
            most = self._before
        if work.drop_expired(slot, most):
            self._facts["complete_from"] = slot  # for verification: no row that is in force from here on was dropped
        number = self.pending()
        filled = number > 0 and (most is None or number <= most) and work.fill(slot)
        if filled:
            self._database.execute("DELETE FROM changes")
        else:
            number = work.apply_queue(slot, number if most is None else min(most, number))
        self._facts["registry"] = work.fingerprint.value()
        if self._facts.number("changes lost") == IMPORTED and (most is None or not self.pending()):
            self._facts["changes lost"] = 0
        if filled or work.changed:
            self.advance()
        return number, self.revision()

    def _work(self, classes: ClassHistory) -> Work:
        return Work(self._database, self.salt, self._facts.data("registry"), classes)

    def hold_back(self, before: int | None) -> None:
        """From now on `apply` puts the first `before` queued changes in force and no later one; None: all of them again."""
        self._before = before

    @property
    def held_from(self) -> int | None:
        """How many queued changes `apply` may put in force; None: all of them."""
        return self._before

    def held_back(self) -> list[Change]:
        """The queued changes that `apply` does not put in force."""
        return [] if self._before is None else self.queued()[self._before :]

    def replace_held_back(self, changes: Iterable[Change]) -> None:
        """Queue others in their place; inside a transaction."""
        later = f"DELETE FROM changes WHERE id IN (SELECT id FROM changes ORDER BY id LIMIT {ALL} OFFSET ?)"
        self._database.execute(later, (self._before or 0,))
        self.ask(changes)

    def enrol(self, everybody: Enrolment, slot: int, classes: ClassHistory) -> bool:
        """Register everybody from `slot` on without queueing, if the registry has no rows and nobody was counted before.

        Only the holder of the writer's lock may, before `slot`; inside a transaction. Returns whether that was so.
        """
        work = self._work(classes)
        if self.pending() or not work.is_first(slot):
            return False
        work.enrol(everybody, slot)
        self._summed = work.fingerprint.value()
        self._facts["registry"] = self._summed
        if isinstance(
            everybody.users, StringColumn
        ):  # reading millions of rows back would take as long as storing them
            self._enrolled = MemberColumns(everybody.users, everybody.keys)
        self.advance()
        self._in_force = None
        return True

    def store_restore(self, restore: Restore, beyond: int = 0) -> None:
        """Store what slots released elsewhere leave in doubt; inside a transaction. `beyond`: as of `advance`."""
        found = Fingerprint(self.salt, self._facts.data("registry"))
        found.add_restore(restore)
        self._database.execute(
            "INSERT INTO restores VALUES (?, ?, ?)",
            (restore.slot, restore.silent_through, encode_keys(restore.doubted)),
        )
        self._facts["registry"] = found.value()
        self.advance(beyond)
        self._in_force = None

    def advance(self, beyond: int = 0) -> None:
        """Store the next revision; inside a transaction.

        The witness has it before it is committed, so a backup from before is never taken for the current registry. After a
        crash the witness may have a revision that was not committed: more doubt, never less.

        Args:
            beyond: a number that the next one exceeds. A settled restore exceeds every revision that the witness shows.
        """
        before = self.revision()
        chain = hashlib.sha256(bytes.fromhex(before.chain) + self._facts.data("registry")).hexdigest()
        after = Revision(max(before.number, beyond) + 1, chain)
        self._facts["revision"] = after.number
        self._facts["registry chain"] = after.chain


def _queued(change: Change) -> tuple[Any, ...]:
    check_id(change.user)
    return change.action, change.user, *(change.key or (None, None)), change.level
