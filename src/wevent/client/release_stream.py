"""A stream of releases across lost connections, without input or output (HTML standard, "event stream interpretation")."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import NoneType
from typing import NamedTuple

from wevent.client.calls import Call
from wevent.client.transport import RetryPolicy, decode, unreadable
from wevent.schemas import ReleasedSlot

_LONGEST = 64 * 1024 * 1024  # a release of 2²¹ cells fits


class Follower:
    """Releases after a slot, each once and in order.

    Args:
        after: last slot that the caller has.
        patience_s: time to connect again; None: without end.
        now: a clock that never goes back.
    """

    def __init__(self, after: int, patience_s: float | None, now: Callable[[], float]) -> None:
        self.retry = RetryPolicy(patience_s, now)
        self._after = after
        self._reader = EventStreamReader()

    def call(self) -> Call[None]:
        """Return the call that connects and continues after the last release."""
        self._reader = EventStreamReader()
        headers = {"accept": "text/event-stream", "accept-encoding": "identity", "last-event-id": str(self._after)}
        return Call("GET", "/v1/releases/stream", NoneType, headers=headers)

    def feed(self, chunk: bytes) -> Iterator[ReleasedSlot]:
        """Yield the releases that this chunk of the answer completes."""
        for event in self._reader.feed(chunk):
            if event.name != "release":
                continue
            release = decode(event.data, ReleasedSlot, "a release")
            if release.slot > self._after:
                self._after = release.slot
                self.retry.reset()
                yield release
        if self._reader.retry_s is not None:
            self.retry.set_least(self._reader.retry_s)


class ServerSentEvent(NamedTuple):
    """One event: its name, its data, and the id to resume after."""

    name: str
    data: str
    id: str


class EventStreamReader:
    r"""Server-sent events from bytes in chunks of any size.

    >>> reader = EventStreamReader()
    >>> [event.id for chunk in (b": hello", b"\n\nid: 7\ndata: {}", b"\n\n") for event in reader.feed(chunk)]
    ['7']
    """

    def __init__(self) -> None:
        self.retry_s: float | None = None
        self._rest = b""
        self._after_return = False
        self._name, self._data, self._id = "", list[str](), ""
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        """Yield the events that this chunk completes.

        Raises:
            ServiceRefused: for an event without end.
        """
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_return = chunk.endswith(b"\r") if chunk else self._after_return
        self._rest += chunk
        if b"\n" in chunk or b"\r" in chunk:
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
