"""The client for blocking programs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
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
    import httpx

if TYPE_CHECKING:
    from wevent.outputs.release_table import ReleaseTable


class Client:
    """Talks to `wevent serve`.

    A call that may be repeated is made again when the service is away or says to come back, within `patience_s`; all but
    `link` may. Where `user` is None, the person of the personal link is meant that `token` is.

    Args:
        url: where the service is, such as https://stats.example.
        token: as `wevent token create` printed it, or of a personal link; None for what is public.
        timeout_s: how long one answer may take.
        patience_s: how long all attempts of a call together may take.
        plain_http: send the token unencrypted to another machine.
        transport: of httpx, in place of its own: for proxies, certificates, tests.

    Raises:
        InvalidOption: if httpx is missing, or for an address or a token that is none.
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
        """Let go of all connections."""
        self._transport.close()

    def about(self) -> schemas.StreamInfo:
        """What is public about the stream: its clock, cells and mechanism, and how far it is."""
        return self._run(calls.about())

    def levels(self) -> schemas.LevelTable:
        """What people may choose, what each level means, and how many hold it."""
        return self._run(calls.levels())

    def ledger(self) -> schemas.BudgetTable:
        """What every class has left, as of the last released slot."""
        return self._run(calls.ledger())

    def statement(self) -> dict[str, Any]:
        """The privacy statement."""
        return self._run(calls.statement())

    def overview(self) -> dict[str, Any]:
        """How the service is, for administrators."""
        return self._run(calls.overview())

    def wait_until_ready(self) -> None:
        """Return when the service runs and keeps up with its clock.

        Raises:
            WeventError: if it does not within the patience of this client.
        """
        self._run(calls.ready())

    def releases(
        self,
        first: Place | None = None,
        last: Place | None = None,
        *,
        cells: Sequence[str] | None = None,
        page: int = 1000,
    ) -> Iterator[schemas.ReleasedSlot]:
        """Releases from one slot (or time) to another, in order; of neither, the last 500. Fetched `page` at a time."""
        start: Place | None = first
        while True:
            found = self._run(calls.releases(start, last, cells, page))
            yield from found.releases
            if found.next is None:
                return
            start = found.next

    def release_table(
        self, first: Place | None = None, last: Place | None = None, *, cells: Sequence[str] | None = None
    ) -> ReleaseTable:
        """The same as a table with a row per slot and cell, for pandas, Polars, Arrow, or as plain columns."""
        from wevent.client.tabulating import release_table  # numpy and the journal come with it

        return release_table(self.releases(first, last, cells=cells))

    def stream(self, after: int | None = None, *, patience_s: float | None = 300.0) -> Iterator[schemas.ReleasedSlot]:
        """Releases as they come, without end, each once and in order, also across breaks of the connection.

        Args:
            after: the last slot that you have; None: what is released from now on.
            patience_s: how long the service may be away; None: for ever.

        Raises:
            WeventError: if the service refuses, or is away for longer.
        """
        follower = Follower(self.about().committed if after is None else after, patience_s, self._now)
        while True:
            reason, headers = "a stream that ended", None
            try:
                request = self._address.request(follower.call(), silence_s=STREAM_SILENCE_S)
                with closing(self._transport.handle_request(request)) as response:
                    headers = response.headers
                    if response.status_code == 200:
                        for piece in response.iter_bytes():
                            yield from follower.feed(piece)
                    elif response.status_code not in LATER:
                        raise refused(response.status_code, response.read())
                    else:
                        reason = f"status {response.status_code}"
            except httpx.RequestError as error:
                reason = reason_of(error)
                if is_hopeless(error):
                    raise follower.patience.over(reason) from None
            self._sleep(follower.patience.pause(reason, headers))

    def send(self, events: Events, *, batch_id: str | None = None) -> schemas.BatchResult:
        """Send one batch; returns when every accepted event is durable.

        A batch that the service refuses for its size is sent in parts. An event that cannot be sent is one rejected record.

        Args:
            events: objects with a time, a user and a cell, or lines of NDJSON as bytes.
            batch_id: the same in every attempt, also in a later run of your program; None: a digest of the events. The
                same id with other events is refused.
        """
        return self._send(event_lines(events), batch_id)

    def _send(self, lines: bytes, batch_id: str | None) -> schemas.BatchResult:
        try:
            return self._run(calls.send(lines, batch_id))
        except ServiceRefused as refusal:
            parts = calls.split(refusal, lines, batch_id)
        return calls.added_up([self._send(*part) for part in parts])

    def set_requirement(
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
        return self._run(calls.set_requirement(user, wish, dry_run))

    def requirement(self, user: User | None = None) -> schemas.HeldChoice:
        """What somebody holds."""
        return self._run(calls.requirement(user))

    def remove_requirement(self, user: User | None = None) -> schemas.LeaveResult:
        """Leave: from the next slot on this person is not counted."""
        return self._run(calls.remove_requirement(user))

    def erase(self, user: User | None = None) -> schemas.LeaveResult:
        """Leave, and replace the id by a digest for as long as the earlier choice protects."""
        return self._run(calls.erase(user))

    def export(self, user: User | None = None) -> dict[str, Any]:
        """All that is held about somebody: current and earlier choices, queued changes."""
        return self._run(calls.export(user))

    def import_requirements(
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
        return self._run(
            calls.import_requirements(file, kind, replace=replace, allow_removals=allow_removals, dry_run=dry_run)
        )

    def link(self, user: User) -> schemas.PersonalLink:
        """A personal link to /choose. Hand it to that person alone."""
        return self._run(calls.link(user))

    def revoke_links(self, user: User) -> None:
        """End all personal links of somebody."""
        self._run(calls.revoke_links(user))

    def end_link(self) -> None:
        """End the personal link that this client uses."""
        self._run(calls.end_link())

    def _run(self, call: Call[Reply]) -> Reply:
        """Make a call, again and again if it may be, and read the answer."""
        patience = Patience(self._patience_s, self._now)
        while True:
            failure: WeventError | None = None
            headers = None
            try:
                with closing(self._transport.handle_request(self._address.request(call))) as response:
                    body, headers = response.read(), response.headers
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
            self._sleep(patience.pause(reason, headers, failure))
