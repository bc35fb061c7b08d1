"""Epochs: terms bind with their first slot, and everything that comes with them is stored with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.journals import Kept
from tests.support.publications import publish
from tests.support.synthetic import CLASSES, make_terms
from wevent.journal import Journal
from wevent.journal.rebuild import holdout_of
from wevent.people.membership import Change
from wevent.publishing.importing import WantedRegistry, import_users
from wevent.publishing.opening import begin, pinned_terms

OTHER = make_terms(mechanism="pba")


def test_a_start_that_came_to_no_slot_binds_nobody(kept: Kept, tmp_path: Path) -> None:
    with kept.open() as journal:
        journal.begin(make_terms(), ("start auto",), imported=b"first")
        assert not journal.is_new
    with kept.open() as journal:
        assert pinned_terms(journal) is None
        journal.begin(OTHER)
        assert [(epoch.number, epoch.first, epoch.terms) for epoch in journal.epochs()] == [(1, 1, OTHER)]
        assert journal.head().unsafe == ()
        assert not journal.epoch_waits
        publish(journal, tmp_path / "o.ndjson", 1)
        assert pinned_terms(journal) == OTHER


def test_an_epoch_is_stored_with_its_first_slot(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 3)
    fresh.begin(OTHER, ("start auto",), [Change("remove", "u0")], b"a file")
    assert fresh.epoch_waits
    assert fresh.head().epoch == fresh.epochs()[-1]
    assert (fresh.epochs()[-1].number, fresh.epochs()[-1].first) == (2, 4)
    with kept.open(write=False) as reader:  # nothing of it is stored
        assert len(reader.epochs()) == 1
        assert (reader.head().unsafe, reader.imported(), reader.registry.pending()) == ((), b"", 0)
    fresh.close()
    with kept.open() as journal:
        assert len(journal.epochs()) == 1
        journal.begin(OTHER, ("start auto",), [Change("remove", "u0")], b"a file")
        publish(journal, tmp_path / "o.ndjson", 4)
        assert not journal.epoch_waits
        assert (journal.head().unsafe, journal.imported()) == (("start auto",), b"a file")
        assert journal.registry.queued() == [Change("remove", "u0")]  # in force after the epoch's first slot
        assert [record.epoch.number for record in journal.releases()] == [1, 1, 1, 2]
        publish(journal, tmp_path / "o.ndjson", 5)
        assert "u0" not in {member.user for member in journal.registry.members()}


def test_a_failed_first_slot_leaves_no_epoch(fresh: Journal, tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 3)
    fresh.begin(OTHER, imported=b"a file")

    def fail(step: str) -> None:
        if step == "position stored":
            raise KeyError

    with pytest.raises(KeyError):
        publish(fresh, tmp_path / "o.ndjson", 4, at=fail)
    assert fresh.epoch_waits
    assert fresh.imported() == b""
    publish(fresh, tmp_path / "o.ndjson", 4)
    assert [epoch.number for epoch in fresh.epochs()] == [1, 2]


def test_terms_with_an_id_that_nobody_can_have_are_not_begun(kept: Kept) -> None:
    with kept.open() as journal:
        with pytest.raises(Exception, match="an id"):
            journal.begin(make_terms(), changes=[Change("set", "", CLASSES[0])])
        assert journal.is_new


def test_who_comes_with_the_first_terms_counts_from_the_first_slot(kept: Kept) -> None:
    with kept.open() as journal:
        wanted = WantedRegistry(["ann", "bob"], [CLASSES[0], CLASSES[1]], b"digest")
        assert begin(journal, make_terms(), new_epoch=False, wanted=wanted).joining == 2
        assert journal.registry.holds("ann") or journal.registry.pending()
        journal.registry.apply(1, holdout_of(journal.epochs(), journal.registry.restores()))
        assert {member.user: (member.key, member.first) for member in journal.registry.members()} == {
            "ann": (CLASSES[0], 1),
            "bob": (CLASSES[1], 1),
        }
        assert journal.imported() == b"digest"


def test_a_file_is_imported_once(fresh: Journal, tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 2)
    wanted = WantedRegistry([f"u{user}" for user in range(89)], [CLASSES[user % 3] for user in range(89)], b"digest")
    assert import_users(fresh, wanted).leaving == 1
    assert fresh.imported() == b"digest"
    assert import_users(fresh, wanted).total == 0
    assert fresh.registry.queued() == [Change("remove", "u89")]


def test_what_weakens_the_promise_never_goes_away(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    fresh.note_unsafe(("start auto",))
    publish(fresh, tmp_path / "o.ndjson", 1)
    fresh.note_unsafe(("seeded noise", "start auto"))
    fresh.close()
    with kept.open() as journal:
        journal.begin(OTHER)
        assert journal.head().unsafe == ("start auto", "seeded noise")
