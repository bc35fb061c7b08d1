"""Reading the journal from a service: beside its publisher, in threads, a bounded number at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

from wevent.journal import Journal, JournalPlace, open_journal

_AT_ONCE = 4  # readers; more would only wait for each other
_PATIENCE_S = 3.0  # with a database: whoever asks can ask again

Answer = TypeVar("Answer")


class JournalReader:
    """Asks a journal.

    Args:
        place: of the journal.
    """

    def __init__(self, place: JournalPlace) -> None:
        self.place = place
        self._limiter = CapacityLimiter(_AT_ONCE)
        self._kept: dict[str, tuple[int, Any]] = {}
        self._asking: dict[str, asyncio.Lock] = {}

    async def ask(self, question: Callable[[Journal], Answer]) -> Answer:
        """What a function of the journal says; it is called in a thread, with a journal of its own."""
        return await to_thread.run_sync(self._asked, question, limiter=self._limiter)

    async def call(self, function: Callable[[], Answer]) -> Answer:
        """What a function says that opens the journal itself."""
        return await to_thread.run_sync(function, limiter=self._limiter)

    async def once(self, name: str, slot: int, question: Callable[[Journal], Answer]) -> Answer:
        """The same, asked once for every committed slot, however many want to know.

        Args:
            name: of the question.
            slot: the last committed slot.
            question: what to ask.
        """
        async with self._asking.setdefault(name, asyncio.Lock()):
            kept = self._kept.get(name)
            if kept is None or kept[0] != slot:
                kept = self._kept[name] = slot, await self.ask(question)
            answer: Answer = kept[1]
            return answer

    def _asked(self, question: Callable[[Journal], Answer]) -> Answer:
        with open_journal(self.place, patience_s=_PATIENCE_S) as journal:
            return question(journal)
