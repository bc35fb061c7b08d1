"""The client for blocking programs.

Generated from `async_client.py` by `python -m tests.support.sync_client`. Edit that file.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
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
    import httpx

if TYPE_CHECKING:
    from wevent.outputs.release_table import ReleaseTable


class Client:
    """Client of `wevent serve` for blocking programs.

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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._address = Address(url, token, timeout_s, plain_http=plain_http)
        self._transport = transport or httpx.HTTPTransport(limits=httpx.Limits(keepalive_expiry=KEPT_S))
        self._patience_s = patience_s
        self._sleep, self._now = time.sleep, time.monotonic

    def __repr__(self) -> str:
        return f"<Client of {self._address.base}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def about(self) -> StreamInfo:
        """Return public facts about the stream: clock, cells, mechanism, last released slot."""
        return self._run(Call("GET", "/v1/about", StreamInfo))

    def levels(self) -> LevelTable:
        """Return the levels that users may choose."""
        return self._run(Call("GET", "/v1/levels", LevelTable))

    def ledger(self) -> BudgetTable:
        """Return the budget of every class as of the last released slot."""
        return self._run(Call("GET", "/v1/ledger", BudgetTable))

    def statement(self) -> dict[str, Any]:
        """Return the privacy statement."""
        return self._run(Call("GET", "/v1/statement", dict[str, Any]))

    def overview(self) -> dict[str, Any]:
        """Return the status of the service, for administrators."""
        return self._run(Call("GET", "/v1/admin/overview", dict[str, Any]))

    def wait_until_ready(self) -> None:
        """Return when the service runs and keeps up with its clock.

        Raises:
            WeventError: if it does not within `patience_s`.
        """
        self._run(Call("GET", "/readyz", NoneType))

    def releases(
        self,
        first: Place | None = None,
        last: Place | None = None,
        *,
        cells: Sequence[str] | None = None,
        page: int = 1000,
    ) -> Iterator[ReleasedSlot]:
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
            found = self._run(Call("GET", "/v1/releases", ReleasePage, params))
            for release in found.releases:
                yield release
            if found.next is None:
                return
            start = found.next

    def release_table(
        self, first: Place | None = None, last: Place | None = None, *, cells: Sequence[str] | None = None
    ) -> ReleaseTable:
        """Return the same as a table with a row per slot and cell, for pandas, Polars, Arrow, or as plain columns."""
        from wevent.outputs.release_table import tabulate_releases  # numpy and the journal come with it

        return tabulate_releases([release for release in self.releases(first, last, cells=cells)])

    def stream(
        self,
        after: int | None = None,
        *,
        patience_s: float | None = 300.0,
    ) -> Iterator[ReleasedSlot]:
        """Yield releases as they come, without end, each once and in order, also across lost connections.

        Args:
            after: last slot that you have; None: the last released one.
            patience_s: longest absence of the service; None: any.

        Raises:
            WeventError: if the service refuses, or is away for longer.
        """
        if after is None:
            info = self.about()
            after = info.committed
        follower = Follower(after, patience_s, self._now)
        while True:
            reason, headers = "a stream that ended", None
            try:
                request = self._address.request(follower.call(), silence_s=STREAM_SILENCE_S)
                with closing(self._transport.handle_request(request)) as response:
                    headers = response.headers
                    if response.status_code == 200:
                        for chunk in response.iter_bytes():
                            for release in follower.feed(chunk):
                                yield release
                    elif response.status_code not in LATER:
                        raise refused(response.status_code, response.read())
                    else:
                        reason = f"status {response.status_code}"
            except httpx.RequestError as error:
                reason = describe(error)
                if is_hopeless(error):
                    raise unreachable(reason) from None
            self._sleep(follower.retry.pause(reason, headers))

    def send(self, events: Events, *, batch_id: str | None = None) -> BatchResult:
        """Send one batch; returns when every accepted event is durable.

        A batch that the service refuses for its size is sent in parts. An event that cannot be sent is one rejected record.

        Args:
            events: objects with a time, a user and a cell, or lines of NDJSON as bytes.
            batch_id: the same in every attempt, also in a later run of your program; None: a digest of the events. The
                same id with other events is refused.
        """
        return self._send(calls.event_lines(events), batch_id)

    def _send(self, lines: bytes, batch_id: str | None) -> BatchResult:
        try:
            return self._run(calls.send(lines, batch_id))
        except ServiceRefused as refusal:
            parts = calls.split(refusal, lines, batch_id)
        return calls.add_up([self._send(*part) for part in parts])

    def set_requirement(
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
        return self._run(Call("PUT", path, ChoiceResult, params, {"content-type": "application/json"}, body))

    def requirement(self, user: User | None = None) -> HeldChoice:
        """Return the requirement that a user holds."""
        return self._run(Call("GET", user_path(user, "/requirement"), HeldChoice))

    def remove_requirement(self, user: User | None = None) -> LeaveResult:
        """Let a user leave: from the next slot on the user is not counted."""
        return self._run(Call("DELETE", user_path(user, "/requirement"), LeaveResult))

    def erase(self, user: User | None = None) -> LeaveResult:
        """Let a user leave, and replace the id by a digest for as long as the earlier choice protects."""
        return self._run(Call("DELETE", user_path(user), LeaveResult))

    def export(self, user: User | None = None) -> dict[str, Any]:
        """Return all stored data about a user: current and earlier choices, queued changes."""
        return self._run(Call("GET", user_path(user), dict[str, Any]))

    def import_requirements(
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
        return self._run(call)

    def link(self, user: User) -> PersonalLink:
        """Make a personal link to /choose. Hand it to that user alone."""
        return self._run(Call("POST", user_path(user, "/link"), PersonalLink, repeatable=False))

    def revoke_links(self, user: User) -> None:
        """End all personal links of a user."""
        self._run(Call("DELETE", user_path(user, "/links"), NoneType))

    def end_link(self) -> None:
        """End the personal link that this client uses."""
        self._run(Call("DELETE", "/v1/me/link", NoneType))

    def _run(self, call: Call[Reply]) -> Reply:
        """Make a call, repeat it if allowed, and read the reply."""
        retry = RetryPolicy(self._patience_s, self._now)
        while True:
            failure: WeventError | None = None
            headers = None
            try:
                request = self._address.request(call)
                with closing(self._transport.handle_request(request)) as response:
                    body, headers = response.read(), response.headers
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
            self._sleep(retry.pause(reason, headers, failure))
