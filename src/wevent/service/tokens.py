"""Bearer tokens: made once, shown once, kept as digests.

A token is `wev_<id>_<secret>`, the secret 32 bytes of the operating system's randomness in hexadecimal. With so much of it
a plain SHA-256 gives nothing away. The id is public: it finds the digest, which is compared in constant time.
"""

from __future__ import annotations

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
from wevent.service.access_records import AccessContents, Role, TokenRecord
from wevent.service.tokens_file import TokensFile
from wevent.streams.clock import SECOND_US, format_time

ROLES: tuple[Role, ...] = get_args(Role)
"""What a token may be for."""

TOKEN_PREFIX = "wev_"
_MOST_NAME = 100
_TOKEN = re.compile(r"wev_([0-9a-f]{8})_[0-9a-f]{64}", re.ASCII)
_NO_TOKEN = "0" * 64  # no digest of a token that anybody knows


class CredentialRefused(WeventError):
    """A token or a link that admits nobody. Facts: none; neither its text nor whose it is."""


@dataclass(frozen=True)
class NewToken:
    """A token that was just made.

    Attributes:
        text: the token itself, which is kept nowhere.
        record: what is kept of it.
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
            roles: what it may do.
            name: what it is for, in words.
            expires: from when on it admits nobody, in seconds since 1970; None: never.

        Raises:
            InvalidOption: for roles that are none, a name that cannot be shown, or a time that has passed.
            InvalidTokens: if the tokens file cannot be trusted.
            StorageFailed: if it cannot be written.
        """
        now = int(self._clock())
        asked = _checked_roles(roles)
        _check_name(name)
        if expires is not None and expires <= now:
            raise InvalidOption(
                "expires to be in the future", _moment(expires), "Write a later time.", option="expires", value=expires
            )
        made: list[NewToken] = []

        def add(contents: AccessContents) -> AccessContents:
            taken = {record.id for record in contents.tokens}
            made[:] = [_new(asked, name, now, expires, taken)]
            tokens = (*contents.tokens, made[0].record)
            return msgspec.structs.replace(contents.without_past(now), tokens=tokens)

        self._file.change(add)
        return made[0]

    def records(self) -> tuple[TokenRecord, ...]:
        """All tokens, in the order they were made, also those that admit nobody any more."""
        return self._file.contents().tokens

    def revoke(self, identity: str) -> TokenRecord:
        """Let a token admit nobody from now on; one that is revoked already stays so.

        Args:
            identity: its id.

        Raises:
            InvalidOption: if there is no such token.
            InvalidTokens: if the tokens file cannot be trusted.
            StorageFailed: if it cannot be written.
        """
        now = int(self._clock())

        def revoked(contents: AccessContents) -> AccessContents:
            if identity not in {record.id for record in contents.tokens}:
                raise _no_such_token()
            tokens = (
                msgspec.structs.replace(record, revoked=now)
                if record.id == identity and record.revoked is None
                else record
                for record in contents.tokens
            )
            return msgspec.structs.replace(contents.without_past(now), tokens=tuple(tokens))

        return next(record for record in self._file.change(revoked).tokens if record.id == identity)

    def state(self, record: TokenRecord) -> Literal["valid", "expired", "revoked"]:
        """Whether a token admits anybody."""
        if record.revoked is not None:
            return "revoked"
        return "expired" if record.expires is not None and self._clock() >= record.expires else "valid"

    def admit(self, text: str) -> TokenRecord:
        """What a token may do.

        Args:
            text: the token, as somebody sent it.

        Raises:
            CredentialRefused: if it is none of ours, has expired or was revoked; without the text.
            InvalidTokens: if the tokens file cannot be trusted.
        """
        match = _TOKEN.fullmatch(text)
        record = self._file.token(match[1] if match else "")
        kept = _NO_TOKEN if record is None else record.digest
        is_ours = hmac.compare_digest(_digest(text), kept)
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


def _new(roles: tuple[Role, ...], name: str, now: int, expires: int | None, taken: Collection[str]) -> NewToken:
    identity = secrets.token_hex(4)
    while identity in taken:
        identity = secrets.token_hex(4)
    text = f"{TOKEN_PREFIX}{identity}_{secrets.token_hex(32)}"
    return NewToken(text, TokenRecord(identity, _digest(text), name, roles, now, expires))


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


def _no_such_token() -> InvalidOption:
    # What was given may be a whole token, pasted by mistake: it is not repeated.
    return InvalidOption(
        "the id of a token of this file (8 letters and digits)",
        "something else",
        "`wevent token list` shows the ids.",
        option="id",
        value=None,
    )


def _moment(second: int) -> str:
    return format_time(second * SECOND_US)
