"""The table `facts` of a journal file: what the journal knows of itself, by name."""

from __future__ import annotations

from typing import Any

import apsw
import msgspec

from wevent.journal.sqlite.storage import maybe_row, only_row


class Facts:
    """Reads and writes the table; inside whatever transaction is open."""

    def __init__(self, database: apsw.Connection) -> None:
        self._database = database

    def __getitem__(self, name: str) -> Any:
        return only_row(self._database, "SELECT value FROM facts WHERE name = ?", (name,))[0]

    def __setitem__(self, name: str, value: Any) -> None:
        self._database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def get(self, name: str) -> Any:
        """A fact, None if it was never written."""
        row = maybe_row(self._database, "SELECT value FROM facts WHERE name = ?", (name,))
        return None if row is None else row[0]

    @property
    def unsafe(self) -> tuple[str, ...]:
        """What weakens the promise."""
        return tuple(msgspec.json.decode(self["unsafe"]))

    @unsafe.setter
    def unsafe(self, reasons: tuple[str, ...]) -> None:
        self["unsafe"] = msgspec.json.encode(reasons).decode()

    def add_unsafe(self, reasons: tuple[str, ...]) -> None:
        """Add what is not written down yet."""
        known = self.unsafe
        self.unsafe = (*known, *(reason for reason in reasons if reason not in known))
