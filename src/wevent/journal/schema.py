"""The tables of a journal file, its format number and the way from older ones."""

from __future__ import annotations

from collections.abc import Callable

import apsw

FORMAT = 1
APPLICATION_ID = 0x77657674  # "wevt": tells a journal from other SQLite files

TABLES = """
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
  copied INTEGER NOT NULL,
  pending BLOB NOT NULL
);
CREATE TABLE states (slot INTEGER PRIMARY KEY, data BLOB NOT NULL, digest BLOB NOT NULL);
CREATE TABLE members (
  user TEXT NOT NULL, window INTEGER NOT NULL, nano INTEGER NOT NULL, level TEXT, first INTEGER NOT NULL, last INTEGER,
  PRIMARY KEY (user, first, window, nano)
) WITHOUT ROWID;
CREATE INDEX members_ended ON members (last) WHERE last IS NOT NULL;
CREATE TABLE changes (
  id INTEGER PRIMARY KEY, action TEXT NOT NULL, user TEXT NOT NULL, window INTEGER, nano INTEGER, level TEXT
);
"""

MIGRATIONS: dict[int, Callable[[apsw.Connection], None]] = {}
"""From format number to the function that makes the next one of it; run inside one transaction, oldest first."""


def create(connection: apsw.Connection) -> None:
    """Lay out an empty journal."""
    connection.execute(TABLES)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def migrate(connection: apsw.Connection, found: int) -> None:
    """Bring an older format up to the present one."""
    for number in range(found, FORMAT):
        MIGRATIONS[number](connection)
        connection.execute(f"PRAGMA user_version = {number + 1}")
