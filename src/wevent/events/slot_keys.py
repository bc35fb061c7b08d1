"""Keys of open slots, and the encryption of records under them.

Bytes on a disk, in a write-ahead log or in a backup outlive their deletion. Therefore events are stored encrypted under 32
random bytes per slot, in a file that is destroyed when the slot is committed. No key follows from another one: an old copy of
the folder opens only slots whose keys it holds.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import threading
from collections.abc import Collection
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from wevent.errors import StorageFailed
from wevent.file_io import destroy_file, link_whole, probe_write, storage_errors, sync_path

_KEY_BYTES = 32
_NONCE = 12
_SIZE = 8
_LEAST = 512
_REMEDY = "Make room and make the folder writable; what was acknowledged is not lost."


def encrypt(key: bytes, text: bytes) -> bytes:
    """Encrypt a text under the key of its slot, padded to a power of two: the length says little about the events.

    The nonce is random: a counter would repeat after a torn end, or in a second replica.
    """
    nonce, size = secrets.token_bytes(_NONCE), len(text) + _SIZE
    padding = bytes(max(_LEAST, 1 << (size - 1).bit_length()) - size)
    return nonce + AESGCM(key).encrypt(nonce, b"".join((len(text).to_bytes(_SIZE, "little"), text, padding)), None)


def decrypt(key: bytes, sealed: bytes | memoryview) -> bytes | None:
    """Return the text that `encrypt` took; None for another key or changed bytes."""
    try:
        padded = AESGCM(key).decrypt(sealed[:_NONCE], sealed[_NONCE:], None)
    except (InvalidTag, ValueError):
        return None
    return padded[_SIZE : _SIZE + int.from_bytes(padded[:_SIZE], "little")]


class SlotKeys:
    """Keys of the open slots of one store; from any thread.

    Args:
        folder: for its owner only; created if it is missing.
        prefix: start of the file names: a folder may hold the keys of several stores.
    """

    def __init__(self, folder: Path, prefix: str = "") -> None:
        self.folder, self._prefix = folder, prefix
        self._name = re.compile(re.escape(prefix) + r"([0-9]{1,19})\.(?:key|[0-9a-f]{16}\.new)")
        self._known: dict[int, bytes] = {}
        self._lock = threading.Lock()
        with _key_errors(folder):
            folder.mkdir(mode=0o700, exist_ok=True)
            sync_path(folder.parent)

    def get(self, slot: int) -> bytes | None:
        """Return the key of a slot, on disk on return; None if there is none."""
        with self._lock:
            return self._find([slot]).get(slot)

    def make(self, slots: Collection[int]) -> dict[int, bytes]:
        """Return the keys of some slots, on disk on return; creates missing ones.

        A slot whose key is being destroyed is not in the result.
        """
        with self._lock:
            found = self._find(slots)
            for slot in slots:
                if slot not in found:
                    self._write(self._path(slot), secrets.token_bytes(_KEY_BYTES))
            return found if len(found) == len(slots) else self._find(slots)

    def unusable(self, slot: int) -> StorageFailed:
        """Return the error for a file of an open slot that holds no key."""
        return StorageFailed(
            f"The file with the key of slot {slot} in {self.folder} holds none.",
            "Remove that file; what was stored of the slot cannot be read any more.",
            path=str(self.folder),
        )

    def folder_mark(self, *, make: bool) -> bytes:
        """Return the mark of this folder, equal for all replicas that use it; empty if there is none and none is made."""
        path = self.folder / f"{self._prefix}folder"
        if make and not path.exists():
            self._write(path, secrets.token_hex(16).encode())
            self._sync()
        with _key_errors(path), suppress(FileNotFoundError):
            return hashlib.blake2b(path.read_bytes(), digest_size=16, person=b"wevent folder").digest()
        return b""

    def probe(self) -> None:
        """Raise `StorageFailed` if a key cannot be stored."""
        path = self.folder / f"{self._prefix}{secrets.token_hex(8)}.probe"
        with _key_errors(path):
            probe_write(path, _KEY_BYTES)

    def slots(self) -> list[int]:
        """Return the slots that have a key, in order."""
        return sorted({slot for slot, name in self._files() if name.endswith(".key")})

    def destroy(self, through: int) -> None:
        """Destroy the keys of slots up to this one, which are committed; other processes may do so at the same time."""
        with self._lock:
            self._known = {slot: key for slot, key in self._known.items() if slot > through}
            gone = [name for slot, name in self._files() if slot <= through]
            for name in gone:
                with _key_errors(self.folder / name):
                    destroy_file(self.folder / name, 0, _KEY_BYTES)
            if gone:
                self._sync()

    def _find(self, slots: Collection[int]) -> dict[int, bytes]:
        """Return those keys that are there, and remember them; under the lock."""
        missing = [slot for slot in slots if slot not in self._known]
        for slot in missing:
            path, key = self._path(slot), b""
            with _key_errors(path), suppress(FileNotFoundError), path.open("rb") as file:
                key = file.read(_KEY_BYTES + 1)
                os.fsync(file.fileno())
            if len(key) == _KEY_BYTES and key.strip(b"\0"):  # otherwise there is none, or it is being destroyed
                self._known[slot] = key
        if not self._known.keys().isdisjoint(missing):
            self._sync()  # the process that created a key may not have come so far
        return {slot: self._known[slot] for slot in slots if slot in self._known}

    def _write(self, path: Path, data: bytes) -> None:
        """Write a whole file under a name of its own, then link it to its name, unless another process was faster."""
        with _key_errors(path), suppress(FileExistsError):
            link_whole(path, data, path.with_name(f"{path.stem}.{secrets.token_hex(8)}.new"))

    def _sync(self) -> None:
        with _key_errors(self.folder):
            sync_path(self.folder)

    def _path(self, slot: int) -> Path:
        return self.folder / f"{self._prefix}{slot}.key"

    def _files(self) -> list[tuple[int, str]]:
        with _key_errors(self.folder):
            names = os.listdir(self.folder)
        matches = ((self._name.fullmatch(name), name) for name in names)
        return [(int(match[1]), name) for match, name in matches if match is not None]


def _key_errors(path: Path) -> AbstractContextManager[None]:
    return storage_errors(f"to keep the keys of open slots in {path.parent}", _REMEDY, path)
