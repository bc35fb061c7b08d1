"""Connections to the database of a journal, a session that reconnects, and one sentence for each error of PostgreSQL.

Every connection is pinned to settings that a journal relies on, against defaults of the server, the database and the role.
A commit is forced to disk before it is reported. Each statement sees all earlier commits. The server ends a session that
is idle inside a transaction.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from wevent.errors import InvalidJournal, JournalUnreachable, StorageFailed, WeventError
from wevent.journal.address import SECRETS, NoJournal, PostgresAddress

Connection = psycopg.Connection[tuple[Any, ...]]
Result = TypeVar("Result")
Failure = TypeVar("Failure", bound=WeventError)

PATIENCE_S = 60.0
"""Default limit for reconnecting. A server that restarts is back within it."""

_OLDEST = 13_00_00
_LEAST_IDLE_S = 10.0  # a machine that is busy is not a paused one
_RETRY_PAUSE_S = 0.1
_RETRY_PERIODS = 3  # work that ends the server every time is not repeated without end
_REFUSAL = re.compile(
    "authentication failed|no password supplied|does not exist|no pg_hba.conf entry|not permitted to log in"
    "|permission denied|not currently accepting connections|certificate|does not support SSL"
)
_INTACT = "What is committed is intact: "
_LIMITS = {"connect_timeout": "10", "keepalives_idle": "5", "keepalives_interval": "2", "keepalives_count": "3"}
_PINNED = sql.SQL(
    "SET search_path TO {schema}, pg_temp;"
    "SET default_transaction_isolation TO 'read committed';"
    "SET idle_in_transaction_session_timeout TO {idle_ms};"
    "SET statement_timeout TO 0;"
    "SET lock_timeout TO 0;"
    "SET TimeZone TO 'UTC';"
    "SET extra_float_digits TO 1;"
    "SELECT set_config('synchronous_commit',"
    " CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)"
)
_DURABLE = {"fsync": ("on",), "full_page_writes": ("on",), "synchronous_commit": ("on", "remote_apply")}
"""Values of settings under which a reported commit has reached the disk, here and on standbys."""


def connect(place: PostgresAddress, purpose: str, instance: str = "") -> Connection:
    """Connect to the database of a journal, in autocommit mode and with its schema as search path.

    Args:
        place: the journal.
        purpose: a word for `pg_stat_activity`, which shows the connection as `wevent INSTANCE PURPOSE`.
        instance: the writer that the connection belongs to. A takeover ends all connections of this name.

    Raises:
        JournalUnreachable: if no server answers, or it refuses this client (then not `passing`).
    """
    own = {"application_name": " ".join(filter(None, ("wevent", instance, purpose))), "client_encoding": "UTF8"}
    limits = {**_LIMITS, "tcp_user_timeout": f"{place.lease_s * 1000:.0f}"}  # a dead network is noticed
    try:
        with translate_errors(place):
            given: dict[str, Any] = {**limits, **conninfo_to_dict(place.conninfo), **own}
            connection = psycopg.connect(make_conninfo(**given), autocommit=True)
    except UnicodeError:  # no name server accepts two dots in a row or more than 63 letters
        problem = "The address of the database has a host that cannot be"
        raise journal_error(InvalidJournal, place, problem, "Correct its name.") from None
    try:
        _check_kind(connection, place)
        idle_ms = sql.Literal(f"{max(place.lease_s, _LEAST_IDLE_S) * 1000:.0f}")
        with translate_errors(place):
            connection.execute(_PINNED.format(schema=sql.Identifier(place.schema), idle_ms=idle_ms)).close()
    except BaseException:
        connection.close()
        raise
    return connection


def _check_kind(connection: Connection, place: PostgresAddress) -> None:
    encoding, version = connection.info.parameter_status("server_encoding"), connection.info.server_version
    if encoding != "UTF8":
        problem = f"The database has the encoding {encoding}, in which not every id can be written"
        fix = "Make another database: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0."
        raise journal_error(InvalidJournal, place, problem, fix)
    if version < _OLDEST:
        problem = f"The server has PostgreSQL {version // 10000}; a journal needs {_OLDEST // 10000} or newer"
        raise journal_error(InvalidJournal, place, problem, "Use a newer server.")


def is_standby(connection: Connection, place: PostgresAddress) -> bool:
    """Return whether the server only follows another one."""
    with translate_errors(place):
        return bool(connection.execute("SELECT pg_is_in_recovery()").fetchall()[0][0])


def check_writable(connection: Connection, place: PostgresAddress) -> None:
    """Refuse a standby, and a server that can lose commits it has reported (spec 10).

    The settings are those of the server, database, role and address, before `connect` pinned any.
    """
    if is_standby(connection, place):
        raise a_standby(place)
    with translate_errors(place):
        query = "SELECT name, reset_val FROM pg_settings WHERE name = ANY(%s)"
        rows = connection.execute(query, (list(_DURABLE),)).fetchall()
    for name, value in rows:
        if value not in _DURABLE[name]:
            problem = f"With {name} = {value} a crash may undo a reported commit, and a slot would be drawn twice"
            needed = " or ".join(_DURABLE[name])
            fix = f"Set it to {needed}, in the server's configuration, the database, the role or the address."
            raise journal_error(StorageFailed, place, problem, fix)


class RetryLimit:
    """Time limit for reconnecting, from the first loss of a connection on, or from now if there is none.

    It starts again after a connection that lasted longer, but only a few times. A server that accepts connections and drops
    them uses it up.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s, self._end = limit_s, time.monotonic() + limit_s
        self._periods = 0
        self._connected_since: float | None = None

    def connected(self) -> None:
        """Note that a connection was made."""
        self._connected_since = time.monotonic()

    def wait(self, loss: JournalUnreachable) -> None:
        """Pause before the next attempt to connect, or raise the loss once the limit is reached."""
        now, since = time.monotonic(), self._connected_since
        if since is not None and (not self._periods or now - since > self._limit_s) and self._periods < _RETRY_PERIODS:
            self._end, self._periods = now + self._limit_s, self._periods + 1
        self._connected_since = None
        if now >= self._end:
            raise loss
        time.sleep(_RETRY_PAUSE_S)


class Session:
    """A connection for one thread, made at its first use and made again after it was lost.

    A loss is always a `JournalUnreachable`: `once` raises it, `repeat` reconnects and does the work again.

    Args:
        place, purpose, instance: as of `connect`.
        setting: a statement for each new connection.
        writes: refuse servers that can lose commits, and wait for a standby to be promoted.
        understood: errors of PostgreSQL that the caller handles.
        patience_s: limit for reconnecting; None: `PATIENCE_S`.

    Attributes:
        patience_s: may change at any time.
        regained: called after each reconnection, outside of transactions. Its reads are not repeated.
    """

    def __init__(
        self,
        place: PostgresAddress,
        purpose: str,
        instance: str = "",
        *,
        setting: str = "",
        writes: bool = True,
        understood: tuple[type[psycopg.Error], ...] = (),
        patience_s: float | None = None,
    ) -> None:
        self.place, self.patience_s = place, PATIENCE_S if patience_s is None else patience_s
        self.regained: Callable[[], None] = lambda: None
        self._purpose, self._instance = purpose, instance
        self._setting, self._writes, self._understood = setting, writes, understood
        self._connection: Connection | None = None
        self._is_closed = self._is_regaining = False

    @property
    def connection(self) -> Connection:
        """Connection in use, which may be lost. Requires an earlier `connect`."""
        assert self._connection is not None
        return self._connection

    def connect(self) -> Connection:
        """Return the connection, or another one if it is lost. Raises as the function `connect` and `check_writable`."""
        if self._connection is not None and not self._connection.closed:
            return self._connection
        if self._is_closed:
            raise unreachable(self.place, "it was closed here")
        is_first = self._connection is None
        self._connection = connect(self.place, self._purpose, self._instance)
        try:
            if self._writes:
                if is_standby(self._connection, self.place):  # about to be promoted, or the wrong one of several
                    raise unreachable(self.place, "it is a standby")
                check_writable(self._connection, self.place)
            if self._setting:
                with translate_errors(self.place):
                    self._connection.execute(self._setting).close()
            if not is_first:
                self._is_regaining = True
                self.regained()
        except BaseException:
            self._connection.close()
            raise
        finally:
            self._is_regaining = False
        return self._connection

    def send(self, statements: str) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run several statements in one message; return the result of the last. Raises as `translating`."""
        with self.translating():
            cursor = self.connection.execute(statements, prepare=False)
            while cursor.nextset():
                pass
            return cursor

    @contextmanager
    def translating(self) -> Iterator[None]:
        """Raise errors of PostgreSQL as `translated`, except those that the caller handles."""
        try:
            yield
        except self._understood:
            raise
        except psycopg.Error as error:
            is_lost = self._connection is None or self._connection.closed
            raise translated(error, self.place, is_lost=is_lost) from None

    def once(self, work: Callable[[Connection], Result]) -> Result:
        """Do some work once. If it raises `JournalUnreachable`, the work may or may not be stored."""
        with self.translating():
            return work(self.connect())

    def repeat(self, work: Callable[[Connection], Result]) -> Result:
        """Do some work, and again over another connection whenever one is lost. Repetition must be harmless."""
        if self._is_regaining:  # within `regained`: the outer call reconnects
            with self.translating():
                return work(self.connection)
        limit = RetryLimit(self.patience_s)
        while True:
            try:
                connection = self.connect()
                limit.connected()
                with self.translating():
                    return work(connection)
            except JournalUnreachable as loss:
                if self._is_closed:
                    raise
                if self._connection is not None:  # it may be inside a transaction or a COPY
                    self._connection.close()
                limit.wait(loss)

    def roll_back(self) -> None:
        """Roll back the open transaction, if there is one."""
        with suppress(psycopg.Error):
            if self._connection is not None and not self._connection.closed:
                self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection for good."""
        self._is_closed = True
        with suppress(psycopg.Error):
            if self._connection is not None:
                self._connection.close()


@contextmanager
def translate_errors(place: PostgresAddress) -> Iterator[None]:
    """Raise errors of PostgreSQL as `translated`."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error, place) from None


def translated(error: psycopg.Error, place: PostgresAddress, *, is_lost: bool = False) -> WeventError:
    """Return the error to raise instead of one of PostgreSQL; with a lost connection all errors mean the same."""
    for kinds, translate in () if is_lost else _TRANSLATIONS:
        if isinstance(error, kinds):
            return translate(place)
    if is_lost or isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):  # also a deadlock
        is_refusal = error.sqlstate is None and _is_refusal(str(error))
        return unreachable(place, plain_reason(error, place), passing=not is_refusal)
    if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
        problem = "The address of the database has parameters that PostgreSQL does not know"
        fix = "Check them: postgresql://host/database?schema=NAME&witness=FOLDER."
        return journal_error(InvalidJournal, place, problem, fix)
    problem, fix = f"The database failed with error {error.sqlstate}", f"{_INTACT}look into the server's log."
    return journal_error(StorageFailed, place, problem, fix)


def unreachable(place: PostgresAddress, reason: str, *, passing: bool = True) -> JournalUnreachable:
    """Return the error for a database that does not answer, or refuses this client (not `passing`)."""
    problem = f"The database of the journal does not answer: {reason}"
    fix = f"{_INTACT}start the server, check address and password, and run the same command again."
    return journal_error(JournalUnreachable, place, problem, fix, passing=passing)


def a_standby(place: PostgresAddress) -> StorageFailed:
    """Return the error for a database that only follows another one."""
    fix = "Name the primary; with several hosts in the address, add target_session_attrs=primary."
    return journal_error(StorageFailed, place, "The database is a standby", fix, passing=True)


def without_rights(place: PostgresAddress) -> StorageFailed:
    """Return the error for a role that lacks rights in the schema."""
    problem = f"The role may not use the schema {place.schema} and its tables"
    fix = f"Let the role own the schema: CREATE SCHEMA {place.schema} AUTHORIZATION role."
    return journal_error(StorageFailed, place, problem, fix)


def no_journal(place: PostgresAddress) -> NoJournal:
    """Return the error for a schema without a journal."""
    fix = "Check the address and its schema; `wevent publish` makes one."
    return NoJournal(f"There is no journal at {place}.", fix, path=str(place))


def damaged_tables(place: PostgresAddress) -> InvalidJournal:
    """Return the error for a damaged journal."""
    fix = "Restore a backup of the database, and say --released-through SLOT, the last slot that was ever released."
    return journal_error(InvalidJournal, place, "The journal is damaged", fix)


def _full_disk(place: PostgresAddress) -> StorageFailed:
    fix = "Nothing was lost: make room and run the same command again."
    return journal_error(StorageFailed, place, "The disk of the database is full", fix, passing=True)


_TRANSLATIONS: list[tuple[tuple[type[psycopg.Error], ...], Callable[[PostgresAddress], WeventError]]] = [
    ((errors.UndefinedTable, errors.InvalidSchemaName, errors.UndefinedColumn), no_journal),
    ((errors.DataCorrupted, errors.IndexCorrupted), damaged_tables),
    ((errors.InsufficientPrivilege,), without_rights),
    ((errors.DiskFull,), _full_disk),
    ((errors.ReadOnlySqlTransaction, errors.FeatureNotSupported), a_standby),  # no write begins in a standby
]


def journal_error(kind: type[Failure], place: PostgresAddress, problem: str, fix: str, **facts: Any) -> Failure:
    """Return an error whose problem ends with the address of the journal."""
    return kind(f"{problem} ({place}).", fix, path=str(place), **facts)


def plain_reason(error: BaseException, place: PostgresAddress) -> str:
    """Return the message of the server or libpq in one line and without secrets."""
    text = (str(error).strip() or type(error).__name__).split("\n")[0]
    for start in ("connection failed: ", "connection is bad: "):
        text = text.removeprefix(start)
    try:
        given = conninfo_to_dict(place.conninfo)
    except psycopg.Error:
        return "an address that libpq cannot read"
    for name in SECRETS:
        if given.get(name):
            text = text.replace(str(given[name]), "…")
    return text


def _is_refusal(text: str) -> bool:
    """Return whether libpq reports a wrong address or a refused client; otherwise the server may be back later.

    libpq has no error code for this. A message in another language than English counts as "back later", the safe mistake.
    """
    if text.startswith("failed to resolve host"):
        return f"[Errno {socket.EAI_AGAIN}]" not in text
    return _REFUSAL.search(text) is not None
