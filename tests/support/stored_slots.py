"""Changes of stored slots, as damage or a forger makes them: read and written by the documented format."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import apsw
import msgspec

FIELDS = (
    "slot", "kind", "version", "version_digest", "population", "probe", "publication", "threshold", "dissimilarity",
    "shown", "histogram", "measured",
)  # fmt: skip
"""Names of the elements of a payload."""


def stored_slots(path: Path) -> list[int]:
    """Return the numbers of all stored slots."""
    connection = apsw.Connection(str(path))
    found = [int(slot) for (slot,) in connection.execute("SELECT slot FROM slots ORDER BY slot")]
    connection.close()
    return found


def read_entry(path: Path, slot: int) -> dict[str, Any]:
    """Return what a slot stores."""
    connection = apsw.Connection(str(path))
    ((payload,),) = connection.execute("SELECT payload FROM slots WHERE slot = ?", (slot,)).fetchall()
    connection.close()
    return dict(zip(FIELDS, msgspec.msgpack.decode(payload), strict=True))


def change_entry(path: Path, slot: int, /, **changes: Any) -> None:
    """Store other values in a slot; the chain stays as it is."""
    payload = msgspec.msgpack.encode(list({**read_entry(path, slot), **changes}.values()))
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE slots SET payload = ? WHERE slot = ?", (payload, slot))
    connection.close()


def chain_again(path: Path) -> None:
    """Compute the hash chain anew, as a forger does."""
    connection = apsw.Connection(str(path))
    ((chain,),) = connection.execute("SELECT anchor FROM head").fetchall()
    for slot, payload in connection.execute("SELECT slot, payload FROM slots ORDER BY slot").fetchall():
        chain = hashlib.sha256(chain + payload).digest()
        connection.execute("UPDATE slots SET chain = ? WHERE slot = ?", (chain, slot))
    connection.execute("UPDATE head SET chain = ?", (chain,))
    connection.close()


def store_blob(path: Path, data: bytes, content: bytes | None = None) -> bytes:
    """Store a blob and return its name, the SHA-256 of its content; `content`: before it was compressed."""
    name = hashlib.sha256(data if content is None else content).digest()
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO blobs VALUES (?, ?) ON CONFLICT DO NOTHING", (name, data))
    connection.close()
    return name


def change_blob(path: Path, name: bytes, data: bytes) -> None:
    """Store other bytes under the name of a blob."""
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE blobs SET data = ? WHERE hash = ?", (data, name))
    assert connection.changes() == 1
    connection.close()


def read_blob(path: Path, name: bytes) -> bytes:
    """Return the stored bytes of a blob."""
    connection = apsw.Connection(str(path))
    ((data,),) = connection.execute("SELECT data FROM blobs WHERE hash = ?", (name,)).fetchall()
    connection.close()
    assert isinstance(data, bytes)
    return data


def cut_end(path: Path, last: int) -> None:
    """Drop the slots after one so that nothing inside the journal shows it."""
    connection = apsw.Connection(str(path))
    connection.execute(f"DELETE FROM slots WHERE slot > {last}")
    chain = f"(SELECT chain FROM slots WHERE slot = {last})"
    connection.execute(f"UPDATE head SET committed = {last}, emitted = {last}, chain = {chain}")
    connection.close()
