"""The registry: a queue, a slot boundary, the hold-out, erasure, and who is never a stranger (spec 10)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.journals import Kept
from tests.support.odd_ids import ODD_IDS
from tests.support.publications import publish
from tests.support.synthetic import CLASSES, make_terms
from wevent.counting.spelling import Spelled
from wevent.errors import InvalidMembership, StorageFailed
from wevent.journal import Registry
from wevent.people.declaring import holdout_of
from wevent.people.holdout import HoldOut, Reign, erased_id
from wevent.people.membership import Change, Enrolment, KeyColumn
from wevent.publishing.foreseeing import foresee
from wevent.publishing.member_view import MemberView

FOUR, EIGHT, THREE = CLASSES
RULE = HoldOut((Reign(1, 8, None),))


@pytest.fixture
def registry(kept: Kept) -> Iterator[Registry]:
    with kept.open() as journal:
        journal.begin(make_terms())
        yield journal.registry


def held(registry: Registry) -> dict[str, tuple[tuple[int, int], int]]:
    registry.check()
    return {member.user: (member.key, member.first) for member in registry.members()}


def ask(registry: Registry, slot: int, *changes: Change, rule: HoldOut = RULE) -> None:
    registry.ask(changes)
    registry.apply(slot, rule)


def test_changes_wait_for_the_slot_boundary(registry: Registry) -> None:
    changes = [Change("set", "ann", FOUR, "High/Small"), Change("set", "bob", THREE)]
    assert registry.ask(iter(changes)) == 2
    assert registry.members() == []
    assert (registry.pending(), registry.queued()) == (2, changes)
    assert registry.apply(5, RULE) == 2
    assert (registry.pending(), registry.queued()) == (0, [])
    assert held(registry) == {"ann": (FOUR, 5), "bob": (THREE, 5)}
    assert {member.user: member.level for member in registry.members()} == {"ann": "High/Small", "bob": None}


def test_a_queue_is_applied_in_order_and_in_portions(registry: Registry) -> None:
    registry.ask([Change("set", "ann", FOUR), Change("remove", "ann"), Change("set", "ann", THREE)])
    assert registry.apply(1, RULE, 1) == 1
    assert held(registry) == {"ann": (FOUR, 1)}
    assert registry.apply(2, RULE, 1) == 1
    assert held(registry) == {}
    assert registry.apply(3, RULE, 5) == 1
    assert held(registry) == {"ann": (THREE, 1 + 4)}


@pytest.mark.parametrize("user", ["", "erased:1", "a\0b"])
def test_ids_that_nobody_can_have_are_refused(registry: Registry, user: str) -> None:
    with pytest.raises(InvalidMembership):
        registry.ask([Change("set", "ann", FOUR), Change("set", user, FOUR)])
    assert registry.pending() == 0


def test_the_queue_counts_as_known(registry: Registry) -> None:
    ask(registry, 1, Change("set", "ann", FOUR))
    registry.ask([Change("remove", "ann"), Change("set", "bob", THREE)])
    assert not registry.holds("ann")
    assert registry.holds("bob")
    assert not registry.holds("eve")
    assert registry.remembers("ann")
    assert not registry.remembers("bob")


def test_a_change_waits_for_the_larger_window(registry: Registry) -> None:
    ask(registry, 1, Change("set", "ann", THREE))
    ask(registry, 6, Change("set", "ann", EIGHT))
    assert held(registry) == {"ann": (EIGHT, 5 + 8)}
    ask(registry, 7, Change("set", "ann", THREE))  # back, before the change took hold
    assert held(registry) == {"ann": (THREE, 7)}


def test_new_words_for_the_same_requirement_are_no_change(registry: Registry) -> None:
    ask(registry, 1, Change("set", "ann", THREE))
    ask(registry, 6, Change("set", "ann", THREE, "High/Small"))
    assert held(registry) == {"ann": (THREE, 1)}
    assert [member.level for member in registry.members()] == ["High/Small"]


@pytest.mark.parametrize("action", ["remove", "erase"])
def test_leaving_forgets_nothing_too_early(registry: Registry, action: str) -> None:
    ask(registry, 1, Change("set", "ann", THREE))
    ask(registry, 6, Change(action, "ann"))  # type: ignore[arg-type]
    assert held(registry) == {}
    name = "ann" if action == "remove" else erased_id("ann", registry.salt)
    assert registry.apart(6) == [name]
    assert registry.remembers("ann") == (action == "remove")
    assert registry.first_forgotten(RULE) == 5 + 8
    ask(registry, 8, Change("set", "ann", EIGHT))
    assert held(registry) == {"ann": (EIGHT, 5 + 8)}


def test_what_holds_nobody_out_is_forgotten(registry: Registry) -> None:
    assert registry.first_forgotten(RULE) is None
    ask(registry, 1, Change("set", "ann", THREE), Change("set", "bob", THREE))
    ask(registry, 6, Change("erase", "ann"), Change("remove", "bob"))
    registry.apply(12, RULE)
    assert len(registry.apart(12)) == 2
    registry.apply(13, RULE)
    assert registry.apart(13) == []
    assert registry.first_forgotten(RULE) is None
    assert not registry.remembers("bob")


def test_turnover_counts_who_joined_and_who_left_at_a_boundary(registry: Registry) -> None:
    ask(registry, 1, *(Change("set", f"old{user}", THREE) for user in range(10)))
    assert registry.turnover(1) == 10
    leaving = [Change("remove" if user % 2 else "erase", f"old{user}") for user in range(9)]
    ask(registry, 6, *leaving, *(Change("set", f"new{user}", THREE) for user in range(9)))
    assert sum(size.registered for size in registry.sizes(6).values()) == 10, "as many as before"
    assert registry.turnover(6) == 18
    assert registry.turnover(5) == registry.turnover(7) == 0
    ask(registry, 8, Change("set", "new1", THREE, "High/Small"))
    assert registry.turnover(8) == 0, "another name for the same requirement"


def test_who_is_held_out_is_apart(registry: Registry) -> None:
    ask(registry, 1, Change("set", "ann", THREE), Change("set", "bob", THREE))
    ask(registry, 6, Change("set", "ann", EIGHT))
    assert registry.apart(12) == ["ann"]
    assert registry.apart(13) == []
    rows = registry.rows()
    assert sorted(zip(rows.users.texts(), rows.keys, rows.firsts.tolist(), strict=True)) == [
        ("ann", EIGHT, 13),
        ("bob", THREE, 1),
    ]


def test_who_joins_may_have_been_a_stranger(registry: Registry) -> None:
    rule = HoldOut((Reign(1, 8, EIGHT),))
    ask(registry, 1, Change("set", "ann", THREE), rule=rule)
    ask(registry, 6, Change("set", "bob", THREE), Change("set", "eve", EIGHT), rule=rule)
    assert held(registry) == {"ann": (THREE, 1), "bob": (THREE, 5 + 8), "eve": (EIGHT, 6)}


def test_who_may_have_been_a_stranger_waits_for_the_class_of_strangers_where_that_is_halved(registry: Registry) -> None:
    rule = HoldOut((Reign(1, 8, EIGHT, halved=True),))
    ask(registry, 6, Change("set", "bob", THREE), Change("set", "eve", EIGHT), rule=rule)
    ask(registry, 7, Change("set", "bob", EIGHT), rule=rule)
    assert held(registry) == {"bob": (EIGHT, 5 + 8), "eve": (EIGHT, 5 + 8)}


def test_rosters_follow_the_registry(kept: Kept, tmp_path: Path) -> None:
    with kept.open() as journal:
        journal.begin(make_terms(unknown_users=5))
        journal.registry.ask([Change("set", "ann", THREE), Change("set", "bob", THREE)])
        publish(journal, tmp_path / "o.ndjson", 5)
        view = MemberView(journal.registry, journal.epochs())
        journal.registry.ask([Change("set", "ann", EIGHT), Change("remove", "bob")])
        standing = view.at(6)
        assert len(standing.roster) == 0
        assert standing.barred == 2
        assert standing.slots == 8 - 1  # until `ann` counts again, in slot 5 + 8
        later = view.at(13)
        assert len(later.roster) == 1
        assert later.barred == 0


def test_a_roster_that_could_not_be_read_is_read_again(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """The changes took effect before the read failed: whoever left is not counted when the same slot is asked again."""
    with kept.open() as journal:
        journal.begin(make_terms())
        ask(journal.registry, 1, Change("set", "ann", FOUR), Change("set", "bob", THREE))
        view = MemberView(journal.registry, journal.epochs())
        assert len(view.at(1).roster) == 2
        journal.registry.ask([Change("remove", "ann")])

        def fail() -> None:
            raise StorageFailed("a journal", "a disk that fails", "Wait.", path="", passing=True)

        with monkeypatch.context() as patched:
            patched.setattr(journal.registry, "rows", fail)
            with pytest.raises(StorageFailed):
                view.at(2)
        assert view.at(2).roster.find(["ann", "bob"]).tolist() == [-1, 0]


def test_histories_come_in_the_order_asked_for_with_what_was_erased(registry: Registry) -> None:
    ask(registry, 1, *(Change("set", user, THREE) for user in ("ann", "bob", "kim")))
    ask(registry, 6, Change("erase", "ann"), Change("set", "bob", EIGHT, "High/Large"))
    found = list(registry.histories(iter(["kim", "nobody", "ann", "bob"])))
    assert [[(row.key, row.level, row.first, row.last) for row in rows] for rows in found] == [
        [(THREE, None, 1, None)],
        [],
        [(THREE, None, 1, 5)],
        [(THREE, None, 1, 5), (EIGHT, "High/Large", 13, None)],
    ]
    assert list(registry.histories([])) == []


def test_sizes_tell_who_waits(registry: Registry) -> None:
    assert registry.sizes(1) == {}
    ask(registry, 1, *(Change("set", user, THREE) for user in ("ann", "bob", "kim")))
    ask(registry, 6, Change("set", "bob", EIGHT), Change("remove", "kim"))
    registry.ask([Change("remove", "ann")])  # queued: it is not in force
    assert registry.sizes(6) == {THREE: (1, 0), EIGHT: (1, 1)}
    assert registry.sizes(13) == {THREE: (1, 0), EIGHT: (1, 0)}


def test_who_joined_by_request_is_known_until_they_leave_or_a_file_has_them(kept: Kept) -> None:
    with kept.open() as journal:
        journal.begin(make_terms())
        registry = journal.registry
        digests = {user: erased_id(user, registry.salt) for user in ("ann", "bob", "kim")}
        assert registry.joined_by_request() == frozenset()
        registry.ask([Change("set", user, FOUR) for user in digests], by_request=True)
        registry.ask([Change("set", "zoe", FOUR)])
        registry.ask([Change("set", "ann", THREE)])  # a change by whomever makes no difference
        assert registry.joined_by_request() == frozenset(digests.values())
        registry.ask([Change("erase", "bob")])
        assert registry.joined_by_request() == {digests["ann"], digests["kim"]}
    with kept.open() as journal:
        assert len(journal.registry.joined_by_request()) == 2
        journal.note_imported(b"file")
        assert journal.registry.joined_by_request() == frozenset()


@pytest.mark.parametrize("queued", [False, True], ids=["with the first terms", "through the queue"])
def test_everybody_is_stored_as_they_are(kept: Kept, queued: bool) -> None:
    users = [*ODD_IDS, *(f"u{user}" for user in range(300))]
    keys = [CLASSES[number % 3] for number in range(len(users))]
    words = [None if number % 2 else f"Wört\t{number % 5}\\" for number in range(len(users))]
    everybody = Enrolment(Spelled.of(users), KeyColumn.of(keys), words)
    with kept.open() as journal:
        journal.begin(make_terms(), changes=() if queued else everybody)
        if queued:
            journal.registry.ask(everybody)
        journal.registry.apply(1, RULE)
        wanted = {user: (user, key, word, 1) for user, key, word in zip(users, keys, words, strict=True)}
        assert {member.user: tuple(member) for member in journal.registry.members()} == wanted
        journal.registry.check()
    with kept.open() as journal:
        rows = journal.registry.rows()
        assert rows.users.texts() == sorted(users, key=str.encode)
        assert list(rows.keys) == [wanted[user][1] for user in rows.users.texts()]
        assert [len(rows) for rows in journal.registry.histories([*users, "nobody"])] == [1] * len(users) + [0]
        journal.registry.ask([Change("erase", user) for user in ODD_IDS])
        journal.registry.apply(2, RULE)
        assert len(journal.registry.members()) == 300
        assert {len(rows) for rows in journal.registry.histories(ODD_IDS)} == {1}  # under a digest
        journal.registry.check()


@pytest.mark.parametrize("leaving", [1, 300])
def test_whoever_leaves_of_those_who_joined_by_request_is_forgotten(kept: Kept, leaving: int) -> None:
    people = [f"u{number}" for number in range(400)]
    with kept.open() as journal:
        journal.begin(make_terms())
        registry = journal.registry
        registry.ask([Change("remove", user) for user in people[:leaving]])  # of nobody
        registry.ask([Change("set", user, FOUR) for user in people], by_request=True)
        registry.ask([Change("remove", user) for user in [*people[:leaving], "stranger"]])
        left = {erased_id(user, registry.salt) for user in people[leaving:]}
        assert registry.joined_by_request() == left


@pytest.mark.parametrize("strangers", [0, 5])
def test_what_is_foreseen_is_what_comes(kept: Kept, strangers: int) -> None:
    people, generator = [f"u{number}" for number in range(150)], random.Random(7)
    with kept.open() as journal:
        journal.begin(make_terms(unknown_users=strangers))
        for slot in (1, 4, 6, 7, 13, 30):
            changes = [
                Change("set", user, generator.choice(CLASSES)) if action == "set" else Change(action, user)
                for user in generator.sample(people, 120)
                for action in generator.choices(("set", "set", "set", "remove", "erase"), k=generator.choice((1, 1, 2)))
            ]
            asked, queued = changes[20:], changes[:20]
            journal.registry.ask(queued)
            before = {member.user: member.key for member in journal.registry.members()}
            past = zip(people, journal.registry.histories(people), strict=True)
            known = {user for user, rows in past if any(row.last is None or row.last > slot - 8 for row in rows)}
            seen = foresee(journal, asked, slot=slot)
            assert journal.registry.queued() == queued  # nothing was stored
            journal.registry.ask(asked)
            journal.registry.apply(slot, holdout_of(journal.epochs(), ()))
            after = {member.user: member for member in journal.registry.members()}
            moved = [member for user, member in after.items() if before.get(user) != member.key]
            waits = Counter(member.first for member in moved if member.first > slot)
            sizes = Counter(member.key for member in after.values())
            assert {wait.slot: wait.people for wait in seen.waits} == waits
            assert seen.registered == len(after)
            assert seen.returning == sum(user in known and user not in before for user in after)
            assert set(seen.alone) <= {key for key, size in sizes.items() if size == 1}
            if slot == 6:
                assert seen.waiting > 20
