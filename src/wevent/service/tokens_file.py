"""The tokens file: digests of tokens, the key that signs personal links, and ended links. Times are seconds since 1970.

It is for its owner only, written whole or not at all, and changed by one process at a time. Nothing in it gives access by
itself: it has digests of tokens, and keyed digests of links and users. A file that cannot be trusted admits nobody.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from wevent.errors import StorageFailed, WeventError, may_pass
from wevent.file_io import sync_path
from wevent.journal.place import JournalPlace, file_beside

try:
    import fcntl
except ImportError:  # a system without these locks, Windows: tokens can be checked there, not made
    fcntl = None  # type: ignore[assignment]

Role = Literal["ingest", "enrol", "read", "admin"]
"""Use of a token; `admin` may do everything."""

_Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_Short = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
_Mark = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
_Second = Annotated[int, msgspec.Meta(ge=0)]

_MOST_BYTES = 64 << 20
_WAIT_S = 10.0  # for another process that changes the file
_LOG = logging.getLogger(__name__)


class TokenRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The stored part of a token.

    Attributes:
        id: its public part.
        digest: SHA-256 of the whole token.
        name: its purpose, in the operator's words.
        roles: its uses.
        created: when it was made.
        expires: when it ends; None: never.
        revoked: when it was revoked; None: it was not.
    """

    id: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{8}$")]
    digest: _Digest
    name: Annotated[str, msgspec.Meta(max_length=200)]
    roles: Annotated[tuple[Role, ...], msgspec.Meta(min_length=1)]
    created: _Second
    expires: _Second | None = None
    revoked: _Second | None = None

    def __repr__(self) -> str:
        return f"TokenRecord(id={self.id!r}, roles={self.roles!r})"


class AccessContents(msgspec.Struct, forbid_unknown_fields=True):
    """The contents of the file; changed by `TokensFile.change` only.

    Attributes:
        tokens: by id, in the order they were made.
        key: signs links; None before the first one.
        longest_link_s: the longest life of a link so far.
        ended_links: digests of ended links, and when they would have expired.
        link_marks: digests of users whose links were ended, the mark that their later links carry, and when the last
            link without it expires.
    """

    tokens: dict[str, TokenRecord] = msgspec.field(default_factory=dict)
    key: _Digest | None = None
    longest_link_s: _Second = 0
    ended_links: dict[_Short, _Second] = msgspec.field(default_factory=dict)
    link_marks: dict[_Short, tuple[_Mark, _Second]] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return f"AccessContents({len(self.tokens)} tokens)"


class InvalidTokens(WeventError, ValueError):
    """A tokens file that cannot be trusted: damaged, readable by others, or not readable at all. Facts: `path`."""


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    sha256: str
    contents: msgspec.Raw


class TokensFile:
    """A tokens file. A missing one is one without tokens.

    Args:
        path: where it is.
        logs: whether an untrusted file is logged, once.
    """

    def __init__(self, path: Path, *, logs: bool = True) -> None:
        self.path = path
        self._logs = logs
        self._guard = threading.Lock()
        self._data: bytes | None = None
        self._contents = AccessContents()
        self._told = ""

    def contents(self) -> AccessContents:
        """Return the contents, decoded again whenever the file has changed.

        Raises:
            InvalidTokens: if it cannot be trusted.
        """
        with self._guard:
            try:
                data = _read(self.path)
                if data != self._data:
                    self._contents = _decoded(self.path, data)
                    self._data = data
            except InvalidTokens as error:
                if self._logs and str(error) != self._told:
                    self._told = str(error)
                    _LOG.error("Nobody with a token is admitted. %s", error)
                raise
            self._told = ""
            return self._contents

    @contextmanager
    def change(self, now: float) -> Iterator[AccessContents]:
        """Yield the contents to be changed, without ended links that have expired, then store them.

        No other process changes them meanwhile. An error in the block leaves the file as it is.

        Raises:
            InvalidTokens: if the file cannot be trusted; it is left as it is.
            StorageFailed: if it cannot be written; it is left as it is.
        """
        real = Path(os.path.realpath(self.path))  # a symbolic link stays one
        with _locked(real):
            contents = _decoded(real, _read(real))
            contents.ended_links = {name: until for name, until in contents.ended_links.items() if until > now}
            contents.link_marks = {name: mark for name, mark in contents.link_marks.items() if mark[1] > now}
            yield contents
            _write(real, contents)


def tokens_path(journal: JournalPlace, configured: Path | None = None) -> Path:
    """Return the path of the tokens file: the configured one, else beside the journal.

    Of a journal in a database that is its side folder.
    """
    return file_beside(journal, "tokens") if configured is None else configured


def _read(path: Path) -> bytes | None:
    """Return the bytes of a file that only its owner can read, None if there is none."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        _refuse_unfit(path, os.fstat(file))
        with os.fdopen(file, "rb", closefd=False) as opened:
            return opened.read()
    except OSError as error:
        raise _unreadable(path, error) from None
    finally:
        os.close(file)


def _refuse_unfit(path: Path, found: os.stat_result) -> None:
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


def _decoded(path: Path, data: bytes | None) -> AccessContents:
    if data is None:
        return AccessContents()
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
        raw = bytes(envelope.contents)
        if hashlib.sha256(raw).hexdigest() == envelope.sha256:
            return msgspec.json.decode(raw, type=AccessContents)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    raise InvalidTokens(
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
def _locked(path: Path) -> Iterator[None]:
    """Lock the folder of a tokens file, which leaves nothing behind."""
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
    """Write a file beside its place, force it to disk, and move it in; its folder is locked."""
    raw = msgspec.json.encode(contents)
    data = msgspec.json.encode(_Envelope(hashlib.sha256(raw).hexdigest(), msgspec.Raw(raw))) + b"\n"
    if len(data) > _MOST_BYTES:  # it would be refused when it is read, and nobody admitted any more
        raise _failed(path, OSError(errno.EFBIG, "too many links that were ended"))
    made = path.with_name(f".{path.name}.new")
    try:
        made.unlink(missing_ok=True)  # of a writer that was killed
        file = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "wb") as opened:
            os.fchmod(opened.fileno(), 0o600)
            if os.geteuid() == 0:  # a file of root stays readable for the service
                owner = os.stat(path if path.exists() else path.parent)
                os.fchown(opened.fileno(), owner.st_uid, owner.st_gid)
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(made, path)
        sync_path(path.parent)
    except OSError as error:
        with suppress(OSError):
            made.unlink(missing_ok=True)
        raise _failed(path, error) from None


def _failed(path: Path, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"to write {str(path)!r}",
        (error.strerror or "an error").lower(),
        "Make room and make its folder writable; what it said is as it was.",
        path=str(path),
        passing=may_pass(error),
    )
