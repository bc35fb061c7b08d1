"""Witness files: a power failure at any moment leaves the draw before or the new one, whole (spec 10)."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from wevent.errors import StorageFailed
from wevent.journal import witness
from wevent.journal.record import Revision, Writer
from wevent.journal.witness import WitnessFile, WitnessRecord

SECTOR = 512
MOST_SUBSETS = 256  # of each moment; all of them where there are fewer
LEAST_STATES = 1000


class Write(NamedTuple):
    """Bytes that were written at a place, but not forced."""

    place: int
    data: bytes


class Step(NamedTuple):
    """A call that changes the witness, in the writes and syncs that it makes.

    Attributes:
        before, after: record and write-ahead record around the call.
        calls: writes in order; None: a sync.
    """

    before: tuple[WitnessRecord, bytes | None]
    after: tuple[WitnessRecord, bytes | None]
    calls: list[Write | None]


class Recorder:
    """A witness file whose writes and syncs are noted.

    Attributes:
        start: bytes of the file before the first step.
        steps: calls since then.
    """

    def __init__(self, path: Path, patching: pytest.MonkeyPatch) -> None:
        self.path = path
        self.start = b""
        self.steps: list[Step] = []
        self._calls: list[Write | None] = []
        write_at, force = witness.write_at, witness._force

        def noted(file: int, data: bytes, place: int) -> None:
            write_at(file, data, place)
            self._calls.append(Write(place, bytes(data)))

        def forced(file: int) -> None:
            force(file)
            self._calls.append(None)

        patching.setattr(witness, "write_at", noted)
        patching.setattr(witness, "_force", forced)
        self.witness = open_witness(path)

    def do(self, act: Callable[[WitnessFile], object]) -> None:
        """Do something to the witness, and note it."""
        before = self.witness.record, self.witness.read_ahead()
        self._calls = []
        act(self.witness)
        self.steps.append(Step(before, (self.witness.record, self.witness.read_ahead()), self._calls))


def open_witness(path: Path) -> WitnessFile:
    return WitnessFile(path, os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def sectors(write: Write) -> Iterator[Write]:
    """Return the parts of a write that a disk stores or loses each for itself."""
    place, end = write.place, write.place + len(write.data)
    while place < end:
        until = min((place // SECTOR + 1) * SECTOR, end)
        yield Write(place, write.data[place - write.place : until - write.place])
        place = until


def apply(image: bytearray, write: Write) -> None:
    image.extend(bytes(max(0, write.place + len(write.data) - len(image))))
    image[write.place : write.place + len(write.data)] = write.data


def survivors(pending: list[Write], chance: random.Random) -> Iterator[tuple[bool, ...]]:
    """Return which sectors reach the disk: every subset, or none, all, each alone, all but each, and others at random."""
    number = len(pending)
    if 2**number <= MOST_SUBSETS:
        yield from itertools.product((False, True), repeat=number)
        return
    for kept in (False, True):
        yield (kept,) * number
        yield from (tuple((place == one) != kept for place in range(number)) for one in range(number))
    for _ in range(MOST_SUBSETS):
        share = chance.choice((0.1, 0.5, 0.9))
        yield tuple(chance.random() < share for _ in range(number))


def disks(image: bytearray, calls: list[Write | None], chance: random.Random) -> Iterator[tuple[int, bytearray]]:
    """Return every disk that a power failure may leave during some calls, and how many of them were made."""
    base, pending = bytearray(image), list[Write]()
    for made in range(len(calls) + 1):
        for kept in survivors(pending, chance):
            disk = bytearray(base)
            for one in itertools.compress(pending, kept):
                apply(disk, one)
            yield made, disk
        if made == len(calls):
            return
        call = calls[made]
        if call is not None:
            pending += sectors(call)
            continue
        for one in pending:
            apply(base, one)
        pending = []


def slot(number: int, data: bytes) -> Callable[[WitnessFile], object]:
    """Return the write-ahead of a slot."""
    known: dict[str, Any] = {"committed": number, "chain": f"{number:064x}", "before": f"{number - 1:064x}"}
    return lambda file: file.write_ahead(
        data, journal="this", revision=Revision(number, "ab" * 32), versions="cd" * 32, **known
    )


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """A life of a witness, with records that take several sectors and draws of many sizes."""
    chance = random.Random(7)
    made = Recorder(tmp_path / "run.journal.witness", monkeypatch)
    for number in range(80):  # journals that were here before: a record of several sectors
        made.witness.update(journal=f"{number:032x}", committed=number + 1)
    made.witness.update(journal="this", committed=0)
    made.start = made.path.read_bytes()
    sizes = (700, 1, 900, 5000, 512, 20_000, 300, 513)
    for number, size in enumerate(sizes, start=1):
        made.do(slot(number, chance.randbytes(size)))
        if number % 3 == 0:
            made.do(lambda file, number=number: file.update(revision=Revision(100 + number, "ef" * 32)))  # type: ignore[misc]
        if number % 4 == 0:  # another writer
            made.witness.close()
            made.witness = open_witness(made.path)
            made.do(lambda file: file.name_writer(Writer(77, "host", "2026-01-01T00:00:00Z")))
            made.do(lambda file, number=number: file.update(revision=Revision(200 + number, "01" * 32)))  # type: ignore[misc]
    return made


def test_a_power_failure_leaves_the_draw_before_or_the_new_one_whole(recorder: Recorder, tmp_path: Path) -> None:
    chance, states, path = random.Random(11), 0, tmp_path / "disk.witness"
    recorder.witness.close()
    image = bytearray(recorder.start)
    for step in recorder.steps:
        for made, disk in disks(image, step.calls, chance):
            path.write_bytes(disk)
            found = open_witness(path)
            record, ahead = found.record, found.read_ahead()
            found.close()
            states += 1
            assert record in (step.before[0], step.after[0])
            if record == step.after[0]:
                assert ahead == step.after[1], "a record names bytes that are not there"
            else:
                assert ahead in (step.before[1], None)  # the journal has that one when the next one is written
            if made == len(step.calls) and step.calls[-1] is None:
                assert record == step.after[0], "what was forced is gone"
        for call in step.calls:
            if call is not None:
                apply(image, call)
        assert step.calls[-1] is None, (
            "the next record is written over the copy before: this one has to be there by then"
        )
    assert bytes(image) == recorder.path.read_bytes()
    assert states >= LEAST_STATES


def test_a_pipe_in_its_place_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    os.mkfifo(witness.witness_path(path))
    with pytest.raises(StorageFailed):
        witness.lock_witness(path)


def test_a_pipe_is_no_witness_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.journal.witness")
    assert not witness.read_witness(tmp_path / "run.journal.witness").is_readable
