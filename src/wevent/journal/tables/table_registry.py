"""The registry in tables: who holds which requirement since when; the rules are in `wevent.people.holdout`."""

from __future__ import annotations

import itertools
import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from wevent.counting.spelling import Spelled
from wevent.errors import StaleJournal
from wevent.journal.contents import ClassSize, Member, MemberColumns
from wevent.journal.tables.database import ALL, Database, maybe_row, only_row
from wevent.journal.tables.evidence import Revision
from wevent.journal.tables.facts import UPSERT, Facts
from wevent.journal.tables.fingerprint import SELECT_ROWS, Fingerprint, charged_text
from wevent.journal.tables.registry_moves import ERASED_RANGE
from wevent.journal.tables.registry_work import Work
from wevent.people.histories import History, Membership
from wevent.people.holdout import HoldOut, Key, Restore, erased_id
from wevent.people.membership import Change, Enrolment, KeyColumn, check_epoch, check_id

_AT_ONCE = 1 << 14
_FEW = 256  # people who leave at once
_REQUEST = "by request "  # facts of this name and a digest: people who joined by themselves
_REQUESTED = "name > 'by request ' AND name < 'by request!'"

Note = Callable[[Iterable[int] | None, Revision, Revision], None]
"""Told which buckets of ids (None: any) change from which revision to which, before that is committed."""

_TOKEN = re.compile("[0-9a-f]{16}")


class TableRegistry:
    """See `wevent.journal.contract.Registry`.

    Any process may `ask`; only the holder of the writer's lock may `apply`. So a change takes effect exactly
    between two slots, whoever asked.

    Args:
        database: the journal's connection.
        note: writes evidence of changes beside the journal.
    """

    def __init__(self, database: Database, note: Note) -> None:
        self._database = database
        self._facts = Facts(database)
        self._note = note
        self._summed: bytes | None = None  # what the rows added up to when all of them were stored here
        self._enrolled: MemberColumns | None = None  # and the rows, until they are asked for
        self._before: int | None = None  # queued changes asked for before the epoch that waits for its first slot
        self._in_force: Revision | None = None  # what this writer counts under

    @property
    def salt(self) -> bytes:
        """The key of digests of ids; it stays in the journal and its copies."""
        return self._facts.data("salt")

    def members(self) -> list[Member]:
        """Everybody who is registered, those held out included."""
        with self._database.clear_errors():
            rows = self._database.execute('SELECT "user", "window", nano, level, first FROM members WHERE last IS NULL')
            return [Member(user, (window, nano), level, first) for user, window, nano, level, first in rows]

    def rows(self) -> MemberColumns:
        """`members` for rosters of millions: ids, requirements and first slots as columns."""
        enrolled, self._enrolled = self._enrolled, None
        if enrolled is not None and self._summed == self._facts.data("registry"):
            return enrolled
        users, numbers, after = [Spelled.of(())], [np.empty((0, 3), dtype=np.int64)], ""
        with self._database.readable():
            while True:
                names, values, last = self._database.member_columns(after)
                if last is None:
                    break
                users.append(Spelled.split(names))
                numbers.append(np.fromstring(values, dtype=np.int64, sep=" ").reshape(-1, 3))
                after = last
        found = np.concatenate(numbers)
        return MemberColumns(Spelled.joined(users), KeyColumn.of_columns(found[:, 0], found[:, 1]), found[:, 2])

    def apart(self, slot: int) -> list[str]:
        """The ids that the registry knows, erased ones as digests, and does not count in a slot: no strangers either."""
        query = (
            'SELECT DISTINCT "user" FROM members WHERE NOT EXISTS (SELECT 1 FROM members AS counted'
            ' WHERE counted."user" = members."user" AND counted.last IS NULL AND counted.first <= ?)'
        )
        return [user for (user,) in self._database.execute(query, (slot,))]

    def first_forgotten(self, holdout: HoldOut) -> int | None:
        """The first slot in which some past membership holds nobody out any more; None without any."""
        (last,) = only_row(self._database, "SELECT min(last) FROM members WHERE last IS NOT NULL")
        return None if last is None else holdout.forgotten_from(int(last))

    def holds(self, user: str) -> bool:
        """Whether a user is registered, queued changes counted in."""
        row = maybe_row(self._database, 'SELECT action FROM changes WHERE "user" = ? ORDER BY id DESC LIMIT 1', (user,))
        if row is not None:
            return bool(row[0] == "set")
        query = 'SELECT 1 FROM members WHERE "user" = ? AND last IS NULL'
        return maybe_row(self._database, query, (user,)) is not None

    def counts_from(self, user: str) -> int | None:
        """The slot from which a member counts, None for somebody who is none."""
        row = maybe_row(self._database, 'SELECT first FROM members WHERE "user" = ? AND last IS NULL', (user,))
        return None if row is None else int(row[0])

    def remembers(self, user: str) -> bool:
        """Whether the id is still there, of a member or of somebody who left and may have to be held out."""
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
        """See `Registry.turnover`."""
        joined, left = 'SELECT "user" FROM members WHERE first = ?', 'SELECT "user" FROM members WHERE last = ?'
        query = f"SELECT count(*) FROM ({joined} EXCEPT {left}) AS joined"
        query += f" UNION ALL SELECT count(*) FROM ({left} EXCEPT {joined}) AS gone"
        with self._database.readable():
            return sum(count for (count,) in self._database.execute(query, (slot, slot - 1, slot - 1, slot)))

    def sizes(self, slot: int) -> dict[Key, ClassSize]:
        """See `Registry.sizes`."""
        query = (
            'SELECT "window", nano, count(*), count(*) FILTER (WHERE first > ?) FROM members WHERE last IS NULL'
            ' GROUP BY "window", nano'
        )
        with self._database.readable():
            rows = self._database.execute(query, (slot,))
            return {(window, nano): ClassSize(registered, waiting) for window, nano, registered, waiting in rows}

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
        """See `Registry.joined_by_request`."""
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
        """Every restore of this journal, in slot order."""
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
        with self._database.readable():
            number, token = self._facts.number("revision"), self._facts.text("token")
            if number < 0 or not _TOKEN.fullmatch(token):
                raise self._database.damaged()
        return Revision(number, token)

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

    def apply(self, slot: int, holdout: HoldOut, most: int | None = None) -> int:
        """Put queued changes in force from `slot` on (spec 10); forget memberships that hold out nobody.

        Args:
            slot: the slot.
            holdout: the rule.
            most: how many changes at most, the earliest ones; None: all of them.
        """
        if self._before is not None:
            most = self._before if most is None else min(most, self._before)
        number, self._in_force = self._database.write(lambda: self._put_in_force(slot, holdout, most))
        if self._before is not None:
            self._before -= number
        return number

    def counted_under(self) -> Revision:
        """The revision that slots are counted under now."""
        return self._in_force or self.revision()

    def check_in_force(self, through: int) -> None:
        """Refuse to go on with memberships that are not those this writer counted under; inside a transaction.

        ▲ A database that was put back to between two slots has all of them, and not who joined or left since: whoever was
        counted would be known to nobody, and could join again without waiting (spec 10).

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

    def _put_in_force(self, slot: int, holdout: HoldOut, most: int | None) -> tuple[int, Revision]:
        """`apply`, inside a transaction; how many changes, and the revision that is in force then."""
        self.check_in_force(slot - 1)
        work = self._work(holdout)
        work.forget(slot)
        number = self.pending()
        filled = number > 0 and (most is None or number <= most) and work.fill(slot)
        if filled:
            self._database.execute("DELETE FROM changes")
        else:
            number = work.apply_queue(slot, number if most is None else min(most, number))
        self._facts["registry"] = work.fingerprint.value()
        if filled or work.changed:
            before, after = self.revision(), self._advance()
            self._note(None if filled else work.changed, before, after)  # before anybody can rely on the change
        return number, self.revision()

    def _work(self, holdout: HoldOut) -> Work:
        return Work(self._database, self.salt, self._facts.data("registry"), holdout)

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

    def enrol(self, everybody: Enrolment, slot: int, holdout: HoldOut) -> bool:
        """Register everybody from `slot` on without queueing, if nobody ever was and nobody can be held out.

        Only the holder of the writer's lock may, before `slot`; inside a transaction. Returns whether that was so.
        """
        work = self._work(holdout)
        if self.pending() or not work.nobody_waits(slot, everybody.keys.distinct):
            return False
        work.enrol(everybody, slot)
        self._summed = work.fingerprint.value()
        self._facts["registry"] = self._summed
        if isinstance(everybody.users, Spelled):  # reading millions of rows back would take as long as storing them
            firsts = np.broadcast_to(np.int64(slot), len(everybody))
            self._enrolled = MemberColumns(everybody.users, everybody.keys, firsts)
        before, after = self.revision(), self._advance()
        self._note(None, before, after)
        self._in_force = None
        return True

    def hold_out(self, restore: Restore, holdout: HoldOut) -> int:
        """After slots released elsewhere: whose membership there is not proven waits. Inside a transaction.

        Args:
            restore: what is known of these slots.
            holdout: the rule so far, without the restore.

        Returns:
            How many members wait.
        """
        work = self._work(holdout)
        work.forget(restore.slot + 1)  # as it was forgotten there: who is unknown may have been a stranger
        held = work.hold_out(restore)
        work.flush()
        work.fingerprint.add_restore(restore)
        same, charged = int(restore.same_epoch), charged_text(restore.charged)
        self._database.execute(
            "INSERT INTO restores VALUES (?, ?, ?, ?, ?, ?)",
            (restore.slot, restore.widest, restore.proven, same, charged, restore.changed),
        )
        self._facts["registry"] = work.fingerprint.value()
        self._advance()
        self._in_force = None
        return held

    def _advance(self) -> Revision:
        after = Revision(self.revision().number + 1, secrets.token_hex(8))
        self._facts["revision"] = after.number
        self._facts["token"] = after.token
        return after


def _queued(change: Change) -> tuple[Any, ...]:
    check_id(change.user)
    return change.action, change.user, *(change.key or (None, None)), change.level
