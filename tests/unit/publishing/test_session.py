"""The start of a run."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wevent.publishing import session
from wevent.publishing.shutdown import ForcedShutdown
from wevent.settings import RunOptions


class Answered(Exception):
    pass


def test_a_signal_while_the_journal_is_opened_asks_for_a_forced_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its database may not answer, and opening has no time limit."""
    asked: list[str] = []

    def open_journal(*_: Any, **__: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        assert asked == ["end"]
        raise Answered

    monkeypatch.setattr(ForcedShutdown, "request", lambda self: asked.append("end"))
    monkeypatch.setattr(session, "open_journal", open_journal)
    settings: Any = SimpleNamespace(journal=Path("run.journal"))
    with pytest.raises(Answered):
        session.run(settings, RunOptions())
