"""Connections to the database of a journal: how they are made, and what they are pinned to.

A connection is pinned to what the promises of a journal rest on, whatever the server, the database or the role have as
their defaults: every commit is forced to disk, each statement sees what was committed before it, and a session that sits
in a transaction without doing anything is ended by the server.
"""

from __future__ import annotations

import re
import socket
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from wevent.errors import InvalidJournal, JournalUnreachable, StorageFailed
from wevent.journal.place import PostgresPlace
from wevent.journal.postgres.server_errors import a_standby, clear_failures, plain_reason, translated, unreachable

Connection = psycopg.Connection[tuple[Any, ...]]

DURABLE = ("on", "remote_apply")
"""Values of `synchronous_commit` under which a commit that was reported has reached the disk, here and on standbys."""

PATIENCE_S = 60.0
"""How long the loss of a connection is borne before it is reported: a server that restarts comes back in that time."""

_OLDEST = 13_00_00
_LEAST_IDLE_S = 10.0  # a machine that is busy is not paused
_WORDS = re.compile("[a-z0-9 ]{1,63}")
_REFUSAL = re.compile(
    "authentication failed|no password supplied|does not exist|no pg_hba.conf entry|not permitted to log in"
    "|permission denied|not currently accepting connections|certificate|does not support SSL"
)


def connect(place: PostgresPlace, purpose: str, instance: str = "") -> Connection:
    """One connection to the database of a journal, outside of any transaction; its tables are found by their names.

    Args:
        place: the journal.
        purpose: what it is for, a word or two; the server shows it as `wevent INSTANCE PURPOSE`.
        instance: who makes it: all connections of a writer that lost its journal are ended by this name.

    Raises:
        JournalUnreachable: if no server answers, or it does not let us in; `passing` if it may later.
        InvalidJournal: if the address cannot be used, or the database cannot hold every id (its encoding is not UTF-8).
    """
    parameters = _parameters(place, application_name(instance, purpose))
    try:
        connection = _connected(place, parameters)
    except UnicodeError:  # no name server can be asked for such a name: two dots in a row, more than 63 letters
        raise InvalidJournal(
            "the address of a database",
            f"one with a host that cannot be ({place})",
            "Correct its name.",
            path=str(place),
        ) from None
    try:
        _check_kind(connection, place)
        with clear_failures(place):
            connection.execute(_session(place)).close()
    except BaseException:
        connection.close()
        raise
    return connection


def _connected(place: PostgresPlace, parameters: str) -> Connection:
    """Return a connection; raises as `connect`."""
    try:
        return psycopg.connect(parameters, autocommit=True)
    except psycopg.OperationalError as error:
        found = unreachable(place, plain_reason(error, place))
        raise JournalUnreachable(
            found.expected, found.received, found.remedy, path=str(place), passing=not _is_refusal(str(error))
        ) from None
    except psycopg.Error as error:
        raise translated(error, place) from None


def _is_refusal(text: str) -> bool:
    """Return whether an address or a client is wrong, by what libpq or the server said; else the server may be away.

    libpq has no code for it. A server that speaks another language than English counts as away: waiting is the safe mistake.
    """
    if text.startswith("failed to resolve host"):
        return f"[Errno {socket.EAI_AGAIN}]" not in text
    return _REFUSAL.search(text) is not None


def connect_session(
    place: PostgresPlace, purpose: str, instance: str = "", *, setting: str, writes: bool = True
) -> Connection:
    """One connection of a session that makes another one when it is lost, and waits for a server that can be used.

    Args:
        place: the journal.
        purpose: as of `connect`.
        instance: as of `connect`.
        setting: a statement that sets what such a session has of its own.
        writes: whether it writes: then not to a server that forgets.

    Raises:
        JournalUnreachable: as of `connect`; if the connection is lost at once; and if it writes, for a standby, which may
            be about to be promoted, or the wrong one of several.
        StorageFailed: if it writes, as of `check_writable`.
        InvalidJournal: as of `connect`.
    """
    connection = connect(place, purpose, instance)
    try:
        if writes:
            if is_standby(connection, place):
                raise unreachable(place, "a standby")
            check_writable(connection, place)
        connection.execute(setting)
    except psycopg.Error as error:
        connection.close()
        raise unreachable(place, plain_reason(error, place)) from None
    except BaseException:
        connection.close()
        raise
    return connection


def is_standby(connection: Connection, place: PostgresPlace) -> bool:
    """Whether a server only follows another one."""
    with clear_failures(place):
        return bool(connection.execute("SELECT pg_is_in_recovery()").fetchall()[0][0])


def check_writable(connection: Connection, place: PostgresPlace) -> None:
    """Refuse a server that may forget what it reported as committed, and one that only follows another (spec 10).

    What is looked at is what the server, the database, the role and the address say, not what `connect` pinned.

    Raises:
        StorageFailed: naming the setting.
    """
    if is_standby(connection, place):
        raise a_standby(place)
    query = "SELECT name, reset_val FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')"
    with clear_failures(place):
        rows: list[Any] = connection.execute(query).fetchall()
    found: dict[str, str] = dict(rows)
    for name, allowed in (("fsync", ("on",)), ("full_page_writes", ("on",)), ("synchronous_commit", DURABLE)):
        if found[name] not in allowed:
            raise _forgetful(place, name, found[name], " or ".join(allowed))


def application_name(instance: str, purpose: str) -> str:
    """What the server calls a connection."""
    name = f"wevent {instance} {purpose}" if instance else f"wevent {purpose}"
    assert _WORDS.fullmatch(name), "the server cuts longer names"
    return name


def _parameters(place: PostgresPlace, name: str) -> str:
    """What libpq is given: the address, and limits, so that a network that swallows everything is noticed."""
    usual = {
        "connect_timeout": "10",
        "keepalives_idle": "5",
        "keepalives_interval": "2",
        "keepalives_count": "3",
        "tcp_user_timeout": f"{place.lease_s * 1000:.0f}",
    }
    with clear_failures(place):
        given = conninfo_to_dict(place.conninfo)
        named: dict[str, Any] = {**usual, **given, "application_name": name, "client_encoding": "UTF8"}
        return make_conninfo(**named)


def _session(place: PostgresPlace) -> sql.Composed:
    """What a session is pinned to; one message to the server."""
    return sql.SQL(
        "SET search_path TO {schema}, pg_temp;"
        "SET default_transaction_isolation TO 'read committed';"
        "SET idle_in_transaction_session_timeout TO {limit};"
        "SET statement_timeout TO 0;"
        "SET lock_timeout TO 0;"
        "SET TimeZone TO 'UTC';"
        "SET extra_float_digits TO 1;"
        "SELECT set_config('synchronous_commit',"
        " CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)"
    ).format(schema=sql.Identifier(place.schema), limit=sql.Literal(f"{max(place.lease_s, _LEAST_IDLE_S) * 1000:.0f}"))


def _check_kind(connection: Connection, place: PostgresPlace) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise InvalidJournal(
            "a database with the encoding UTF8, which every id can be written in",
            f"one with {encoding} ({place})",
            "Make another database: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0.",
            path=str(place),
        )
    if connection.info.server_version < _OLDEST:
        raise InvalidJournal(
            f"PostgreSQL {_OLDEST // 10000} or newer",
            f"version {connection.info.server_version // 10000} ({place})",
            "Use a newer server.",
            path=str(place),
        )


def _forgetful(place: PostgresPlace, name: str, found: str, wanted: str) -> StorageFailed:
    return StorageFailed(
        f"{name} = {wanted}: what is reported as committed must survive a crash, or a slot would be drawn twice",
        f"{name} = {found} ({place})",
        "Change it in the server's configuration, the database, the role or the address, wherever it is set.",
        path=str(place),
    )
