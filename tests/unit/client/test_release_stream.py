"""Server-sent events, in whatever pieces they come."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wevent.client import release_stream
from wevent.client.release_stream import EventStreamReader
from wevent.errors import ServiceRefused

TEXT = (
    ": comment\r\nid: 1\rdata: a\ndata:  b\n\nevent: x\nid: 2\ndata\n\n"
    "data: ü\r\n\r\nid: 3\n\nretry: 1500\nother: 1\ndata: last"
).encode()
EVENTS = [("message", "a\n b"), ("x", ""), ("message", "ü")]


def read(pieces: list[bytes]) -> list[tuple[str, str]]:
    reader = EventStreamReader()
    return [event for piece in pieces for event in reader.feed(piece)]


@given(st.lists(st.integers(0, len(TEXT)), max_size=6))
def test_pieces_do_not_matter(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(TEXT)]
    assert read([TEXT[start:end] for start, end in pairwise(edges)]) == EVENTS


def test_byte_by_byte() -> None:
    assert read([bytes([byte]) for byte in TEXT]) == EVENTS


def test_how_long_to_wait() -> None:
    reader = EventStreamReader()
    assert list(reader.feed(b"retry: soon\n")) == []
    assert reader.retry_s is None
    assert list(reader.feed(b"retry: 1500\n")) == []
    assert reader.retry_s == 1.5


def test_an_event_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_stream, "_LONGEST", 1000)
    with pytest.raises(ServiceRefused):
        read([b"data: " + b"x" * 100 for _ in range(11)])
    with pytest.raises(ServiceRefused):
        read([b"data: " + b"x" * 100 + b"\n" for _ in range(11)])


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_any_bytes_are_survived(pieces: list[bytes]) -> None:
    read(pieces)
