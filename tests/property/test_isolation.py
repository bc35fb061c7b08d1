"""One record must not touch another's: whatever bytes stand in u's records, everybody else's counts are equal (spec 1)."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.live_events import pipe_source
from tests.support.streams import DAY, MEMORY, SECOND, ScriptedInbox, Wall, settings
from wevent import InvalidEvents, Roster
from wevent.experiments.datasets.event_file import file_stream
from wevent.settings.values import format_time
from wevent.streams.clock import SlotClock
from wevent.streams.file_source import FileSource

LAST = 3
CLOCK = SlotClock(DAY, 60 * SECOND)
OTHERS = {"numbers": [900_001, 900_002, 900_003, 10**18 + 3], "texts": ["other-a", "other-b", "other-ä", "00900001"]}
U = {"numbers": 7, "texts": "u1"}
CELLS: dict[str, Any] = {"numbered": 3, "labels": ["north", "süd", "7"]}
LABELS = {"numbered": [0, 1, 2, 5], "labels": ["north", "süd", 7, "west"]}
KINDS = ["csv", "tsv", "ndjson", "csv.gz", "ndjson.gz", "live"]
ENDS = [b"\n", b"\r\n"]

TOKENS = [
    b'"', b'""', b"\r", b"\r\r", b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b",", b"\t", b"{", b"}", b"[", b"]", b"\\",
    b"\\u0000", b"\\ud800", b" ", b":", b"\xef\xbb\xbf", b"'", b'{"x":', b'"close"', b"\xe2\x80\xa8", b"\x85", b"\x1c",
    b"#", b";", b"\x1a", b"0", b"1e5", b"-", b".", b"null", b"true", b"NaN", b"Infinity", b"9" * 30, b"\x0b", b"/*", b"=1+1",
]  # fmt: skip
IDS = [
    7, "u1", "u1\0", "007", 7.0, 7.5, 2**63, 2**64, 10**30, -0.0, 1e300, 5e-324, True, False, None, [], {}, [1], {"a": {}},
    "", " ", " u1 ", "x" * 256, "x" * 300, "x" * 5_000, "ä" * 200, "\ud7ff", '"', "0" * 19, "-" + "9" * 18, "nan", "-inf",
]  # fmt: skip
TIMES = [
    format_time(DAY + 10 * SECOND), "2026-01-01T00:00:10", "2026-02-30T00:00:00Z", "2026-01-01T00:00:10+99:99",
    "2026-01-01T00:00:10.1234567891Z", "２０２６-01-01T00:00:10Z", "2026-01-01T24:00:00Z", DAY // SECOND, 1e308, 1e400,
    "1e999", 10**400, "nan", [1], {}, None, "9" * 70, -1, "-0", "+.5e3", "", "x" * 70, True,
]  # fmt: skip


def record(parts: tuple[Any, Any, Any], kind: str) -> bytes:
    if kind.startswith(("ndjson", "live")):
        return json.dumps(dict(zip(("time", "user", "cell"), parts, strict=True)), ensure_ascii=False).encode()
    mark = "\t" if kind == "tsv" else ","
    return mark.join(str(part) for part in parts).encode()


def bad_lines(kind: str) -> st.SearchStrategy[bytes]:
    """Records of u's: odd values, odd bytes in them, or bytes alone."""
    whole = st.tuples(st.sampled_from(TIMES), st.sampled_from(IDS), st.sampled_from([0, "north", 9.5, "\0", "x" * 300]))
    written = whole.map(lambda parts: record(parts, kind))
    spoiled = st.tuples(written, st.lists(st.tuples(st.integers(0, 80), st.sampled_from(TOKENS)), max_size=4)).map(
        lambda pair: spoil(*pair)
    )
    depths = st.one_of(st.integers(1, 3_000), st.just(50_000))
    deep = depths.map(lambda depth: b'{"user":"u1","x":' + b"[" * depth + b"]" * depth + b"}")
    long = st.sampled_from([2**20 - 1, 2**20, 2**20 + 1]).map(lambda size: b"x" * size)
    lines = st.one_of(spoiled, st.lists(st.sampled_from(TOKENS)).map(b"".join), st.binary(max_size=60), deep, long)
    return lines.map(lambda line: line.replace(b"\n", b""))


def spoil(line: bytes, insertions: list[tuple[int, bytes]]) -> bytes:
    for place, token in insertions:
        line = line[:place] + token + line[place:]
    return line


good_events = st.lists(
    st.tuples(st.integers(0, 60 * LAST - 1), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=25
)


@st.composite
def inputs(draw: Any, kind: str) -> tuple[str, str, list[bytes], list[bytes]]:
    """Ids, cells, the others' lines, and the same with u's lines among them."""
    ids, cells = draw(st.sampled_from(list(OTHERS))), draw(st.sampled_from(list(CELLS)))
    good = [
        record((format_time(DAY + time * SECOND), OTHERS[ids][user], LABELS[cells][cell]), kind)
        for time, user, cell in draw(good_events)
    ]
    mixed = list(good)
    for line in draw(st.lists(bad_lines(kind), max_size=8)):
        mixed.insert(draw(st.integers(0, len(mixed))), line)
    return ids, cells, good, mixed


def people(ids: str) -> Roster:
    """u has a class of their own, the last one."""
    everyone = [*OTHERS[ids], U[ids]]
    return Roster.from_columns(everyone, [4, 6, 4, 6, 9], [1, 1, 0.5, 1, 1])


def written(folder: str, kind: str, lines: list[bytes], end: bytes = b"\n") -> str:
    path = Path(folder) / f"events.{kind}"
    header = {"csv": b"time,user,cell\n", "tsv": b"time\tuser\tcell\n"}.get(kind.removesuffix(".gz"), b"")
    content = header + b"".join(line + end for line in lines)
    path.write_bytes(gzip.compress(content) if kind.endswith(".gz") else content)
    return str(path)


def of_the_others(counted: Any) -> list[list[list[int]]]:
    return [one.counts.matrix[:-1].tolist() for one in counted]


def count_file(lines: list[bytes], kind: str, ids: str, cells: str, memory: str, end: bytes = b"\n") -> list[Any]:
    with tempfile.TemporaryDirectory() as folder, MEMORY[memory]():
        chosen = settings([written(folder, kind, lines, end)], CELLS[cells])
        return of_the_others(FileSource(chosen, CLOCK, LAST).count(people(ids), 1, LAST))


def count_live(lines: list[bytes], ids: str, cells: str, size: int = 50) -> list[Any]:
    wall = Wall(DAY + 60 * SECOND * (LAST - 1))
    text = b"".join(line + b"\n" for line in lines)
    size = size if len(text) < 100_000 else 2**18
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    inbox = ScriptedInbox([*pieces, 3_600.0], wall)
    source = pipe_source(settings(cells=CELLS[cells], grace_us=600 * SECOND), CLOCK, LAST, inbox=inbox, now_us=wall)
    return of_the_others(source.count(people(ids), 1, LAST))


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_nobody_elses_counts_depend_on_what_stands_in_my_records(kind: str, data: Any) -> None:
    ids, cells, good, mixed = data.draw(inputs(kind))
    if kind == "live":
        for size in (50, 100_000):
            assert count_live(mixed, ids, cells, size) == count_live(good, ids, cells)
        return
    end = data.draw(st.sampled_from(ENDS))
    for memory in MEMORY:
        assert count_file(mixed, kind, ids, cells, memory, end) == count_file(good, kind, ids, cells, memory, end)


@given(data=st.data())
def test_in_a_simulation_neither(data: Any) -> None:
    ids, _, good, mixed = data.draw(inputs("csv"))
    assert simulated(mixed, ids) == simulated(good, ids)


def simulated(lines: list[bytes], ids: str) -> dict[str, list[Any]]:
    """Slot and cell of every record of the others', by name."""
    with tempfile.TemporaryDirectory() as folder:
        anchor = [record((format_time(DAY), "anchor", "north"), "csv")]
        try:
            stream = file_stream(Path(written(folder, "csv", [*anchor, *lines])), slot_length_s=60)
        except InvalidEvents as error:
            assume("10,000,000 slots" not in str(error))  # a simulation may end with its user's data: nobody is served
            raise
    found: dict[str, list[Any]] = {str(one): [] for one in OTHERS[ids]}
    names = [str(label) for label in stream.user_labels.tolist()]
    places = [str(cell) for cell in stream.cells]
    start = names.index("anchor")
    first = int(stream.slot[stream.user == start].min())
    for slot, user, cell in zip(stream.slot.tolist(), stream.user.tolist(), stream.cell.tolist(), strict=True):
        if names[user] in found:
            found[names[user]].append((slot - first, places[cell]))
    return found


@given(data=st.data(), among=st.lists(st.sampled_from([*IDS, 7, "7"]), max_size=6))
def test_an_id_is_found_the_same_whatever_else_is_in_the_batch(data: Any, among: list[Any]) -> None:
    """The library's own counting: a huge number, a float or a text among ids must not change the type of the others."""
    ids = data.draw(st.sampled_from(list(OTHERS)))
    mine = [OTHERS[ids][0], OTHERS[ids][1], OTHERS[ids][3]]
    spelled = [str(one) if data.draw(st.booleans()) else one for one in mine]
    users, cells = [*spelled, *among], [0, 1, 2, *[0] * len(among)]
    counts = people(ids).count(users, cells, 3)
    alone = people(ids).count(mine, [0, 1, 2], 3)
    assert np.array_equal(counts.matrix[:-1], alone.matrix[:-1])
    assert alone.matrix.sum() == 3


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("csv", '2026-01-01T00:00:10Z,"u1', 'u1",0'),
        ("csv", '"', '"'),
        ("csv.gz", 'x,"', '",y'),
        ("tsv", '"', '"'),
        ("ndjson", '{"time": 1767225610, "user": "u1", "cell": 0, "x":', "}"),
        ("ndjson", '{"x": [', "]}"),
        ("ndjson.gz", '{"x": {', "}}"),
        ("live", '{"time": 1767225610, "user": "u1", "cell": 0, "x":', "}"),
        ("live", "[", "]"),
    ],
)
@pytest.mark.parametrize("doubled", [False, True])
def test_lines_that_would_take_the_next_one_along(kind: str, before: str, after: str, doubled: bool) -> None:
    """In the second case as many records more on a line as are swallowed: the number of records gives nothing away."""
    lines = [record((format_time(DAY + 10 * SECOND), user, 1), kind) for user in OTHERS["texts"][:3]]
    mixed = [lines[0], before.encode(), lines[1], after.encode(), lines[2]]
    if doubled:
        mine = record((format_time(DAY + 10 * SECOND), "u1", 1), kind)
        mixed += [mine + mine, mine + mine]
    if kind == "live":
        assert count_live(mixed, "texts", "numbered", 10_000) == count_live(lines, "texts", "numbered")
        return
    for memory in MEMORY:
        counted = count_file(mixed, kind, "texts", "numbered", memory)
        assert counted == count_file(lines, kind, "texts", "numbered", memory)
