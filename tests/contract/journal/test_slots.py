"""Slots: stored whole or not at all, each once, chained, and dropped when nothing needs them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.support.journals import Kept
from tests.support.publications import publish
from wevent.errors import JournalLocked
from wevent.journal import Batch, Journal
from wevent.journal.record import chain_hash

STEPS = ("began", "slots stored", "version stored", "position stored")


class Fault(Exception):
    """Something broke within a commit."""


@pytest.mark.parametrize("step", STEPS)
def test_a_commit_is_whole_or_not_at_all(fresh: Journal, kept: Kept, tmp_path: Path, step: str) -> None:
    publish(fresh, tmp_path / "o.ndjson", 5)
    head = fresh.head()
    reached = []

    def fail(label: str) -> None:
        reached.append(label)
        if label == step:
            raise Fault

    with pytest.raises(Fault):
        publish(fresh, tmp_path / "o.ndjson", 9, batch=2, at=fail)
    assert [label for label in reached if label != "written ahead"] == ["stepped", *STEPS[: STEPS.index(step) + 1]]
    assert fresh.head() == head
    assert [record.slot for record in fresh.releases()] == [1, 2, 3, 4, 5]
    fresh.close()
    with kept.open() as journal:
        assert journal.head().committed == 7  # both slots are stored, as they were drawn
        publish(journal, tmp_path / "o.ndjson", 9)
        assert journal.head().committed == 9


@pytest.mark.parametrize("step", ["written ahead", *STEPS])
def test_a_batch_that_failed_is_committed_again(fresh: Journal, tmp_path: Path, step: str) -> None:
    publish(fresh, tmp_path / "o.ndjson", 3)
    (last,) = fresh.releases(3)
    batch, reached = Batch([replace(last, slot=4)], {"slot": 4}, None, 3), []

    def fail(label: str) -> None:
        reached.append(label)
        if label == step:
            raise Fault

    with suppress(Fault):
        fresh.commit(batch, fail)
    if step in reached:
        assert fresh.head().committed == 3
        fresh.commit(batch)
    assert [record.slot for record in fresh.releases()] == [1, 2, 3, 4]
    assert fresh.head().position == {"slot": 4}


def test_a_slot_is_committed_once(fresh: Journal, tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 3)
    head, again = fresh.head(), list(fresh.releases(3))
    with pytest.raises(JournalLocked, match="discarded"):
        fresh.commit(Batch(again, {"slot": 9}, b"state", 3))
    assert fresh.head() == head


def test_a_slot_is_never_left_out(fresh: Journal, tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 3)
    (last,) = fresh.releases(3)
    with pytest.raises(JournalLocked):
        fresh.commit(Batch([replace(last, slot=5)], None, None, 3))
    assert fresh.head().committed == 3


def test_the_position_comes_back(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 3)
    assert fresh.head().position == {"slot": 3, "time_unit": "s"}
    fresh.commit(Batch((), {"file": 2}, None, 3))
    fresh.close()
    with kept.open() as journal:
        assert journal.head().position == {"file": 2}
        journal.commit(Batch((), None, None, 2))
        assert journal.head().position == {"file": 2}
        assert journal.head().emitted == 3  # it never goes back


def test_a_stored_state_is_what_the_slots_after_it_are_replayed_from(fresh: Journal, tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 4)
    assert fresh.load().state is None
    fresh.commit(Batch((), None, b"a state", 4))
    loaded = fresh.load()
    assert (loaded.state, loaded.since) == (b"a state", [])
    assert loaded.last is not None
    assert loaded.last.slot == 4


def test_every_slot_is_chained_to_the_one_before(fresh: Journal, tmp_path: Path) -> None:
    genesis = fresh.head().digest
    assert fresh.chain_at(0) == genesis
    publish(fresh, tmp_path / "o.ndjson", 6)
    link = genesis
    for record in fresh.releases():
        link = chain_hash(link, msgspec.msgpack.encode(record.entry()))
        assert fresh.chain_at(record.slot) == link
        assert not fresh.is_elsewhere(record.slot)
    assert fresh.head().digest == link
    assert fresh.chain_at(7) is None
    assert not fresh.is_elsewhere(7)


def test_slots_are_dropped_only_when_nothing_needs_them(fresh: Journal, tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 30, batch=7)
    link = fresh.chain_at(19)
    assert fresh.compact(5) == 1  # no state is stored: every slot is replayed
    fresh.commit(Batch((), None, b"a state", 30))
    assert fresh.compact(11) == 20
    assert fresh.chain_at(19) == link  # the next slot is compared with it
    assert fresh.chain_at(18) is None
    assert [record.slot for record in fresh.releases()] == list(range(20, 31))
    assert fresh.compact(50) == 20
    assert fresh.compact(1) == 30 - 8 + 1  # the widest window
    assert fresh.head().first == 23
    assert fresh.load().head.committed == 30


def test_what_was_not_emitted_is_kept(fresh: Journal, tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 5)
    fresh.commit(Batch((), None, b"a state", 5))
    (last,) = fresh.releases(5)
    fresh.commit(Batch([replace(last, slot=slot) for slot in range(6, 31)], None, b"a state", 5))
    assert fresh.compact(1) == 6
    fresh.commit(Batch((), None, None, 30))
    assert fresh.compact(1) == 23
