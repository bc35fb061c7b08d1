"""The client for asynchronous programs (asyncio, trio), which also has every call of the blocking one."""

from __future__ import annotations

import gzip
import hashlib
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import datetime
from types import NoneType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import msgspec

from wevent.client.transport import (
    KEPT_S,
    STREAM_SILENCE_S,
    EventReader,
    Interrupted,
    Reply,
    RetryPolicy,
    check_address,
    check_token,
    decode,
    read_chunks,
    require_httpx,
    unreachable,
)
from wevent.errors import InvalidOption, ServiceRefused
from wevent.schemas import (
    BatchResult,
    BudgetTable,
    HeldChoice,
    ImportResult,
    LeaveResult,
    LevelTable,
    PersonalLink,
    ReleasedSlot,
    ReleasePage,
    RequirementBody,
    StreamInfo,
)

with suppress(ImportError):  # an extra: `require_httpx` says so
    import anyio
    import httpx

if TYPE_CHECKING:
    from wevent.outputs.release_table import ReleaseTable

User = str | int
Place = int | str | datetime  # a slot by its number, or by a time in it
Events = bytes | Iterable[Mapping[str, Any]]  # lines of NDJSON as bytes, or objects with a time, a user and a cell
_WORTH_COMPRESSING = 1024  # bytes
_BATCH_ID = re.compile(r"[!-~]{1,200}")
_LEAST_LIMIT = 1 << 10  # bytes: no service refuses fewer for their size
_UNSENDABLE = (TypeError, ValueError, RecursionError)


class AsyncClient:
    """Client of `wevent serve` for asynchronous programs.

    A call that may be repeated is made again when the service is away or asks for a later attempt, within `patience_s`;
    all calls but `link` may. Without `user`, a call is about the user of the personal link whose token the client has.

    Args:
        url: address of the service, such as https://stats.example.
        token: as `wevent token create` printed it, or of a personal link; None for public data.
        timeout_s: time for one answer.
        patience_s: time for all attempts of a call together.
        plain_http: send the token unencrypted to another machine.
        transport: httpx transport in place of the default one: for proxies, certificates, tests.

    Raises:
        InvalidOption: if httpx is missing, or the address or the token is invalid.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout_s: float = 30.0,
        patience_s: float = 30.0,
        plain_http: bool = False,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        require_httpx()
        self._base = check_address(url, plain_http=plain_http or token is None)
        self._headers = {"accept": "application/json", "user-agent": "wevent-client"}
        if token is not None:
            self._headers["authorization"] = f"Bearer {check_token(token)}"
        self._transport = transport or httpx.AsyncHTTPTransport(limits=httpx.Limits(keepalive_expiry=KEPT_S))
        self._timeout_s, self._patience_s = timeout_s, patience_s
        self._sleep: Callable[[float], Awaitable[None]] = anyio.sleep
        self._now = time.monotonic

    def __repr__(self) -> str:
        return f"<AsyncClient of {self._base}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._transport.aclose()

    async def about(self) -> StreamInfo:
        """Return public facts about the stream: clock, cells, mechanism, last released slot."""
        return await self._call(StreamInfo, "GET", "/v1/about")

    async def levels(self) -> LevelTable:
        """Return the levels that users may choose."""
        return await self._call(LevelTable, "GET", "/v1/levels")

    async def ledger(self) -> BudgetTable:
        """Return the budget of every class as of the last released slot."""
        return await self._call(BudgetTable, "GET", "/v1/ledger")

    async def statement(self) -> dict[str, Any]:
        """Return the privacy statement."""
        return await self._call(dict[str, Any], "GET", "/v1/statement")

    async def overview(self) -> dict[str, Any]:
        """Return the status of the service, for administrators."""
        return await self._call(dict[str, Any], "GET", "/v1/admin/overview")

    async def wait_until_ready(self) -> None:
        """Return when the service runs and keeps up with its clock. Raises WeventError if not within `patience_s`."""
        await self._call(NoneType, "GET", "/readyz")

    async def releases(
        self,
        first: Place | None = None,
        last: Place | None = None,
        *,
        cells: Sequence[str] | None = None,
        page: int = 1000,
    ) -> AsyncIterator[ReleasedSlot]:
        """Yield releases from one slot or time to another, a page of slots per request; without both, the last 500."""
        start = first
        while True:
            slots = {"from": _slot_text(start), "to": _slot_text(last)}
            params = {**slots, "cells": None if cells is None else ",".join(map(_cell_text, cells)), "limit": page}
            found = await self._call(ReleasePage, "GET", "/v1/releases", params=params)
            for release in found.releases:
                yield release
            if found.next is None:
                return
            start = found.next

    async def release_table(
        self, first: Place | None = None, last: Place | None = None, *, cells: Sequence[str] | None = None
    ) -> ReleaseTable:
        """Return the same as a table with a row per slot and cell, for pandas, Polars, Arrow, or as plain columns."""
        from wevent.outputs.release_table import tabulate_releases  # numpy and the journal come with it

        return tabulate_releases([release async for release in self.releases(first, last, cells=cells)])

    async def stream(
        self, after: int | None = None, *, patience_s: float | None = 300.0
    ) -> AsyncIterator[ReleasedSlot]:
        """Yield releases as they come, without end, each once and in order, also across lost connections.

        Args:
            after: last slot that you have; None: the last released one.
            patience_s: longest absence of the service; None: any.

        Raises:
            WeventError: if the service refuses, or is away for longer.
        """
        if after is None:
            after = (await self.about()).committed
        retry = RetryPolicy(patience_s, self._now)
        while True:
            headers = {"accept": "text/event-stream", "accept-encoding": "identity", "last-event-id": str(after)}
            request = self._request("GET", "/v1/releases/stream", headers=headers, silence_s=STREAM_SILENCE_S)
            reader = EventReader()
            failure = Interrupted(unreachable("the stream ended"))
            try:
                async with aclosing(read_chunks(self._transport, request)) as chunks:
                    async for chunk in chunks:
                        for release in reader.releases(chunk):
                            if release.slot > after:
                                after = release.slot
                                retry.reset()
                                yield release
            except Interrupted as interruption:
                failure = interruption
            retry.least_s = reader.retry_s or retry.least_s
            await self._sleep(retry.pause(failure))

    async def send(self, events: Events, *, batch_id: str | None = None) -> BatchResult:
        """Send one batch; returns when every accepted event is durable.

        A batch that the service refuses for its size is sent in parts. An event that cannot be sent is one rejected record.

        Args:
            events: objects with a time, a user and a cell, or lines of NDJSON as bytes.
            batch_id: the same in every attempt, also in a later run of your program; None: a digest of the events. The
                same id with other events is refused.
        """
        if batch_id is not None and not _BATCH_ID.fullmatch(batch_id):
            fix = "Give at most 200 visible ASCII characters without blanks, or leave the id to the client."
            raise InvalidOption("The batch id is not valid.", fix, option="batch_id", value=None)
        return await self._send(event_lines(events), batch_id)

    async def _send(self, lines: bytes, batch_id: str | None) -> BatchResult:
        """Send a batch; in halves if it is refused for its size. A half has the same id in every attempt."""
        headers = {"content-type": "application/x-ndjson", "idempotency-key": batch_id or _digest_id(lines)}
        try:
            return await self._call(BatchResult, "POST", "/v1/events", headers=headers, content=lines)
        except ServiceRefused as refusal:
            if refusal.facts["status"] != 413 or len(lines) <= _LEAST_LIMIT:
                raise
        middle = len(lines) // 2
        cut = lines.rfind(b"\n", 0, middle) + 1 or lines.find(b"\n", middle) + 1
        if cut == len(lines):  # one record, too long to send
            return BatchResult(0, {"no_record": 1})
        halves = [
            await self._send(half, batch_id and _digest_id(batch_id.encode() + b"\n" + half))
            for half in (lines[:cut], lines[cut:])
        ]
        rejected = Counter(halves[0].rejected) + Counter(halves[1].rejected)
        return BatchResult(halves[0].accepted + halves[1].accepted, dict(rejected))

    async def set_requirement(
        self,
        user: User | None = None,
        *,
        level: str | None = None,
        privacy: str | None = None,
        window: int | str | None = None,
        epsilon: float | str | None = None,
        dry_run: bool = False,
    ) -> HeldChoice:
        """Choose for a user: `level`, or `privacy` and `window` in words, or `window` and `epsilon` in numbers.

        With `dry_run` nothing changes, and the result is what would.
        """
        return await self._call(
            HeldChoice,
            "PUT",
            _user_path(user, "/requirement"),
            params={"dry_run": dry_run},
            headers={"content-type": "application/json"},
            content=msgspec.json.encode(RequirementBody(level, privacy, window, epsilon)),
        )

    async def requirement(self, user: User | None = None) -> HeldChoice:
        """Return the requirement that a user holds."""
        return await self._call(HeldChoice, "GET", _user_path(user, "/requirement"))

    async def remove_requirement(self, user: User | None = None) -> LeaveResult:
        """Remove a user: from the next slot on the user is not counted."""
        return await self._call(LeaveResult, "DELETE", _user_path(user, "/requirement"))

    async def erase(self, user: User | None = None) -> LeaveResult:
        """Remove a user, and replace the id by a digest for as long as the earlier choice protects."""
        return await self._call(LeaveResult, "DELETE", _user_path(user))

    async def export(self, user: User | None = None) -> dict[str, Any]:
        """Return all stored data about a user: current and earlier choices, queued changes."""
        return await self._call(dict[str, Any], "GET", _user_path(user))

    async def import_requirements(
        self,
        file: bytes,
        *,
        kind: str = "text/csv",
        replace: bool = False,
        allow_removals: bool = False,
        dry_run: bool = False,
    ) -> ImportResult:
        """Import a requirements file: users in it join or change; with `replace`, all others leave.

        Args:
            file: content of the file.
            kind: text/csv or application/x-ndjson.
            replace: let users leave who are not in the file.
            allow_removals: also if more than one in ten would leave.
            dry_run: change nothing; the result is what would change.
        """
        params = {"replace": replace, "allow_removals": allow_removals, "dry_run": dry_run}
        headers = {"content-type": kind}
        return await self._call(ImportResult, "POST", "/v1/users", params=params, headers=headers, content=file)

    async def link(self, user: User) -> PersonalLink:
        """Make a personal link to /choose. Hand it to that user alone."""
        return await self._call(PersonalLink, "POST", _user_path(user, "/link"), repeatable=False)

    async def revoke_links(self, user: User) -> None:
        """End all personal links of a user."""
        await self._call(NoneType, "DELETE", _user_path(user, "/links"))

    async def end_link(self) -> None:
        """End the personal link that this client uses."""
        await self._call(NoneType, "DELETE", "/v1/me/link")

    def _request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int | None] | None = None,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        silence_s: float | None = None,
    ) -> httpx.Request:
        """Return a request, without parameters that are None or False; its content is compressed if that is worth it."""
        headers = {**self._headers, **(headers or {})}
        if content is not None and len(content) >= _WORTH_COMPRESSING:
            content, headers["content-encoding"] = gzip.compress(content, compresslevel=1, mtime=0), "gzip"
        timeout = httpx.Timeout(self._timeout_s, read=silence_s or self._timeout_s).as_dict()
        url, extensions = self._base + path, {"timeout": timeout}
        given = {name: value for name, value in (params or {}).items() if value is not None and value is not False}
        return httpx.Request(method, url, params=given or None, headers=headers, content=content, extensions=extensions)

    async def _call(
        self, reply: type[Reply], method: str, path: str, *, repeatable: bool = True, **parts: Any
    ) -> Reply:
        """Make a call, repeat it if two calls have the effect of one, and read the reply; NoneType ignores it."""
        request, retry = self._request(method, path, **parts), RetryPolicy(self._patience_s, self._now)
        while True:
            try:
                body = b"".join([chunk async for chunk in read_chunks(self._transport, request, repeatable=repeatable)])
            except Interrupted as failure:
                await self._sleep(retry.pause(failure))
            else:
                return decode(b"null" if reply is NoneType else body, reply)


def _user_path(user: User | None, rest: str = "") -> str:
    """Return the path of a user; of None, the path of the user of a personal link."""
    if user is None:
        return f"/v1/me{rest}"
    text = str(user)
    if not text:
        raise InvalidOption("The id of the user is empty.", "Give the id of a user.", option="user", value=None)
    return f"/v1/users/{quote(text, safe='').replace('.', '%2E')}{rest}"


def _slot_text(place: Place | None) -> str | None:
    if isinstance(place, datetime):
        if place.utcoffset() is None:
            fix = "Give one such as datetime.now(UTC)."
            raise InvalidOption("The time has no UTC offset.", fix, option="time", value=None)
        return place.isoformat()
    return None if place is None else str(place)


def _cell_text(cell: Any) -> str:
    """Return a label for a list with commas; one with a comma or a quote is in double quotes."""
    text = str(cell)
    return '"' + text.replace('"', '""') + '"' if set(text) & {",", '"'} else text


def _digest_id(lines: bytes) -> str:
    """Return the id of a batch without one: the same events are the same batch in every run."""
    return f"sha256-{hashlib.sha256(lines).hexdigest()}"


def event_lines(events: Events) -> bytes:
    r"""Return lines of NDJSON, each ended by a newline.

    An event that JSON cannot express becomes `null`, and a time without an offset stays without: the service rejects
    that record alone, and its answer counts it.

    >>> event_lines([{"time": 1767225610, "user": 17, "cell": "north"}, {"user": "\ud800"}])
    b'{"time":1767225610,"user":17,"cell":"north"}\nnull\n'
    """
    if isinstance(events, bytes):
        return events if events.endswith(b"\n") or not events else events + b"\n"
    encoder = msgspec.json.Encoder()
    rows = [_timed(event) for event in events]
    try:
        return encoder.encode_lines(rows)
    except _UNSENDABLE:
        return b"".join(_line(encoder, row) + b"\n" for row in rows)


def _line(encoder: msgspec.json.Encoder, row: Any) -> bytes:
    try:
        return encoder.encode(row)
    except _UNSENDABLE:
        return b"null"


def _timed(event: Any) -> Any:
    """Return an event with its times as text."""
    if not isinstance(event, Mapping):
        return None
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in event.items()}
