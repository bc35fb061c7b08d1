"""The process of the service: publisher thread, HTTP server in the main thread, shutdown of both."""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
import uvloop
from anyio import to_thread

from wevent.errors import InvalidSettings, StorageFailed
from wevent.journal import PostgresPlace
from wevent.publishing.loop import due_offset_us
from wevent.publishing.session import RunReport, Watch
from wevent.publishing.shutdown import ForcedShutdown
from wevent.service.app import make_app
from wevent.service.context import ServiceContext
from wevent.service.http_server import MAX_REFUSED, BoundedProtocol
from wevent.service.publishing_thread import PublisherState, PublishingThread, ReplicaThread
from wevent.settings import RunOptions, ServiceSettings, Settings
from wevent.settings.values import ListenAddress

GRACEFUL_S = 10  # seconds after a signal for answers that are on their way
MAX_CONNECTIONS = 2000
_OWN_FILES = 256  # that the process needs beside its connections
_BACKLOG = 512
_RETRY_S = 0.5  # between attempts to read a journal that could not be read at the start
_log = logging.getLogger("wevent.service")


def serve(
    settings: Settings,
    service: ServiceSettings,
    options: RunOptions,
    read: Iterable[tuple[str, Path]],
    watch: Watch,
    listening: Callable[[str], None],
) -> RunReport:
    """Serve until SIGINT or SIGTERM; in the main thread.

    Args:
        settings, options, read: as of `wevent.publishing.session.run`.
        service: settings of the service.
        watch: callbacks for the operator.
        listening: called with the address, once the service listens there.

    Raises:
        WeventError: as of `wevent.publishing.session.run`, and for an address where nothing can listen.
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
            return runner.run(process.run(settings, options, list(read)))
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
        watch: Watch,
        listening: Callable[[str], None],
        bound: socket.socket,
        shutdown: ForcedShutdown,
    ) -> None:
        self._context, self._watch, self._listening, self._bound = context, watch, listening, bound
        self._shutdown = shutdown
        self._begun, self._stop = asyncio.Event(), asyncio.Event()
        self._ready, self._done = asyncio.Event(), asyncio.Event()  # to answer calls; to stop, or with the last slot

    async def run(self, settings: Settings, options: RunOptions, read: list[tuple[str, Path]]) -> RunReport:
        """Start the publisher, serve while it runs or releases are read, end both."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._receive)

        def setting(*events: asyncio.Event) -> Callable[..., Any]:
            return lambda *_: [loop.call_soon_threadsafe(event.set) for event in events]

        feed, state = self._context.feed, self._context.state
        begun, over, waits = setting(self._begun, self._ready), setting(self._ready, self._done), setting(self._ready)
        watch = replace(self._watch, begun=begun, progress=lambda slot, last: feed.wake(slot))
        kind = ReplicaThread if isinstance(self._context.journal, PostgresPlace) else PublishingThread
        publisher = kind(settings, options, read, state, watch=watch, over=over, waits=waits)
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
    logging.getLogger(
        "uvicorn.error"
    ).addFilter(  # a call that was ended with the service after `GRACEFUL_S` is no news
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
