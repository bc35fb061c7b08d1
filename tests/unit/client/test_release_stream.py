"""Releases from server-sent events, in whatever pieces they come."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.client.test_client import released
from wevent.client import transport
from wevent.client.transport import EventReader
from wevent.errors import ServiceRefused

RELEASES = [json.dumps(released(slot), ensure_ascii=False).encode() for slot in (1, 2)]
TEXT = (
    b"retry: 1500\n\n: comment\n\nid: 1\nevent: release\ndata: %s\n\nevent: news\ndata: x\n\n"
    b"event: release\nid: 2\nother: 1\ndata: %s\n\nevent: release\ndata: cut off" % tuple(RELEASES)
)


def read(pieces: list[bytes]) -> list[int]:
    reader = EventReader()
    slots = [release.slot for piece in pieces for release in reader.releases(piece)]
    assert reader.retry_s == (1.5 if b"".join(pieces) == TEXT else None)
    return slots


@given(st.lists(st.integers(0, len(TEXT)), max_size=6))
def test_pieces_do_not_matter(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(TEXT)]
    assert read([TEXT[start:end] for start, end in pairwise(edges)]) == [1, 2]


def test_byte_by_byte() -> None:
    assert read([bytes([byte]) for byte in TEXT]) == [1, 2]


def test_a_pause_that_is_no_number() -> None:
    reader = EventReader()
    assert list(reader.releases(b"retry: soon\n\n")) == []
    assert reader.retry_s is None


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_an_event_without_end_is_refused(end: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_LONGEST_EVENT", 1000)
    with pytest.raises(ServiceRefused):
        read([b"data: " + b"x" * 100 + end for _ in range(11)])


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_any_bytes_are_survived(pieces: list[bytes]) -> None:
    list(map(list, map(EventReader().releases, pieces)))
