"""Bearer tokens of programs and personal links of users. Each is shown once, when it is made.

A token is `wev_<id>_<secret>`, with 32 random bytes in hexadecimal as the secret. A plain SHA-256 of such a secret gives
nothing away. The id is public. It finds the digest, which is compared in constant time.

A link is `wel_` and, in base64, the fields of `Link` and their HMAC-SHA256. Nothing is stored about a link until it is
ended; then a keyed digest is stored. To end all links of a user, a new mark is stored under a keyed digest of the id.
Links with another mark are not valid.
"""

from __future__ import annotations

import base64
import errno
import glob
import hashlib
import hmac
import os
import re
import secrets
import shutil
import stat
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, TypeVar, get_args

import msgspec

from wevent.errors import InvalidOption, WeventError
from wevent.file_io import atomic_write, storage_errors
from wevent.journal.address import JournalAddress, file_beside
from wevent.people.membership import check_id

Role = Literal["ingest", "enrol", "read", "admin"]  # use of a token; `admin` may do everything

ROLES: tuple[Role, ...] = get_args(Role)
_LINK_PREFIX = "wel_"
MAX_LINK_S = 366 * 86_400  # limit for the life of a link
_MAX_NAME = 100
_TOKEN = re.compile(r"wev_([0-9a-f]{8})_[0-9a-f]{64}", re.ASCII)
_NO_DIGEST = "0" * 64  # compared for unknown ids
_LINK = re.compile(r"wel_([A-Za-z0-9_-]{1,596})", re.ASCII)
_SIGNATURE = 32  # bytes
_NO_KEY = secrets.token_hex(32)  # compared where there is no key yet
_CLOCKS_S = 86_400  # largest correction of a clock since a link was made
_LOCK_TRIES = 1000  # for ten seconds, while another process changes the file
_SETTLED_NS = 2_000_000_000  # coarsest tick of a file system's clock

_Status = tuple[int, ...]


class CredentialRefused(WeventError):
    """A token or a link that is not valid. Facts: none; neither its text nor its user."""


class InvalidTokens(WeventError, ValueError):
    """A tokens file that is damaged, readable by others, or not readable at all. Facts: `path`."""


class TokenRecord(msgspec.Struct, frozen=True):
    """The stored part of a token. Times are seconds since 1970."""

    id: str  # public part of the token
    digest: str  # SHA-256 of the whole token
    name: str  # purpose in the operator's words
    roles: tuple[Role, ...]
    created: int
    expires: int | None = None  # None: never
    revoked: int | None = None

    def __repr__(self) -> str:
        return f"TokenRecord(id={self.id!r}, roles={self.roles!r})"


class Link(msgspec.Struct, frozen=True, array_like=True):
    """A link whose signature was checked."""

    user: str
    identity: str  # random hexadecimal
    expires: int  # seconds since 1970
    mark: str  # of the user when the link was made; "" before any

    def __repr__(self) -> str:
        return f"Link(identity={self.identity!r}, expires={self.expires})"


Kind = TypeVar("Kind", TokenRecord, Link)


@dataclass(frozen=True)
class Issued(Generic[Kind]):
    """A token or a link that was just made. The text is stored nowhere."""

    text: str = field(repr=False)
    record: Kind


class _Contents(msgspec.Struct):
    """Contents of a tokens file."""

    tokens: dict[str, TokenRecord] = {}  # by id, in the order they were made
    link_key: str | None = None  # which signs links; None before the first link
    ended: dict[str, tuple[str, int]] = {}  # mark, and time until which it is kept, by keyed digest of a link or a user


class Tokens:
    """The tokens and personal links of a service, in a file for its owner only. A missing file is an empty one.

    The file is written whole, by one process at a time. Nothing in it gives access: it has digests of tokens, and keyed
    digests of links and users. With a file that cannot be trusted, no token is valid: every method raises InvalidTokens.
    A method that changes it raises StorageFailed if it cannot be written; then it stays as it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._guard = threading.Lock()
        self._status: _Status | None = None  # of a file that cannot change unnoticed
        self._data: bytes | None = None
        self._contents = _Contents()

    def create(self, roles: Collection[str], *, name: str = "", expires: int | None = None) -> Issued[TokenRecord]:
        """Make a token that expires at a time in seconds since 1970; None: never.

        Raises:
            InvalidOption: without a role, or for a name that cannot be shown.
        """
        uses = tuple(role for role in ROLES if role in roles)
        if not uses:
            fix = f"Give a role out of {', '.join(ROLES)} (--role)."
            raise InvalidOption("The token has no role.", fix, option="role", value=None)
        if len(name) > _MAX_NAME or not name.isprintable():
            fix = f"Give at most {_MAX_NAME} printable characters."
            raise InvalidOption("The name of the token cannot be shown.", fix, option="name", value=name)
        with self._change() as contents:
            identity = secrets.token_hex(4)
            while identity in contents.tokens:
                identity = secrets.token_hex(4)
            text = f"wev_{identity}_{secrets.token_hex(32)}"
            record = TokenRecord(identity, _digest(text), name, uses, int(time.time()), expires)
            contents.tokens[identity] = record
        return Issued(text, record)

    def records(self) -> tuple[TokenRecord, ...]:
        """Return all tokens in the order they were made, also expired and revoked ones."""
        return tuple(self._read().tokens.values())

    def revoke(self, identity: str) -> TokenRecord:
        """Revoke a token; a revoked one stays as it is. Raises InvalidOption for an unknown id."""
        with self._change() as contents:
            record = contents.tokens.get(identity)
            if record is None:  # the id may be a whole token, pasted by mistake: it is not repeated
                fix = "`wevent token list` shows the ids."
                raise InvalidOption("No token has this id.", fix, option="id", value=None)
            if record.revoked is None:
                record = contents.tokens[identity] = msgspec.structs.replace(record, revoked=int(time.time()))
        return record

    def state(self, record: TokenRecord) -> Literal["valid", "expired", "revoked"]:
        """Return the state of a token."""
        if record.revoked is not None:
            return "revoked"
        return "expired" if record.expires is not None and time.time() >= record.expires else "valid"

    def admit(self, text: str) -> TokenRecord | Link:
        """Return the record of a token, or the fields of a link.

        Raises:
            CredentialRefused: if it is unknown, expired, revoked or ended; without the text.
        """
        if text.startswith(_LINK_PREFIX):
            return self._admit_link(text)
        match = _TOKEN.fullmatch(text)
        record = self._read().tokens.get(match[1] if match else "")
        is_known = hmac.compare_digest(_digest(text), _NO_DIGEST if record is None else record.digest)
        state = "unknown" if record is None or not is_known else self.state(record)
        if record is None or state != "valid":
            fix = "Ask the operator for a new one (`wevent token create`)."
            raise CredentialRefused(f"The token is {state}.", fix)
        return record

    def make_link(self, user: str, life_s: int) -> Issued[Link]:
        """Make a link; the first one makes the key. Raises InvalidMembership and InvalidOption for an invalid id or life."""
        check_id(user)
        if not 1 <= life_s <= MAX_LINK_S:
            problem = f"A link cannot last {life_s} seconds."
            raise InvalidOption(problem, "Give between a second and 366 days.", option="expires", value=life_s)
        contents = self._read()
        if contents.link_key is None:
            with self._change() as contents:
                contents.link_key = contents.link_key or secrets.token_hex(32)
        key = contents.link_key
        mark, _ = contents.ended.get(_keyed(key, "user", user), ("", 0))
        link = Link(user, secrets.token_hex(16), int(time.time()) + life_s, mark)
        return Issued(_LINK_PREFIX + _sign(key, msgspec.msgpack.encode(link)), link)

    def _admit_link(self, text: str) -> Link:
        contents = self._read()
        key = contents.link_key
        match = _LINK.fullmatch(text)
        body = match[1] if match else ""
        payload = b""
        with suppress(ValueError):
            payload = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))[:-_SIGNATURE]
        is_known = hmac.compare_digest(_sign(key or _NO_KEY, payload), body)  # in its one spelling
        if key is None or not is_known:
            raise _refused_link("unknown")
        link = msgspec.msgpack.decode(payload, type=Link)
        if time.time() >= link.expires:
            raise _refused_link("expired")
        # A mark is removed only after all links without it have expired.
        mark, _ = contents.ended.get(_keyed(key, "user", link.user), (link.mark, 0))
        if mark != link.mark or _keyed(key, "link", link.identity) in contents.ended:
            raise _refused_link("ended")
        return link

    def end_link(self, link: Link) -> None:
        """End a link."""
        self._end("link", link.identity, "", link.expires)

    def end_links(self, user: str) -> None:
        """End all links of a user made so far."""
        check_id(user)
        self._end("user", user, secrets.token_hex(8), int(time.time()) + MAX_LINK_S + _CLOCKS_S)

    def _end(self, purpose: str, name: str, mark: str, until: int) -> None:
        """Store a mark until a time, and remove those that are past it."""
        key = self._read().link_key
        if key is None:  # there are no links
            return
        with self._change() as contents:
            now = time.time()
            contents.ended = {old: kept for old, kept in contents.ended.items() if kept[1] > now}
            contents.ended[_keyed(key, purpose, name)] = mark, until

    def _read(self) -> _Contents:
        """Return the contents, read again if the file may have changed."""
        with self._guard:
            data, status = _read_private(self.path, self._status)
            if status is None or status != self._status:
                if data != self._data:
                    self._contents, self._data = _decode(self.path, data), data
                # A file that changed just now may change again within the tick of its clock.
                is_settled = status is not None and time.time_ns() - status[0] > _SETTLED_NS
                self._status = status if is_settled else None
            return self._contents

    @contextmanager
    def _change(self) -> Iterator[_Contents]:
        """Yield the contents to be changed, then store them. An error in the block leaves the file as it is."""
        path = Path(os.path.realpath(self.path))  # a symbolic link stays one
        with (
            storage_errors(f"to write {str(path)!r}", "Free some space and make its folder writable.", path),
            _lock(path),
        ):
            contents = _decode(path, _read_private(path)[0])
            yield contents
            _write_private(path, contents)


def tokens_path(journal: JournalAddress, configured: Path | None = None) -> Path:
    """Return the path of the tokens file: the configured one, else beside the journal or in its witness folder."""
    return file_beside(journal, "tokens") if configured is None else configured


def _read_private(path: Path, known: _Status | None = None) -> tuple[bytes | None, _Status | None]:
    """Return the bytes of a file that only its owner can read, and what changes with it, its time of change first.

    Both are None without a file. The bytes are left out if nothing has changed since `known` was returned.
    """
    try:
        # Opening a pipe would wait for its writer.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise _untrusted(path, "it is not a file")
            if os.name == "posix" and found.st_mode & 0o077:
                raise _untrusted(path, f"others may read or change it (mode {stat.S_IMODE(found.st_mode):04o})")
            status = found.st_ctime_ns, found.st_mtime_ns, found.st_ino, found.st_size, found.st_mode
            return (None if status == known else file.read()), status
    except FileNotFoundError:
        return None, None
    except OSError as error:
        raise _untrusted(path, (error.strerror or "an error").lower()) from None


def _decode(path: Path, data: bytes | None) -> _Contents:
    """Return the contents of a file: a line with the SHA-256 of the rest, which is JSON."""
    if data is None:
        return _Contents()
    checksum, _, text = data.partition(b"\n")
    if checksum == hashlib.sha256(text).hexdigest().encode():
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(text, type=_Contents)
    raise _untrusted(path, "it is damaged or changed by hand")


def _untrusted(path: Path, why: str) -> InvalidTokens:
    fix = "Put back a copy with mode 0600; if others may have read it, move it away and make new tokens."
    return InvalidTokens(f"The tokens file {str(path)!r} cannot be used: {why}.", fix, path=str(path))


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Lock the folder of a tokens file, which leaves nothing behind."""
    import fcntl  # not on Windows

    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for _ in range(_LOCK_TRIES):
            with suppress(BlockingIOError):
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.01)
        else:
            raise OSError(errno.EAGAIN, "another process holds it")
        yield
    finally:
        os.close(folder)


def _write_private(path: Path, contents: _Contents) -> None:
    """Write a file whole or not at all; its folder is locked."""
    text = msgspec.json.encode(contents)
    for unfinished in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):  # of a writer that was killed
        shutil.rmtree(unfinished)
    owner = os.stat(path if path.exists() else path.parent)
    with atomic_write(path) as made:
        made.touch(0o600)
        if os.geteuid() == 0:  # a file of root stays readable for the service
            os.chown(made, owner.st_uid, owner.st_gid)
        made.write_bytes(hashlib.sha256(text).hexdigest().encode() + b"\n" + text)


def choosing_address(service: str, made: Issued[Link]) -> str:
    """Return the address where a user chooses. The part behind # is sent to no server, and is in no log."""
    return f"{service}/choose#{made.text}"


def _refused_link(state: str) -> CredentialRefused:
    return CredentialRefused(f"The personal link is {state}.", "Ask for a new one where you got it.")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _sign(key: str, payload: bytes) -> str:
    return base64.urlsafe_b64encode(payload + _hmac(key, "signature", payload)).rstrip(b"=").decode("ascii")


def _keyed(key: str, purpose: str, text: str) -> str:
    return _hmac(key, purpose, text.encode())[:16].hex()


def _hmac(key: str, purpose: str, data: bytes) -> bytes:
    return hmac.digest(bytes.fromhex(key), purpose.encode() + b"\0" + data, "sha256")
