"""JSON arrays as lines: every element is one line, and an element that cannot be decoded costs no other one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.streams import settings
from wevent.streams import json_lines
from wevent.streams.decoding import PIECE_BYTES, time_reader
from wevent.streams.json_lines import ObjectDecoder, element_lines

GOOD = b'{"time":"2026-01-01T00:00:01Z","user":"u","cell":1}'
ODD = {
    "NaN": b'{"time":NaN,"user":"v","cell":1}',
    "Infinity": b'{"time":-Infinity,"user":"v","cell":1}',
    "a lone surrogate": rb'{"time":1,"user":"\ud83d","cell":1}',
    "nesting": b'{"time":1,"user":' + b"[" * 1000 + b"]" * 1000 + b',"cell":1}',
    "deep nesting": b'{"time":1,"user":' + b'{"a":[' * 100_000 + b"]}" * 100_000 + b',"cell":1}',
    "a control character": b'{"time":1,"user":"a\tb","cell":1}',
    "a line break in a text": b'{"time":1,"user":"a\nb","cell":1}',
    "a record after a line break": b'{"time":1,"user":"a\n","cell":1}',
    "a carriage return in a text": b'{"time":1,"user":"a\rb","cell":1}',
    "commas": b'{"time":1,"user":"' + b"," * 200_000 + b'","cell":1}',
    "brackets in a text": b'{"time":1,"user":"]}[{","cell":99}',
    "an escaped quote": rb'{"time":1,"user":"a\",b","cell":99}',
    "an escaped backslash": rb'{"time":1,"user":"a\\","cell":99}',
    "no UTF-8": b'{"time":1,"user":"\xff\xfe","cell":1}',
    "a NUL": b'{"time":1,"user":"\0","cell":1}',
    "a long number": b'{"time":1' + b"0" * 5000 + b',"user":1,"cell":1}',
    "an element that is too long": b'{"time":1,"user":"' + b"x" * PIECE_BYTES + b'","cell":1}',
    "null": b"null",
    "a number": b"1",
    "a text": b'"x, y"',
    "an array": b"[1, 2]",
    "an empty object": b"{}",
    "no JSON": b"x",
    "two objects": b"{} {}",
    "brackets that do not fit": b'{"a": [1}]',
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("between", [b",", b", ", b",\r\n  ", b"\n,"])
def test_an_odd_element_touches_no_other(odd: bytes, between: bytes) -> None:
    chosen = settings(cells=3)
    decoder = ObjectDecoder(chosen.columns, chosen.cells, time_reader(chosen))
    for number in (1, 40):
        body = b"[" + between.join([*[GOOD] * number, odd, *[GOOD] * number]) + b"]"
        read = decoder.decode(element_lines(body))
        unknown = int((read.batch.cells < 0).sum())
        assert len(read.batch.times) - unknown == 2 * number
        assert len(read.malformed) + unknown == 1


@pytest.mark.parametrize(
    "bad", [b"", b" ", b"[", b"]", b"{}", b"[1", b'["]', b'["a]', b"[{]", b"[}]", b"[1]]", b"[1] 2", b'["a\\"]']
)
def test_an_array_that_does_not_balance_is_refused(bad: bytes) -> None:
    with pytest.raises(ValueError, match=r"array|bracket|quote"):
        element_lines(bad)


def test_missing_elements_are_blank_lines() -> None:
    assert element_lines(b"[]") == element_lines(b" [ \n ] ") == b""
    assert element_lines(b"[1,,2,]") == b"1\n\n2\n\n"


VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('a",[]{}\\\n\t ü')),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('k\\"', max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(VALUES), st.sampled_from([None, 0, 2]), st.integers(2, 40))
def test_arrays_are_read_as_json_does(values: list[Any], indent: int | None, piece: int) -> None:
    """Also where pieces end anywhere, within an escape, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_lines, "_ARRAY_PIECE", piece)
        lines = element_lines(json.dumps(values, indent=indent).encode())
    assert [json.loads(line) for line in lines.splitlines()] == values
