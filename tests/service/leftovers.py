"""What is left of events in files: ids, batch ids and times, looked for in every byte."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.service.sending import Clock, SentBatch


def all_bytes(folder: Path) -> dict[str, bytes]:
    """Every file in a folder and below; one that goes away meanwhile has nothing."""
    found = {}
    for path in sorted(folder.rglob("*")):
        try:
            if path.is_file():
                found[str(path.relative_to(folder))] = path.read_bytes()
        except FileNotFoundError:
            continue
    return found


def leftovers(folder: Path, run: str, sent: Callable[[], list[SentBatch]], clock: Clock, through: int) -> list[str]:
    """Where something of events of slots up to a committed one is found; must be empty.

    Args:
        folder: where to look.
        run: what marks everything of this run.
        sent: what was sent so far; asked after looking, for a batch may be sent again meanwhile.
        clock: of the slots.
        through: the committed slot.
    """
    marks = re.compile(rf"mk{run}-(\d+)-\d+-\d+".encode())
    names = re.compile(rf"id{run}-(\d+)".encode())
    contents = all_bytes(folder)
    batches = sent()
    over = {batch.id.encode() for batch in batches}
    over -= {batch.id.encode() for batch in batches if batch.known_until > through}
    found = []
    for name, data in contents.items():
        found += [f"{name}: an id of slot {int(mark[1])}" for mark in marks.finditer(data) if int(mark[1]) <= through]
        found += [f"{name}: the id of batch {int(one[1])}" for one in names.finditer(data) if one[0] in over]
        found += [f"{name}: the time of an event"] * has_times(data, clock.origin_us, clock.end_us(through))
    return found


def has_times(data: bytes, begin_us: int, end_us: int) -> bool:
    """Whether there are microseconds of a span among the bytes, as int64 at any place."""
    for shift in range(8):
        words = np.frombuffer(data[shift : shift + (len(data) - shift) // 8 * 8], dtype="<i8")
        if bool(((words >= begin_us) & (words < end_us)).any()):
            return True
    return False
