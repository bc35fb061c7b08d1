"""The table `facts` of a journal: named values that describe the journal, and the first rows of a new one."""

from __future__ import annotations

import hashlib
import secrets
import time
import uuid
from typing import Any

import msgspec

from wevent.journal.database import Database, maybe_row, only_row

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


def begin_rows(database: Database) -> None:
    """The rows of a new journal, whose tables are there and empty; inside a transaction."""
    identity = uuid.uuid4().hex
    genesis = hashlib.sha256(b"wevent journal" + identity.encode()).digest()
    database.execute("INSERT INTO head VALUES (1, 0, 0, 'null', ?, 1, ?, 0)", (genesis, genesis))
    facts = Facts(database)
    facts["id"] = identity
    facts["salt"] = secrets.token_bytes(32)
    facts["created"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    facts["unsafe"] = "[]"
    facts["revision"] = 0
    facts["registry chain"] = bytes(32).hex()
    facts["changes lost"] = 0
    facts["together"] = 0
    facts["registry"] = bytes(8)
