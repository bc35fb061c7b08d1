"""The registry in a journal file: who holds which requirement since when; the rules are in `wevent.membership`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import apsw

from wevent.journal.contract import Member
from wevent.journal.storage import clear_errors, maybe_row, only_row, transaction
from wevent.membership import Change, Past, erased_id, first_slot


class SqliteRegistry:
    """See `wevent.journal.contract.Registry`.

    Any process may `ask`; only the holder of the writer's lock may `apply`. So a change takes effect exactly
    between two slots, whoever asked.
    """

    def __init__(self, database: apsw.Connection, path: Path, fact: Callable[[str], Any]) -> None:
        self._database = database
        self._path = path
        self._fact = fact

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
        """Queue changes for the next slot boundary."""
        with clear_errors(self._path), transaction(self._database):
            before = self.pending()
            self._database.executemany(
                "INSERT INTO changes (action, user, window, nano, level) VALUES (?, ?, ?, ?, ?)",
                ((one.action, one.user, *(one.key or (None, None)), one.level) for one in changes),
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

    def apply(self, slot: int, widest: int) -> int:
        """Put the queued changes in force from `slot` on (spec 10); forget memberships that hold out nobody."""
        with clear_errors(self._path), transaction(self._database):
            self._database.execute("DELETE FROM members WHERE last IS NOT NULL AND ? - last >= ?", (slot, widest))
            number = self.pending()
            if number and not self._fill(slot):
                for change in self.queued():
                    self._apply(change, slot)
            self._database.execute("DELETE FROM changes")
            return number

    def _fill(self, slot: int) -> bool:
        """Register everybody at once if nobody ever was: nobody can be held out. Whether that was the case."""
        known, others, users, rows = only_row(
            self._database,
            "SELECT EXISTS (SELECT 1 FROM members), sum(action <> 'set'), count(DISTINCT user), count(*) FROM changes",
        )
        if known or others or users != rows:
            return False
        self._database.execute(
            "INSERT INTO members SELECT user, window, nano, level, ?, NULL FROM changes ORDER BY user", (slot,)
        )
        return True

    def _apply(self, change: Change, slot: int) -> None:
        current = maybe_row(
            self._database,
            "SELECT window, nano, level, first FROM members WHERE user = ? AND last IS NULL",
            (change.user,),
        )
        if change.action == "set" and change.key is not None:
            if current is not None and (current[0], current[1]) == change.key:
                if current[2] != change.level:
                    self._database.execute(
                        "UPDATE members SET level = ? WHERE user = ? AND last IS NULL", (change.level, change.user)
                    )
                return
            self._end(change.user, current, slot)
            first = first_slot(change.key, slot, self._past(change.user))
            self._database.execute(
                "INSERT INTO members VALUES (?, ?, ?, ?, ?, NULL)", (change.user, *change.key, change.level, first)
            )
            return
        self._end(change.user, current, slot)
        if change.action == "erase":
            self._erase(change.user)

    def _end(self, user: str, current: tuple[Any, ...] | None, slot: int) -> None:
        """End a membership before `slot`; one that never began leaves no trace."""
        if current is None:
            return
        if current[3] >= slot:
            self._database.execute("DELETE FROM members WHERE user = ? AND last IS NULL", (user,))
        else:
            self._database.execute("UPDATE members SET last = ? WHERE user = ? AND last IS NULL", (slot - 1, user))

    def _past(self, user: str) -> list[Past]:
        """Requirements held earlier, under the id or its erased form."""
        rows = self._database.execute(
            "SELECT window, nano, max(last) FROM members WHERE user IN (?, ?) AND last IS NOT NULL GROUP BY 1, 2",
            (user, erased_id(user, self._fact("salt"))),
        )
        return [Past((window, nano), last) for window, nano, last in rows]

    def _erase(self, user: str) -> None:
        """Replace the id by a keyed digest for as long as the hold-out needs it."""
        digest = erased_id(user, self._fact("salt"))
        rows = self._database.execute(
            "SELECT window, nano, first, last FROM members WHERE user = ?", (user,)
        ).fetchall()
        self._database.execute("DELETE FROM members WHERE user = ?", (user,))
        self._database.executemany(
            "INSERT OR REPLACE INTO members VALUES (?, ?, ?, NULL, ?, ?)", ((digest, *row) for row in rows)
        )
