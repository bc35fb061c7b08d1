"""Charges, populations and histograms of a journal: what repeats is stored once, what is recent is at hand.

Both memories have a fixed size, so an endless run stays flat.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from wevent.journal.record import Group, Shown, decode_shown
from wevent.journal.tables.database import Database, only_row, stored_bytes

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

    def __init__(self, database: Database) -> None:
        self._database = database
        self.forget()

    def forget(self) -> None:
        """Rely on nothing that was read or written before: a transaction was lost, or rows were dropped."""
        self._stored: _Recent[tuple[str, bytes], int] = _Recent()
        self._groups: _Recent[int, Group] = _Recent()
        self._charges: _Recent[int, bytes] = _Recent()
        self._shown: _Recent[int, Shown] = _Recent()

    def fetch(self, first: int, most: int) -> None:
        """Have at hand what some slots point to, in three queries: where one query takes as long as many rows."""
        slots = "FROM slots WHERE slot >= ? ORDER BY slot LIMIT ?"
        query = "SELECT slot, data FROM histograms WHERE slot IN (SELECT shown FROM (SELECT shown {}) AS next)"
        for slot, data in self._database.execute(query.format(slots), (first, most)):
            self._shown.get(slot, partial(decode_shown, slot, stored_bytes(data)))
        query = "SELECT id, data FROM populations WHERE id IN (SELECT population FROM (SELECT population {}) AS next)"
        for number, data in self._database.execute(query.format(slots), (first, most)):
            self._groups.get(number, partial(Group.from_data, stored_bytes(data)))
        query = (
            "SELECT id, data FROM charges WHERE id IN (SELECT probe FROM (SELECT probe {0}) AS next"
            " UNION SELECT publication FROM (SELECT publication {0}) AS next)"
        )
        for number, data in self._database.execute(query.format(slots), (first, most, first, most)):
            self._charges.get(number, partial(stored_bytes, data))

    def store(self, table: str, data: bytes) -> int:
        """The row that holds these bytes, a recent one or a new one; 0 for none."""
        return self._stored.get((table, data), lambda: self._database.insert(table, data)) if data else 0

    def group(self, number: int) -> Group:
        """A stored population."""
        return self._groups.get(number, lambda: Group.from_data(self._data("populations", "id", number)))

    def charges(self, number: int) -> bytes:
        """Stored charges, as bytes."""
        return self._charges.get(number, lambda: self._data("charges", "id", number)) if number else b""

    def shown(self, slot: int) -> Shown:
        """The histogram first shown in a slot."""
        return self._shown.get(slot, lambda: decode_shown(slot, self._data("histograms", "slot", slot)))

    def _data(self, table: str, column: str, number: int) -> bytes:
        return stored_bytes(only_row(self._database, f"SELECT data FROM {table} WHERE {column} = ?", (number,))[0])
