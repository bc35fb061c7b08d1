"""Reading the journal for many callers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from wevent.errors import JournalUnreachable
from wevent.service.feed import JournalReader


def test_callers_who_waited_share_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a database does not answer, every attempt takes seconds: callers must not make one after the other."""
    reader, attempts = JournalReader(tmp_path / "run.journal"), list[int]()

    async def fail(question: Any) -> None:
        attempts.append(1)
        await asyncio.sleep(0)
        raise JournalUnreachable("The database does not answer.", "Start it.", path="", passing=True)

    async def ask_all() -> list[Any]:
        callers = (reader.once("ledger", 3, lambda journal: None) for _ in range(5))
        return await asyncio.gather(*callers, return_exceptions=True)

    monkeypatch.setattr(reader, "ask", fail)
    for time in (1, 2):  # a caller who comes later tries again
        assert [type(answer) for answer in asyncio.run(ask_all())] == [JournalUnreachable] * 5
        assert len(attempts) == time
        reader._locks.clear()  # of an event loop that has ended
