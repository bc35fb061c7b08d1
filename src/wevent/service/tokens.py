"""Bearer tokens of programs, and personal links of users: each is shown once, when it is made.

A token is `wev_<id>_<secret>`, the secret 32 bytes of the operating system's randomness in hexadecimal. With so much of it
a plain SHA-256 gives nothing away. The id is public: it finds the digest, which is compared in constant time.

A link is `wel_` and, in base64, the fields of `Link` and their HMAC-SHA256. Nothing is kept of a link unless it is ended:
then a keyed digest, until it would have expired. To end all links of a user a new mark is kept, under a keyed digest of
the id: links with another mark are over.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Literal, get_args

import msgspec

from wevent.core.nearest import did_you_mean
from wevent.errors import InvalidOption, WeventError
from wevent.people.membership import check_id
from wevent.service.tokens_file import Role, TokenRecord, TokensFile
from wevent.settings.values import SECOND_US, format_time

ROLES: tuple[Role, ...] = get_args(Role)
LINK_PREFIX = "wel_"
LONGEST_LINK_S = 366 * 86_400
"""Limit for the life of a link."""

_MOST_NAME = 100
_TOKEN = re.compile(r"wev_([0-9a-f]{8})_[0-9a-f]{64}", re.ASCII)
_NO_TOKEN = "0" * 64  # no digest of a known token
_LINK = re.compile(r"wel_([A-Za-z0-9_-]{1,596})", re.ASCII)
_SIGNATURE = 32  # bytes
_NO_KEY = secrets.token_hex(32)  # compared with where there is no key yet: as long as with one
_CLOCKS_S = 86_400  # correction of a clock since a link was made


class CredentialRefused(WeventError):
    """A token or a link that admits nobody. Facts: none; neither its text nor whose it is."""


@dataclass(frozen=True)
class NewToken:
    """A token that was just made.

    Attributes:
        text: the token itself, which is kept nowhere.
        record: the stored part.
    """

    text: str = field(repr=False)
    record: TokenRecord


class Tokens:
    """The tokens of a service.

    Args:
        file: where they are kept.
        clock: seconds since 1970.
    """

    def __init__(self, file: TokensFile, clock: Callable[[], float] = time.time) -> None:
        self._file, self._clock = file, clock

    def create(self, roles: Collection[str], *, name: str = "", expires: int | None = None) -> NewToken:
        """Make a token.

        Args:
            roles: its uses.
            name: its purpose.
            expires: when it ends, in seconds since 1970; None: never.

        Raises:
            InvalidOption: for unknown roles, a name that cannot be shown, or a time that has passed.
            InvalidTokens: if the tokens file cannot be trusted.
            StorageFailed: if it cannot be written.
        """
        now = int(self._clock())
        known = _checked_roles(roles)
        _check_name(name)
        if expires is not None and expires <= now:
            raise InvalidOption(
                "expires to be in the future",
                format_time(expires * SECOND_US),
                "Write a later time.",
                option="expires",
                value=expires,
            )
        with self._file.change(now) as contents:
            identity = secrets.token_hex(4)
            while identity in contents.tokens:
                identity = secrets.token_hex(4)
            text = f"wev_{identity}_{secrets.token_hex(32)}"
            record = TokenRecord(identity, _digest(text), name, known, now, expires)
            contents.tokens[identity] = record
        return NewToken(text, record)

    def records(self) -> tuple[TokenRecord, ...]:
        """Return all tokens in the order they were made, also expired and revoked ones."""
        return tuple(self._file.contents().tokens.values())

    def revoke(self, identity: str) -> TokenRecord:
        """Revoke a token; a revoked one stays as it is.

        Raises:
            InvalidOption: if there is no such token.
            InvalidTokens: if the tokens file cannot be trusted.
            StorageFailed: if it cannot be written.
        """
        now = int(self._clock())
        with self._file.change(now) as contents:
            record = contents.tokens.get(identity)
            if record is None:
                # The id may be a whole token, pasted by mistake: it is not repeated.
                raise InvalidOption(
                    "the id of a token of this file (8 letters and digits)",
                    "something else",
                    "`wevent token list` shows the ids.",
                    option="id",
                    value=None,
                )
            if record.revoked is None:
                record = contents.tokens[identity] = msgspec.structs.replace(record, revoked=now)
        return record

    def state(self, record: TokenRecord) -> Literal["valid", "expired", "revoked"]:
        """Return the state of a token."""
        if record.revoked is not None:
            return "revoked"
        return "expired" if record.expires is not None and self._clock() >= record.expires else "valid"

    def admit(self, text: str) -> TokenRecord:
        """Return the record of a token.

        Raises:
            CredentialRefused: if it is unknown, expired or revoked; without the text.
            InvalidTokens: if the tokens file cannot be trusted.
        """
        match = _TOKEN.fullmatch(text)
        record = self._file.contents().tokens.get(match[1] if match else "")
        is_ours = hmac.compare_digest(_digest(text), _NO_TOKEN if record is None else record.digest)
        if record is None or not is_ours:
            raise CredentialRefused(
                "a token that this service knows", "another one", "Ask the operator for one (`wevent token create`)."
            )
        state = self.state(record)
        if state != "valid":
            raise CredentialRefused(
                "a token that is in force",
                "one that has expired" if state == "expired" else "one that was revoked",
                "Ask the operator for a new one (`wevent token create`).",
            )
        return record


class Link(msgspec.Struct, frozen=True, array_like=True):
    """A link whose signature was checked.

    Attributes:
        user: whose it is.
        identity: random hexadecimal.
        expires: when it ends, in seconds since 1970.
        mark: mark of the user when it was made; "" before any.
    """

    user: str
    identity: str
    expires: int
    mark: str

    def __repr__(self) -> str:
        return f"Link(identity={self.identity!r}, expires={self.expires})"


@dataclass(frozen=True)
class NewLink:
    """A link that was just made.

    Attributes:
        text: the link's token, which is kept nowhere.
        link: its fields.
    """

    text: str = field(repr=False)
    link: Link


class Links:
    """The personal links of a service.

    Args:
        file: where their key is, and which were ended.
        clock: seconds since 1970.
    """

    def __init__(self, file: TokensFile, clock: Callable[[], float] = time.time) -> None:
        self._file, self._clock = file, clock

    def make(self, user: str, life_s: int) -> NewLink:
        """Make a link; the first one makes the key.

        Raises:
            InvalidMembership: for an id that nobody can have.
            InvalidOption: for a life that is none, or too long.
            InvalidTokens: if the tokens file cannot be trusted.
            StorageFailed: if it cannot be written.
        """
        check_id(user)
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
            with self._file.change(self._clock()) as contents:
                contents.key = contents.key or secrets.token_hex(32)
                contents.longest_link_s = max(contents.longest_link_s, life_s)
        key = contents.key
        assert key is not None
        mark, _ = contents.link_marks.get(_keyed(key, "user", user), ("", 0))
        link = Link(user, secrets.token_hex(16), int(self._clock()) + life_s, mark)
        return NewLink(LINK_PREFIX + _signed(key, msgspec.msgpack.encode(link)), link)

    def admit(self, text: str) -> Link:
        """Return the fields of a link.

        Raises:
            CredentialRefused: if it is unknown, expired or ended; without the text.
            InvalidTokens: if the tokens file cannot be trusted.
        """
        contents = self._file.contents()
        match = _LINK.fullmatch(text)
        body = match[1] if match else ""
        try:
            payload = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))[:-_SIGNATURE]
        except ValueError:
            payload = b""
        key = contents.key
        is_ours = hmac.compare_digest(_signed(key or _NO_KEY, payload), body)  # in its one spelling
        if key is None or not is_ours:
            raise _refused_link("another one")
        link = msgspec.msgpack.decode(payload, type=Link)
        if self._clock() >= link.expires:
            raise _refused_link("one that has expired")
        mark, _ = contents.link_marks.get(_keyed(key, "user", link.user), (link.mark, 0))
        if mark != link.mark or _keyed(key, "link", link.identity) in contents.ended_links:
            raise _refused_link("one that was ended")
        return link

    def end(self, link: Link) -> None:
        """End a link; raises as `make`."""
        with self._file.change(self._clock()) as contents:
            if contents.key is not None:
                contents.ended_links[_keyed(contents.key, "link", link.identity)] = link.expires

    def end_all(self, user: str) -> None:
        """End all links of a user made so far; raises as `make`."""
        check_id(user)
        if self._file.contents().key is None:
            return  # nobody has a link
        now = int(self._clock())
        with self._file.change(now) as contents:
            if contents.key is not None:
                mark = secrets.token_hex(8), now + contents.longest_link_s + _CLOCKS_S
                contents.link_marks[_keyed(contents.key, "user", user)] = mark


def choosing_address(service: str, made: NewLink) -> str:
    """Return the address where a user chooses; the part behind # is sent to no server, and is in no log.

    Args:
        service: address of the service, without a slash at its end.
        made: the link.
    """
    return f"{service}/choose#{made.text}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _checked_roles(roles: Collection[str]) -> tuple[Role, ...]:
    known = ", ".join(ROLES)
    for role in roles:
        if role not in ROLES:
            remedy = did_you_mean(str(role), ROLES, "Use these words.")
            raise InvalidOption(f"roles out of {known}", f"{role!r}", remedy, option="role", value=role)
    if not roles:
        raise InvalidOption(
            f"a role out of {known}", "none", "Say what the token is for (--role).", option="role", value=None
        )
    return tuple(role for role in ROLES if role in roles)


def _check_name(name: str) -> None:
    if len(name) > _MOST_NAME or not name.isprintable():
        raise InvalidOption(
            f"a name of at most {_MOST_NAME} characters that can be shown",
            f"one of {len(name)}" if len(name) > _MOST_NAME else "one with control characters",
            "Write a shorter one." if len(name) > _MOST_NAME else "Leave them out.",
            option="name",
            value=name,
        )


def _signed(key: str, payload: bytes) -> str:
    signature = _hmac(key, "signature", payload)
    return base64.urlsafe_b64encode(payload + signature).rstrip(b"=").decode("ascii")


def _keyed(key: str, purpose: str, text: str) -> str:
    return _hmac(key, purpose, text.encode())[:16].hex()


def _hmac(key: str, purpose: str, data: bytes) -> bytes:
    return hmac.digest(bytes.fromhex(key), purpose.encode() + b"\0" + data, "sha256")


def _refused_link(received: str) -> CredentialRefused:
    return CredentialRefused("a personal link that is in force", received, "Ask for a new link where you got this one.")
