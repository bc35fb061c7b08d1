"""The client for asynchronous programs (asyncio, trio).

`python -m tests.support.sync_client` generates `sync_client.py` from this file; a test compares.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from types import NoneType, TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from wevent.client import calls
from wevent.client.calls import Call, Events, Place, Reply, User, user_path
from wevent.client.release_stream import Follower
from wevent.client.transport import (
    KEPT_S,
    LATER,
    STREAM_SILENCE_S,
    UNTOUCHED,
    Address,
    RetryPolicy,
    describe,
    is_hopeless,
    read_reply,
    refused,
    unreachable,
    was_sent,
)
from wevent.errors import ServiceRefused, WeventError
from wevent.schemas import (
    BatchResult,
    BudgetTable,
    ChoiceResult,
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

with suppress(ImportError):  # an extra: `Address` says so
    import anyio
    import httpx

if TYPE_CHECKING:
    from wevent.outputs.release_table import ReleaseTable


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
        self._address = Address(url, token, timeout_s, plain_http=plain_http)
        self._transport = transport or httpx.AsyncHTTPTransport(limits=httpx.Limits(keepalive_expiry=KEPT_S))
        self._patience_s = patience_s
        self._sleep, self._now = anyio.sleep, time.monotonic

    def __repr__(self) -> str:
        return f"<AsyncClient of {self._address.base}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._transport.aclose()

    async def about(self) -> StreamInfo:
        """Return public facts about the stream: clock, cells, mechanism, last released slot."""
        return await self._run(Call("GET", "/v1/about", StreamInfo))

    async def levels(self) -> LevelTable:
        """Return the levels that users may choose."""
        return await self._run(Call("GET", "/v1/levels", LevelTable))

    async def ledger(self) -> BudgetTable:
        """Return the budget of every class as of the last released slot."""
        return await self._run(Call("GET", "/v1/ledger", BudgetTable))

    async def statement(self) -> dict[str, Any]:
        """Return the privacy statement."""
        return await self._run(Call("GET", "/v1/statement", dict[str, Any]))

    async def overview(self) -> dict[str, Any]:
        """Return the status of the service, for administrators."""
        return await self._run(Call("GET", "/v1/admin/overview", dict[str, Any]))

    async def wait_until_ready(self) -> None:
        """Return when the service runs and keeps up with its clock.

        Raises:
            WeventError: if it does not within `patience_s`.
        """
        await self._run(Call("GET", "/readyz", NoneType))

    async def releases(
        self,
        first: Place | None = None,
        last: Place | None = None,
        *,
        cells: Sequence[str] | None = None,
        page: int = 1000,
    ) -> AsyncIterator[ReleasedSlot]:
        """Yield releases from one slot (or time) to another, in order. Without both, the last 500.

        Args:
            first: first slot.
            last: last slot.
            cells: labels; None: all cells.
            page: number of slots per request.
        """
        start = first
        while True:
            params = calls.release_params(start, last, cells, page)
            found = await self._run(Call("GET", "/v1/releases", ReleasePage, params))
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
        self,
        after: int | None = None,
        *,
        patience_s: float | None = 300.0,
    ) -> AsyncIterator[ReleasedSlot]:
        """Yield releases as they come, without end, each once and in order, also across lost connections.

        Args:
            after: last slot that you have; None: the last released one.
            patience_s: longest absence of the service; None: any.

        Raises:
            WeventError: if the service refuses, or is away for longer.
        """
        if after is None:
            info = await self.about()
            after = info.committed
        follower = Follower(after, patience_s, self._now)
        while True:
            reason, headers = "a stream that ended", None
            try:
                request = self._address.request(follower.call(), silence_s=STREAM_SILENCE_S)
                async with aclosing(await self._transport.handle_async_request(request)) as response:
                    headers = response.headers
                    if response.status_code == 200:
                        async for chunk in response.aiter_bytes():
                            for release in follower.feed(chunk):
                                yield release
                    elif response.status_code not in LATER:
                        raise refused(response.status_code, await response.aread())
                    else:
                        reason = f"status {response.status_code}"
            except httpx.RequestError as error:
                reason = describe(error)
                if is_hopeless(error):
                    raise unreachable(reason) from None
            await self._sleep(follower.retry.pause(reason, headers))

    async def send(self, events: Events, *, batch_id: str | None = None) -> BatchResult:
        """Send one batch; returns when every accepted event is durable.

        A batch that the service refuses for its size is sent in parts. An event that cannot be sent is one rejected record.

        Args:
            events: objects with a time, a user and a cell, or lines of NDJSON as bytes.
            batch_id: the same in every attempt, also in a later run of your program; None: a digest of the events. The
                same id with other events is refused.
        """
        return await self._send(calls.event_lines(events), batch_id)

    async def _send(self, lines: bytes, batch_id: str | None) -> BatchResult:
        try:
            return await self._run(calls.send(lines, batch_id))
        except ServiceRefused as refusal:
            parts = calls.split(refusal, lines, batch_id)
        return calls.add_up([await self._send(*part) for part in parts])

    async def set_requirement(
        self,
        user: User | None = None,
        *,
        level: str | None = None,
        privacy: str | None = None,
        window: int | str | None = None,
        epsilon: float | str | None = None,
        dry_run: bool = False,
    ) -> ChoiceResult:
        """Choose for a user: `level`, or `privacy` and `window` in words, or `window` and `epsilon` in numbers.

        With `dry_run` nothing changes, and the result is what would.
        """
        body = msgspec.json.encode(RequirementBody(level, privacy, window, epsilon))
        path, params = user_path(user, "/requirement"), calls.flag_params(dry_run=dry_run)
        return await self._run(Call("PUT", path, ChoiceResult, params, {"content-type": "application/json"}, body))

    async def requirement(self, user: User | None = None) -> HeldChoice:
        """Return the requirement that a user holds."""
        return await self._run(Call("GET", user_path(user, "/requirement"), HeldChoice))

    async def remove_requirement(self, user: User | None = None) -> LeaveResult:
        """Let a user leave: from the next slot on the user is not counted."""
        return await self._run(Call("DELETE", user_path(user, "/requirement"), LeaveResult))

    async def erase(self, user: User | None = None) -> LeaveResult:
        """Let a user leave, and replace the id by a digest for as long as the earlier choice protects."""
        return await self._run(Call("DELETE", user_path(user), LeaveResult))

    async def export(self, user: User | None = None) -> dict[str, Any]:
        """Return all stored data about a user: current and earlier choices, queued changes."""
        return await self._run(Call("GET", user_path(user), dict[str, Any]))

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
        call = calls.post(
            "/v1/users",
            ImportResult,
            file,
            {"content-type": kind},
            replace=replace,
            allow_removals=allow_removals,
            dry_run=dry_run,
        )
        return await self._run(call)

    async def link(self, user: User) -> PersonalLink:
        """Make a personal link to /choose. Hand it to that user alone."""
        return await self._run(Call("POST", user_path(user, "/link"), PersonalLink, repeatable=False))

    async def revoke_links(self, user: User) -> None:
        """End all personal links of a user."""
        await self._run(Call("DELETE", user_path(user, "/links"), NoneType))

    async def end_link(self) -> None:
        """End the personal link that this client uses."""
        await self._run(Call("DELETE", "/v1/me/link", NoneType))

    async def _run(self, call: Call[Reply]) -> Reply:
        """Make a call, repeat it if allowed, and read the reply."""
        retry = RetryPolicy(self._patience_s, self._now)
        while True:
            failure: WeventError | None = None
            headers = None
            try:
                request = self._address.request(call)
                async with aclosing(await self._transport.handle_async_request(request)) as response:
                    body, headers = await response.aread(), response.headers
            except httpx.RequestError as error:
                reason = describe(error)
                if is_hopeless(error) or (was_sent(error) and not call.repeatable):
                    raise unreachable(reason) from None
            else:
                if response.is_success:
                    return read_reply(call, body)
                failure, reason = refused(response.status_code, body), f"status {response.status_code}"
                if response.status_code not in (LATER if call.repeatable else UNTOUCHED):
                    raise failure
            await self._sleep(retry.pause(reason, headers, failure))
