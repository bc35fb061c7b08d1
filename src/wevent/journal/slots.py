"""Committed slots: a hash chain of short entries, and the blobs that entries name by their SHA-256.

Tables: `slots` (slot, payload, chain), `blobs` (hash, data), `state` (one row) and `head` (one row). Populations, charges
and histograms repeat from slot to slot; each is stored once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import msgspec
import numpy as np

from wevent.errors import InvalidJournal, StorageFailed
from wevent.journal.database import Database, maybe_row, only_row, stored_bytes
from wevent.journal.record import (
    KINDS,
    Batch,
    Group,
    Record,
    SlotEntry,
    chain_hash,
    decode_charges,
    decode_shown,
    hash_charges,
)
from wevent.journal.terms import Epoch, NewVersion

_PAGE = 64  # slots that are read in one view
_CACHE_SIZE = 256  # blobs
_STATE_ROW_OVERHEAD = 1024  # bytes of a row beside the state, at most


class Transaction(msgspec.Struct, frozen=True, array_like=True):
    """Everything that one commit stores of its slots, as bytes: storing it again stores the same.

    Attributes:
        before, after: chain hashes before the first and after the last of its slots.
        entries: encoded `SlotEntry` of consecutive slots.
        blobs: hashes and contents of all that entries name and that may not be stored yet.
        position: where the input stands after them, as JSON; None leaves it.
        state: `Publisher.state()` after the last of them, None in most transactions.
        emitted: last slot known to have been emitted.
        version: the pending version that starts with the first slot; None without one.
    """

    first: int
    before: bytes
    after: bytes
    entries: list[bytes]
    blobs: list[tuple[bytes, bytes]]
    position: bytes | None
    state: bytes | None
    emitted: int
    version: NewVersion | None = None

    @property
    def last(self) -> int:
        """The last slot; `first - 1` without slots."""
        return self.first + len(self.entries) - 1


class SlotLog:
    """Slots of a journal. Writes happen inside the caller's transaction.

    Args:
        database: the journal's connection.
        version_of: returns the configuration version of a number.
    """

    def __init__(self, database: Database, version_of: Callable[[int], Epoch]) -> None:
        self._database, self._version_of = database, version_of
        self.clear_cache()

    def clear_cache(self) -> None:
        """Discard what is known of stored blobs: a transaction was lost, or blobs were deleted."""
        self._stored = set[bytes]()  # the last ones that were sent
        self._values = dict[tuple[bytes, int], Any]()  # decoded ones

    # Write

    def build(self, batch: Batch, end: tuple[int, bytes]) -> Transaction:
        """Return the transaction that appends slots after `end`, the last slot and its chain hash."""
        first, chain = end[0] + 1, end[1]
        entries, blobs = [], dict[bytes, bytes]()
        for record in batch.records:
            payload = msgspec.msgpack.encode(record.entry())
            chain = chain_hash(chain, payload)
            entries.append(payload)
            blobs.update((key, data) for key, data in record.blobs().items() if key not in self._stored)
        position = None if batch.position is None else msgspec.json.encode(batch.position)
        return Transaction(first, end[1], chain, entries, list(blobs.items()), position, batch.state, batch.emitted)

    def append(self, transaction: Transaction) -> None:
        """Store a transaction; a slot that is there already fails it."""
        chain, rows = transaction.before, []
        for slot, payload in enumerate(transaction.entries, transaction.first):
            chain = chain_hash(chain, payload)
            rows.append((slot, payload, chain))
        self._database.executemany("INSERT INTO blobs VALUES (?, ?) ON CONFLICT DO NOTHING", transaction.blobs)
        self._database.executemany("INSERT INTO slots VALUES (?, ?, ?)", rows)
        if len(self._stored) > _CACHE_SIZE:
            self._stored.clear()
        self._stored.update(key for key, _ in transaction.blobs)

    def advance(self, transaction: Transaction) -> None:
        """Store the end of the chain, the input position, and the state if there is one."""
        position = None if transaction.position is None else transaction.position.decode()
        self._database.execute(
            "UPDATE head SET committed = ?, chain = ?, position = coalesce(?, position),"
            " emitted = CASE WHEN emitted < ? THEN ? ELSE emitted END",
            (transaction.last, transaction.after, position, transaction.emitted, transaction.emitted),
        )
        state = transaction.state
        if state is None or len(state) + _STATE_ROW_OVERHEAD > self._database.largest_value:
            return  # without a newer state more slots are replayed
        self._database.execute("DELETE FROM state")
        row = (transaction.last, state, hashlib.sha256(state).digest())
        self._database.execute("INSERT INTO state VALUES (?, ?, ?)", row)

    def drop_before(self, first: int, anchor: bytes) -> None:
        """Delete the slots before `first` and the blobs that only they name; `anchor` is the chain hash before it."""
        run = self._database.execute
        run("UPDATE head SET first = ?, anchor = ?", (first, anchor))
        run("DELETE FROM slots WHERE slot < ?", (first,))
        kept: set[bytes] = set()
        for (payload,) in run("SELECT payload FROM slots"):
            kept.update(_decode_entry(payload).blobs)
        gone = [(key,) for (key,) in run("SELECT hash FROM blobs").fetchall() if stored_bytes(key) not in kept]
        self._database.executemany("DELETE FROM blobs WHERE hash = ?", gone)
        self.clear_cache()

    # Read

    def end(self) -> tuple[int, bytes]:
        """Return the last committed slot and its chain hash."""
        with self._database.readable():
            committed, chain = only_row(self._database, "SELECT committed, chain FROM head")
            return committed, stored_bytes(chain)

    def chain_at(self, slot: int) -> bytes | None:
        """Return the chain hash after a kept slot, or right before the first one; None elsewhere."""
        query = "SELECT chain FROM slots WHERE slot = ? UNION ALL SELECT anchor FROM head WHERE first = ? + 1 LIMIT 1"
        row = maybe_row(self._database, query, (slot, slot))
        return None if row is None else stored_bytes(row[0])

    def is_elsewhere(self, slot: int) -> bool:
        """Return whether another copy of the journal released a slot."""
        row = maybe_row(self._database, "SELECT payload FROM slots WHERE slot = ?", (slot,))
        return row is not None and KINDS[_decode_entry(row[0]).kind] == "elsewhere"

    def state(self) -> tuple[int, bytes | None]:
        """Return the stored state and its slot; (0, None) without one."""
        row = maybe_row(self._database, "SELECT slot, data, digest FROM state")
        if row is None:
            return 0, None
        slot, state, digest = row
        if hashlib.sha256(state).digest() != stored_bytes(digest):
            raise self._database.damaged()
        return slot, stored_bytes(state)

    def records(self, first: int) -> Iterator[Record]:
        """Yield the kept slots from `first` on, each verified against the chain.

        Raises:
            InvalidJournal: at the first slot that differs from what was stored.
            StorageFailed: if the writer drops slots that are still to be yielded.
        """
        wanted = first
        while True:
            page, damage = self._database.read(lambda slot=wanted: self._page(slot))  # type: ignore[misc]
            if page and wanted > first and page[0].slot != wanted:
                raise StorageFailed(
                    f"The publisher dropped slot {wanted} while releases were read (--keep).",
                    "Read them again, or publish with a larger --keep.",
                    path=self._database.name,
                )
            yield from page
            if damage is not None:
                raise damage
            if len(page) < _PAGE:
                return
            wanted = page[-1].slot + 1

    def _page(self, first: int) -> tuple[list[Record], InvalidJournal | None]:
        """Return up to a page of slots, and the error of the slot behind them if it is damaged."""
        page: list[Record] = []
        try:
            with self._database.readable():
                query = "SELECT slot, payload, chain FROM slots WHERE slot >= ? ORDER BY slot LIMIT ?"
                found = self._database.execute(query, (first, _PAGE)).fetchall()
                if not found:
                    return page, None
                chain = self.chain_at(found[0][0] - 1)
                if chain is None:
                    raise self._database.damaged()
                blobs = self._fetch(stored_bytes(payload) for _, payload, _ in found)
                for slot, payload, after in found:
                    chain = chain_hash(chain, stored_bytes(payload))
                    entry = _decode_entry(payload)
                    if chain != stored_bytes(after) or entry.slot != slot or slot != found[0][0] + len(page):
                        raise self._database.damaged()
                    page.append(self._to_record(entry, blobs))
        except InvalidJournal as damage:
            return page, damage
        return page, None

    def _fetch(self, payloads: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the blobs of a page with one query, except those that are cached."""
        wanted = {key for payload in payloads for key in _decode_entry(payload).blobs}
        wanted -= {key for key, _ in self._values}
        if not wanted:
            return {}
        query = f"SELECT hash, data FROM blobs WHERE hash IN ({', '.join('?' * len(wanted))})"
        return {stored_bytes(key): stored_bytes(data) for key, data in self._database.execute(query, tuple(wanted))}

    def _to_record(self, entry: SlotEntry, blobs: dict[bytes, bytes]) -> Record:
        version = self._version_of(entry.version)
        if version.digest != entry.version_digest:
            raise self._database.damaged()
        group: Group = self._value(entry.population, 0, blobs, Group.from_data)
        probe, publication = (
            self._value(key, 0, blobs, decode_charges) if key else np.zeros(len(group.population), dtype=np.int64)
            for key in (entry.probe, entry.publication)
        )
        return Record(
            entry.slot,
            KINDS[entry.kind],
            version,
            group,
            probe,
            publication,
            entry.threshold,
            entry.dissimilarity,
            self._value(entry.histogram, entry.shown, blobs, partial(decode_shown, entry.shown))
            if entry.histogram
            else None,
            entry.measured or None,
        )

    def _value(self, key: bytes, slot: int, blobs: dict[bytes, bytes], decode: Callable[[bytes], Any]) -> Any:
        """Return what a blob holds, checked against its hash; recent ones are cached, histograms by their slot too."""
        found = self._values.get((key, slot))
        if found is None:
            data = blobs.get(key)
            if data is None:
                data = stored_bytes(only_row(self._database, "SELECT data FROM blobs WHERE hash = ?", (key,))[0])
            found = decode(data)
            digest = hash_charges(found) if isinstance(found, np.ndarray) else found.digest
            if digest != key:
                raise self._database.damaged()
            if len(self._values) >= _CACHE_SIZE:
                self._values.clear()
            self._values[key, slot] = found
        return found


def _decode_entry(payload: Any) -> SlotEntry:
    return msgspec.msgpack.decode(stored_bytes(payload), type=SlotEntry)
