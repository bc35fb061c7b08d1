"""A person's own link: a signed token for one user that expires and can be ended.

`wel_` and, in base64, a payload and its HMAC-SHA256. The payload says who, until when, which link (random bytes), and the
person's mark at that time. Nothing is kept of a link unless it is ended: then a keyed digest, until it would have
expired. To end all links of a person a new mark is kept, under a keyed digest of the id: links with another one are over.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from wevent.errors import InvalidOption
from wevent.people.membership import check_countable, check_id
from wevent.service.access_records import AccessContents, LinkMark
from wevent.service.tokens import CredentialRefused
from wevent.service.tokens_file import TokensFile

LINK_PREFIX = "wel_"
LONGEST_LINK_S = 366 * 86_400
"""How long a link may last at most."""

_MOST_TEXT = 600  # characters, with the longest id
_HEAD = struct.Struct(">BQ16s8s")  # version, expiry, which link, the person's mark
_VERSION = 1
_SIGNATURE = 32
_NO_MARK = bytes(8)
_CLOCKS_S = 86_400  # by how much a clock may have been put right since a link was made
_NO_KEY = secrets.token_bytes(32)  # compared with where there is no key yet: as long as with one


@dataclass(frozen=True)
class Link:
    """A link whose signature was checked.

    Attributes:
        user: whose it is.
        identity: which link, as random hexadecimal.
        expires: from when on it admits nobody, in seconds since 1970.
    """

    user: str = field(repr=False)
    identity: str
    expires: int


@dataclass(frozen=True)
class NewLink:
    """A link that was just made.

    Attributes:
        text: the link's token, which is kept nowhere.
        link: what it says.
    """

    text: str = field(repr=False)
    link: Link


class Links:
    """The personal links of a service.

    Args:
        file: where their key is, and what was ended.
        clock: seconds since 1970.
    """

    def __init__(self, file: TokensFile, clock: Callable[[], float] = time.time) -> None:
        self._file, self._clock = file, clock

    def make(self, user: str, life_s: int) -> NewLink:
        """Make a link; the first one makes the key.

        Args:
            user: for whom.
            life_s: how long it lasts.

        Raises:
            InvalidMembership: for an id that nobody can have.
            InvalidOption: for a life that is none, or too long.
            InvalidTokens: if the tokens file cannot be trusted.
            StorageFailed: if it cannot be written.
        """
        check_id(user)
        check_countable(user)
        if not 1 <= life_s <= LONGEST_LINK_S:
            raise InvalidOption(
                "a link to last between a second and 366 days",
                f"{life_s} seconds",
                "Write a shorter time." if life_s > 0 else "Write a time in the future.",
                option="expires",
                value=life_s,
            )
        contents = self._file.contents()
        if contents.key is None or life_s > contents.longest_link_s:
            contents = self._file.change(lambda now: _prepared(now, life_s))
        key = _key_of(contents)
        assert key is not None
        mark = contents.link_marks.get(_short(key, b"person", user.encode()))
        link = Link(user, secrets.token_hex(16), int(self._clock()) + life_s)
        known = _NO_MARK if mark is None else bytes.fromhex(mark.mark)
        payload = _HEAD.pack(_VERSION, link.expires, bytes.fromhex(link.identity), known) + user.encode()
        return NewLink(LINK_PREFIX + _text(payload + _keyed(key, b"signature", payload)), link)

    def admit(self, text: str) -> Link:
        """Whose link it is.

        Args:
            text: the link's token, as somebody sent it.

        Raises:
            CredentialRefused: if it is none of ours, has expired or was ended; without the text.
            InvalidTokens: if the tokens file cannot be trusted.
        """
        contents = self._file.contents()
        key = _key_of(contents)
        payload, signature = _parts(text)
        is_ours = hmac.compare_digest(_keyed(key or _NO_KEY, b"signature", payload), signature)
        if key is None or not is_ours or payload[0] != _VERSION:
            raise _refused("another one")
        _, expires, which, mark = _HEAD.unpack_from(payload)
        user = payload[_HEAD.size :].decode()
        if self._clock() >= expires:
            raise _refused("one that has expired")
        wanted = contents.link_marks.get(_short(key, b"person", user.encode()))
        is_over = wanted is not None and not hmac.compare_digest(bytes.fromhex(wanted.mark), mark)
        if is_over or _short(key, b"link", which) in contents.ended_links:
            raise _refused("one that was ended")
        return Link(user, which.hex(), expires)

    def end(self, link: Link) -> None:
        """Let a link admit nobody from now on; raises as `make`."""

        def ended(contents: AccessContents) -> AccessContents:
            key = _key_of(contents)
            kept = contents.without_past(self._clock())
            if key is None:
                return kept
            digest = _short(key, b"link", bytes.fromhex(link.identity))
            return msgspec.structs.replace(kept, ended_links={**kept.ended_links, digest: link.expires})

        self._file.change(ended)

    def end_all(self, user: str) -> None:
        """Let no link of a person made so far admit anybody; raises as `make`."""
        check_id(user)
        if self._file.contents().key is None:
            return  # nobody has a link

        def ended(contents: AccessContents) -> AccessContents:
            key = _key_of(contents)
            kept = contents.without_past(self._clock())
            if key is None:
                return kept
            until = int(self._clock()) + kept.longest_link_s + _CLOCKS_S
            mark = LinkMark(secrets.token_hex(8), until)
            return msgspec.structs.replace(
                kept, link_marks={**kept.link_marks, _short(key, b"person", user.encode()): mark}
            )

        self._file.change(ended)


def choosing_address(service: str, made: NewLink) -> str:
    """Where somebody with a link chooses; what is behind # is sent to no server, and is in no log.

    Args:
        service: the address that people reach it at, without a slash at its end.
        made: the link.
    """
    return f"{service}/choose#{made.text}"


def _prepared(contents: AccessContents, life_s: int) -> AccessContents:
    """With a key, and knowing how long links last."""
    return msgspec.structs.replace(
        contents, key=contents.key or secrets.token_hex(32), longest_link_s=max(contents.longest_link_s, life_s)
    )


def _key_of(contents: AccessContents) -> bytes | None:
    return None if contents.key is None else bytes.fromhex(contents.key)


def _keyed(key: bytes, what: bytes, data: bytes) -> bytes:
    return hmac.digest(key, what + b"\0" + data, hashlib.sha256)


def _short(key: bytes, what: bytes, data: bytes) -> str:
    return _keyed(key, what, data)[:16].hex()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _parts(text: str) -> tuple[bytes, bytes]:
    """Payload and signature of a link in its one spelling."""
    body = text.removeprefix(LINK_PREFIX)
    try:
        data = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _refused("another one") from None
    is_whole = len(data) > _HEAD.size + _SIGNATURE and len(text) <= _MOST_TEXT
    if not is_whole or text != LINK_PREFIX + _text(data):
        raise _refused("another one")
    return data[:-_SIGNATURE], data[-_SIGNATURE:]


def _refused(received: str) -> CredentialRefused:
    return CredentialRefused("a personal link that is in force", received, "Ask for a new link where you got this one.")
