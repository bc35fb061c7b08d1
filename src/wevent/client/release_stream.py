"""Server-sent events of releases, without input or output (HTML standard, "event stream interpretation")."""

from __future__ import annotations

from collections.abc import Iterator

from wevent.client.transport import decode, unreadable
from wevent.schemas import ReleasedSlot

_LONGEST = 64 * 1024 * 1024  # a release of 2²¹ cells fits


class EventStreamReader:
    r"""Events, as name and data, from bytes in chunks of any size.

    >>> reader = EventStreamReader()
    >>> [event for chunk in (b": hello", b"\n\nid: 7\ndata: {}", b"\n\n") for event in reader.feed(chunk)]
    [('message', '{}')]

    Attributes:
        retry_s: pause before the next connection that the service asks for.
    """

    def __init__(self) -> None:
        self.retry_s: float | None = None
        self._rest = b""
        self._after_return = False
        self._name, self._data, self._size = "", list[str](), 0

    def releases(self, chunk: bytes) -> Iterator[ReleasedSlot]:
        """Yield the releases that this chunk completes; other events are left out.

        Raises:
            ServiceRefused: for a release that cannot be read.
        """
        for name, data in self.feed(chunk):
            if name == "release":
                yield decode(data, ReleasedSlot, "a release")

    def feed(self, chunk: bytes) -> Iterator[tuple[str, str]]:
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

    def _line(self, line: bytes) -> tuple[str, str] | None:
        if not line:
            return self._dispatch()
        name, _, value = line.decode("utf-8", errors="replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(line)
        elif name == "event":
            self._name = value
        elif name == "retry" and value.isdecimal() and value.isascii():
            self.retry_s = int(value[:9]) / 1000.0
        return None

    def _dispatch(self) -> tuple[str, str] | None:
        data, name = self._data, self._name
        self._data, self._name, self._size = [], "", 0
        return (name or "message", "\n".join(data)) if data else None
