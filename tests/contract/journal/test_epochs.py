"""Epochs: terms bind with their first slot, and everything that comes with them is stored with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.journals import Kept
from tests.support.publications import publish
from tests.support.synthetic import CLASSES, SyntheticSource, make_terms, want
from wevent.errors import InvalidMembership
from wevent.journal import Journal, Terms
from wevent.journal.terms import class_history
from wevent.outputs import open_output
from wevent.people.membership import Change
from wevent.publishing.importing import import_changes, import_users
from wevent.publishing.loop import Publication, Running
from wevent.publishing.resolve import begin, pinned_terms

OTHER = make_terms(mechanism="pba")
BEFORE = {"privacy": {"High": "0.1", "Low": "0.9"}, "window": {"Short": 4}}
AFTER = {"privacy": {"High": "0.2", "Low": "0.8"}, "window": {"Short": 4}}
PAIRS = [(4, round(float(table["privacy"][word]) * 1e9)) for table in (BEFORE, AFTER) for word in ("High", "Low")]
OLD_HIGH, OLD_LOW, NEW_HIGH, NEW_LOW = PAIRS


def with_levels(table: dict[str, dict[str, Any]], **changes: Any) -> Terms:
    """Terms with a level table; every pair of either is declared."""
    return make_terms(levels=table, declared=sorted({*CLASSES, *PAIRS}), **changes)


def held(journal: Journal) -> dict[str, tuple[tuple[int, int], str | None]]:
    """Who of those who are not u0, u1, … holds what."""
    return {row.user: (row.key, row.level) for row in journal.registry.members() if row.user[1:].isalpha()}


def meanwhile(asked: Callable[[], object]) -> Callable[[str], None]:
    """Does something while the slot is open: it is computed and not yet committed."""
    return lambda step: asked() and None if step == "stepped" else None


class LiveSource(SyntheticSource):
    """Slots that close one after the other."""

    def closed_through(self) -> int:  # type: ignore[override]
        return 0


def publish_live(journal: Journal, out: Path, end: int) -> None:
    """Publish through a slot, as of live input."""
    output = open_output(str(out))
    Publication(journal, LiveSource(end), output, running=Running(last=end)).run()
    output.close()


@pytest.fixture
def levelled(kept: Kept, tmp_path: Path) -> Iterator[Journal]:
    """A journal of three slots whose people hold levels."""
    with kept.open() as journal:
        journal.begin(with_levels(BEFORE))
        low = [Change("set", user, OLD_LOW, "Low/Short") for user in ("ann", "bob", "eve")]
        journal.registry.ask([*low, Change("set", "kim", CLASSES[0])])
        publish(journal, tmp_path / "o.ndjson", 3)
        yield journal


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
        with pytest.raises(Exception, match="this id"):
            journal.begin(make_terms(), changes=[Change("set", "", CLASSES[0])])
        assert journal.is_new


def test_who_comes_with_the_first_terms_counts_from_the_first_slot(kept: Kept) -> None:
    with kept.open() as journal:
        wanted = want(["ann", "bob"], [CLASSES[0], CLASSES[1]], b"digest")
        assert begin(journal, make_terms(), reconfigure=False, wanted=wanted).joining == 2
        assert journal.registry.holds("ann") or journal.registry.pending()
        journal.registry.apply(1, class_history(journal.epochs(), journal.registry.restores()))
        assert {member.user: (member.key, member.first) for member in journal.registry.members()} == {
            "ann": (CLASSES[0], 1),
            "bob": (CLASSES[1], 1),
        }
        assert journal.imported() == b"digest"


def test_a_file_is_imported_once(fresh: Journal, tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 2)
    wanted = want([f"u{user}" for user in range(89)], [CLASSES[user % 3] for user in range(89)], b"digest")
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


@pytest.mark.parametrize("early", [True, False], ids=["before its first slot is read", "while its first slot is open"])
def test_an_epoch_does_not_override_what_people_ask_for_meanwhile(
    levelled: Journal, tmp_path: Path, early: bool
) -> None:
    wishes = [
        Change("erase", "ann"),
        Change("set", "bob", OLD_HIGH, "High/Short"),
        Change("set", "zoe", OLD_LOW, "Low/Short"),
    ]
    begin(levelled, with_levels(AFTER), reconfigure=True)
    if early:
        levelled.registry.ask(wishes)
    at = meanwhile(lambda: None if early else levelled.registry.ask(wishes))
    publish(levelled, tmp_path / "o.ndjson", 4, at=at)
    publish(levelled, tmp_path / "o.ndjson", 5)
    assert held(levelled) == {
        "bob": (NEW_HIGH, "High/Short"),
        "zoe": (NEW_LOW, "Low/Short"),
        "eve": (NEW_LOW, "Low/Short"),
        "kim": (CLASSES[0], None),
    }


def test_what_was_queued_before_an_epoch_takes_effect_with_its_first_slot(levelled: Journal, tmp_path: Path) -> None:
    levelled.registry.ask([Change("remove", "ann"), Change("set", "zoe", OLD_LOW, "Low/Short")])
    begin(levelled, with_levels(AFTER), reconfigure=True)
    levelled.registry.ask([Change("remove", "bob")])
    publish(levelled, tmp_path / "o.ndjson", 4)
    assert set(held(levelled)) == {"bob", "eve", "zoe", "kim"}
    publish(levelled, tmp_path / "o.ndjson", 5)
    assert {user: key for user, (key, _) in held(levelled).items()} == {
        "eve": NEW_LOW,
        "zoe": NEW_LOW,
        "kim": CLASSES[0],
    }


def test_what_comes_with_an_epoch_takes_effect_together(kept: Kept, tmp_path: Path) -> None:
    crowd = [f"u{user}" for user in range(8200)]  # more than a boundary of live slots of a minute puts in force
    with kept.open() as journal:
        journal.begin(with_levels(BEFORE))
        journal.registry.ask([Change("set", user, OLD_LOW, "Low/Short") for user in crowd])
        publish(journal, tmp_path / "o.ndjson", 1)
        begin(journal, with_levels(AFTER), reconfigure=True)
        publish_live(journal, tmp_path / "o.ndjson", 2)
        assert journal.registry.pending() == len(crowd)
        publish_live(journal, tmp_path / "o.ndjson", 3)
        assert {member.key for member in journal.registry.members()} == {NEW_LOW}
        journal.registry.ask([Change("remove", user) for user in crowd])
        publish_live(journal, tmp_path / "o.ndjson", 4)
        assert journal.registry.pending() == 8


def test_words_that_an_epoch_no_longer_has_leave_their_numbers(levelled: Journal, tmp_path: Path) -> None:
    levelled.registry.ask([Change("set", user, CLASSES[0]) for user in ("ann", "bob", "eve")])
    table = {"privacy": {"Strict": "0.2"}, "window": {"Short": 4}}
    begin(levelled, with_levels(table), reconfigure=True)
    publish(
        levelled,
        tmp_path / "o.ndjson",
        4,
        at=meanwhile(lambda: levelled.registry.ask([Change("set", "bob", OLD_HIGH, "High/Short")])),
    )
    publish(levelled, tmp_path / "o.ndjson", 5)
    assert held(levelled)["bob"] == (OLD_HIGH, None)


@pytest.mark.parametrize("user", ["zoe", "kim"], ids=["who joins", "who changes"])
def test_a_wish_that_an_epoch_does_not_allow_ends_no_publisher(
    levelled: Journal, tmp_path: Path, caplog: pytest.LogCaptureFixture, user: str
) -> None:
    begin(levelled, with_levels(BEFORE, mechanism="bd"), reconfigure=True)
    wish = Change("set", user, (4, 1_000_000))
    publish(levelled, tmp_path / "o.ndjson", 4, at=meanwhile(lambda: levelled.registry.ask([wish])))
    publish(levelled, tmp_path / "o.ndjson", 6)
    assert user not in held(levelled)  # never under a weaker requirement than the one asked for
    assert "the new configuration version does not allow" in caplog.text
    assert len(list(levelled.releases())) == 6


def test_a_wish_checked_against_the_terms_before_an_epoch_is_not_queued_after_it(
    levelled: Journal, tmp_path: Path
) -> None:
    checked = levelled.head().epoch.number
    begin(levelled, with_levels(BEFORE, mechanism="bd"), reconfigure=True)
    assert (
        levelled.registry.ask([Change("set", "zoe", OLD_LOW)], checked) == 1
    )  # stored with its first slot, not before
    publish(levelled, tmp_path / "o.ndjson", 4)
    with pytest.raises(InvalidMembership, match="Ask again"):
        levelled.registry.ask([Change("set", "kim", (4, 1_000_000))], checked)
    assert levelled.registry.queued() == [Change("set", "zoe", OLD_LOW)]
    assert levelled.registry.ask([Change("remove", "kim")], checked + 1) == 1


def test_a_file_that_is_imported_while_an_epoch_begins_is_the_later_one(levelled: Journal, tmp_path: Path) -> None:
    first = want(
        ["ann", "bob", "kim", "zoe"],
        [NEW_LOW, NEW_HIGH, CLASSES[1], CLASSES[0]],
        b"1",
        ["Low/Short", "High/Short", None, None],
    )
    begin(levelled, with_levels(AFTER), reconfigure=True, wanted=first)
    words = ["Low/Short", "Low/Short", "High/Short", None]
    later = want(["ann", "bob", "eve", "kim"], [OLD_LOW, OLD_LOW, OLD_HIGH, CLASSES[0]], b"2", words)

    def import_later() -> None:
        changes = import_changes(levelled, later, with_levels(BEFORE), allow_removals=False)[0]
        levelled.registry.ask(changes)
        levelled.note_imported(later.digest)

    publish(levelled, tmp_path / "o.ndjson", 4, at=meanwhile(import_later))
    assert levelled.imported() == b"2"
    publish(levelled, tmp_path / "o.ndjson", 5)
    assert {user: level for user, (_, level) in held(levelled).items()} == dict(
        zip(later.users.tolist(), words, strict=True)
    )
    assert held(levelled)["ann"] == (NEW_LOW, "Low/Short")
    assert held(levelled)["eve"] == (NEW_HIGH, "High/Short")
    assert held(levelled)["kim"] == (CLASSES[0], None)


def test_who_joins_by_request_while_an_epoch_begins_is_in_no_file(levelled: Journal, tmp_path: Path) -> None:
    levelled.registry.ask([Change("set", "zoe", CLASSES[0])], by_request=True)
    people = sorted({*held(levelled), "zoe"})
    wanted = want(people, [CLASSES[0]] * len(people), b"1")
    begin(levelled, with_levels(AFTER), reconfigure=True, wanted=wanted)
    ivy = Change("set", "ivy", CLASSES[0])
    publish(levelled, tmp_path / "o.ndjson", 4, at=meanwhile(lambda: levelled.registry.ask([ivy], by_request=True)))
    publish(levelled, tmp_path / "o.ndjson", 5)
    assert levelled.registry.joined_by_request() == {"ivy"}
    later = want(people, [CLASSES[0]] * len(people), b"2")
    assert import_users(levelled, later, dry_run=True).requested == 1
    assert import_users(levelled, later).requested == 1
    assert levelled.registry.joined_by_request() == frozenset()
