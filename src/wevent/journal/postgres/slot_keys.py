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
from contextlib import suppress
from pathlib import Path

from wevent.errors import StorageFailed, may_pass
from wevent.journal.overwriting import destroy_file
from wevent.journal.place import PostgresPlace
from wevent.journal.sealing import KEY_BYTES
from wevent.journal.whole_file import sync_path

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
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise _failed(self.folder, error) from None
        _sync(side)

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
        try:
            return hashlib.blake2b(path.read_bytes(), digest_size=16, person=b"wevent folder").digest()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise _failed(path, error) from None

    def probe(self) -> None:
        """Check that a key could be stored: a file of that size can be made and forced to disk.

        Raises:
            StorageFailed: if it cannot.
        """
        path = self.folder / f"{self._start}{secrets.token_hex(8)}.probe"
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                path.unlink()  # first: a crash leaves nothing
                os.write(file, bytes(KEY_BYTES))
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise _failed(path, error) from None

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
                _destroy(self.folder / name)
            if gone:
                _sync(self.folder)

    def _get(self, slot: int) -> bytes | None:
        if slot in self._known:
            return self._known[slot]
        path = self._path(slot)
        try:
            with path.open("rb") as file:
                key = file.read(KEY_BYTES + 1)
                os.fsync(file.fileno())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(path, error) from None
        if len(key) != KEY_BYTES or not key.strip(b"\0"):  # it is being destroyed
            return None
        _sync(self.folder)  # whoever made it may not have come so far
        self._known[slot] = key
        return key

    def _write(self, path: Path, data: bytes) -> None:
        """Write a whole file under a name of its own, then give it the name that all look for, unless that is taken."""
        draft = path.with_name(f"{path.stem}.{secrets.token_hex(8)}.new")
        try:
            file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.write(file, data)
                os.fsync(file)
            finally:
                os.close(file)
            with suppress(FileExistsError):
                os.link(draft, path)
            draft.unlink(missing_ok=True)
        except OSError as error:
            raise _failed(path, error) from None
        _sync(self.folder)

    def _path(self, slot: int) -> Path:
        return self.folder / f"{self._start}{slot}.key"

    def _files(self) -> list[tuple[int, str]]:
        try:
            names = os.listdir(self.folder)
        except OSError as error:
            raise _failed(self.folder, error) from None
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


def _destroy(path: Path) -> None:
    """Overwrite a key, also under names that a crash left it, and remove it; another replica may be faster."""
    try:
        destroy_file(path, 0, KEY_BYTES)
    except OSError as error:
        raise _failed(path, error) from None


def _sync(folder: Path) -> None:
    try:
        sync_path(folder)
    except OSError as error:
        raise _failed(folder, error) from None


def _failed(path: Path, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"to keep the keys of open slots in {path.parent}",
        error.strerror or "an error",
        "Make room and make the folder writable; what was acknowledged is not lost.",
        path=str(path),
        passing=may_pass(error),
    )
