"""What a tokens file says: tokens, the key of personal links, and which links were ended. Times are seconds since 1970."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Role = Literal["ingest", "enrol", "read", "admin"]
"""What a token may be for; `admin` may do everything."""

_Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_Short = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
_Second = Annotated[int, msgspec.Meta(ge=0)]


class TokenRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is kept of a token.

    Attributes:
        id: its public part.
        digest: SHA-256 of the whole token.
        name: what it is for, in the operator's words.
        roles: what it may do.
        created: when it was made.
        expires: from when on it admits nobody; None: never.
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


class LinkMark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """That somebody's links were ended: only links with this mark count.

    Attributes:
        mark: which links made since then carry.
        until: when the last of those made before has expired.
    """

    mark: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
    until: _Second


class AccessContents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that the file says.

    Attributes:
        format: of the file.
        tokens: in the order they were made.
        key: what links are signed with; None before the first one.
        longest_link_s: how long a link has lasted at most.
        ended_links: digests of links that were ended, and when they would have expired.
        link_marks: digests of people whose links were ended.
    """

    format: Literal[1] = 1
    tokens: tuple[TokenRecord, ...] = ()
    key: _Digest | None = None
    longest_link_s: _Second = 0
    ended_links: dict[_Short, _Second] = msgspec.field(default_factory=dict)
    link_marks: dict[_Short, LinkMark] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return f"AccessContents({len(self.tokens)} tokens)"

    def without_past(self, now: float) -> AccessContents:
        """Without what mattered only until now."""
        ended = {name: until for name, until in self.ended_links.items() if until > now}
        marks = {name: mark for name, mark in self.link_marks.items() if mark.until > now}
        return msgspec.structs.replace(self, ended_links=ended, link_marks=marks)
