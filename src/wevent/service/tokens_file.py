"""The tokens file: who may ask for what, and what personal links are signed with.

It is for its owner only, written whole or not at all, and changed by one process at a time. Nothing in it opens a door
by itself: of tokens it has digests, of links and people keyed digests. A file that cannot be trusted admits nobody.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from wevent.errors import StorageFailed, WeventError, may_pass
from wevent.journal.place import JournalPlace, file_beside
from wevent.journal.whole_file import sync_path
from wevent.service.access_records import AccessContents, TokenRecord

try:
    import fcntl
except ImportError:  # a system without these locks, Windows: tokens can be checked there, not made
    fcntl = None  # type: ignore[assignment]


_MOST_BYTES = 64 << 20
_SETTLED_NS = 1_000_000_000  # a file read sooner after a change may have changed again and look the same
_WAIT_S = 10.0  # for another process that changes the file
_LOG = logging.getLogger(__name__)


class InvalidTokens(WeventError, ValueError):
    """A tokens file that cannot be trusted: damaged, readable by others, or not readable at all. Facts: `path`."""


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    sha256: str
    contents: msgspec.Raw


class _FileLook(NamedTuple):
    """What a file looked like when it was read."""

    device: int
    node: int
    size: int
    written_ns: int
    changed_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> _FileLook:
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class TokensFile:
    """A tokens file, read again whenever it changes. A missing one is one without tokens.

    Args:
        path: where it is.
        logs: whether it is logged, once, that the file cannot be trusted.
    """

    def __init__(self, path: Path, *, logs: bool = True) -> None:
        self.path = path
        self._logs = logs
        self._guard = threading.Lock()
        self._seen: _FileLook | None = None
        self._contents = AccessContents()
        self._known: dict[str, TokenRecord] = {}
        self._told = ""

    def contents(self) -> AccessContents:
        """What the file says now.

        Raises:
            InvalidTokens: if it cannot be trusted.
        """
        with self._guard:
            return self._current()

    def token(self, identity: str) -> TokenRecord | None:
        """The token of an id; raises as `contents`."""
        with self._guard:
            self._current()
            return self._known.get(identity)

    def change(self, made: Callable[[AccessContents], AccessContents]) -> AccessContents:
        """Replace what the file says, while no other process changes it.

        Args:
            made: what it shall say, of what it says.

        Raises:
            InvalidTokens: if it cannot be trusted; it is left as it is.
            StorageFailed: if it cannot be written; it is left as it is.
        """
        real = Path(os.path.realpath(self.path))  # a link stays one
        with _alone(real):  # and whoever only asks does not wait for the disk
            contents = made(_load(real)[0])
            _write(real, contents)
        with self._guard:
            self._seen = None
        return contents

    def _current(self) -> AccessContents:
        try:
            if not self._is_as_seen():
                now_ns = time.time_ns()
                self._contents, seen = _load(self.path)
                is_settled = seen is not None and now_ns - seen.changed_ns >= _SETTLED_NS
                self._seen = seen if is_settled else None
                self._known = {record.id: record for record in self._contents.tokens}
        except InvalidTokens as error:
            self._seen, self._contents, self._known = None, AccessContents(), {}
            if self._logs and str(error) != self._told:
                self._told = str(error)
                _LOG.error("Nobody with a token is admitted. %s", error)
            raise
        self._told = ""
        return self._contents

    def _is_as_seen(self) -> bool:
        if self._seen is None:
            return False
        try:
            return _FileLook.of(os.stat(self.path)) == self._seen
        except OSError:
            return False


def tokens_path(journal: JournalPlace, named: str | None = None, folder: Path = Path()) -> Path:
    """Where the tokens of a stream are: the file that the configuration names, else beside the journal.

    Of a journal in a database that is its side folder.

    Args:
        journal: of the stream.
        named: `tokens` of the configuration's [service] table.
        folder: of the configuration, which relative names start at.
    """
    return file_beside(journal, "tokens") if named is None else folder / named


def _load(path: Path) -> tuple[AccessContents, _FileLook | None]:
    """What a file says, and what it looked like; without a file nothing."""
    read = _bytes_of(path)
    if read is None:
        return AccessContents(), None
    contents = _decoded(path, read[0])
    if len({record.id for record in contents.tokens}) < len(contents.tokens):
        raise _damaged(path)
    return contents, read[1]


def _bytes_of(path: Path) -> tuple[bytes, _FileLook] | None:
    """The bytes of a file that only its owner can read, None if there is none."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        found = os.fstat(file)
        _refuse_unfit(path, found)
        with os.fdopen(file, "rb", closefd=False) as opened:
            return opened.read(), _FileLook.of(found)
    except OSError as error:
        raise _unreadable(path, error) from None
    finally:
        os.close(file)


def _refuse_unfit(path: Path, found: os.stat_result) -> None:
    """Refuse what is no file, or one that others may read or write."""
    if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
        raise InvalidTokens(
            "a tokens file", f"something else ({str(path)!r})", "Move it away and make tokens anew.", path=str(path)
        )
    if os.name == "posix" and found.st_mode & 0o077:
        raise InvalidTokens(
            "a tokens file that only its owner can read or write (mode 0600)",
            f"{str(path)!r} with mode {stat.S_IMODE(found.st_mode):04o}",
            "Take the rights of others away (chmod 600); if they may have read or changed it, make tokens anew.",
            path=str(path),
        )


def _decoded(path: Path, data: bytes) -> AccessContents:
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
        raw = bytes(envelope.contents)
        if hashlib.sha256(raw).hexdigest() == envelope.sha256:
            return msgspec.json.decode(raw, type=AccessContents)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    raise _damaged(path)


def _encoded(contents: AccessContents) -> bytes:
    raw = msgspec.json.encode(contents)
    return msgspec.json.encode(_Envelope(hashlib.sha256(raw).hexdigest(), msgspec.Raw(raw))) + b"\n"


def _damaged(path: Path) -> InvalidTokens:
    return InvalidTokens(
        "a tokens file as `wevent token` writes it",
        f"{str(path)!r}, which is damaged, changed by hand or of a newer wevent",
        "Put a copy of it back, or move it away and make tokens anew.",
        path=str(path),
    )


def _unreadable(path: Path, error: OSError) -> InvalidTokens:
    return InvalidTokens(
        "a tokens file that can be read",
        f"{str(path)!r} ({(error.strerror or 'an error').lower()})",
        "Check its owner and the permissions of its folder.",
        path=str(path),
    )


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """While no other process changes a tokens file: a lock on its folder, which leaves nothing behind."""
    if fcntl is None:
        raise StorageFailed(
            "a system that lets one process at a time change a file (Linux or macOS)",
            "one without such locks",
            "Make tokens there.",
            path=str(path),
        )
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise _failed(path, error) from None
    try:
        deadline = time.monotonic() + _WAIT_S
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > deadline:
                raise _failed(path, OSError(errno.EAGAIN, "another process holds it"))
            time.sleep(0.01)
        yield
    finally:
        os.close(folder)


def _write(path: Path, contents: AccessContents) -> None:
    """Write a file beside its place, force it to disk, and move it in; whoever writes is alone."""
    made, data = path.with_name(f".{path.name}.new"), _encoded(contents)
    if len(data) > _MOST_BYTES:  # it would be refused when it is read, and nobody admitted any more
        raise _failed(path, OSError(errno.EFBIG, "too many links that were ended"))
    try:
        made.unlink(missing_ok=True)  # of a writer that was killed
        file = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "wb") as opened:
            os.fchmod(opened.fileno(), 0o600)
            _give_to_owner(opened.fileno(), path)
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(made, path)
        sync_path(path.parent)
    except OSError as error:
        with suppress(OSError):
            made.unlink(missing_ok=True)
        raise _failed(path, error) from None


def _give_to_owner(file: int, path: Path) -> None:
    """What an administrator writes stays readable to whom the old file, or else the folder, belongs to."""
    if os.geteuid() == 0:
        owner = os.stat(path if path.exists() else path.parent)
        os.fchown(file, owner.st_uid, owner.st_gid)


def _failed(path: Path, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"to write {str(path)!r}",
        (error.strerror or "an error").lower(),
        "Make room and make its folder writable; what it said is as it was.",
        path=str(path),
        passing=may_pass(error),
    )
