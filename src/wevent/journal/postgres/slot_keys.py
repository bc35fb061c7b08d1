"""The keys of open slots: files outside the database, each there as long as its slot is open and no longer.

What is stored in a database stays in its write-ahead log, archives, standbys and backups. So the database has events only
encrypted, and what makes them readable is here: 32 random bytes per slot, made by the replica that needs them first, read by
the others, overwritten and removed when the slot is committed. From then on nobody can read an event of it anywhere.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import threading
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from wevent.file_io import destroy_file, link_whole, probe_write, storage_errors, sync_path
from wevent.journal.place import PostgresPlace
from wevent.journal.sealing import KEY_BYTES

_FOLDER = "keys"


class SlotKeys:
    """The keys of one journal's open slots; from any thread.

    Args:
        side: the folder outside the database; the keys are in a folder of their own in it, which only its owner may read.
        schema: of the journal.
        store: its own id: another journal's keys are never touched.

    Raises:
        StorageFailed: if the folder cannot be used.
    """

    def __init__(self, side: Path, schema: str, store: str) -> None:
        self.folder = side / _FOLDER
        self._start = f"{schema}.{store}."
        self._name = re.compile(re.escape(self._start) + r"([0-9]{1,19})\.(?:key|[0-9a-f]{16}\.new)")
        self._known: dict[int, bytes] = {}
        self._lock = threading.Lock()
        with _key_errors(self.folder):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            sync_path(side)

    def get(self, slot: int) -> bytes | None:
        """The key of a slot, on disk on return; None if there is none."""
        with self._lock:
            return self._get(slot)

    def make(self, slot: int) -> bytes | None:
        """The key of a slot, on disk on return; made now unless somebody was faster. None: it is being destroyed.

        Raises:
            StorageFailed: if it cannot be written.
        """
        with self._lock:
            key = self._get(slot)
            if key is None:
                self._write(self._path(slot), secrets.token_bytes(KEY_BYTES))
                key = self._get(slot)
            return key

    def folder_mark(self, *, make: bool) -> bytes:
        """What tells this folder from any other: all replicas have to see the same. Empty if there is none.

        Args:
            make: whether to make one.
        """
        path = self.folder / f"{self._start}folder"
        if make and not path.exists():
            self._write(path, secrets.token_hex(16).encode())
        with _key_errors(path), suppress(FileNotFoundError):
            return hashlib.blake2b(path.read_bytes(), digest_size=16, person=b"wevent folder").digest()
        return b""

    def probe(self) -> None:
        """Check that a key could be stored: a file of that size can be made and forced to disk.

        Raises:
            StorageFailed: if it cannot.
        """
        path = self.folder / f"{self._start}{secrets.token_hex(8)}.probe"
        with _key_errors(path):
            probe_write(path, KEY_BYTES)

    def slots(self) -> list[int]:
        """The slots that have a key, the latest last."""
        return sorted({slot for slot, name in self._files() if name.endswith(".key")})

    def destroy(self, through: int) -> None:
        """Slots up to this one are committed: nobody may read their events any more.

        How long it takes depends on how many slots these are, on no event. Others may do the same at the same time.

        Raises:
            StorageFailed: if a key cannot be overwritten or removed.
        """
        with self._lock:
            self._known = {slot: key for slot, key in self._known.items() if slot > through}
            gone = [name for slot, name in self._files() if slot <= through]
            for name in gone:
                with _key_errors(self.folder / name):
                    destroy_file(self.folder / name, 0, KEY_BYTES)
            if gone:
                self._sync()

    def _get(self, slot: int) -> bytes | None:
        if slot in self._known:
            return self._known[slot]
        path = self._path(slot)
        key = b""
        with _key_errors(path), suppress(FileNotFoundError), path.open("rb") as file:
            key = file.read(KEY_BYTES + 1)
            os.fsync(file.fileno())
        if len(key) != KEY_BYTES or not key.strip(b"\0"):  # there is none, or it is being destroyed
            return None
        self._sync()  # whoever made it may not have come so far
        self._known[slot] = key
        return key

    def _write(self, path: Path, data: bytes) -> None:
        """Write a whole file under a name of its own, then give it the name that all look for, unless that is taken."""
        with _key_errors(path), suppress(FileExistsError):
            link_whole(path, data, path.with_name(f"{path.stem}.{secrets.token_hex(8)}.new"))
        self._sync()

    def _sync(self) -> None:
        with _key_errors(self.folder):
            sync_path(self.folder)

    def _path(self, slot: int) -> Path:
        return self.folder / f"{self._start}{slot}.key"

    def _files(self) -> list[tuple[int, str]]:
        with _key_errors(self.folder):
            names = os.listdir(self.folder)
        matches = ((self._name.fullmatch(name), name) for name in names)
        return [(int(match[1]), name) for match, name in matches if match is not None]


class KeyRing:
    """The keys of a journal as one process has them: what one part of it destroys, no part has in memory any more.

    Args:
        place: the journal, with its side folder.

    Raises:
        InvalidJournal: if the address names no side folder, or one that others can read or write.
    """

    def __init__(self, place: PostgresPlace) -> None:
        self.side, self._schema = place.private_folder, place.schema
        self._keys: dict[str, SlotKeys] = {}
        self._lock = threading.Lock()

    def of_store(self, store: str) -> SlotKeys:
        """The keys of a store with this id."""
        with self._lock:
            if store not in self._keys:
                self._keys[store] = SlotKeys(self.side, self._schema, store)
            return self._keys[store]


def _key_errors(path: Path) -> AbstractContextManager[None]:
    remedy = "Make room and make the folder writable; what was acknowledged is not lost."
    return storage_errors(f"to keep the keys of open slots in {path.parent}", remedy, path)
