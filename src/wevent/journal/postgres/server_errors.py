"""PostgreSQL's errors in one clear sentence each; a password is in none of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from wevent.errors import InvalidJournal, JournalUnreachable, StorageFailed, WeventError
from wevent.journal.place import NoJournal, PostgresPlace

_SECRET = ("password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret")
_MISSING = (errors.UndefinedTable, errors.InvalidSchemaName, errors.UndefinedColumn)
_DAMAGE = (errors.DataCorrupted, errors.IndexCorrupted)


@contextmanager
def clear_failures(place: PostgresPlace) -> Iterator[None]:
    """PostgreSQL's errors as ours: no answer, no rights, a full disk, a standby, no journal, damage."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error, place) from None


def translated(error: psycopg.Error, place: PostgresPlace) -> WeventError:
    """An error of PostgreSQL as one of ours."""
    path = str(place)
    if isinstance(error, _MISSING):
        return no_journal(place)
    if isinstance(error, _DAMAGE):
        return damaged_tables(place)
    if isinstance(error, errors.InsufficientPrivilege):
        return without_rights(place)
    if isinstance(error, errors.DiskFull):
        return StorageFailed(
            "room on the disk of the database",
            f"a full one ({place})",
            "Nothing was lost: make room and run the same command again.",
            path=path,
            passing=True,
        )
    if isinstance(error, (errors.ReadOnlySqlTransaction, errors.FeatureNotSupported)):  # no write begins in a standby
        return a_standby(place)
    if isinstance(error, (errors.LockNotAvailable, errors.QueryCanceled)):
        return StorageFailed(
            "the journal to be free within the time limit",
            f"one that another session keeps busy ({place})",
            "Wait for the import or the migration to end and run the same command again.",
            path=path,
            passing=True,
        )
    if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
        return InvalidJournal(
            "the address of a database",
            f"one with parameters that PostgreSQL does not know ({place})",
            "Check them: postgresql://host/database?schema=NAME&side=FOLDER.",
            path=path,
        )
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return unreachable(place, plain_reason(error, place))
    return StorageFailed(
        "the database to do what a journal needs",
        f"an error of it ({error.sqlstate or type(error).__name__}, {place})",
        "What is committed is intact: look into the server's log.",
        path=path,
    )


def unreachable(place: PostgresPlace, reason: str) -> JournalUnreachable:
    """What is said when the database does not answer."""
    return JournalUnreachable(
        "the database of the journal to answer",
        f"{reason} ({place})",
        "What is committed is intact: start the server, check address and password, and run the same command again.",
        path=str(place),
    )


def a_standby(place: PostgresPlace) -> StorageFailed:
    """What is said of a database that follows another one."""
    return StorageFailed(
        "a database that can be written",
        f"a standby ({place})",
        "Name the primary; with several hosts in the address, add target_session_attrs=primary.",
        path=str(place),
        passing=True,
    )


def without_rights(place: PostgresPlace) -> StorageFailed:
    """What is said to a role that may not do something."""
    return StorageFailed(
        f"a role that may use the schema {place.schema} and its tables",
        f"one that may not ({place})",
        f"Let the role own the schema: CREATE SCHEMA {place.schema} AUTHORIZATION role.",
        path=str(place),
    )


def no_journal(place: PostgresPlace) -> NoJournal:
    """What is said of a schema without a journal."""
    return NoJournal(
        f"a journal at {place}",
        "a database without one",
        "Check the address and its schema; `wevent publish` makes one.",
        path=str(place),
    )


def damaged_tables(place: PostgresPlace) -> InvalidJournal:
    """What is said about a journal that cannot be trusted."""
    return InvalidJournal(
        "a whole journal",
        f"a damaged one ({place})",
        "Restore a backup of the database, and say --released-through SLOT, the last slot that ever went out.",
        path=str(place),
    )


def plain_reason(error: BaseException, place: PostgresPlace) -> str:
    """What the server or libpq said, in one line and without a password."""
    text = (str(error).strip() or type(error).__name__).split("\n")[0]
    for start in ("connection failed: ", "connection is bad: "):
        text = text.removeprefix(start)
    try:
        given = conninfo_to_dict(place.conninfo)
    except psycopg.Error:
        return "an address that libpq cannot read"
    for name in _SECRET:
        if given.get(name):
            text = text.replace(str(given[name]), "…")
    return text
