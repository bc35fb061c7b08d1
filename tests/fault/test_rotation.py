"""A text output that is renamed or removed under a run: the next release begins a new file, and none is left out."""

from __future__ import annotations

import logging
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import PATIENCE_S, START, call, close, live, send, slots_of, start, wait_for, write_stream
from wevent.errors import InvalidOutput
from wevent.publishing.configuration import load_settings
from wevent.publishing.session import RunCallbacks, run
from wevent.settings import RunOptions

LENGTH = 700  # slots: three transactions at least


class Killed(BaseException):
    """Ends a run where it is."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_stream(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def publish(
    out: Path,
    after: Callable[[int], object] = lambda number: None,
    length: int = LENGTH,
    at_end: Callable[[], object] = lambda: None,
) -> None:
    """Publish slots of a second, and do something after each transaction's releases, and after the last ones."""
    numbers = iter(range(1, 1000))
    end = f"2026-01-01T00:{length // 60:02d}:{length % 60:02d}Z"
    options = {"slot": "1s", "start": START, "end": end, "requirements": "users.csv", "cells": "4"}
    settings = load_settings(None, {**options, "inputs": ("events.csv",), "journal": "run.journal", "out": out.name})

    def progress(slot: int, last: int | None) -> None:
        if slot < length:
            after(next(numbers))
        else:
            at_end()

    run(settings, RunOptions(), RunCallbacks(progress=progress))


def slots(path: Path) -> list[int]:
    """The slots in a file, each once."""
    if path.suffix != ".csv":
        return slots_of(path)
    lines = path.read_text().splitlines()
    assert lines[0].startswith("slot,start,end,cell,")
    return sorted({int(line.split(",")[0]) for line in lines[1:]})


def all_slots(first: int, last: int = LENGTH) -> list[int]:
    return list(range(first, last + 1))


def test_renamed_under_a_live_run(folder: Path) -> None:
    command = live("--out", "out.ndjson", "--log", "info")
    out = folder / "out.ndjson"
    child = start(folder, *command, stdin=subprocess.PIPE)
    send(child, close(180))
    wait_for(lambda: 3 in slots_of(out), "slot 3")
    out.rename(folder / "old")
    send(child, close(300))
    wait_for(lambda: 5 in slots_of(out), "slot 5 in a new file")
    child.send_signal(signal.SIGTERM)
    assert "was renamed: a new one begins behind slot 3" in child.communicate(timeout=PATIENCE_S)[1]
    assert child.returncode == 0
    assert slots_of(folder / "old") == [1, 2, 3]
    assert slots_of(out) == [4, 5]


@pytest.mark.parametrize("ending", ["ndjson", "csv"])
def test_every_release_is_in_one_file(folder: Path, ending: str) -> None:
    out = folder / f"out.{ending}"
    publish(out, lambda number: number <= 2 and out.rename(folder / f"old{number}.{ending}"))
    publish(out, length=LENGTH + 50)
    parts = [slots(one) for one in (folder / f"old1.{ending}", folder / f"old2.{ending}", out)]
    assert all(parts)
    assert parts[0] + parts[1] + parts[2] == all_slots(1, LENGTH + 50)
    lines = [one for part in ("old1", "old2", "out") for one in (folder / f"{part}.{ending}").read_text().splitlines()]
    released = call(folder, "releases", "run.journal", "--format", ending).out.splitlines()
    assert [one for one in lines if not one.startswith("slot,")] == [one for one in released if "slot," not in one]


def test_a_removed_output_is_said_and_begins_anew(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    out, held = folder / "out.ndjson", []

    def remove(number: int) -> None:
        if number == 1:
            held.extend(slots(out))
            out.unlink()

    with caplog.at_level(logging.WARNING):
        publish(out, remove)
    assert held + slots(out) == all_slots(1)
    assert f"was removed: a new one begins behind slot {held[-1]}" in caplog.text


def test_an_empty_file_in_its_place_is_the_new_one(folder: Path) -> None:
    out = folder / "out.ndjson"

    def rotate(number: int) -> None:
        if number == 1:
            out.rename(folder / "old")
            out.touch()

    publish(out, rotate)
    assert slots(folder / "old") + slots(out) == all_slots(1)


def test_another_file_in_its_place_stops_the_run(folder: Path) -> None:
    out = folder / "out.ndjson"

    def replace(number: int) -> None:
        out.rename(folder / "old")
        out.write_text("precious\n")

    with pytest.raises(InvalidOutput, match="Another program replaced, cut or wrote to"):
        publish(out, replace)
    assert out.read_text() == "precious\n"
    out.unlink()
    publish(out)
    assert slots(out) == all_slots(1)  # nothing shows that the others are kept: all of them are sent again


def test_renamed_after_the_last_release_of_a_run(folder: Path) -> None:
    out = folder / "out.ndjson"
    publish(out, length=30, at_end=lambda: out.rename(folder / "old"))
    assert not out.exists()
    publish(out, length=40)
    assert slots(out) == all_slots(31, 40)
    assert slots(folder / "old") == all_slots(1, 30)


def test_killed_between_the_renaming_and_the_next_release(folder: Path) -> None:
    out = folder / "out.ndjson"

    def rotate(number: int) -> None:
        out.rename(folder / f"old{number}")
        if number == 2:
            raise Killed

    with pytest.raises(Killed):
        publish(out, rotate)
    publish(out)
    first = slots(folder / "old1")[-1]
    assert slots(out) == all_slots(first + 1)  # from the last rotation on: twice rather than never
    assert slots(folder / "old2") == slots(out)[: len(slots(folder / "old2"))]


@pytest.mark.parametrize("left", ["nothing", "an empty file", "half a line", "less than a header"])
@pytest.mark.parametrize("ending", ["ndjson", "csv"])
def test_killed_while_the_new_file_is_made(folder: Path, ending: str, left: str) -> None:
    out, old = folder / f"out.{ending}", folder / f"old.{ending}"

    def rotate(number: int) -> None:
        if number == 2:
            raise Killed
        out.rename(old)

    with pytest.raises(Killed):
        publish(out, rotate)
    whole = out.read_bytes()
    out.write_bytes(whole[: {"half a line": len(whole) // 2, "less than a header": 3}.get(left, 0)])
    if left == "nothing":
        out.unlink()
    publish(out)
    assert out.read_bytes().startswith(whole)
    assert slots(old) + slots(out) == all_slots(1)


def test_a_file_that_was_renamed_back_is_completed(folder: Path) -> None:
    out = folder / "out.ndjson"
    publish(out, length=30, at_end=lambda: out.rename(folder / "old"))
    (folder / "old").rename(out)
    publish(out, length=40)
    assert slots(out) == all_slots(1, 40)


def test_a_file_that_begins_late_without_a_rotation_is_rewritten(folder: Path) -> None:
    out = folder / "out.ndjson"
    publish(out, length=30)
    out.write_bytes(b"".join(out.read_bytes().splitlines(keepends=True)[2:]))
    publish(out, length=40)
    assert slots(out) == all_slots(1, 40)
