"""An old copy of a journal is noticed, charged for what was released elsewhere, and never draws a slot twice (spec 10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.journals import Kept
from tests.support.publications import publish
from tests.support.synthetic import CLASSES, make_terms, want
from wevent.errors import StaleJournal
from wevent.journal import Journal
from wevent.journal.record import NO_REVISION, Batch
from wevent.journal.terms import class_history, hash_versions
from wevent.people.classes import Restore
from wevent.people.membership import Change
from wevent.publishing.importing import import_users
from wevent.publishing.staleness import refuse_lost_changes, settle_stale
from wevent.settings import RestoreOptions

FOUR, EIGHT, THREE = CLASSES


def test_a_witness_shows_how_far_the_journal_is(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    assert shown(fresh) == ("", 0, "", NO_REVISION, "")
    publish(fresh, tmp_path / "o.ndjson", 3)
    identity, revision = fresh.identity, fresh.registry.revision()
    expected = (identity, 3, fresh.head().digest.hex(), revision, hash_versions(fresh.epochs()))
    assert revision.number == 1
    with kept.open(write=False) as reader:
        assert shown(reader) == expected
    fresh.close()
    with kept.open() as journal:
        assert journal.identity == identity
        assert shown(journal) == expected
        publish(journal, tmp_path / "o.ndjson", 4)
        assert shown(journal) == expected  # as it was before this journal was opened


def shown(journal: Journal) -> tuple[object, ...]:
    """What the witness of a journal shows."""
    record = journal.witnessed()
    return record.journal, record.committed, record.chain, record.revision, record.versions


def test_a_witness_has_every_state_of_the_registry_and_the_versions(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 3)
    before = fresh.registry.revision()
    fresh.registry.ask([Change("set", "u0", EIGHT)])
    fresh.registry.apply(4, class_history(fresh.epochs()))  # without a slot, and nothing is marked after it
    after = fresh.registry.revision()
    assert after != before
    with kept.open(write=False) as reader:
        assert (reader.witnessed().committed, reader.witnessed().revision) == (3, after)
    fresh.begin(make_terms(mechanism="pba"))
    publish(fresh, tmp_path / "o.ndjson", 4)
    with kept.open(write=False) as reader:
        assert reader.witnessed().versions == hash_versions(fresh.epochs())
        assert len(fresh.epochs()) == 2


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


LEFT = [Change("remove", "u0")]


def test_a_backup_stays_closed_until_somebody_says_what_went_out(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    copied(kept, fresh, tmp_path, [])
    with kept.open() as journal:
        assert journal.head().copied
        for stated in (RestoreOptions(), RestoreOptions(8), RestoreOptions(accept_lost_changes=True)):
            with pytest.raises(StaleJournal):
                settle_stale(journal, stated)
        with pytest.raises(StaleJournal):
            journal.registry.ask([Change("remove", "u0")])
        assert journal.head().committed == 5
        assert journal.registry.pending() == 0


def test_slots_released_elsewhere_are_charged_and_not_drawn(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    copied(kept, fresh, tmp_path, [])
    with kept.open() as journal:
        assert settle_stale(journal, RestoreOptions(9)) == 4
        head = journal.head()
        assert (head.committed, head.emitted, head.copied) == (9, 9, False)
        assert [journal.is_elsewhere(slot) for slot in range(1, 11)] == [False] * 5 + [True] * 4 + [False]
        last = list(journal.releases())[-1]
        charged = dict(zip(last.group.population.classes, last.publication.tolist(), strict=True))
        assert min(charged.values()) > 0
        assert {held.key for held in charged} == class_history(journal.epochs()).live(9)
        publish(journal, tmp_path / "o.ndjson", 12)
        assert journal.head().committed == 12
    with kept.open() as journal:
        assert settle_stale(journal, RestoreOptions()) == 0


def test_nothing_is_in_doubt_if_the_mark_has_the_registry_of_the_backup(
    fresh: Journal, kept: Kept, tmp_path: Path
) -> None:
    copied(kept, fresh, tmp_path, [])
    with kept.open() as journal:
        settle_stale(journal, RestoreOptions(9))
        assert journal.registry.restores() == ()
        assert not journal.changes_lost
        refuse_lost_changes(journal)
        publish(journal, tmp_path / "o.ndjson", 11)
        assert {record.group.population.users for record in journal.releases()} == {90}


def sizes_of(journal: Journal) -> list[dict[tuple[int, int], int]]:
    """How many users every slot counts in each class that has any."""
    return [
        {held.key: size for held, size in record.group.population.items() if size}
        for record in journal.releases()
        if record.kind != "elsewhere"
    ]


def test_a_later_registry_leaves_every_id_in_doubt(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    copied(kept, fresh, tmp_path, LEFT)
    with kept.open() as journal:
        assert settle_stale(journal, RestoreOptions(9)) == 4
        assert journal.registry.restores() == (Restore(9, 0, tuple(sorted(CLASSES))),)
        assert journal.changes_lost
        with pytest.raises(StaleJournal, match="accept-lost-changes"):
            refuse_lost_changes(journal)
        journal.accept_lost_changes()
        refuse_lost_changes(journal)
        journal.registry.ask([Change("set", "new", FOUR)])  # in doubt as everybody else
        publish(journal, tmp_path / "o.ndjson", 18)
        own, corner = {FOUR: 31, EIGHT: 30, THREE: 30}, (8, THREE[1])
        strict = {corner: 91}
        # three and four are in force through 9 + 2 and 9 + 3, eight through 9 + 7
        later = [strict] * 2 + [{EIGHT: 61, corner: 30}] * 5
        assert sizes_of(journal)[5:] == [*later, own, own]


@pytest.mark.parametrize("way", ["imported", "imported with a version", "accepted"])
def test_lost_changes_are_settled_once(fresh: Journal, kept: Kept, tmp_path: Path, way: str) -> None:
    copied(kept, fresh, tmp_path, LEFT)
    wanted = want([f"u{user}" for user in range(1, 90)], [CLASSES[user % 3] for user in range(1, 90)], b"file")
    with kept.open() as journal:
        settle_stale(journal, RestoreOptions(9, accept_lost_changes=way == "accepted"))
        assert journal.changes_lost == (way != "accepted")
        if way == "imported with a version":
            journal.begin(make_terms(mechanism="pba"), changes=LEFT, imported=b"file")
            assert journal.changes_lost  # until the version is stored, with its first slot
            publish(journal, tmp_path / "o.ndjson", 10)
        elif way == "imported":
            import_users(journal, want(["u1"], [FOUR], b"some"), partial=True)
            assert journal.changes_lost  # only the whole registry shows who left
            assert import_users(journal, wanted).total == 2
        assert not journal.changes_lost
    with kept.open() as journal:
        assert not journal.changes_lost


def test_an_import_after_a_restore_takes_effect_together(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    """Also where a boundary applies one change: users far back in the queue would be counted as before."""
    copied(kept, fresh, tmp_path, LEFT)
    wanted = want([f"u{user}" for user in range(3, 90)], [CLASSES[user % 3] for user in range(3, 90)], b"file")
    with kept.open() as journal:
        settle_stale(journal, RestoreOptions(9))
        assert import_users(journal, wanted).total == 3
        classes = class_history(journal.epochs(), journal.registry.restores())
        assert journal.registry.apply(10, classes, 1) == 3
        journal.registry.ask([Change("remove", "u5"), Change("remove", "u6")])
        assert journal.registry.apply(11, classes, 1) == 1


def test_beyond_the_witness_versions_may_be_lost(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    copied(kept, fresh, tmp_path, [])
    with kept.open() as journal:
        with pytest.raises(StaleJournal, match="widest-window"):
            settle_stale(journal, RestoreOptions(10))
        assert journal.head().copied  # nothing is stored
        settle_stale(journal, RestoreOptions(10, widest_window=20))
        assert journal.registry.restores() == (Restore(10, 30, tuple(sorted(CLASSES))),)
        assert journal.changes_lost
        journal.accept_lost_changes()
        publish(journal, tmp_path / "o.ndjson", 32)
        assert sizes_of(journal)[5:] == [{}] * 20 + [dict.fromkeys(CLASSES, 30)] * 2


def test_the_operator_may_state_that_no_version_is_lost(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    copied(kept, fresh, tmp_path, [])
    with kept.open() as journal:
        settle_stale(journal, RestoreOptions(10, same_settings=True))
        assert journal.registry.restores() == (Restore(10, 0, tuple(sorted(CLASSES))),)


def test_the_witness_of_another_copy_shows_nothing_about_this_one(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    copied(kept, fresh, tmp_path, LEFT)
    with kept.open() as journal:
        settle_stale(journal, RestoreOptions(9, accept_lost_changes=True))
        publish(journal, tmp_path / "o.ndjson", 12)
    kept.put_back()  # the same backup again
    with kept.open() as journal:
        settle_stale(journal, RestoreOptions(12))
        assert journal.changes_lost
        assert [restore.slot for restore in journal.registry.restores()] == [12]


def test_a_lost_version_is_noticed(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 5)
    kept.back_up()
    fresh.begin(make_terms(mechanism="pba"))
    publish(fresh, tmp_path / "o.ndjson", 9)
    fresh.close()
    kept.put_back()
    with kept.open() as journal:
        with pytest.raises(StaleJournal, match="widest-window"):
            settle_stale(journal, RestoreOptions(9))
        settle_stale(journal, RestoreOptions(9, widest_window=1))  # the widest one that is known is wider
        assert journal.registry.restores() == (Restore(9, 9 + 8, tuple(sorted(CLASSES))),)


def test_a_backup_of_the_last_slot_may_lack_changes_after_it(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 5)
    kept.back_up()
    fresh.registry.ask(LEFT)
    fresh.registry.apply(6, class_history(fresh.epochs()))
    fresh.close()
    kept.put_back()
    with kept.open() as journal:
        assert settle_stale(journal, RestoreOptions(5)) == 0
        assert journal.registry.restores() == ()
        assert journal.changes_lost


def test_what_a_restore_leaves_in_doubt_is_stored(fresh: Journal, kept: Kept) -> None:
    restore = Restore(3, 7, ((3, 400), (8, 600)))
    revision = fresh.registry.revision()
    fresh.take_over(Batch((), None, None, 0), restore, changes_lost=True)
    assert fresh.registry.revision().number == revision.number + 1
    fresh.take_over(Batch((), None, None, 0))
    fresh.close()
    with kept.open() as journal:
        assert journal.registry.restores() == (restore,)
        assert journal.changes_lost  # settling something else does not clear it
        journal.registry.check()
