"""The commands of `tests.support.commands` as tests of the screen call them: code, output and remarks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import CLOCK, PEOPLE, call, write_stream

Run = Callable[..., tuple[int, str, str]]


def publishing_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The small stream in `folder`, which becomes the working folder; returns what calls a command there."""
    monkeypatch.chdir(folder)
    write_stream(folder)

    def run(*arguments: str) -> tuple[int, str, str]:
        done = call(folder, *arguments)
        return done.code, done.out, done.err

    return run


def arguments_through(minutes: int) -> tuple[str, ...]:
    """Behind `wevent publish`: this many slots of the stream."""
    end = ("--end", f"2026-01-01T00:{minutes:02d}:00Z")
    return ("events.csv", *CLOCK, *end, *PEOPLE, "--journal", "run.journal", "--out", "out.ndjson")


def publish_through(run: Run, minutes: int, *more: str) -> tuple[int, str, str]:
    """Publish this many slots."""
    return run("publish", *arguments_through(minutes), *more)
