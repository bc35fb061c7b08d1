"""The table `facts` of a journal: what the journal knows of itself, by name."""

from __future__ import annotations

from typing import Any

import msgspec

from wevent.journal.tables.database import Database, maybe_row, only_row

UPSERT = "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
"""Writes a fact, or writes it anew."""


class Facts:
    """Reads and writes the table; inside whatever transaction is open."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def text(self, name: str) -> str:
        """A fact that is a text."""
        value = self._stored(name)
        return value.decode() if isinstance(value, bytes) else str(value)

    def number(self, name: str) -> int:
        """A fact that is a number."""
        try:
            return int(self._stored(name))
        except (ValueError, TypeError):
            raise self._database.damaged() from None

    def data(self, name: str) -> bytes:
        """A fact that is bytes."""
        value = self._stored(name)
        if not isinstance(value, bytes):
            raise self._database.damaged()
        return value

    def __setitem__(self, name: str, value: str | int | bytes) -> None:
        self._database.execute(UPSERT, (name, self._database.fact(value)))

    def get(self, name: str) -> bytes | None:
        """A fact that is bytes, None if it was never written."""
        row = maybe_row(self._database, "SELECT value FROM facts WHERE name = ?", (name,))
        return None if row is None else row[0]

    @property
    def unsafe(self) -> tuple[str, ...]:
        """What weakens the promise."""
        return tuple(msgspec.json.decode(self.text("unsafe")))

    @unsafe.setter
    def unsafe(self, reasons: tuple[str, ...]) -> None:
        self["unsafe"] = msgspec.json.encode(reasons).decode()

    def add_unsafe(self, reasons: tuple[str, ...]) -> None:
        """Add what is not written down yet."""
        known = self.unsafe
        self.unsafe = (*known, *(reason for reason in reasons if reason not in known))

    def _stored(self, name: str) -> Any:
        return only_row(self._database, "SELECT value FROM facts WHERE name = ?", (name,))[0]
