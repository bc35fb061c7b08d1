"""Server-sent events out of bytes, as they come (the HTML standard's "event stream interpretation")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wevent.client.failures import unreadable

_LONGEST = 64 * 1024 * 1024  # a release of 2²¹ cells fits


class ServerSentEvent(NamedTuple):
    """One event: its name, its data, and the id to resume after."""

    name: str
    data: str
    id: str


class EventStreamReader:
    r"""Takes bytes in any pieces and gives whole events.

    >>> reader = EventStreamReader()
    >>> [event.id for piece in (b": hello", b"\n\nid: 7\ndata: {}", b"\n\n") for event in reader.feed(piece)]
    ['7']
    """

    def __init__(self) -> None:
        self.retry_s: float | None = None
        self._rest = b""
        self._after_return = False
        self._name, self._data, self._id = "", list[str](), ""
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[ServerSentEvent]:
        """The events that this piece completes.

        Raises:
            ServiceRefused: for an event without end.
        """
        if self._after_return and piece.startswith(b"\n"):
            piece = piece[1:]
        self._after_return = piece.endswith(b"\r") if piece else self._after_return
        self._rest += piece
        if b"\n" in piece or b"\r" in piece:
            *lines, self._rest = self._rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
            for line in lines:
                event = self._line(line)
                if event is not None:
                    yield event
        if len(self._rest) + self._size > _LONGEST:
            raise unreadable("server-sent events of releases")

    def _line(self, line: bytes) -> ServerSentEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.decode("utf-8", errors="replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(line)
        elif name == "event":
            self._name = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isdecimal() and value.isascii():
            self.retry_s = int(value[:9]) / 1000.0
        return None

    def _dispatch(self) -> ServerSentEvent | None:
        data, name = self._data, self._name
        self._data, self._name, self._size = [], "", 0
        return ServerSentEvent(name or "message", "\n".join(data), self._id) if data else None
