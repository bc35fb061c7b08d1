"""Connections that nobody can keep busy for nothing: headers in time and bounded, bodies and readers that move on."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

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


class BoundedProtocol(HttpToolsProtocol):
    """An HTTP connection; as uvicorn's own, which waits for headers, bodies and readers without end."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._in_headers = False
        self._in_body = False
        self._header_bytes = 0
        self._between_bytes = 0  # since the last part of a body: heads of its chunks, and headers behind it
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody has connected: their request begins soon."""
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency + MOST_REFUSED:
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
        self._free()
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
        self.transport.abort()

    def _refuse(self, status: int) -> None:
        """Answer without asking the application, and close."""
        self._refused = True
        self._free()
        if self._is_idle():
            self.transport.write(STATUS_LINE[status] + b"content-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()
