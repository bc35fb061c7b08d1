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
import re
import secrets
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import psycopg

from wevent.errors import InvalidJournal, JournalUnreachable, StorageFailed, WeventError
from wevent.file_io import destroy_file, link_whole, storage_errors, sync_path
from wevent.journal.address import PostgresAddress
from wevent.journal.connection import (
    Connection,
    Session,
    check_writable,
    connect,
    damaged_tables,
    journal_error,
    no_journal,
    translate_errors,
    without_rights,
)
from wevent.journal.database import (
    FORMAT,
    POSTGRES_TABLES,
    TABLE_NAMES,
    UNREADABLE,
    Facts,
    FoundRows,
    Result,
    begin_rows,
    newer_format,
    only_row,
    out_of_memory,
)
from wevent.journal.journal import Journal
from wevent.journal.lease import Lease, current_writer, lock_key, own_instances, read_holder
from wevent.journal.record import Writer
from wevent.journal.witness import WitnessFile, WitnessRecord, check_lost, read_witness, witness_errors

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

    largest_value = 1 << 28  # bytes: PostgreSQL holds a gigabyte in a value, and needs as much again to send it

    def __init__(self, place: PostgresAddress, lease: Lease | None, *, patience_s: float | None) -> None:
        self.name, self._place, self._lease = str(place), place, lease
        self._id, self._number = secrets.token_hex(16), 0  # of the session and its write transactions in `outcomes`
        purpose, instance = ("reading", "") if lease is None else ("writing", lease.instance)
        self.session = Session(
            place, purpose, instance, setting=_READ_ONLY, writes=lease is not None, patience_s=patience_s
        )
        self.session.connect()
        self._inside: Literal["write", "read"] | None = None

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
        """Begin a write transaction; return whether an earlier attempt at it was stored. `stands` is None at the first."""
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
            fix = "What is committed is intact: run the same command again."
            raise journal_error(StorageFailed, self._place, f"The database did not store the transaction: {done}", fix)

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

    @contextmanager
    def readable(self) -> Iterator[None]:
        try:
            yield
        except InvalidJournal:
            raise
        except MemoryError:
            raise out_of_memory(str(self._place)) from None
        except (*UNREADABLE, psycopg.Error):
            raise self.damaged() from None

    def damaged(self) -> InvalidJournal:
        return damaged_tables(self._place)

    def has_journal(self) -> bool:
        """Return whether the schema has a journal. Refuse other tables under these names, and a newer or partial one."""
        query = "SELECT tablename, has_schema_privilege(schemaname, 'USAGE') FROM pg_tables WHERE schemaname = ?"
        rights: dict[str, bool] = dict(self.execute(query, (self._place.schema,)))
        found = TABLE_NAMES.intersection(rights)
        if not found:
            return False
        if not all(rights.values()):
            raise without_rights(self._place)
        number = None
        with suppress(InvalidJournal):
            number = Facts(self).number("format") if "facts" in found else None
        if number is None:
            problem = f"The schema {self._place.schema} has other tables under the same names"
            raise journal_error(InvalidJournal, self._place, problem, "Choose another schema; this one is untouched.")
        if number != FORMAT:
            raise newer_format(number, self._place)
        if found != TABLE_NAMES:
            raise self.damaged()
        return True

    # Dialect

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


def examine(place: PostgresAddress) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield checks of the database, role, schema and witness folder of a journal that need not exist yet, and change nothing.

    Each check is called before the next one is taken. It returns what it found, or raises what is wrong.
    """
    connection: Connection | None = None

    def database() -> str:
        nonlocal connection
        connection = connect(place, "examining")
        with translate_errors(place):
            connection.execute(_READ_ONLY).close()
            query = "SELECT current_setting('server_version'), current_user"
            ((version, role),) = connection.execute(query).fetchall()
        return f"PostgreSQL {version.split()[0]}, UTF8, role {role}"

    def connected() -> Connection:
        if connection is None:
            raise InvalidJournal("The database cannot be asked (see above).", "Mend that first.", path=str(place))
        return connection

    def commits() -> str:
        check_writable(connected(), place)
        return "forced to disk before they are reported (fsync, full_page_writes, synchronous_commit); no standby"

    try:
        yield "database", database
        yield "commits", commits
        yield "schema", lambda: _examine_schema(connected(), place)
        yield "witness", lambda: _examine_side_folder(place)
    finally:
        if connection is not None:
            connection.close()


def _examine_schema(connection: Connection, place: PostgresAddress) -> str:
    with translate_errors(place):
        ((has_journal, is_there, is_allowed),) = connection.execute(_RIGHTS, (place.schema,)).fetchall()
        writer = current_writer(connection) if has_journal and is_allowed else None
    if not is_allowed:
        raise without_rights(place)
    if has_journal:
        by = "nobody" if writer is None else f"process {writer.pid} on {writer.host} since {writer.since}"
        return f"{place.schema} holds a journal, written by {by} now"
    return f"{place.schema} {'has no journal' if is_there else 'is not there'} yet; the role may make it"


def _examine_side_folder(place: PostgresAddress) -> str:
    folder = place.private_folder
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        fix = "Run this as the publisher's user, or give it the folder."
        raise StorageFailed(f"This user cannot write to the witness folder {folder}.", fix, path=str(folder))
    return f"{folder}, mode {stat.S_IMODE(folder.stat().st_mode):04o}"


class SharedJournal:
    """A journal as one process shares it with others.

    Attributes:
        session, news: `Session` and `CommitNews` of the journal; each is for one thread, which closes it.
        own_instances: see the function.
    """

    def __init__(self, place: PostgresAddress) -> None:
        self._place, self.own_instances = place, own_instances
        self.session, self.news = partial(Session, place), partial(CommitNews, place)

    def answers(self, within_s: float) -> bool:
        """Return whether the database connects and forces something to disk, as every commit has to, in time."""
        heard = threading.Event()

        def ask() -> None:
            try:
                with closing(connect(self._place, "asking")) as connection:
                    connection.execute("SELECT pg_logical_emit_message(true, 'wevent', '')").close()
            except (psycopg.OperationalError, JournalUnreachable):
                return
            except (psycopg.Error, WeventError):  # it has something to say
                pass
            heard.set()

        threading.Thread(target=ask, name="wevent-asking", daemon=True).start()
        return heard.wait(within_s)

    def announce(self, connection: Connection) -> None:
        """Notify all followers of the journal that it has a new slot."""
        connection.execute(f'NOTIFY "wevent_{self._place.schema}"').close()


class CommitNews:
    """Notifications of commits, for one thread. A notification is only a hint."""

    def __init__(self, place: PostgresAddress) -> None:
        listen = f'LISTEN "wevent_{place.schema}"'
        self._session = Session(place, "following", setting=listen, writes=False)
        self._heard_over: Connection | None = None
        self.close = self._session.close

    def wait(self, timeout_s: float) -> int:
        """Wait for a commit; return the last committed slot.

        The first call over a connection returns at once: earlier commits were not notified.
        """

        def look(connection: Connection) -> int:
            is_first, self._heard_over = connection is not self._heard_over, connection
            for _ in connection.notifies(timeout=0.0 if is_first else timeout_s, stop_after=1):
                pass
            ((committed,),) = connection.execute("SELECT committed FROM head").fetchall()
            return int(committed)

        return self._session.once(look)


@lru_cache(maxsize=256)
def _portable(query: str) -> str:
    """Return a query with `?` for values as PostgreSQL takes it. No query has either sign in a text."""
    return query.replace("?", "%s")


class PostgresJournal(Journal):
    """A journal in a database; see `wevent.journal.journal.Journal`. Arguments and errors: `wevent.journal.open_journal`.

    Its witness is a folder with one witness file for each fencing number. A writer begins its own file after its fence is
    active, as a copy of the newest one. A commit of the writer before holds the row of the fence until it ends, so the copy
    has the draw of every slot that the database may have received. Then the older files are removed: what a fenced writer
    still writes into one of them never reaches the database.
    """

    def __init__(
        self,
        place: PostgresAddress,
        *,
        write: bool = False,
        start_over: bool = False,
        released_through: int | None = None,
        patience_s: float | None = None,
    ) -> None:
        self._place, self.witness_name = place, f"{place.schema}.….witness in {place.folder}"
        self._name = re.compile(rf"{re.escape(place.schema)}\.([0-9]{{1,18}})\.witness")
        self._partial = re.compile(rf"\.{re.escape(place.schema)}\.([0-9]{{1,18}})\.witness\..*\.partial")
        self._is_new = self._is_closed = False
        self._witness = None
        with ExitStack() as undo:
            if write:
                _ = place.private_folder
            newest = max(self._fences(), default=0) if write else 0  # a database put back may know less
            self._lease = Lease(place, above=newest) if write else None
            undo.callback(self._let_go)
            database = PostgresDatabase(place, self._lease, patience_s=patience_s)
            self.session = database.session
            undo.callback(self.session.close)
            self._open(database, start_over)
            super().__init__(
                database,
                self._witness,
                is_new=self._is_new,
                started_over=start_over,
                released_through=released_through,
            )
            self.session.regained = self.check_end
            undo.pop_all()

    def _open(self, database: PostgresDatabase, start_over: bool) -> None:
        """Refuse a schema without a journal, and another journal than the witness shows; the writer begins its witness."""
        place, restoring = str(self._place), "of the database, with its own tools; then publish with"
        try:
            self._is_new = not database.has_journal()
        except InvalidJournal:
            self._is_new = self._lease is not None and self._lease.before is None  # what was made for it goes again
            raise
        if self._lease is not None:
            record = self._read_witness()
            check_lost(record, None if self._is_new else database, place, restoring, start_over=start_over)
            self._begin_witness(self._lease)
        elif self._is_new:
            has_folder = self._place.folder is not None and self._place.folder.is_dir()
            if has_folder and (record := self._read_witness()).is_readable:
                check_lost(record, None, place, restoring)
            raise no_journal(self._place)

    def _begin_witness(self, lease: Lease) -> None:
        """Begin the writer's own file as a copy of the newest one, and remove older ones; its fence is active."""
        older, path = self._fences(), self._path(lease.fence)
        with witness_errors(path):
            data = self._path(older[-1]).read_bytes() if older else b""
            try:
                link_whole(path, data, path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial"))
            except FileExistsError:
                raise StorageFailed(
                    f"Another writer made {path.name} in the witness folder {path.parent}.",
                    "Two databases with journals of the same name share the folder: give each its own.",
                    path=str(path),
                ) from None
            sync_path(path.parent)
            self._witness = WitnessFile(path, os.open(path, os.O_RDWR | os.O_CLOEXEC))
        self._remove_older(lease.fence)
        self._witness.name_writer(lease.writer)

    def _remove_older(self, fence: int) -> None:
        """Remove older files, and what a crash left of one. Ids of users may be in a write-ahead record."""
        for name in self._names():
            found = self._name.fullmatch(name) or self._partial.fullmatch(name)
            if found is None or int(found[1]) > fence or name == self._path(fence).name:
                continue
            path = self._path(fence).with_name(name)
            with witness_errors(path), suppress(FileNotFoundError):  # its writer may have removed it just now
                destroy_file(path, 0, path.stat().st_size)

    def check_intact(self) -> None:
        """See `Journal.check_intact`. Raises `JournalLocked` if another writer is known to have the journal."""
        if self._lease is None or self._witness is None:
            return
        if self._lease.is_lost:
            raise self._lease.locked(None)
        if self._witness.is_in_place():
            return
        if any(fence > self._lease.fence for fence in self._fences()):  # a later writer removed it
            raise self._lease.locked(None)
        raise StorageFailed(
            f"The witness {self._witness.path} was removed or replaced while the journal was published into.",
            "Nothing more was released. Put it back; or publish with --released-through SLOT, the last released slot.",
            path=str(self._witness.path),
        )

    def _read_witness(self) -> WitnessRecord:
        """Return the record of the newest file."""
        while True:
            fences = self._fences()
            record = read_witness(self._path(fences[-1])) if fences else WitnessRecord()
            if not fences or self._path(fences[-1]).exists():  # else a newer writer removed it meanwhile
                return record

    def _create_tables(self) -> None:
        self.session.send(POSTGRES_TABLES)
        begin_rows(self._database)
        self._facts["format"] = FORMAT

    def files(self) -> list[Path]:
        return [] if self._place.folder is None else [self._path(fence) for fence in self._fences()]

    def size(self) -> int:
        """Return the bytes of all tables of the schema but those that tell how many events came."""
        query = (
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
            " WHERE relnamespace = to_regnamespace(?)::oid AND relkind IN ('r', 'm')"
            " AND relname <> 'events'"
        )
        return int(only_row(self._database, query, (self._place.schema,))[0])

    def writer(self) -> Writer | None:
        return self.session.repeat(current_writer)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self.session.close()
            self._let_go()

    def _let_go(self) -> None:
        """Let the next writer in, last of all; a journal that was never begun leaves nothing but earlier slots' witness."""
        if self._witness is not None:
            if self._is_new and self._witness.is_blank:
                self._witness.path.unlink(missing_ok=True)
            self._witness.close()
        if self._lease is not None:
            self._lease.close(never_begun=self._is_new)

    def _fences(self) -> list[int]:
        """Return the fencing numbers that have a file, ascending."""
        found = [self._name.fullmatch(name) for name in self._names()]
        return sorted(int(name[1]) for name in found if name is not None)

    def _names(self) -> list[str]:
        folder = self._place.existing_folder
        fix = "Let this user read it. A reader may leave witness= out of the address."
        with storage_errors(f"to read the witness folder {folder}", fix, folder):
            return os.listdir(folder)

    def _path(self, fence: int) -> Path:
        return self._place.existing_folder / f"{self._place.schema}.{fence}.witness"
