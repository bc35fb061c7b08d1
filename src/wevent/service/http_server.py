"""Connections with deadlines for headers, bodies and readers, which uvicorn does not have."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from wevent.service.app import Middleware, strict_headers
from wevent.service.problems import RETRY_AFTER, problem

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
