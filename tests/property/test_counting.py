"""Whatever the events, the file formats, the memory, the order and the runs: the counts are those of the slow way."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.live_events import pipe_source
from tests.support.streams import DAY, MEMORY, SECOND, ScriptedInbox, Wall, plain, roster, settings, slow_count
from wevent.settings.values import format_time
from wevent.streams.clock import SlotClock
from wevent.streams.file_source import FileSource
from wevent.streams.source import MALFORMED, REJECTED
from wevent.streams.times import TimeReader

LAST = 5
CLOCK = SlotClock(DAY, 60 * SECOND)
IDS = {"integers": (1, 2, 3, 4, 5), "text": ("anna", "7", "bob", "007", "eve")}
STRANGERS = {"integers": (9, 10, -1), "text": ("8", "Anna", "x")}
CELLS = {"numbered": 3, "labels": ["north", "south", "0"]}

events_of = st.lists(
    st.tuples(
        st.integers(-70, 60 * LAST + 70).map(lambda step: step * SECOND // 2 * 2), st.integers(0, 7), st.integers(0, 3)
    ),
    max_size=60,
)


def spelled(raw: list[tuple[int, int, int]], ids: str, cells: str) -> list[tuple[int, Any, Any]]:
    """Indices as ids and labels, the last ones unknown."""
    people = [*IDS[ids], *STRANGERS[ids]]
    labels = [0, 1, 2, 3] if cells == "numbered" else ["north", "south", "0", "west"]
    return [(DAY + time, people[user], labels[cell]) for time, user, cell in raw]


def expected(events: list[tuple[int, Any, Any]], ids: str, cells: str, k: int) -> list[Any]:
    people = roster(IDS[ids])
    domain = list(range(3)) if cells == "numbered" else CELLS["labels"]
    slots = []
    for slot in range(1, LAST + 1):
        matrix, rejected = slow_count([e for e in events if CLOCK.slot_of(e[0]) == slot], people, domain, k)
        slots.append((slot, matrix.tolist(), rejected))
    return slots


def write(path: Path, events: list[tuple[int, Any, Any]], kind: str) -> str:
    """The events as a file of this kind."""
    target = path / f"events.{kind}"
    if kind == "csv":
        lines = [f"{format_time(time)},{user},{cell}" for time, user, cell in events]
        target.write_text("\n".join(["time,user,cell", *lines]) + "\n")
    elif kind == "ndjson":
        lines = [json.dumps({"time": time / SECOND, "user": user, "cell": cell}) for time, user, cell in events]
        target.write_text("\n".join(lines) + "\n")
    else:
        columns = {
            "us": np.array([time for time, _, _ in events], dtype=np.int64),
            "user": np.array([user for _, user, _ in events], dtype=None if isinstance(events[0][1], int) else object),
            "cell": np.array([cell for _, _, cell in events], dtype=None if isinstance(events[0][2], int) else object),
        }
        connection = duckdb.connect()
        connection.register("columns", columns)
        query = 'SELECT make_timestamptz(us) AS time, "user", cell FROM columns'
        connection.execute(f"COPY ({query}) TO '{target}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    return str(target)


@given(
    raw=events_of.filter(bool),
    kind=st.sampled_from(["parquet", "csv", "ndjson"]),
    ids=st.sampled_from(list(IDS)),
    cells=st.sampled_from(list(CELLS)),
    k=st.integers(1, 3),
)
def test_files_agree_with_the_slow_count(raw: Any, kind: str, ids: str, cells: str, k: int) -> None:
    events = spelled(raw, ids, cells)
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), events, kind)
        for memory in MEMORY.values():
            source = FileSource(settings([path], CELLS[cells], max_cells_per_user=k), CLOCK, LAST)
            with memory():
                assert plain(source.count(roster(IDS[ids]), 1, 100)) == expected(events, ids, cells, k)
            inside = [event for event in events if 1 <= CLOCK.slot_of(event[0]) <= LAST]
            assert source.totals()["events"] == len(inside)
            assert source.totals()["malformed"] == 0


@given(raw=events_of.filter(bool), cuts=st.lists(st.integers(1, LAST), max_size=3), parts=st.integers(1, 3))
def test_any_split_into_runs_and_files_gives_the_same_counts(raw: Any, cuts: list[int], parts: int) -> None:
    """Each run sees the files so far, ends where it is told, and the next resumes from its position."""
    events = spelled(raw, "integers", "numbered")
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for index in range(parts):
            (Path(folder) / str(index)).mkdir()
            share = events[index * len(events) // parts : (index + 1) * len(events) // parts]
            paths.append(write(Path(folder) / str(index), share or [(0, 1, 1)], "parquet"))
        counted, position = [], None
        for end in [*sorted(set(cuts)), LAST]:
            source = FileSource(settings(paths, 3), CLOCK, end)
            if position is not None:
                source.resume(position)
            for one in source.count(roster(), len(counted) + 1, 100):
                counted.append(one)
                position = one.position
    assert plain(counted) == expected(events, "integers", "numbered", 1)


@given(raw=events_of, seed=st.randoms(), ids=st.sampled_from(list(IDS)), k=st.integers(1, 2), size=st.integers(1, 400))
def test_live_counts_do_not_depend_on_the_order_of_arrival(raw: Any, seed: Any, ids: str, k: int, size: int) -> None:
    """All arrive while every slot is open: nothing is late, so order and pieces do not matter."""
    events = [event for event in spelled(raw, ids, "numbered") if event[0] < DAY + 60 * SECOND * LAST]
    events = [event for event in events if event[0] >= DAY]
    shuffled = list(events)
    seed.shuffle(shuffled)
    text = b"".join(
        json.dumps({"time": format_time(time), "user": user, "cell": cell}).encode() + b"\n"
        for time, user, cell in shuffled
    )
    wall = Wall(DAY + 60 * SECOND * (LAST - 1))
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    inbox = ScriptedInbox([*pieces, 3_600.0], wall)
    chosen = settings(cells=3, grace_us=600 * SECOND, max_cells_per_user=k)
    source = pipe_source(chosen, CLOCK, LAST, inbox=inbox, now_us=wall)
    declared = [event for event in events if event[2] < 3]  # the others are rejected on arrival, before any slot
    by_cell = sorted(declared, key=lambda event: event[2])  # of equal times the cell declared last wins
    assert plain(source.count(roster(IDS[ids]), 1, LAST)) == expected(by_cell, ids, "numbered", k)
    assert source.totals()["unknown_cell"] == len(events) - len(declared)


class Spoiled(NamedTuple):
    """An event as it may stand in an input: any part of it may be no event, each in its own way."""

    time: int | str | None
    user: str | None
    cell: str | None


SPOILED = st.lists(
    st.builds(
        Spoiled,
        st.one_of(
            st.integers(-70, 60 * LAST + 70).map(lambda second: format_time(DAY + second * SECOND)),
            st.sampled_from(["2026-01-01T00:00:30", "2026-01-01 00:01", "yesterday", "1767225601", None]),
        ),
        st.sampled_from(["1", "2", "3", "11", "12", "x", "007", None]),
        st.sampled_from(["north", "south", "North", "west", None]),
    ),
    min_size=1,
    max_size=40,
)
REASONS = (*REJECTED, *MALFORMED)


def by_the_book(events: list[Spoiled]) -> dict[str, int]:
    """Why each event does not count, one by one."""
    found = dict.fromkeys(REASONS, 0)
    for time, user, cell in events:
        reader = TimeReader(None, "s")
        time_us = None if time is None else reader.one(time)
        if user is None:
            found["no_user"] += 1
        elif cell is None:
            found["no_cell"] += 1
        elif time_us is None:
            found["no_offset" if str(time)[:4] == "2026" else "no_time"] += 1
        elif not 1 <= CLOCK.slot_of(time_us) <= LAST:
            found["before" if time_us < DAY else "after"] += 1
        elif cell not in ("north", "south"):
            found["unknown_cell"] += 1
        elif user not in ("1", "2", "3"):
            found["unknown_user"] += 1
    return found


def as_parquet(path: Path, events: list[Spoiled]) -> str:
    """All columns as text, with gaps."""
    connection = duckdb.connect()
    connection.execute('CREATE TABLE events (time VARCHAR, "user" VARCHAR, cell VARCHAR)')
    connection.executemany("INSERT INTO events VALUES (?, ?, ?)", [list(event) for event in events])
    connection.execute(f"COPY events TO '{path}' (FORMAT parquet)")
    return str(path)


def as_csv(path: Path, events: list[Spoiled]) -> str:
    lines = [",".join("" if part is None else str(part) for part in event) for event in events]
    path.write_text("\n".join(["time,user,cell", *lines]) + "\n")
    return str(path)


def as_lines(events: list[Spoiled]) -> bytes:
    """Gaps as empty texts: null is no record in NDJSON, as a missing field is none."""
    rows = [{name: "" if part is None else part for name, part in event._asdict().items()} for event in events]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@given(events=SPOILED, numbered=st.booleans())
def test_the_reasons_are_those_of_the_book_whatever_reads_the_events(events: list[Spoiled], numbered: bool) -> None:
    people = roster([1, 2, 3] if numbered else ["1", "2", "3", "anna"])
    expected_reasons = by_the_book(events)
    with tempfile.TemporaryDirectory() as folder:
        ndjson = Path(folder) / "events.ndjson"
        ndjson.write_bytes(as_lines(events))
        parquet = as_parquet(Path(folder) / "events.parquet", events)
        for path in (as_csv(Path(folder) / "events.csv", events), str(ndjson), parquet):
            for memory in MEMORY.values():
                source = FileSource(settings([path], ["north", "south"]), CLOCK, LAST)
                with memory():
                    list(source.count(people, 1, LAST))
                totals = source.totals()
                assert {name: totals[name] for name in REASONS} == expected_reasons, path
                assert totals["malformed"] == sum(expected_reasons[name] for name in MALFORMED)
                assert totals["rejected"] == sum(expected_reasons[name] for name in REJECTED)
        wall = Wall(DAY + 60 * SECOND * (LAST + 3))
        inbox = ScriptedInbox([ndjson.read_bytes(), 3_600.0], wall)
        live = pipe_source(
            settings(cells=["north", "south"], grace_us=1_800 * SECOND), CLOCK, LAST, inbox=inbox, now_us=wall
        )
        list(live.count(people, 1, LAST))
        totals = live.totals()
        assert {name: totals[name] for name in REASONS} == expected_reasons
        assert totals["late"] == 0
