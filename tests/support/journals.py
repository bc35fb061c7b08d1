"""Every implementation of the journal, as the contract suite uses it; a new one adds itself to JOURNALS."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from psycopg.errors import DeadlockDetected

from tests.support.postgres_server import own_schema, shared_url
from wevent.journal import Journal, PostgresAddress, SqliteJournal, back_up, parse_address
from wevent.journal.connection import connect
from wevent.journal.postgres import PostgresJournal


class Kept(Protocol):
    """Where one journal is kept."""

    def open(self, *, write: bool = True) -> Journal:
        """Open it."""

    def back_up(self) -> None:
        """Make a backup."""

    def put_back(self) -> None:
        """Put the backup in its place; what is kept outside the journal stays."""


class InFile:
    """A journal in an SQLite file."""

    def __init__(self, folder: Path) -> None:
        self._path, self._backup = folder / "run.journal", folder / "backup.journal"

    def open(self, *, write: bool = True) -> Journal:
        return SqliteJournal(self._path, write=write)

    def back_up(self) -> None:
        back_up(self._path, self._backup, replace=True)

    def put_back(self) -> None:
        for ending in ("-wal", "-shm"):
            self._path.with_name(self._path.name + ending).unlink(missing_ok=True)
        self._path.write_bytes(self._backup.read_bytes())


class InDatabase:
    """A journal in a schema of its own in PostgreSQL. A backup is another schema, which knows that it is one."""

    def __init__(self, folder: Path) -> None:
        side = tempfile.mkdtemp(prefix="side", dir=folder.parent)  # outside of what the tests look at
        place = parse_address(f"{shared_url()}?schema={own_schema()}&witness={side}&lease=3600")
        assert isinstance(place, PostgresAddress)
        self.place = place

    def open(self, *, write: bool = True) -> Journal:
        return PostgresJournal(self.place, write=write)

    def back_up(self) -> None:
        copy_schema(self.place, self.place.schema, self._backup)
        with connect(self.place, "test") as database:
            database.execute(f"UPDATE {self._backup}.head SET copied = 1")

    def put_back(self) -> None:
        copy_schema(self.place, self._backup, self.place.schema)

    @property
    def _backup(self) -> str:
        return f"{self.place.schema}_backup"


def copy_schema(place: PostgresAddress, source: str, target: str) -> None:
    """Everything of a schema in place of what is in another one, as pg_dump and psql do it."""
    with connect(place, "test") as database:
        while True:
            with suppress(DeadlockDetected):  # with somebody who reads it meanwhile
                database.execute(f"DROP SCHEMA IF EXISTS {target} CASCADE; CREATE SCHEMA {target}", prepare=False)
                break
        tables = database.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (source,)).fetchall()
        for (table,) in tables:
            database.execute(f"CREATE TABLE {target}.{table} (LIKE {source}.{table} INCLUDING ALL)")
            database.execute(f"INSERT INTO {target}.{table} SELECT * FROM {source}.{table}")
        for table in ("changes",):
            sequence = f"pg_get_serial_sequence('{target}.{table}', 'id')"
            database.execute(f"SELECT setval({sequence}, (SELECT coalesce(max(id), 0) + 1 FROM {target}.{table}))")


JOURNALS: dict[str, Callable[[Path], Kept]] = {"sqlite": InFile, "postgres": InDatabase}
