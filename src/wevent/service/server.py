"""The process of the service: publisher thread, HTTP server in the main thread, shutdown of both.

Connections have deadlines for headers, bodies and readers, which uvicorn does not have.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import uvicorn
import uvloop
from anyio import to_thread
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from wevent.errors import InvalidSettings, StorageFailed
from wevent.journal import PostgresAddress
from wevent.publishing.loop import due_offset_us
from wevent.publishing.session import RunCallbacks, RunReport
from wevent.publishing.shutdown import ForcedShutdown
from wevent.service.app import Middleware, make_app, strict_headers
from wevent.service.context import ServiceContext
from wevent.service.problems import RETRY_AFTER, problem
from wevent.service.publishing_thread import PublisherState, PublishingThread, ReplicaThread
from wevent.settings import RunOptions, ServiceSettings, Settings
from wevent.settings.values import ListenAddress

GRACEFUL_S = 10  # seconds after a signal for answers that are on their way
MAX_CONNECTIONS = 2000
_OWN_FILES = 256  # that the process needs beside its connections
_BACKLOG = 512
_RETRY_S = 0.5  # between attempts to read a journal that could not be read at the start
HEADER_S = 10.0  # seconds for the headers of a request, and for the first byte of a new connection
STALLED_S = 30.0  # seconds after which a reader that takes nothing is cut off
DRAIN_S = 5.0  # seconds for the rest of a body whose request is answered
SEND_BUFFER = 256 << 10  # bytes that wait in the system for a slow reader
MAX_HEADER_BYTES = 64 << 10
MAX_HEADERS = 100
MAX_REFUSED = 50  # connections beyond the limit that get an answer; further ones are dropped
_SENTENCES = {
    400: "The request is not valid HTTP/1.1. Correct it.",
    408: f"The headers of the request did not arrive within {HEADER_S:g} seconds. Send them faster.",
    431: f"The request has more than {MAX_HEADERS} headers or {MAX_HEADER_BYTES >> 10} KiB of them. Send fewer.",
}
_FULL = Middleware(
    problem(503, "The service has too many connections. Try again later.", {**RETRY_AFTER, "Connection": "close"})
)
_log = logging.getLogger("wevent.service")


def serve(
    settings: Settings,
    service: ServiceSettings,
    options: RunOptions,
    watch: RunCallbacks,
    listening: Callable[[str], None],
) -> RunReport:
    """Serve until SIGINT or SIGTERM; in the main thread.

    Other arguments and errors as of `wevent.publishing.session.run`.

    Args:
        service: settings of the service.
        listening: called with the address, once the service listens there.

    Raises:
        InvalidSettings: also for an address where nothing can listen.
    """
    assert settings.journal is not None, "a service has a journal"
    bound = _bind(service.listen)
    try:
        host, port = bound.getsockname()[:2]
        service = replace(
            service, listen=ListenAddress(host if service.listen.port == 0 else service.listen.host, port)
        )
        state = PublisherState(settings.grace_us, due_offset_us(settings))
        context = ServiceContext(service, settings.journal, state, settings.requirements_columns)
        with ForcedShutdown(context.journal) as shutdown, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            process = _Process(context, watch, listening, bound, shutdown)
            return runner.run(process.run(settings, options))
    finally:
        bound.close()


class _Server(uvicorn.Server):
    """A server that leaves signals to the process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Process:
    """The main thread of the service."""

    def __init__(
        self,
        context: ServiceContext,
        watch: RunCallbacks,
        listening: Callable[[str], None],
        bound: socket.socket,
        shutdown: ForcedShutdown,
    ) -> None:
        self._context, self._watch, self._listening, self._bound = context, watch, listening, bound
        self._shutdown = shutdown
        self._begun, self._stop = asyncio.Event(), asyncio.Event()
        self._ready, self._done = asyncio.Event(), asyncio.Event()  # to answer calls; to stop, or with the last slot

    async def run(self, settings: Settings, options: RunOptions) -> RunReport:
        """Start the publisher, serve while it runs or releases are read, end both."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._receive)

        def setting(*events: asyncio.Event) -> Callable[..., Any]:
            return lambda *_: [loop.call_soon_threadsafe(event.set) for event in events]

        feed, state = self._context.feed, self._context.state
        begun, over, waits = setting(self._begun, self._ready), setting(self._ready, self._done), setting(self._ready)
        watch = replace(self._watch, begun=begun, progress=lambda slot, last: feed.wake(slot))
        kind = ReplicaThread if isinstance(self._context.journal, PostgresAddress) else PublishingThread
        publisher = kind(settings, options, state, watch=watch, over=over, waits=waits)
        publisher.start()
        try:
            await self._ready.wait()
            if publisher.error is None and not self._stop.is_set():
                await self._serve(publisher)
        finally:
            publisher.stop()
            await to_thread.run_sync(publisher.join)
        if publisher.error is not None:
            raise publisher.error
        assert publisher.report is not None, "a publisher that ended without an error has a report"
        return publisher.report

    async def _serve(self, publisher: PublishingThread) -> None:
        """Answer until a signal comes, or the publisher or one of the two tasks here has failed."""
        feed = self._context.feed
        if self._begun.is_set():
            await feed.open()
        following = asyncio.create_task(self._follow())
        server = _Server(_config(self._context))
        serving = asyncio.create_task(server.serve(sockets=[self._bound]))
        for task in (following, serving):  # without one of them it only looks like a service
            task.add_done_callback(lambda _: self._end())
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if server.started:
            self._listening(f"http://{self._context.settings.listen}")
        await self._done.wait()
        if not self._stop.is_set() and publisher.error is None:
            self._watch.told("The last slot is published; releases can still be read.")
            await self._stop.wait()
        feed.close()
        server.should_exit = True
        await serving
        if not feed.is_open:  # the journal could not be read till now
            following.cancel()
        with suppress(asyncio.CancelledError):
            await following

    async def _follow(self) -> None:
        """Hand out releases; not before the journal can be read."""
        feed = self._context.feed
        while not feed.is_open:
            await self._begun.wait()
            try:
                await feed.open()
            except StorageFailed:
                await asyncio.sleep(_RETRY_S)
        await feed.follow()

    def _receive(self) -> None:
        if self._stop.is_set():
            _log.warning("The service is already stopping.")
        self._end()
        self._shutdown.request()

    def _end(self) -> None:
        for event in (self._stop, self._ready, self._done):
            event.set()


def _config(context: ServiceContext) -> uvicorn.Config:
    # It names addresses, and says less than the service's own lines.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    # A call that was ended with the service after `GRACEFUL_S` is no news.
    logging.getLogger("uvicorn.error").addFilter(
        lambda record: not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))
    )
    return uvicorn.Config(
        make_app(context),
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        loop="none",
        log_config=None,
        access_log=False,
        server_header=False,
        forwarded_allow_ips=["127.0.0.1", "::1"],  # otherwise the environment decides
        limit_concurrency=_connections(),
        backlog=_BACKLOG,
        timeout_graceful_shutdown=GRACEFUL_S,
    )


def _connections() -> int:
    """Return the limit of connections; the system limits open files, and the process needs some of its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + MAX_REFUSED + _OWN_FILES
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(16, min(MAX_CONNECTIONS, soft - MAX_REFUSED - _OWN_FILES))


def _bind(place: ListenAddress) -> socket.socket:
    """Return a bound socket that does not listen yet; refuse an address where nothing can."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            place.host, place.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except BaseException:
            bound.close()
            raise
    except OSError as error:
        why = (error.strerror or "no such address").lower()
        fix = "Give another address or port (--listen HOST:PORT)."
        raise InvalidSettings(f"The service cannot listen at {place}: {why}.", fix, key="service.listen") from None
    bound.setblocking(False)
    return bound


class BoundedProtocol(HttpToolsProtocol):
    """An HTTP connection of uvicorn, with deadlines and limits."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        # the answer of uvicorn is no problem document
        self._limit, self.limit_concurrency = self.limit_concurrency, None
        self._timers: dict[str, asyncio.TimerHandle] = {}  # "request" and "reader"
        self._in_headers = self._in_body = self._refused = False
        self._header_bytes = 0
        self._between_bytes = 0  # since the last part of a body: heads of its chunks, and headers behind it

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if self._limit is not None and len(self.connections) >= self._limit + MAX_REFUSED:
            transport.abort()  # others of this process need files, too
            return
        super().connection_made(transport)
        opened = transport.get_extra_info("socket")
        if opened is not None and opened.family in (socket.AF_INET, socket.AF_INET6):
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)  # the system's own grows to megabytes
        self._start("request", HEADER_S)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.transport is not None:  # otherwise it was dropped
            self._clear("request")
            self._clear("reader")
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        was_in_body = self._in_body
        self._between_bytes += len(data) if was_in_body else 0
        super().data_received(data)
        if self._refused:
            return
        if self._in_headers and not was_in_body:
            self._header_bytes += len(data)
        around = self._header_bytes if self._in_headers else self._between_bytes if self._in_body else 0
        if around > MAX_HEADER_BYTES:
            self._refuse(431)
        elif self._is_idle() and "request" not in self._timers and not self.transport.is_closing():
            self._start("request", HEADER_S)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_headers, self._header_bytes = True, 0
        if "request" not in self._timers:
            self._start("request", HEADER_S)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_headers and len(self.headers) <= MAX_HEADERS:  # headers behind a body have no effect
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_headers, self._in_body, self._between_bytes = False, True, 0
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > MAX_HEADER_BYTES or len(self.headers) > MAX_HEADERS:
            self._refuse(431)
            return
        if sum(name == b"host" for name, _ in self.headers) > 1:
            self._refuse(400)
            return
        self._clear("request")
        is_full = self._limit is not None and max(len(self.connections), len(self.tasks)) >= self._limit
        self.app = _FULL if is_full else self.config.loaded_app
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._between_bytes = 0
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body = False
        if not self._refused:
            super().on_message_complete()
            if self.cycle.response_complete:
                self._clear("request")

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._in_body:  # the answer came before the end of the body
            self._start("request", DRAIN_S)

    def pause_writing(self) -> None:
        super().pause_writing()
        if "reader" not in self._timers:
            self._start("reader", STALLED_S)

    def resume_writing(self) -> None:
        self._clear("reader")
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400)

    def _is_idle(self) -> bool:
        return self.cycle is None or (self.cycle.response_complete and not self._in_body)

    def _start(self, timer: str, seconds: float) -> None:
        self._clear(timer)
        self._timers[timer] = self.loop.call_later(seconds, self._cut_off)

    def _clear(self, timer: str) -> None:
        if timer in self._timers:
            self._timers.pop(timer).cancel()

    def _cut_off(self) -> None:
        self._timers.clear()
        if self._in_headers and not self.transport.is_closing():
            self._refuse(408)
            self._timers["request"] = self.loop.call_later(DRAIN_S, self.transport.abort)  # if it is not taken either
        else:
            self.transport.abort()

    def _refuse(self, status: int) -> None:
        """Answer instead of the application unless it has begun to, and close."""
        self._refused = True
        self._clear("request")
        waits = self.cycle is not None and not self.cycle.response_started and not self.pipeline
        if waits:
            self.cycle.disconnected = True
        if waits or self._is_idle():
            answer = problem(status, _SENTENCES[status])
            headers = [*self.server_state.default_headers, *answer.raw_headers, (b"connection", b"close")]
            headers += strict_headers({"headers": answer.raw_headers})
            lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
            body = b"" if self.parser.get_method() == b"HEAD" else bytes(answer.body)
            self.transport.write(STATUS_LINE[status] + lines + b"\r\n" + body)
        self.transport.close()
