"""Nothing read from events outlives its slot in any file (spec 1): raw bytes of every file of the folder."""

from __future__ import annotations

import re
import signal
import struct
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tests.support.commands import (
    PATIENCE_S,
    Done,
    close,
    event,
    live,
    run,
    send,
    slots_of,
    start,
    wait_for,
    write_stream,
)
from wevent.events import segment_log

DAY_US = 1_767_225_600_000_000
GIVEN = ("users.csv", "events.csv")
_TEXTS = re.compile(rb"stranger-\d{4}-\d|\d{16,19}")
STRANGERS = 7  # events per slot that nobody may count: how many came back tells that pending events did


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_stream(tmp_path, minutes=0)
    return tmp_path


def second(slot: int, number: int) -> float:
    """A time in a slot, to the microsecond: as bytes it occurs nowhere else."""
    return (slot - 1) * 60 + number + 0.271_301 + slot / 1e6


def lines(slot: int) -> list[str]:
    """Events of a slot by registered users, and by strangers with text and whole numbers as ids."""
    known = [event(second(slot, number), number, slot % 4) for number in range(10, 30)]
    strangers = [event(second(slot, number), stranger(slot, number), 1) for number in range(STRANGERS)]
    return known + strangers


def stranger(slot: int, number: int) -> object:
    return f"stranger-{slot:04d}-{number}" if number % 2 else 0x5A5A_0000_0000_0000 + slot * 1000 + number


def traces(slots: range) -> tuple[set[bytes], set[int]]:
    """What the events of slots look like in a file, as text and as numbers of eight bytes."""
    ids = {stranger(slot, number) for slot in slots for number in range(STRANGERS)}
    numbers = {one for one in ids if isinstance(one, int)}
    for slot in slots:
        numbers |= {DAY_US + round(second(slot, number) * 1e6) for number in (*range(STRANGERS), *range(10, 30))}
    return {str(one).encode() for one in ids | numbers}, numbers


def assert_no_trace(folder: Path, slots: range) -> None:
    texts, numbers = traces(slots)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.name in GIVEN:
            continue
        data = path.read_bytes()
        narrow = data.replace(b"\0\0\0", b"")  # text of four bytes a sign, as arrays have it
        found = {*_TEXTS.findall(data), *_TEXTS.findall(narrow)} & texts
        assert not found, f"events of closed slots are in {path.name}"
        for shift in range(8):
            part = data[shift : shift + (len(data) - shift) // 8 * 8]
            for kind in ("<i8", ">i8"):
                there = np.isin(np.frombuffer(part, kind), list(numbers)).any()
                assert not there, f"times or numbers of closed slots are in {path.name}"


def test_the_search_finds_what_is_there(folder: Path) -> None:
    texts, numbers = traces(range(1, 3))
    for number, trace in enumerate([*texts, *(one.decode().encode("utf-32-le") for one in texts)]):
        (folder / "leak").write_bytes(b"page" * number + trace + b"page")
        with pytest.raises(AssertionError, match="in leak"):
            assert_no_trace(folder, range(1, 3))
    for number, one in enumerate(numbers):
        (folder / "leak").write_bytes(b"?" * number + struct.pack(">q" if number % 2 else "<q", one) + b"page")
        with pytest.raises(AssertionError, match="in leak"):
            assert_no_trace(folder, range(1, 3))


def keys(folder: Path) -> set[bytes]:
    found = set()
    for path in (folder / "run.journal.events").glob("*.key"):
        with suppress(FileNotFoundError):  # destroyed meanwhile
            found.add(path.read_bytes())
    return found - {bytes(32)}


def begin(folder: Path, *more: str) -> subprocess.Popen[str]:
    arguments = live("--grace", "60s", "--out", "out.ndjson", *more)
    return start(folder, *arguments, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def feed(child: subprocess.Popen[str], folder: Path, first: int, last: int) -> None:
    """Close slots one by one, each when events of the next one are there."""
    for slot in range(first, last + 1):
        send(child, *lines(slot + 1), close(slot * 60))
        wait_for(lambda slot=slot: slots_of(folder / "out.ndjson")[-1:] == [slot], f"slot {slot}")  # type: ignore[misc]


def end(child: subprocess.Popen[str], *how: signal.Signals) -> Done:
    for one in how:
        child.send_signal(one)
    _, err = child.communicate(timeout=PATIENCE_S)
    return Done(child.returncode, "", err)


def rejected(done: Done) -> int:
    found = re.search(r"(\d+) rejected", done.err)
    return int(found[1]) if found else 0


def test_no_event_of_a_closed_slot_is_in_any_file(folder: Path) -> None:
    child = begin(folder)
    send(child, *lines(1))
    feed(child, folder, 1, 100)
    assert_no_trace(folder, range(1, 102))
    assert (folder / "run.journal-wal").stat().st_size > 0
    assert run(folder, "backup", "run.journal", "copy.journal").code == 0
    end(child, signal.SIGKILL)
    assert_no_trace(folder, range(1, 102))  # slot 101 is open: its events are there, sealed

    child = begin(folder)
    send(child, close(101 * 60), *lines(103))
    wait_for(lambda: slots_of(folder / "out.ndjson")[-1:] == [101], "slot 101")
    done = end(child, signal.SIGTERM)
    assert done.code == 0, done
    assert rejected(done) == STRANGERS, "the events of the slot that was open when the run was killed"
    assert_no_trace(folder, range(1, 104))
    assert not (folder / "run.journal-wal").exists()


def test_the_key_of_a_closed_slot_is_in_no_file(folder: Path) -> None:
    child = begin(folder)
    send(child, *lines(1))
    seen: set[bytes] = set()
    for slot in range(1, 21):
        feed(child, folder, slot, slot)
        wait_for(lambda: len(keys(folder)) == 1, "the key of the open slot alone")
        assert not keys(folder) & seen, "a key was used twice"
        seen |= keys(folder)
    end(child, signal.SIGKILL)
    for path in (path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        assert not any(key in data for key in seen - keys(folder)), f"a destroyed key is in {path.name}"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_events_of_the_open_slot_survive_a_stop(folder: Path, how: signal.Signals) -> None:
    child = begin(folder)
    send(child, *lines(1))
    feed(child, folder, 1, 3)
    send(child, *(event(second(4, 40 + number), f"more-{number}") for number in range(5)))
    if how == signal.SIGKILL:
        time.sleep(0.5)  # a kill loses the last moment of the input
    end(child, how)
    child = begin(folder)
    send(child, close(4 * 60))
    wait_for(lambda: slots_of(folder / "out.ndjson")[-1:] == [4], "slot 4")
    assert rejected(end(child, signal.SIGTERM)) == STRANGERS + 5
    assert keys(folder) == set()


@pytest.mark.parametrize("harm", ["key", "record"])
def test_events_that_cannot_be_read_any_more_are_lost_and_stop_nothing(folder: Path, harm: str) -> None:
    child = begin(folder)
    send(child, *lines(1))
    feed(child, folder, 1, 3)
    time.sleep(0.3)
    send(child, event(second(4, 45), 10, 1))  # behind a record that is damaged, not one that a crash has torn
    assert end(child, signal.SIGTERM).code == 0
    if harm == "key":
        for path in (folder / "run.journal.events").glob("*.key"):
            path.write_bytes(bytes(31))
            path.unlink()
    else:
        (path,) = (folder / "run.journal.events").glob("*.events")
        data = bytearray(path.read_bytes())
        offsets = [offset for offset, frame in segment_log._frames(bytes(data))]
        data[offsets[-2] + 100] ^= 1
        path.write_bytes(data)
    child = begin(folder)
    send(child, close(4 * 60))
    wait_for(lambda: slots_of(folder / "out.ndjson")[-1:] == [4], "slot 4")
    done = end(child, signal.SIGTERM)
    assert done.code == 0, done
    assert done.err.count("cannot be read any more") == 1
    assert rejected(done) == 0
    assert "Traceback" not in done.err
    assert run(folder, "verify", "run.journal").code == 0
