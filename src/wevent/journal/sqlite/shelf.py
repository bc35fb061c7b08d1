"""Charges, populations and histograms of a journal file: what repeats is stored once, what is recent is at hand.

Both memories have a fixed size, so an endless run stays flat.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

import apsw

from wevent.journal.record import Group, Shown, decode_shown
from wevent.journal.sqlite.storage import only_row

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_REMEMBERED = 256


class _Recent(Generic[_Key, _Value]):
    """The values used last."""

    def __init__(self) -> None:
        self._values: OrderedDict[_Key, _Value] = OrderedDict()

    def get(self, key: _Key, make: Callable[[], _Value]) -> _Value:
        """The value of a key, made if it is not at hand."""
        if key not in self._values:
            self._values[key] = make()
            if len(self._values) > _REMEMBERED:
                self._values.popitem(last=False)
        self._values.move_to_end(key)
        return self._values[key]


class Shelf:
    """Reads and writes the tables `charges`, `populations` and `histograms`."""

    def __init__(self, database: apsw.Connection) -> None:
        self._database = database
        self.forget()

    def forget(self) -> None:
        """Rely on nothing that was read or written before: a transaction was lost, or rows were dropped."""
        self._stored: _Recent[tuple[str, bytes], int] = _Recent()
        self._groups: _Recent[int, Group] = _Recent()
        self._charges: _Recent[int, bytes] = _Recent()
        self._shown: _Recent[int, Shown] = _Recent()

    def store(self, table: str, data: bytes) -> int:
        """The row that holds these bytes, a recent one or a new one; 0 for none."""
        return self._stored.get((table, data), lambda: self._insert(table, data)) if data else 0

    def group(self, number: int) -> Group:
        """A stored population."""
        return self._groups.get(number, lambda: Group.from_data(self._data("populations", "id", number)))

    def charges(self, number: int) -> bytes:
        """Stored charges, as bytes."""
        return self._charges.get(number, lambda: self._data("charges", "id", number)) if number else b""

    def shown(self, slot: int) -> Shown:
        """The histogram first shown in a slot."""
        return self._shown.get(slot, lambda: decode_shown(slot, self._data("histograms", "slot", slot)))

    def _insert(self, table: str, data: bytes) -> int:
        self._database.execute(f"INSERT INTO {table} (data) VALUES (?)", (data,))
        return self._database.last_insert_rowid()

    def _data(self, table: str, column: str, number: int) -> bytes:
        return bytes(only_row(self._database, f"SELECT data FROM {table} WHERE {column} = ?", (number,))[0])
