"""The tables of a journal in a schema of PostgreSQL: transactions, checks for `wevent doctor`, notifications of commits.

Write transactions of a journal follow each other: each begins by taking one lock, and its statements see all earlier
commits. A transaction of the writer also compares the fence: a writer that was replaced commits nothing (spec 10).

A connection may be lost at any moment, and the answer to COMMIT with it. So each write transaction leaves its number in
the row of its session in `outcomes`. An attempt at the same transaction gets the lock after the one before has ended, and
finds in that row whether it was stored. If it was not, the same work is done again; nothing is drawn for that. The attempt
that finds it stored commits too, so that synchronous standbys have the transaction before anything relies on it.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any, Literal

import psycopg

from wevent.errors import InvalidJournal, StorageFailed
from wevent.journal.connection import (
    PATIENCE_S,
    Connection,
    Session,
    check_writable,
    connect,
    damaged_tables,
    journal_error,
    translate_errors,
    without_rights,
)
from wevent.journal.database import UNREADABLE, FoundRows, Result
from wevent.journal.lease import Lease, current_writer, lock_key, read_holder
from wevent.journal.place import PostgresPlace

FORMAT = 1
"""Format of journals in PostgreSQL. The tables are those of journal files of this format."""

_READ_ONLY = "SET default_transaction_read_only TO on"  # write transactions say that they write
_BEGIN = "BEGIN READ WRITE; {settings} SELECT pg_advisory_xact_lock({lock}); {forget} {leave}"
_WRITER_SETTINGS = (
    "SET LOCAL idle_in_transaction_session_timeout TO '10min';"  # to compute changes of millions of members
)
_OF_WRITER = "FROM writer WHERE fence = {fence} AND instance = '{instance}' FOR UPDATE"
_FORGET = "DELETE FROM outcomes WHERE at < clock_timestamp() - interval '1 hour';"  # one is needed for a minute
_LEAVE = (
    "INSERT INTO outcomes AS last SELECT '{session}', {number}, false, clock_timestamp() {source} ON CONFLICT (session)"
    " DO UPDATE SET number = excluded.number, is_stored = last.number = excluded.number, at = excluded.at"
    " RETURNING is_stored"
)
_LONG_VIEW = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout TO '10min'"

_AT_ONCE = 1 << 16
_LARGEST = 1 << 28  # bytes: PostgreSQL holds a gigabyte in a value, and needs as much again to send it
_COLUMNS = f"""
SELECT string_agg(convert_to("user", 'UTF8'), '\\x00'::bytea),
  string_agg(convert_to(coalesce(level, ''), 'UTF8'), '\\x00'::bytea),
  string_agg("window"::text, ' '), string_agg(nano::text, ' '), string_agg(first::text, ' '),
  string_agg(coalesce(last, -1)::text, ' ')
FROM (
  SELECT * FROM members WHERE ("user", first, "window", nano) > (%s, %s, %s, %s)
  ORDER BY "user", first, "window", nano LIMIT {_AT_ONCE}
) AS next
"""
_COPY = 'COPY members ("user", "window", nano, level, first, last) FROM STDIN'

_RIGHTS = """
SELECT to_regclass('head') IS NOT NULL, schema IS NOT NULL,
  CASE WHEN schema IS NULL THEN has_database_privilege(current_database(), 'CREATE')
    ELSE has_schema_privilege(schema, 'USAGE') AND has_schema_privilege(schema, 'CREATE') AND NOT EXISTS (
      SELECT FROM pg_class CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS needed
      WHERE relnamespace = schema AND relkind IN ('r', 'p') AND NOT has_table_privilege(pg_class.oid, needed)) END
FROM (SELECT to_regnamespace(%s)::oid AS schema) AS named
"""


class PostgresDatabase:
    """Connection to the tables of a journal; see `wevent.journal.database.Database`.

    Args:
        place: the journal.
        lease: the right to write it; None for readers, which may still ask for changes of the registry.
        patience_s: limit for reconnecting.

    Attributes:
        session: its connection.
    """

    def __init__(self, place: PostgresPlace, lease: Lease | None, *, patience_s: float = PATIENCE_S) -> None:
        self._place, self._lease = place, lease
        self._id, self._number = secrets.token_hex(16), 0  # of the session and its write transactions in `outcomes`
        purpose, instance = ("reading", "") if lease is None else ("writing", lease.instance)
        self.session = Session(
            place, purpose, instance, setting=_READ_ONLY, writes=lease is not None, patience_s=patience_s
        )
        self.session.connect()
        self._inside: Literal["write", "read"] | None = None

    @property
    def name(self) -> str:
        return str(self._place)

    @property
    def largest_value(self) -> int:
        return _LARGEST

    def execute(self, query: str, values: Sequence[Any] = (), /) -> FoundRows:
        """Run one query. Outside of transactions it only reads, and is repeated when the connection is lost."""
        return self._run(_portable(query), values)

    def executemany(self, query: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Run one query per row, inside a write transaction.

        The writer sends all at once, and the next writer ends its sessions. Everybody else sends one after another: after
        a pipeline the server lets a session that stands still hold its locks without a limit.
        """
        assert self._inside == "write", "rows are changed inside a transaction only"
        with self.session.translating(), self.session.connection.cursor() as cursor:
            if self._lease is not None:
                cursor.executemany(_portable(query), rows)
                return
            for row in rows:
                cursor.execute(_portable(query), row)

    def write(
        self,
        work: Callable[[], Result],
        undone: Callable[[], None] | None = None,
        stands: Callable[[], bool] | None = None,
    ) -> Result:
        if self._inside == "write":
            return work()
        self._number += 1
        results: list[Result] = []  # of attempts that may be stored

        def attempt(_: Connection) -> Result:
            try:
                if not self._begin(stands if results else None):
                    results.append(work())
                self._commit()
                return results[-1]
            except BaseException:
                if undone is not None:
                    undone()
                self.session.roll_back()
                raise

        with self._now("write"):
            return self.session.repeat(attempt)

    def _begin(self, stands: Callable[[], bool] | None) -> bool:
        """Begin a write transaction; return whether an earlier attempt at it was stored. `stands` is None at the first.

        Raises:
            JournalLocked: if another writer has the journal.
        """
        settings = source = ""
        if self._lease is not None:
            settings = _WRITER_SETTINGS
            source = _OF_WRITER.format(fence=self._lease.fence, instance=self._lease.instance)
        statements = _BEGIN.format(
            settings=settings,
            lock=lock_key(self._place.schema, "transaction"),
            forget=_FORGET if self._number == 1 else "",
            leave=_LEAVE.format(session=self._id, number=self._number, source=source),
        )
        found = self.session.send(statements).fetchone()
        if found is not None:
            return bool(found[0])
        if stands is not None and stands():  # another writer goes on from what was stored here
            return True
        assert self._lease is not None
        with self.session.translating():
            holder = read_holder(self.session.connection)
        raise self._lease.locked(holder)

    def _commit(self) -> None:
        done = self.session.send("COMMIT").statusmessage
        if done != "COMMIT":  # PostgreSQL answers so when a statement before had failed
            remedy = "What is committed is intact: run the same command again."
            raise journal_error(StorageFailed, self._place, "the database to store the transaction", str(done), remedy)

    def read(self, work: Callable[[], Result]) -> Result:
        """Do some reading in one consistent view, again from its beginning when the connection is lost."""
        if self._inside is not None:
            return work()

        def in_one_view(_: Connection) -> Result:
            self.session.send(_LONG_VIEW)
            try:
                return work()
            finally:
                self.session.roll_back()

        with self._now("read"):
            return self.session.repeat(in_one_view)

    def clear_errors(self) -> AbstractContextManager[None]:
        return nullcontext()  # the session has translated them

    @contextmanager
    def readable(self) -> Iterator[None]:
        try:
            yield
        except InvalidJournal:
            raise
        except (*UNREADABLE, psycopg.Error):
            raise self.damaged() from None

    def damaged(self) -> InvalidJournal:
        return damaged_tables(self._place)

    def close(self) -> None:
        self.session.close()

    # Dialect

    def fact(self, value: str | int | bytes) -> bytes:
        """Return numbers and texts as the bytes of their text."""
        return value if isinstance(value, bytes) else str(value).encode()

    def among(self, select: str, users: Sequence[str]) -> FoundRows:
        return self._run(f'{select} WHERE "user" = ANY(%s)', (list(users),))

    def member_columns(self, after: Sequence[Any]) -> tuple[bytes, bytes, list[str]] | None:
        ((users, levels, *numbers),) = self._run(_COLUMNS, after).fetchall()
        return None if users is None else (users, levels, numbers)

    def add_members(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Store members by one COPY."""
        with self.session.translating(), self.session.connection.cursor() as cursor, cursor.copy(_COPY) as copy:
            for row in rows:
                copy.write_row(row)

    def _run(self, query: str, values: Sequence[Any]) -> psycopg.Cursor[tuple[Any, ...]]:
        given = tuple(values) or None
        if self._inside is None:
            return self.session.repeat(lambda connection: connection.execute(query, given))
        with self.session.translating():
            return self.session.connection.execute(query, given)

    @contextmanager
    def _now(self, inside: Literal["write", "read"]) -> Iterator[None]:
        self._inside = inside
        try:
            yield
        finally:
            self._inside = None


class Examination:
    """Checks of the database, role, schema and side folder of a journal that need not exist yet. Nothing is changed."""

    def __init__(self, place: PostgresPlace) -> None:
        self._place = place
        self._connection: Connection | None = None

    def checks(self) -> dict[str, Callable[[], str]]:
        """Return the checks in their order. Each returns what it found, or raises what is wrong."""
        return {
            "database": self._database,
            "commits": self._commits,
            "schema": self._schema,
            "side folder": self._side_folder,
        }

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _database(self) -> str:
        connection = connect(self._place, "examining")
        with translate_errors(self._place):
            connection.execute(_READ_ONLY).close()
            ((version, role),) = connection.execute("SELECT current_setting('server_version'), current_user").fetchall()
        self._connection = connection
        return f"PostgreSQL {version.split()[0]}, UTF8, role {role}"

    def _commits(self) -> str:
        check_writable(self._connected(), self._place)
        return "forced to disk before they are reported (fsync, full_page_writes, synchronous_commit); no standby"

    def _schema(self) -> str:
        connection, schema = self._connected(), self._place.schema
        with translate_errors(self._place):
            ((has_journal, is_there, is_allowed),) = connection.execute(_RIGHTS, (schema,)).fetchall()
            writer = current_writer(connection) if has_journal and is_allowed else None
        if not is_allowed:
            raise without_rights(self._place)
        if has_journal:
            by = "nobody" if writer is None else f"process {writer.pid} on {writer.host} since {writer.since}"
            return f"{schema} holds a journal, written by {by} now"
        return f"{schema} {'has no journal' if is_there else 'is not there'} yet; the role may make it"

    def _side_folder(self) -> str:
        folder = self._place.private_folder
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            expected, remedy = (
                "a side folder that this user can write to",
                "Run this as the publisher's user, or give it the folder.",
            )
            raise StorageFailed(expected, f"one that it cannot ({folder})", remedy, path=str(folder))
        return f"{folder}, mode {stat.S_IMODE(folder.stat().st_mode):04o}"

    def _connected(self) -> Connection:
        if self._connection is None:
            raise InvalidJournal(
                "a database that can be asked", "none (see above)", "Mend that first.", path=str(self._place)
            )
        return self._connection


class CommitNews:
    """Notifications of commits, for one thread. A notification is only a hint.

    Args:
        place: the journal.
    """

    def __init__(self, place: PostgresPlace) -> None:
        listen = f'LISTEN "wevent_{place.schema}"'
        self._session = Session(place, "following", setting=listen, writes=False)
        self._heard_over: Connection | None = None

    def wait(self, timeout_s: float) -> int:
        """Wait for a commit; return the last committed slot.

        The first call over a connection returns at once: earlier commits were not notified.

        Raises:
            JournalUnreachable: if the database does not answer.
            InvalidJournal: if there is no journal.
        """

        def look(connection: Connection) -> int:
            is_first, self._heard_over = connection is not self._heard_over, connection
            for _ in connection.notifies(timeout=0.0 if is_first else timeout_s, stop_after=1):
                pass
            ((committed,),) = connection.execute("SELECT committed FROM head").fetchall()
            return int(committed)

        return self._session.once(look)

    def close(self) -> None:
        self._session.close()


def tell_commit(connection: Connection, schema: str) -> None:
    """Notify all followers of a journal that it has a new slot."""
    connection.execute(f'NOTIFY "wevent_{schema}"').close()


@lru_cache(maxsize=256)
def _portable(query: str) -> str:
    """Return a query with `?` for values as PostgreSQL takes it. No query has either sign in a text."""
    return query.replace("?", "%s")
