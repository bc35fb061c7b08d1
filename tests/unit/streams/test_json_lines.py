"""NDJSON: decoding many lines at once gives what decoding each by itself gives."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wevent.counting.labels import Cells
from wevent.streams.json_lines import MAX_DEPTH, ObjectDecoder
from wevent.streams.times import SlotReader, TimeReader

NAMES = {"time": "time", "user": "user", "cell": "cell"}
ISO = "2026-01-01T00:00:10.5Z"


def decoder(times: Any = None) -> ObjectDecoder:
    return ObjectDecoder(NAMES, Cells.of(["0", "1", "north", "1.5"]), times or TimeReader(None, "s"))


def decoded(lines: list[bytes], times: Any, at_once: int) -> list[Any]:
    """Events and problems by line, decoded `at_once` lines at a time by one decoder."""
    one, found = decoder(times), []
    for start in range(0, len(lines), at_once):
        part = one.decode(b"".join(line + b"\n" for line in lines[start : start + at_once]))
        problems = zip((part.malformed + start).tolist(), part.problems.tolist(), strict=True)
        batch = part.batch
        found += [
            ("event", *event)
            for event in zip(batch.times.tolist(), batch.users.values(), batch.cells.tolist(), strict=True)
        ]
        found += [("problem", *problem) for problem in problems]
    return sorted(found, key=repr)


values = st.one_of(
    st.text(max_size=8),
    st.integers(-(10**20), 10**20),
    st.sampled_from(
        ["", "7", "007", "x" * 256, "x" * 257, "ü", '"', "\\", "\n", "\x7f", " a ", None, True, 1.5, [], {}]
    ),
)
times = st.one_of(
    st.sampled_from([ISO, "2026-01-01T00:00:10Z", "2026-01-01T00:00:10", "2026-02-30T00:00:10.5Z", "12", 12, -3, 1.5]),
    values,
)
odd = st.sampled_from(
    [
        b"", b" ", b"{}", b"null", b"\xff", b"\0", b"x\ry", b'{"time":1,"user":2,"cell":"0"}\r',
        b'{"time":1,"user":2,"cell":"0"} ',
        b'{"time":1,"user":2,"cell":"0"}}', b'{"time":1,"user":-0,"cell":"0"}', b'{"time":1,"user":02,"cell":"0"}',
        b'{"time":1,"user":2,"cell":"0","cell":"1"}', b'{"time":1,"user":2,"cell":"\\u0030"}',
        b'{"time":1,"user":"\t","cell":"0"}',
        b'{"time":1,"user":2.0,"cell":"0"}', b'{"time":1,"user":2,"cell":"0""}', b'{"time":1,"user":,"cell":"0"}',
        b'{"time":1,"user":"\xc3","cell":"0"}', b'["time",1,"user",2,"cell","0"]', b'{"time":1,"usex":2,"cell":"0"}',
    ]
)  # fmt: skip


@st.composite
def records(draw: st.DrawFn) -> bytes:
    record = {"time": draw(times), "user": draw(values), "cell": draw(values)}
    if draw(st.booleans()):
        record = {"extra": draw(values), **record}
    separators = draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    return json.dumps(record, separators=separators, ensure_ascii=draw(st.booleans())).encode(errors="replace")


plain = [b'{"time":"%s","user":"u%d","cell":"%d"}' % (ISO.encode(), number, number % 3) for number in range(40)]


@given(st.lists(st.one_of(records(), odd), max_size=30), st.randoms(), st.sampled_from([None, SlotReader()]))
def test_many_lines_at_once_are_what_each_is_by_itself(lines: list[bytes], random: Any, reader: Any) -> None:
    mixed = [*lines, *lines, *plain]
    random.shuffle(mixed)
    assert decoded(mixed, reader, len(mixed)) == decoded(mixed, reader, 1)


@pytest.mark.parametrize("time", [ISO, 1_767_225_600])
@pytest.mark.parametrize("user", [12, "u12"])
def test_events_stay_in_the_order_of_their_lines(time: Any, user: Any) -> None:
    lines = [json.dumps({"time": time, "user": user, "cell": str(number % 2)}).encode() for number in range(64)]
    lines[10] = b'{"user": "odd", "time": "%s", "cell": 1.5}' % ISO.encode()
    lines[20] = b'{"user": "\\u0061", "time": "%s", "cell": "north"}' % ISO.encode()
    batch = decoder().decode(b"".join(line + b"\n" for line in lines)).batch
    assert np.flatnonzero(batch.cells == 2).tolist() == [19]  # the tenth line is malformed
    assert batch.cells[:10].tolist() == [0, 1] * 5


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, 2 * MAX_DEPTH])
@pytest.mark.parametrize("bracketed", [0, 40])
def test_only_lines_that_are_too_deep_are_malformed(depth: int, bracketed: int) -> None:
    nested = b'{"time":1,"user":2,"cell":"0","extra":%s1%s}' % (b"[" * depth, b"]" * depth)
    beside = b'{"time":1,"user":2,"cell":"0","extra":[[{"a":"[["}]]}'
    found = decoder().decode(b"\n".join([*plain, *[beside] * bracketed, nested]) + b"\n")
    assert len(found.malformed) == (depth >= MAX_DEPTH)
    assert len(found.batch.times) == len(plain) + bracketed + (depth < MAX_DEPTH)


def test_what_a_line_is_depends_on_it_alone() -> None:
    """Lines with two records beside blank lines and halves of records: as many records as lines, and not one on each."""
    record = b'{"time":1,"user":2,"cell":"0"}'
    kinds = [record, record + b"\r" + record, record + b" " + record, record + record, b"", b"\r", b" " + record]
    kinds += [record[:10], record[10:], b"[", b"]", record + b"}", b"{" + record]
    for lines in product(kinds, repeat=3):
        assert decoded(list(lines), None, 3) == decoded(list(lines), None, 1), lines
