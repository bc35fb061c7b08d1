"""Whether a database can hold a journal, as far as that can be seen without changing anything in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Any

from wevent.errors import InvalidJournal, StorageFailed
from wevent.journal.place import PostgresPlace
from wevent.journal.postgres.connection import Connection, check_writable, connect
from wevent.journal.postgres.lease import current_writer
from wevent.journal.postgres.server_errors import clear_failures, without_rights

_SCHEMA = """
SELECT to_regnamespace(%(schema)s) IS NOT NULL,
  CASE WHEN to_regnamespace(%(schema)s) IS NULL THEN has_database_privilege(current_database(), 'CREATE')
    ELSE has_schema_privilege(to_regnamespace(%(schema)s)::oid, 'USAGE')
      AND has_schema_privilege(to_regnamespace(%(schema)s)::oid, 'CREATE') END
"""
_TABLES = """
SELECT relname, has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
  AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')
FROM pg_class WHERE relnamespace = to_regnamespace(%(schema)s)::oid AND relkind IN ('r', 'p')
"""


class Examination:
    """Looks at the database, the role, the schema and the side folder of a journal; whoever makes it closes it.

    Args:
        place: the journal, which need not be there yet.
    """

    def __init__(self, place: PostgresPlace) -> None:
        self._place = place
        self._connection: Connection | None = None

    def checks(self) -> dict[str, Callable[[], str]]:
        """What is looked at, in this order: each says what it found, or raises what is wrong."""
        return {
            "database": self._database,
            "commits": self._commits,
            "schema": self._schema,
            "side folder": self._side_folder,
        }

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()

    def _database(self) -> str:
        """Address, version and encoding, as every connection looks at them; and the role."""
        connection = connect(self._place, "examining")
        with clear_failures(self._place):
            connection.execute("SET default_transaction_read_only TO on").close()
            ((version, role),) = connection.execute("SELECT current_setting('server_version'), current_user").fetchall()
        self._connection = connection
        return f"PostgreSQL {version.split()[0]}, UTF8, role {role}"

    def _commits(self) -> str:
        check_writable(self._asked(), self._place)
        return "forced to disk before they are reported (fsync, full_page_writes, synchronous_commit); no standby"

    def _schema(self) -> str:
        connection, names = self._asked(), {"schema": self._place.schema}
        with clear_failures(self._place):
            ((is_there, is_allowed),) = connection.execute(_SCHEMA, names).fetchall()
            rows: list[Any] = connection.execute(_TABLES, names).fetchall()
            tables: dict[str, bool] = dict(rows)
            if not is_allowed or not all(tables.values()):
                raise without_rights(self._place)
            if "head" in tables:
                writer = current_writer(connection)
                by = "nobody" if writer is None else f"process {writer.pid} on {writer.host} since {writer.since}"
                return f"{self._place.schema} holds a journal, written by {by} now"
        return f"{self._place.schema} {'has no journal' if is_there else 'is not there'} yet; the role may make it"

    def _side_folder(self) -> str:
        folder = self._place.private_folder
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise StorageFailed(
                "a side folder that this user can write to",
                f"one that it cannot ({folder})",
                "Run this as the publisher's user, or give it the folder.",
                path=str(folder),
            )
        return f"{folder}, mode {stat.S_IMODE(folder.stat().st_mode):04o}"

    def _asked(self) -> Connection:
        if self._connection is None:
            raise InvalidJournal(
                "a database that can be asked", "none (see above)", "Mend that first.", path=str(self._place)
            )
        return self._connection
