"""Connections that nobody can keep busy for nothing: headers in time and bounded, bodies and readers that move on."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from wevent.service.middleware import Middleware, strict_headers
from wevent.service.problems import RETRY_AFTER, problem

HEADER_S = 10.0
"""The headers of a request have to arrive in so many seconds, and the first byte of a new connection too."""

STALLED_S = 30.0
"""Who takes nothing of what is sent to them for so many seconds is cut off."""

DRAIN_S = 5.0
"""What is left of a body after its request was answered has so many seconds to arrive."""

SEND_BUFFER = 256 << 10
"""So many bytes wait in the system for a reader that is slow."""

MOST_HEADER_BYTES = 64 << 10
MOST_HEADERS = 100
MOST_REFUSED = 50
"""So many connections beyond the limit are told that there are too many; others are dropped."""

_SENTENCES = {
    400: "The request is not valid HTTP/1.1. Correct it.",
    408: f"The headers of the request did not arrive within {HEADER_S:g} seconds. Send them faster.",
    431: f"The request has more than {MOST_HEADERS} headers or {MOST_HEADER_BYTES >> 10} KiB of them. Send fewer.",
}
_FULL = Middleware(
    problem(
        503,
        "The service has too many connections. Try again later.",
        {**RETRY_AFTER, "Connection": "close"},
    )
)


class BoundedProtocol(HttpToolsProtocol):
    """An HTTP connection; as uvicorn's own, which waits for headers, bodies and readers without end."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._limit, self.limit_concurrency = (
            self.limit_concurrency,
            None,
        )  # uvicorn's own answer is no problem document
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._in_headers = False
        self._in_body = False
        self._header_bytes = 0
        self._between_bytes = 0  # since the last part of a body: heads of its chunks, and headers behind it
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody has connected: their request begins soon."""
        if self._limit is not None and len(self.connections) >= self._limit + MOST_REFUSED:
            transport.abort()  # others of this process need files, too
            return
        super().connection_made(transport)
        opened = transport.get_extra_info("socket")
        if opened is not None and opened.family in (socket.AF_INET, socket.AF_INET6):
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)  # the system's own grows to megabytes
        self._within(HEADER_S)

    def connection_lost(self, exc: Exception | None) -> None:
        """They are gone."""
        if self.transport is None:  # they were never let in
            return
        self._free()
        self._moves()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
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
        if around > MOST_HEADER_BYTES:
            self._refuse(431)
        elif self._is_idle() and self._deadline is None and not self.transport.is_closing():
            self._within(HEADER_S)

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_headers, self._header_bytes = True, 0
        if self._deadline is None:
            self._within(HEADER_S)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; what comes after a body is nobody's."""
        if self._in_headers and len(self.headers) <= MOST_HEADERS:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """All headers are there: the request can be answered."""
        self._in_headers, self._in_body, self._between_bytes = False, True, 0
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > MOST_HEADER_BYTES or len(self.headers) > MOST_HEADERS:
            self._refuse(431)
            return
        if sum(name == b"host" for name, _ in self.headers) > 1:
            self._refuse(400)
            return
        self._free()
        is_full = self._limit is not None and max(len(self.connections), len(self.tasks)) >= self._limit
        self.app = _FULL if is_full else self.config.loaded_app
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._between_bytes = 0
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The whole body is there."""
        self._in_body = False
        if not self._refused:
            super().on_message_complete()
            if self.cycle.response_complete:
                self._free()

    def on_response_complete(self) -> None:
        """The request is answered, perhaps before all of it was there."""
        super().on_response_complete()
        if self._in_body:
            self._within(DRAIN_S)

    def pause_writing(self) -> None:
        """They do not take what is sent."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(STALLED_S, self._cut_off)

    def resume_writing(self) -> None:
        """They do again."""
        self._moves()
        super().resume_writing()

    def _is_idle(self) -> bool:
        return self.cycle is None or (self.cycle.response_complete and not self._in_body)

    def _within(self, seconds: float) -> None:
        self._free()
        self._deadline = self.loop.call_later(seconds, self._cut_off)

    def _free(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _moves(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _cut_off(self) -> None:
        self._deadline = self._stalled = None
        if self._in_headers and not self.transport.is_closing():
            self._refuse(408)
            self._deadline = self.loop.call_later(DRAIN_S, self.transport.abort)  # if it is not taken either
        else:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self._refuse(400)

    def _refuse(self, status: int) -> None:
        """Answer instead of the application unless it has begun to, and close."""
        self._refused = True
        self._free()
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
