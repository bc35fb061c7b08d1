"""Neighbouring files for the command: a victim's records, plain or odd, among the plain ones of others.

Whatever one person's device sends, everybody else's records count as before, the run goes on, and what is printed beside the
releases stays the same (spec 1).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wevent.auditing.black_box.stream_pairs import Pair
from wevent.core.requirements import Population, Requirement

CELLS = ("a", "b")
SLOTS = 3
OTHERS = 40
SLOT_S = 60
PROMISE = Requirement(2, "0.5")
"""Small, so that few runs prove more."""

Line = Callable[[int, str, str], str]


@dataclass(frozen=True)
class FilePair(Pair):
    """Two streams as files of events.

    Attributes:
        files: with the victim's records and without.
        ending: of the file's name, which says what it is.
    """

    files: tuple[bytes, bytes] = (b"", b"")
    ending: str = ".csv"


def time_of(second: int) -> str:
    """The time of an event, so many seconds after the start of slot 1."""
    return f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}Z"


def _csv(second: int, user: str, cell: str) -> str:
    return f"{time_of(second)},{user},{cell}"


def _ndjson(second: int, user: str, cell: str) -> str:
    return json.dumps({"time": time_of(second), "user": user, "cell": cell})


_ODD_CSV: Mapping[str, Sequence[str]] = {
    "records with a quote that is never closed": ('{time},"victim,a', '{time},victim,"a', '"'),
    "records that are no event": (
        "9999-12-31T23:59:59Z,victim,a",
        "1970-01-01T00:00:00Z,victim,a",
        "not a time,victim,a",
        "{time},victim,nowhere",
        "{time}",
        "{time},victim,a,b,c,d",
        "{time},vict\x00im,a",
        "{time},victim," + "a" * 100_000,
    ),
}
_ODD_NDJSON: Mapping[str, Sequence[str]] = {
    "records that are no JSON": (
        '{{"time": "{time}", "user": "victim", "cell": "a',
        '{{"time": "9999-12-31T23:59:59Z", "user": "victim", "cell": "a"}}',
        '{{"time": 1e999, "user": "victim", "cell": "a"}}',
        '{{"time": "{time}", "user": ["victim"], "cell": {{"a": 1}}}}',
        '{{"time": "{time}", "user": "victim", "cell": "nowhere"}}',
        "[" * 2000,
    ),
}


def record_pairs(options: Mapping[str, Any]) -> Iterator[FilePair]:
    """The victim in a cell, or in another one with `replace`, and odd records of theirs, or none."""
    moves = options.get("neighbours", "add_remove") == "replace"
    for line, ending in ((_csv, ".csv"), (_ndjson, ".ndjson")):
        mine = [line(SLOT_S * slot + 30, "victim", CELLS[0]) for slot in (1, 2)]
        other = [line(SLOT_S * slot + 30, "victim", CELLS[1]) for slot in (1, 2)] if moves else []
        yield _pair(f"victim's records ({ending})", line, ending, mine, other, counted=True, moves=moves)
        for name, records in (_ODD_CSV if ending == ".csv" else _ODD_NDJSON).items():
            odd = [record.format(time=time_of(SLOT_S + 30)) for record in records]
            yield _pair(f"victim's {name} ({ending})", line, ending, odd, [], counted=False, moves=moves)


def _pair(
    name: str, line: Line, ending: str, mine: Sequence[str], other: Sequence[str], *, counted: bool, moves: bool
) -> FilePair:
    population = Population({PROMISE: OTHERS + 1})
    counts = np.zeros((SLOTS, 1, len(CELLS)), dtype=np.int64)
    counts[:, 0, 1] = OTHERS
    streams = counts.copy(), counts.copy()
    if counted:
        streams[0][1:, 0, 0] += 1
        if moves:
            streams[1][1:, 0, 1] += 1
    files = _file(line, ending, mine), _file(line, ending, other)
    return FilePair(name, PROMISE, population, streams, (1, 1 + PROMISE.window), files, ending)


def _file(line: Line, ending: str, records: Sequence[str]) -> bytes:
    """Everybody else's records, with the victim's in the midst of those of the second slot."""
    rows = [[line(SLOT_S * slot + 20, str(user), CELLS[1]) for user in range(OTHERS)] for slot in range(SLOTS)]
    middle = OTHERS // 2
    text = [*rows[0], *rows[1][:middle], *records, *rows[1][middle:], *rows[2]]
    head = ["time,user,cell"] if ending == ".csv" else []
    return ("\n".join([*head, *text]) + "\n").encode()


def requirement_rows() -> str:
    """The requirements file of these people."""
    rows = [f"{user},{PROMISE.window},{PROMISE.epsilon:g}" for user in ("victim", *map(str, range(OTHERS)))]
    return "\n".join(("user,window,epsilon", *rows)) + "\n"
