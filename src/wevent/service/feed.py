"""Committed releases for whoever reads along: rendered once per slot, kept for a while, handed to any number of readers.

A reader is a place in the stream and nothing else: no release waits in a queue of its own. One that falls behind what is
kept here reads on from the journal, piece by piece; one that does not read at all is cut off by the connection.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from wevent.errors import WeventError
from wevent.journal import Journal, Record
from wevent.outputs.lines import ndjson_line
from wevent.service.problems import RequestError
from wevent.service.publisher_state import StorageProbe

if TYPE_CHECKING:
    from wevent.publishing.event_stores import ReplicaStores
    from wevent.service.context import JournalReader
    from wevent.service.publisher_state import PublisherState, RoleLog

HEARTBEAT_S = 15.0
"""After so long without a release a reader is told that the stream is still there."""

MOST_READERS = 1000
MOST_OF_A_CALLER = 100
"""Readers of one token, link or address."""

_KEPT = 1000  # releases
_KEPT_BYTES = 32 << 20
_PIECE = 100  # slots that are read from the journal at once, fewer if they are large
_PIECE_BYTES = 1 << 20  # after so much a piece ends: a release of a million cells has a hundred times that
_SENT_BYTES = 1 << 16  # about so much is handed to a connection at once: whoever does not read it, costs no more
_LOOK_S = 0.5  # between looks of a follower without news
_AGAIN_S = 1.0  # between attempts to read what is known to be out
_DATA = b"data: "
_STILL_HERE = b": still here\n\n"
_log = logging.getLogger("wevent.service.feed")


class Rendered(NamedTuple):
    """A release as a server-sent event."""

    slot: int
    event: bytes
    fresh: bool

    @classmethod
    def of(cls, record: Record) -> Rendered:
        """Render a record."""
        event = b"id: %d\nevent: release\n%s%s\n" % (record.slot, _DATA, ndjson_line(record))
        return cls(record.slot, event, record.outcome == "fresh")

    @property
    def line(self) -> bytes:
        """The JSON object as a line."""
        return self.event[self.event.index(_DATA) + len(_DATA) : -1]


class Piece(NamedTuple):
    """Releases of consecutive slots, and the last slot that was looked at: some have none."""

    releases: list[Rendered]
    through: int


class ReleaseFeed:
    """The releases of a journal.

    Attributes:
        committed: the last slot that readers know of.
        recent: whether each of the last thousand releases was fresh.
        fresh: how many releases were, since the feed was opened.
        is_open: whether `open` has come to its end.
    """

    def __init__(self, reader: JournalReader) -> None:
        self._reader = reader
        self._loop: asyncio.AbstractEventLoop | None = None
        self._kept: dict[int, Rendered] = {}  # by slot, in order
        self._bytes = 0
        self._from = 1  # every release from this slot on, through `committed`, is kept
        self._wanted = self.committed = 0
        self._news, self._moved = asyncio.Event(), asyncio.Event()
        self.recent: deque[bool] = deque(maxlen=_KEPT)
        self.fresh = 0
        self._closed = self.is_open = False
        self._readers: Counter[Hashable] = Counter()  # by caller

    def wake(self, slot: int) -> None:
        """A slot was committed; from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._note, slot)

    def close(self) -> None:
        """No more releases: every reader comes to an end. From the loop's own thread."""
        self._closed = True
        self._news.set()
        self._tell()

    async def open(self, released: Callable[[], int] | None = None) -> None:
        """Take in what went out already, the last of it.

        Args:
            released: the last slot that may be shown: none that was committed just now; None: all that is committed.
        """
        self._loop = asyncio.get_running_loop()  # from here on whoever releases a slot wakes this
        head = await self._reader.ask(lambda journal: journal.head())
        last = head.committed if released is None else min(head.committed, released())
        self._from = max(head.first, last - _KEPT + 1)
        self.committed = self._from - 1
        self._wanted = max(self._wanted, last)
        await self._catch_up()
        self.fresh = 0
        self.is_open = True

    async def follow(self) -> None:
        """Take in what is committed from now on, until `close`."""
        failed = False
        while not self._closed:
            await self._something()
            self._news.clear()
            try:
                await self._catch_up()
                failed = False
            except WeventError as error:  # of the journal itself the publisher meets the same, and ends with it
                if not failed:
                    _log.error("releases cannot be read, which is tried again: %s", error)
                failed = True

    async def _something(self) -> None:
        """Wait for news; for a moment only while something is out that was not read: the next slot may be days away."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_AGAIN_S if self.committed < self._wanted else None):
                await self._news.wait()

    async def read(self, first: int, last: int) -> Piece:
        """Some releases from a slot on, from here or from the journal."""
        last = min(last, self.committed, first + _PIECE - 1)
        if first >= self._from:
            return Piece([self._kept[slot] for slot in range(first, last + 1) if slot in self._kept], last)
        return await self._reader.ask(lambda journal: _piece(journal, first, last))

    @property
    def readers(self) -> int:
        """Number of readers."""
        return self._readers.total()

    async def events(self, after: int | None, is_admitted: Callable[[], bool] = lambda: True) -> AsyncIterator[bytes]:
        """Server-sent events of the releases after a slot, as they come, until `close`.

        Args:
            after: the last slot that the reader knows; None: the last that was committed.
            is_admitted: asked before every release and heartbeat; the stream ends once it returns False.
        """
        place = self.committed if after is None else after
        yield b"retry: 2000\n\n"
        while not self._closed:
            if place < self.committed:
                text, place = await self._events_after(place)
            else:
                text = b"" if await self._moves() else _STILL_HERE
            if text:
                if not is_admitted():
                    return
                yield text

    @contextmanager
    def place(self, caller: Hashable) -> Iterator[None]:
        """Hold a place for a reader.

        Raises:
            RequestError: if the caller has too many places (429), or all callers together (503).
        """
        own = self._readers[caller] >= MOST_OF_A_CALLER
        if own or self.readers >= MOST_READERS:
            raise RequestError(
                429 if own else 503,
                f"at most {MOST_OF_A_CALLER if own else MOST_READERS} readers of the stream{' for a caller' * own}",
                "more",
                "Try again later, or ask for releases now and then.",
                headers={"Retry-After": "30"},
            )
        self._readers[caller] += 1
        try:
            yield
        finally:
            self._readers[caller] -= 1
            if not self._readers[caller]:
                del self._readers[caller]

    async def _events_after(self, place: int) -> tuple[bytes, int]:
        """What a reader at a place gets next, and its new place."""
        piece = await self.read(place + 1, self.committed)
        chosen, size = [], 0
        for one in piece.releases:
            chosen.append(one.event)
            size += len(one.event)
            if size >= _SENT_BYTES:
                return b"".join(chosen), one.slot
        return b"".join(chosen), max(piece.through, place + 1)

    async def _moves(self) -> bool:
        """Wait for the next release; whether there was one within a heartbeat."""
        try:
            async with asyncio.timeout(HEARTBEAT_S):
                await self._moved.wait()
        except TimeoutError:
            return False
        return True

    def _note(self, slot: int) -> None:
        self._wanted = max(self._wanted, slot)
        self._news.set()

    async def _catch_up(self) -> None:
        while self.committed < self._wanted and not self._closed:
            first, last = self.committed + 1, min(self._wanted, self.committed + _PIECE)
            piece = await self._reader.ask(lambda journal, a=first, b=last: _known_piece(journal, a, b))  # type: ignore[misc]
            if piece.through < first:
                return  # in a moment again
            for one in piece.releases:
                self._kept[one.slot] = one
                self._bytes += len(one.event)
                self.recent.append(one.fresh)
                self.fresh += one.fresh
            self.committed = piece.through
            self._drop()
            self._tell()

    def _drop(self) -> None:
        while self._kept and (len(self._kept) > _KEPT or self._bytes > _KEPT_BYTES):
            oldest = self._kept.pop(next(iter(self._kept)))
            self._bytes -= len(oldest.event)
            self._from = oldest.slot + 1

    def _tell(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()


def _known_piece(journal: Journal, first: int, last: int) -> Piece:
    """`_piece`, no further than this journal knows: the database that answers may lag behind the one that was written."""
    known = min(last, journal.head().committed)
    return _piece(journal, first, known) if known >= first else Piece([], known)


def _piece(journal: Journal, first: int, last: int) -> Piece:
    releases, size = [], 0
    for record in journal.releases(first):
        if record.slot > last:
            break
        if record.shown is not None:
            one = Rendered.of(record)
            releases.append(one)
            size += len(one.event)
            if size >= _PIECE_BYTES:
                return Piece(releases, one.slot)
    return Piece(releases, last)


class JournalFollower(threading.Thread):
    """Looks how far a journal is, as soon as it goes on.

    Nobody is told of a slot before it is known outside the database and the key of its events is destroyed: whoever committed
    it may have died before that.

    Args:
        stores: event stores of the journal, which has been begun.
        state: what all calls see of it.
        told: called with every committed slot that is new.
        role: told when the database is away, and when it answers again.
    """

    def __init__(
        self, stores: ReplicaStores, state: PublisherState, told: Callable[[int], None], role: RoleLog
    ) -> None:
        super().__init__(name="follower", daemon=True)
        self._state, self._told, self._role = state, told, role
        self._over = threading.Event()
        self._news = stores.shared.news()
        self._events = stores.open("following", patience_s=0.0)
        self._probe = StorageProbe(state, self._events.probe)

    def run(self) -> None:
        """Follow until it is stopped; a database that does not answer is asked again and again."""
        self._hear()  # whoever started this has just read from it
        while not self._over.is_set():
            try:
                self._see(self._news.wait(_LOOK_S))
                self._probe.check()
                self._hear()
                self._role.answers()
            except Exception as error:  # noqa: BLE001  a replica that follows no more would only look like one
                self._state.away = True
                self._role.away(error)
                self._over.wait(_LOOK_S)
        self._state.heard_s = None
        self._news.close()
        self._events.close()

    def stop(self) -> None:
        """Let it end; from any thread."""
        self._over.set()

    def _hear(self) -> None:
        self._state.away, self._state.heard_s = False, self._state.monotonic_s()

    def _see(self, committed: int) -> None:
        if committed > self._state.committed:
            self._events.destroy(committed)
            self._state.advance(committed)
            self._told(committed)
