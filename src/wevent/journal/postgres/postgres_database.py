"""The tables of a journal in a schema of PostgreSQL: see `wevent.journal.tables.database.Database`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal

import psycopg

from wevent.errors import InvalidJournal
from wevent.journal.place import PostgresPlace
from wevent.journal.postgres.connection import PATIENCE_S, Connection
from wevent.journal.postgres.lease import Lease
from wevent.journal.postgres.postgres_session import READ_ONLY, Session, portable
from wevent.journal.postgres.server_errors import damaged_tables
from wevent.journal.postgres.write_transactions import WriteTransactions
from wevent.journal.tables.database import UNREADABLE, FoundRows, Result

FORMAT = 1
"""The format of journals in PostgreSQL: the tables are those of journal files of this format."""

_AT_ONCE = 1 << 16
_LARGEST = 1 << 28  # bytes: PostgreSQL holds a gigabyte in a value, and needs as much again to send it
_LONG_VIEW = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout TO '10min'"
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


class PostgresDatabase:
    """A connection to the tables of a journal.

    Args:
        place: the journal.
        lease: the right to write it; None for those who read it and ask for changes.
        patience_s: how long a database that does not answer is waited for.

    Attributes:
        session: the connection.
    """

    def __init__(self, place: PostgresPlace, lease: Lease | None, *, patience_s: float = PATIENCE_S) -> None:
        self._place = place
        purpose, instance = ("reading", "") if lease is None else ("writing", lease.instance)
        self.session = Session(
            place, purpose, instance, setting=READ_ONLY, writes=lease is not None, patience_s=patience_s
        )
        self.session.connect()
        self._transactions = WriteTransactions(self.session, lease)
        self._inside: Literal["write", "read"] | None = None

    @property
    def name(self) -> str:
        """The address, without a password."""
        return str(self._place)

    @property
    def largest_value(self) -> int:
        """How many bytes a value can have."""
        return _LARGEST

    def execute(self, query: str, values: Sequence[Any] = (), /) -> FoundRows:
        """See `Database.execute`; outside of transactions it only reads, and is repeated when the connection is lost."""
        return self._run(portable(query), values)

    def executemany(self, query: str, rows: Iterable[Sequence[Any]], /) -> None:
        """See `Database.executemany`."""
        assert self._inside == "write", "rows are changed inside a transaction only"
        several = list(rows)
        if len(several) == 1:
            self.session.execute(portable(query), several[0])
        elif several:
            self.session.executemany(portable(query), several)

    def write(
        self,
        work: Callable[[], Result],
        undone: Callable[[], None] | None = None,
        stands: Callable[[], bool] | None = None,
    ) -> Result:
        """See `Database.write`, and `wevent.journal.postgres.write_transactions`."""
        if self._inside == "write":
            return work()
        with self._now("write"):
            return self._transactions.run(work, undone or (lambda: None), stands or (lambda: False))

    def read(self, work: Callable[[], Result]) -> Result:
        """See `Database.read`; repeated from its beginning when the connection is lost."""
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
        """See `Database.clear_errors`: they are ours already."""
        return nullcontext()

    @contextmanager
    def readable(self) -> Iterator[None]:
        """See `Database.readable`."""
        try:
            yield
        except InvalidJournal:
            raise
        except (*UNREADABLE, psycopg.Error):
            raise self.damaged() from None

    def damaged(self) -> InvalidJournal:
        """See `Database.damaged`."""
        return damaged_tables(self._place)

    def close(self) -> None:
        """End the connection."""
        self.session.close()

    # Dialect

    def insert(self, table: str, data: bytes) -> int:
        """See `Dialect.insert`."""
        ((number,),) = self._run(f"INSERT INTO {table} (data) VALUES (%s) RETURNING id", (data,)).fetchall()
        return int(number)

    def fact(self, value: str | int | bytes) -> bytes:
        """See `Dialect.fact`: numbers and texts as the bytes of their text."""
        return value if isinstance(value, bytes) else str(value).encode()

    def among(self, select: str, users: Sequence[str]) -> FoundRows:
        """See `Dialect.among`."""
        return self._run(f'{select} WHERE "user" = ANY(%s)', (list(users),))

    def member_columns(self, after: Sequence[Any]) -> tuple[bytes, bytes, list[str]] | None:
        """See `Dialect.member_columns`."""
        ((users, levels, *numbers),) = self._run(_COLUMNS, after).fetchall()
        return None if users is None else (users, levels, numbers)

    def add_members(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """See `Dialect.add_members`: copied in one stream."""
        with self.session.translating(), self.session.connection.cursor() as cursor, cursor.copy(_COPY) as copy:
            for row in rows:
                copy.write_row(row)

    def _run(self, query: str, values: Sequence[Any]) -> psycopg.Cursor[tuple[Any, ...]]:
        given = tuple(values) or None
        if self._inside is not None:
            return self.session.execute(query, given)
        return self.session.repeat(lambda _: self.session.execute(query, given))

    @contextmanager
    def _now(self, inside: Literal["write", "read"]) -> Iterator[None]:
        self._inside = inside
        try:
            yield
        finally:
            self._inside = None
