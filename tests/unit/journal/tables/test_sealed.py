"""Sealed pending events: one key each, destroyed as soon as the next one is committed."""

from __future__ import annotations

import pytest
from wevent.journal.tables.sealed import KEYS_AT, PendingKeys


class Side:
    """A side file in memory."""

    def __init__(self) -> None:
        self.data = bytearray(KEYS_AT)

    def read(self, number: int, place: int) -> bytes:
        return bytes(self.data[place : place + number])

    def write(self, data: bytes, place: int) -> None:
        self.data[len(self.data) :] = bytes(max(0, place + len(data) - len(self.data)))
        self.data[place : place + len(data)] = data

    def keys(self) -> list[bytes]:
        found = bytes(self.data[KEYS_AT:])
        return [found[place : place + 32] for place in range(0, len(found), 32) if any(found[place : place + 32])]


@pytest.fixture
def side() -> Side:
    return Side()


def opened(side: Side) -> PendingKeys:
    return PendingKeys(side.read, side.write)


@pytest.mark.parametrize("size", [1, 7, 4087, 4088, 4089, 70_000])
def test_what_was_sealed_comes_back(side: Side, size: int) -> None:
    keys, events = opened(side), b"e" * size
    sealed = keys.seal(events)
    keys.committed()
    assert events[:8] not in sealed[40:] or size < 8
    assert len(sealed) - 40 == max(4096, 1 << (size + 7).bit_length())
    assert opened(side).unseal(sealed) == events


def test_nothing_pending_is_nothing_stored(side: Side) -> None:
    keys = opened(side)
    keys.seal(b"events")
    keys.committed()
    assert keys.seal(b"") == b""
    keys.committed()
    assert side.keys() == []
    assert opened(side).unseal(b"") == b""


def test_a_committed_key_replaces_the_one_before(side: Side) -> None:
    keys, seen = opened(side), []
    for number in range(20):
        sealed = keys.seal(b"events %d" % number)
        keys.committed()
        assert len(side.keys()) == 1
        seen += side.keys()
        assert opened(side).unseal(sealed) == b"events %d" % number
    assert len(set(seen)) == 20


def test_a_crash_before_the_commit_leaves_the_earlier_events(side: Side) -> None:
    keys = opened(side)
    earlier = keys.seal(b"earlier")
    keys.committed()
    keys.seal(b"never committed")
    assert opened(side).unseal(earlier) == b"earlier"
    assert len(side.keys()) == 1


def test_a_crash_after_the_commit_leaves_the_later_events_only(side: Side) -> None:
    keys = opened(side)
    earlier = keys.seal(b"earlier")
    keys.committed()
    later = keys.seal(b"later")
    again = opened(side)
    assert again.unseal(later) == b"later"
    assert len(side.keys()) == 1
    assert opened(side).unseal(earlier) is None


def test_a_commit_that_failed_is_tried_again(side: Side) -> None:
    keys = opened(side)
    first = keys.seal(b"first")
    keys.committed()
    keys.seal(b"failed")
    assert opened(side).unseal(first) == b"first"
    second = keys.seal(b"second")
    keys.committed()
    assert opened(side).unseal(second) == b"second"


def test_other_bytes_are_no_events(side: Side) -> None:
    keys = opened(side)
    sealed = keys.seal(b"events")
    keys.committed()
    for place in (0, 20, 100, len(sealed) - 1):
        flipped = bytearray(sealed)
        flipped[place] ^= 1
        copy = Side()
        copy.data = bytearray(side.data)
        assert opened(copy).unseal(bytes(flipped)) is None
    assert opened(side).unseal(sealed[:-1]) is None
    assert side.keys() == []
