"""Committed releases for any number of readers: rendered once per slot, and kept for a while.

A reader is a position in the stream: no release waits in a queue of its own. A reader that falls behind the kept releases
reads on from the journal, piece by piece. The connection cuts off a reader that does not read.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

from anyio import CapacityLimiter, to_thread

from wevent.errors import WeventError
from wevent.journal import Journal, JournalAddress, Record, open_journal
from wevent.outputs.lines import ndjson_line, released_records
from wevent.outputs.selection import Selection
from wevent.service.problems import RequestError
from wevent.service.publishing_thread import PublisherState

HEARTBEAT_S = 15.0  # seconds without a release after which a reader gets a comment
MAX_READERS = 1000
MAX_READERS_OF_CALLER = 100

_READERS = 4  # of the journal at once; more would only wait for each other
_PATIENCE_S = 3.0  # with a database: the caller can ask again
_KEPT = 1000  # releases
_KEPT_BYTES = 32 << 20
_PIECE = 100  # slots that are read from the journal at once, fewer if they are large
_PIECE_BYTES = 1 << 20  # after so much a piece ends: a release of a million cells has a hundred times that
_SENT_BYTES = 1 << 16  # about so much is handed to a connection at once: a reader that does not read costs no more
_RETRY_S = 1.0  # between attempts to read what is known to be committed
_DATA = b"data: "
_HEARTBEAT = b": still here\n\n"
_log = logging.getLogger("wevent.service.feed")

Answer = TypeVar("Answer")


class JournalReader:
    """Readers of a journal beside its publisher, in a bounded number of threads."""

    def __init__(self, place: JournalAddress) -> None:
        self._place = place
        self._limiter = CapacityLimiter(_READERS)
        self._cache: dict[str, tuple[int, Any]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._failed: dict[str, tuple[float, WeventError]] = {}  # when the last call failed, and why

    async def ask(self, question: Callable[[Journal], Answer]) -> Answer:
        """Return a function of the journal, called in a thread with a journal of its own."""

        def answer() -> Answer:
            with open_journal(self._place, patience_s=_PATIENCE_S) as journal:
                return question(journal)

        return await to_thread.run_sync(answer, limiter=self._limiter)

    async def once(self, name: str, slot: int, question: Callable[[Journal], Answer]) -> Answer:
        """Return a function of the journal, called once per committed slot for all callers; who waited shares a failure."""
        begun = time.monotonic()
        async with self._locks.setdefault(name, asyncio.Lock()):
            if self._cache.get(name, (None,))[0] != slot:
                if name in self._failed and self._failed[name][0] >= begun:
                    raise self._failed[name][1]
                try:
                    self._cache[name] = slot, await self.ask(question)
                except WeventError as error:
                    self._failed[name] = time.monotonic(), error
                    raise
            answer: Answer = self._cache[name][1]
            return answer


class Rendered(NamedTuple):
    """A release as text."""

    slot: int
    text: bytes
    fresh: bool

    @property
    def line(self) -> bytes:
        """The JSON object of a server-sent event as a line."""
        return self.text[self.text.index(_DATA) + len(_DATA) : -1]


class Piece(NamedTuple):
    """Releases of consecutive slots, and the last slot that was read: some slots have none."""

    releases: list[Rendered]
    through: int


def render_slots(
    journal: Journal, first: int, last: int, render: Callable[[Record], bytes], labels: Iterable[str] | None = None
) -> Piece:
    """Render releases until the last slot, or until they are large; of the cells with these labels (None: all)."""
    releases, size = [], 0
    for record in released_records(Selection(journal, last, labels), first):
        releases.append(Rendered(record.slot, render(record), record.outcome == "fresh"))
        size += len(releases[-1].text)
        if size >= _PIECE_BYTES:
            return Piece(releases, record.slot)
    return Piece(releases, last)


def _event(record: Record) -> bytes:
    """Return a release as a server-sent event."""
    return b"id: %d\nevent: release\n%s%s\n" % (record.slot, _DATA, ndjson_line(record))


class ReleaseFeed:
    """The releases of a journal.

    Attributes:
        committed: last slot that readers get.
        recent: whether each of the last thousand releases was fresh.
        fresh: number of fresh releases since the feed was opened.
        is_open: whether `open` has ended.
        readers: number of readers by caller.
    """

    def __init__(self, reader: JournalReader, state: PublisherState) -> None:
        self._reader, self._state = reader, state
        self._loop: asyncio.AbstractEventLoop | None = None
        self._kept: dict[int, Rendered] = {}  # by slot, in order
        self._bytes = 0
        self._from = 1  # every release from this slot on, through `committed`, is kept
        self._known = self.committed = 0  # last slot that is committed, and last one that was read
        self._news, self._moved = asyncio.Event(), asyncio.Event()
        self.recent: deque[bool] = deque(maxlen=_KEPT)
        self.fresh = 0
        self._closed = self.is_open = False
        self.readers: Counter[Hashable] = Counter()

    def wake(self, slot: int) -> None:
        """Announce a committed slot; from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._note, slot)

    def _note(self, slot: int) -> None:
        self._known = max(self._known, slot)
        self._news.set()

    def close(self) -> None:
        """End all streams; from the thread of the loop."""
        self._closed = True
        self._news.set()
        self._wake_readers()

    async def open(self) -> None:
        """Read the last releases; a slot that was committed just now may not be shown yet."""
        self._loop = asyncio.get_running_loop()  # from here on `wake` has an effect
        head = await self._reader.ask(lambda journal: journal.head())
        last = min(head.committed, self._state.committed)
        self._from = max(head.first, last - _KEPT + 1)
        self.committed = self._from - 1
        self._known = max(self._known, last)
        await self._catch_up()
        self.fresh = 0
        self.is_open = True

    async def follow(self) -> None:
        """Read the releases that are committed from now on, until `close`."""
        failed = False
        while not self._closed:
            with suppress(TimeoutError):  # the slot after one that could not be read may be days away
                async with asyncio.timeout(_RETRY_S if self.committed < self._known else None):
                    await self._news.wait()
            self._news.clear()
            try:
                await self._catch_up()
                failed = False
            except WeventError as error:  # the publisher meets a fault of the journal too, and ends with it
                if not failed:
                    _log.error("releases cannot be read, retrying: %s", error)
                failed = True

    async def read(self, first: int, last: int) -> Piece:
        """Return some releases from a slot on, kept ones or from the journal."""
        last = min(last, self.committed, first + _PIECE - 1)
        if first >= self._from:
            return Piece([self._kept[slot] for slot in range(first, last + 1) if slot in self._kept], last)
        return await self._reader.ask(lambda journal: render_slots(journal, first, last, _event))

    async def events(self, after: int | None, is_admitted: Callable[[], bool]) -> AsyncIterator[bytes]:
        """Yield server-sent events of the releases after a slot (None: the last committed one), until `close`.

        `is_admitted` is called before every release and heartbeat. The stream ends once it returns False.
        """
        position = self.committed if after is None else after
        yield b"retry: 2000\n\n"
        while not self._closed:
            text = _HEARTBEAT
            if position < self.committed:
                piece = await self.read(position + 1, self.committed)
                text, position = b"", max(piece.through, position + 1)
                for one in piece.releases:
                    text += one.text
                    if len(text) >= _SENT_BYTES:
                        position = one.slot
                        break
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(HEARTBEAT_S):
                        await self._moved.wait()
                        text = b""
            if text:
                if not is_admitted():
                    return
                yield text

    @contextmanager
    def place(self, caller: Hashable) -> Iterator[None]:
        """Hold a place for a reader; refuse it if the caller has too many places (429), or all callers together (503)."""
        is_callers = self.readers[caller] >= MAX_READERS_OF_CALLER
        if is_callers or self.readers.total() >= MAX_READERS:
            status, problem = (429, "You have") if is_callers else (503, "The service has")
            fix = "Try again later, or poll /v1/releases."
            raise RequestError(status, f"{problem} too many open streams.", fix, {"Retry-After": "30"})
        self.readers[caller] += 1
        try:
            yield
        finally:
            self.readers[caller] -= 1
            if not self.readers[caller]:
                del self.readers[caller]

    async def _catch_up(self) -> None:
        while self.committed < self._known and not self._closed:
            first, last = self.committed + 1, min(self._known, self.committed + _PIECE)
            piece = await self._reader.ask(lambda journal, a=first, b=last: _known_slots(journal, a, b))  # type: ignore[misc]
            if piece.through < first:
                return  # `follow` tries again
            for one in piece.releases:
                self._kept[one.slot] = one
                self._bytes += len(one.text)
                self.recent.append(one.fresh)
                self.fresh += one.fresh
            self.committed = piece.through
            while self._kept and (len(self._kept) > _KEPT or self._bytes > _KEPT_BYTES):
                oldest = self._kept.pop(next(iter(self._kept)))
                self._bytes -= len(oldest.text)
                self._from = oldest.slot + 1
            self._wake_readers()

    def _wake_readers(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()


def _known_slots(journal: Journal, first: int, last: int) -> Piece:
    """Render releases, none that this journal lacks: the database that answers may lag behind the one that was written."""
    return render_slots(journal, first, min(last, journal.head().committed), _event)
