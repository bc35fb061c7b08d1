"""The tables of a journal file, and its format number."""

from __future__ import annotations

from functools import cache
from typing import Any

import apsw

from wevent.journal.sqlite.sqlite_database import SqliteDatabase
from wevent.journal.tables.beginning import begin_rows

FORMAT = 1
APPLICATION_ID = 0x77657674  # "wevt": tells a journal from other SQLite files

_REGISTRY = """
CREATE TABLE members (
  user TEXT NOT NULL, window INTEGER NOT NULL, nano INTEGER NOT NULL, level TEXT, first INTEGER NOT NULL,
  last INTEGER,
  PRIMARY KEY (user, first, window, nano)
) WITHOUT ROWID;
CREATE INDEX members_ended ON members (last) WHERE last IS NOT NULL;
CREATE TABLE restores (
  slot INTEGER PRIMARY KEY, silent_through INTEGER NOT NULL, doubted TEXT NOT NULL
);
"""

TABLES = (
    """
CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE epochs (number INTEGER PRIMARY KEY, first INTEGER NOT NULL, terms TEXT NOT NULL);
CREATE TABLE populations (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE charges (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE histograms (slot INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE slots (
  slot INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  population INTEGER NOT NULL,
  probe INTEGER NOT NULL,
  publication INTEGER NOT NULL,
  threshold INTEGER,
  dissimilarity REAL,
  shown INTEGER NOT NULL,
  link BLOB NOT NULL
);
CREATE TABLE head (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  committed INTEGER NOT NULL,
  emitted INTEGER NOT NULL,
  position TEXT NOT NULL,
  link BLOB NOT NULL,
  first INTEGER NOT NULL,
  anchor BLOB NOT NULL,
  copied INTEGER NOT NULL
);
CREATE TABLE states (slot INTEGER PRIMARY KEY, data BLOB NOT NULL, digest BLOB NOT NULL);
CREATE TABLE changes (
  id INTEGER PRIMARY KEY, action TEXT NOT NULL, user TEXT NOT NULL, window INTEGER, nano INTEGER, level TEXT
);
"""
    + _REGISTRY
)


def create(connection: apsw.Connection) -> None:
    """Lay out an empty journal."""
    connection.execute(TABLES)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def lay_out(database: SqliteDatabase) -> None:
    """The tables of a new journal, and what it will always know of itself."""
    create(database.connection)
    begin_rows(database)


def columns(connection: apsw.Connection) -> list[Any]:
    """Every table with its columns, types and keys: a flipped bit in a layout reads like another one."""
    query = (
        'SELECT tables.name, columns.name, columns.type, columns."notnull", columns.pk FROM sqlite_master AS tables,'
        " pragma_table_info(tables.name) AS columns WHERE tables.type = 'table' ORDER BY tables.name, columns.cid"
    )
    return list(connection.execute(query))


@cache
def expected_columns() -> list[Any]:
    """`columns` of a journal of this format."""
    connection = apsw.Connection(":memory:")
    create(connection)
    return columns(connection)
