"""Marks: an old copy of a journal is noticed, charged for what went out elsewhere, and never draws a slot twice (spec 10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.journals import Kept
from tests.support.publications import publish
from tests.support.synthetic import CLASSES, make_terms
from wevent.errors import StaleJournal
from wevent.journal import Journal
from wevent.people.holdout import bucket_of
from wevent.people.membership import Change
from wevent.publishing.staleness import settle_stale

FOUR, EIGHT, THREE = CLASSES


def test_a_mark_says_how_far_the_journal_is(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    assert fresh.marked() == ("", 0, "")
    publish(fresh, tmp_path / "o.ndjson", 3)
    head, identity = fresh.head(), fresh.identity
    with kept.open(write=False) as reader:
        assert reader.marked() == (identity, 3, head.digest.hex())
    fresh.close()
    with kept.open() as journal:
        assert journal.identity == identity
        assert journal.marked() == (identity, 3, head.digest.hex())
        publish(journal, tmp_path / "o.ndjson", 4)
        assert journal.marked().committed == 3  # as it was before this journal was opened


def test_a_note_comes_back(fresh: Journal, kept: Kept) -> None:
    fresh.write_note(b"how it was left")
    fresh.write_note(bytes(5000))  # more than fits is not written
    assert fresh.read_note().strip(b" \0") == b"how it was left"
    fresh.close()
    with kept.open(write=False) as reader:
        reader.write_note(b"not by a reader")
    with kept.open() as journal:
        assert journal.read_note().strip(b" \0") == b"how it was left"


def copied(kept: Kept, fresh: Journal, tmp_path: Path, changes: list[Change]) -> None:
    """A backup of slot 5 in the place of a journal that went on to slot 9 and took changes."""
    publish(fresh, tmp_path / "o.ndjson", 5)
    kept.back_up()
    fresh.registry.ask(changes)
    publish(fresh, tmp_path / "o.ndjson", 9)
    fresh.close()
    kept.put_back()


def test_a_backup_stays_closed_until_somebody_says_what_went_out(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    copied(kept, fresh, tmp_path, [])
    with kept.open() as journal:
        assert journal.head().copied
        with pytest.raises(StaleJournal):
            settle_stale(journal, None)
        with pytest.raises(StaleJournal):
            settle_stale(journal, 8)
        with pytest.raises(StaleJournal):
            journal.registry.ask([Change("remove", "u0")])
        assert journal.head().committed == 5
        assert journal.registry.pending() == 0


def test_slots_released_elsewhere_are_charged_and_not_drawn(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    copied(kept, fresh, tmp_path, [])
    with kept.open() as journal:
        assert settle_stale(journal, 9) == (4, 0)
        head = journal.head()
        assert (head.committed, head.emitted, head.copied) == (9, 9, False)
        assert [journal.is_elsewhere(slot) for slot in range(1, 11)] == [False] * 5 + [True] * 4 + [False]
        last = list(journal.releases())[-1]
        charged = dict(zip(last.group.population.classes, last.publication.tolist(), strict=True))
        assert min(charged.values()) > 0
        (restore,) = journal.registry.restores()
        assert (restore.slot, restore.proven, restore.same_epoch) == (9, 9, True)
        assert restore.proves
        publish(journal, tmp_path / "o.ndjson", 12)
        assert journal.head().committed == 12
    with kept.open() as journal:
        assert settle_stale(journal, None) == (0, 0)


def test_whose_membership_changed_after_the_backup_waits(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    buckets = [bucket_of(f"u{number}", fresh.registry.salt) for number in range(90)]
    alone = next(
        number for number in range(0, 90, 3) if buckets.count(buckets[number]) == 1
    )  # who shares one waits too
    copied(kept, fresh, tmp_path, [Change("set", f"u{alone}", EIGHT)])
    with kept.open() as journal:
        assert settle_stale(journal, 9).held_out == 1
        waiting = [member for member in journal.registry.members() if member.first > 10]
        assert [(member.user, member.key, member.first) for member in waiting] == [(f"u{alone}", FOUR, 9 + 8)]
        publish(journal, tmp_path / "o.ndjson", 20)
        users = [int(record.group.population.sizes.sum()) for record in journal.releases()]
        assert users[:5] == [90] * 5
        assert users[9:] == [89] * 7 + [90] * 4


def test_beyond_the_mark_nothing_is_proven(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    copied(kept, fresh, tmp_path, [])
    with kept.open() as journal:
        assert journal.proof(9) is not None
        assert journal.proof(8) is None
        assert journal.proof(10) is None
        with pytest.raises(StaleJournal, match="widest-window"):
            settle_stale(journal, 10)
        assert settle_stale(journal, 10, 20).held_out == 90
        assert {member.first for member in journal.registry.members()} == {10 + 20}


def test_another_copy_proves_nothing_about_this_one(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    copied(kept, fresh, tmp_path, [])
    with kept.open() as journal:
        settle_stale(journal, 9)
        publish(journal, tmp_path / "o.ndjson", 12)
    kept.put_back()  # the same backup again
    with kept.open() as journal:
        assert journal.proof(12) is None


def test_a_lost_epoch_is_noticed(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 5)
    kept.back_up()
    fresh.begin(make_terms(mechanism="pba"))
    publish(fresh, tmp_path / "o.ndjson", 9)
    fresh.close()
    kept.put_back()
    with kept.open() as journal:
        proof = journal.proof(9)
        assert proof is not None
        assert not proof.same_epoch
