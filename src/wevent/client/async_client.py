"""The client for asynchronous programs (asyncio, trio): method for method that of `sync_client`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from wevent import schemas
from wevent.client import calls
from wevent.client.calls import Call, Place, Reply, User
from wevent.client.encoding import Events, event_lines
from wevent.client.failures import refused
from wevent.client.following import Follower
from wevent.client.patience import LATER, UNTOUCHED, Patience
from wevent.client.wire import KEPT_S, STREAM_SILENCE_S, Address, is_hopeless, reason_of, was_sent
from wevent.errors import ServiceRefused, WeventError

with suppress(ImportError):  # an extra: `Address` says so
    import anyio
    import httpx

if TYPE_CHECKING:
    from wevent.outputs.release_table import ReleaseTable


class AsyncClient:
    """Talks to `wevent serve`, as `Client` does, with the same arguments; calls are awaited, iterators asynchronous."""

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
        """Let go of all connections."""
        await self._transport.aclose()

    async def about(self) -> schemas.StreamInfo:
        """What is public about the stream: its clock, cells and mechanism, and how far it is."""
        return await self._run(calls.about())

    async def levels(self) -> schemas.LevelTable:
        """What people may choose, what each level means, and how many hold it."""
        return await self._run(calls.levels())

    async def ledger(self) -> schemas.BudgetTable:
        """What every class has left, as of the last released slot."""
        return await self._run(calls.ledger())

    async def statement(self) -> dict[str, Any]:
        """The privacy statement."""
        return await self._run(calls.statement())

    async def overview(self) -> dict[str, Any]:
        """How the service is, for administrators."""
        return await self._run(calls.overview())

    async def wait_until_ready(self) -> None:
        """Return when the service runs and keeps up with its clock.

        Raises:
            WeventError: if it does not within the patience of this client.
        """
        await self._run(calls.ready())

    async def releases(
        self,
        first: Place | None = None,
        last: Place | None = None,
        *,
        cells: Sequence[str] | None = None,
        page: int = 1000,
    ) -> AsyncIterator[schemas.ReleasedSlot]:
        """Releases from one slot (or time) to another, in order; of neither, the last 500. Fetched `page` at a time."""
        start: Place | None = first
        while True:
            found = await self._run(calls.releases(start, last, cells, page))
            for release in found.releases:
                yield release
            if found.next is None:
                return
            start = found.next

    async def release_table(
        self, first: Place | None = None, last: Place | None = None, *, cells: Sequence[str] | None = None
    ) -> ReleaseTable:
        """The same as a table with a row per slot and cell, for pandas, Polars, Arrow, or as plain columns."""
        from wevent.client.tabulating import release_table  # numpy and the journal come with it

        return release_table([release async for release in self.releases(first, last, cells=cells)])

    async def stream(
        self, after: int | None = None, *, patience_s: float | None = 300.0
    ) -> AsyncIterator[schemas.ReleasedSlot]:
        """Releases as they come, without end, each once and in order, also across breaks of the connection.

        Args:
            after: the last slot that you have; None: what is released from now on.
            patience_s: how long the service may be away; None: for ever.

        Raises:
            WeventError: if the service refuses, or is away for longer.
        """
        follower = Follower((await self.about()).committed if after is None else after, patience_s, self._now)
        while True:
            reason, headers = "a stream that ended", None
            try:
                request = self._address.request(follower.call(), silence_s=STREAM_SILENCE_S)
                async with aclosing(await self._transport.handle_async_request(request)) as response:
                    headers = response.headers
                    if response.status_code == 200:
                        async for piece in response.aiter_bytes():
                            for release in follower.feed(piece):
                                yield release
                    elif response.status_code not in LATER:
                        raise refused(response.status_code, await response.aread())
                    else:
                        reason = f"status {response.status_code}"
            except httpx.RequestError as error:
                reason = reason_of(error)
                if is_hopeless(error):
                    raise follower.patience.over(reason) from None
            await self._sleep(follower.patience.pause(reason, headers))

    async def send(self, events: Events, *, batch_id: str | None = None) -> schemas.BatchResult:
        """Send one batch; returns when every accepted event is durable.

        A batch that the service refuses for its size is sent in parts. An event that cannot be sent is one rejected record.

        Args:
            events: objects with a time, a user and a cell, or lines of NDJSON as bytes.
            batch_id: the same in every attempt, also in a later run of your program; None: a digest of the events. The
                same id with other events is refused.
        """
        return await self._send(event_lines(events), batch_id)

    async def _send(self, lines: bytes, batch_id: str | None) -> schemas.BatchResult:
        try:
            return await self._run(calls.send(lines, batch_id))
        except ServiceRefused as refusal:
            parts = calls.split(refusal, lines, batch_id)
        return calls.added_up([await self._send(*part) for part in parts])

    async def set_requirement(
        self,
        user: User | None = None,
        *,
        level: str | None = None,
        privacy: str | None = None,
        window: int | str | None = None,
        epsilon: float | str | None = None,
        dry_run: bool = False,
    ) -> schemas.ChoiceResult:
        """Choose for somebody: `level`, or `privacy` and `window` in words, or `window` and `epsilon` in numbers.

        With `dry_run` nothing changes, and the answer says what would.
        """
        wish = {"level": level, "privacy": privacy, "window": window, "epsilon": epsilon}
        return await self._run(calls.set_requirement(user, wish, dry_run))

    async def requirement(self, user: User | None = None) -> schemas.HeldChoice:
        """What somebody holds."""
        return await self._run(calls.requirement(user))

    async def remove_requirement(self, user: User | None = None) -> schemas.LeaveResult:
        """Leave: from the next slot on this person is not counted."""
        return await self._run(calls.remove_requirement(user))

    async def erase(self, user: User | None = None) -> schemas.LeaveResult:
        """Leave, and replace the id by a digest for as long as the earlier choice protects."""
        return await self._run(calls.erase(user))

    async def export(self, user: User | None = None) -> dict[str, Any]:
        """All that is held about somebody: current and earlier choices, queued changes."""
        return await self._run(calls.export(user))

    async def import_requirements(
        self,
        file: bytes,
        *,
        kind: str = "text/csv",
        replace: bool = False,
        allow_removals: bool = False,
        dry_run: bool = False,
    ) -> schemas.ImportResult:
        """Many choices at once: a requirements file as text/csv or application/x-ndjson.

        It adds and changes; with `replace`, who is missing in it leaves.
        """
        return await self._run(
            calls.import_requirements(file, kind, replace=replace, allow_removals=allow_removals, dry_run=dry_run)
        )

    async def link(self, user: User) -> schemas.PersonalLink:
        """A personal link to /choose. Hand it to that person alone."""
        return await self._run(calls.link(user))

    async def revoke_links(self, user: User) -> None:
        """End all personal links of somebody."""
        await self._run(calls.revoke_links(user))

    async def end_link(self) -> None:
        """End the personal link that this client uses."""
        await self._run(calls.end_link())

    async def _run(self, call: Call[Reply]) -> Reply:
        """Make a call, again and again if it may be, and read the answer."""
        patience = Patience(self._patience_s, self._now)
        while True:
            failure: WeventError | None = None
            headers = None
            try:
                async with aclosing(
                    await self._transport.handle_async_request(self._address.request(call))
                ) as response:
                    body, headers = await response.aread(), response.headers
            except httpx.RequestError as error:
                reason = reason_of(error)
                if is_hopeless(error) or (was_sent(error) and not call.repeatable):
                    raise patience.over(reason) from None
            else:
                if response.is_success:
                    return call.read(body)
                failure, reason = refused(response.status_code, body), f"status {response.status_code}"
                if response.status_code not in (LATER if call.repeatable else UNTOUCHED):
                    raise failure
            await self._sleep(patience.pause(reason, headers, failure))
