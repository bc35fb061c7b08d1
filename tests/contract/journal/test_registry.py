"""Registry: a queue, a slot boundary, rows that are kept while a requirement is in force, erasure (spec 10, 15)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.journals import Kept
from tests.support.odd_ids import ODD_IDS
from tests.support.plain_registry import PlainRegistry
from tests.support.publications import publish
from tests.support.synthetic import CLASSES, make_terms
from wevent.counting.string_column import StringColumn
from wevent.errors import InvalidMembership, StorageFailed
from wevent.journal import Batch, Registry
from wevent.journal.terms import Epoch, class_history
from wevent.people.classes import ClassHistory, Key, find_corner
from wevent.people.membership import Change, Enrolment, KeyColumn, Membership, drop_expired, erased_id, find_in_force
from wevent.publishing.importing import preview
from wevent.publishing.loop import MemberView

FOUR, EIGHT, THREE = CLASSES
RULE = class_history([Epoch(1, 1, make_terms())])
COUNTING = class_history([Epoch(1, 1, make_terms(unknown_users=5))])
"""Unregistered users are counted."""
UNREGISTERED = (8, 200_000_000)
"""Their class."""


@pytest.fixture
def registry(kept: Kept) -> Iterator[Registry]:
    with kept.open() as journal:
        journal.begin(make_terms())
        yield journal.registry


def held(registry: Registry) -> dict[str, tuple[tuple[int, int], int]]:
    registry.check()
    return {member.user: (member.key, member.first) for member in registry.members()}


def ask(registry: Registry, slot: int, *changes: Change, rule: ClassHistory = RULE) -> None:
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
    assert held(registry) == {"ann": (THREE, 3)}


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


def rows_of(registry: Registry, user: str) -> list[tuple[Key, int, int | None]]:
    (rows,) = registry.histories([user])
    return sorted((row.key, row.first, row.last) for row in rows)


def state(registry: Registry, people: list[str], slot: int, rule: ClassHistory) -> list[object]:
    """What a registry shows, with ids in the place of digests: every registry has a salt of its own."""
    registry.check()
    names = {erased_id(user, registry.salt): f"erased {user}" for user in people}
    former = sorted(names.get(user, user) for user in registry.former_ids())
    ended = sorted((names.get(user, user), key, last) for user, key, last in tails(registry, slot))
    levels = sorted((member.user, member.key, member.level, member.first) for member in registry.members())
    shown = [rows_of(registry, user) for user in people], [registry.remembers(user) for user in people]
    figures = registry.sizes(), registry.turnover(slot), registry.next_expiry(rule)
    return [former, ended, levels, *shown, *figures]


@pytest.mark.parametrize("rule", [RULE, COUNTING], ids=["registered users alone", "and unregistered ones"])
def test_any_changes_leave_what_they_leave_in_plain_lists(kept: Kept, rule: ClassHistory) -> None:
    chance, people, slot = random.Random(len(rule.versions[0].classes)), [f"u{number}" for number in range(9)], 0
    with kept.open() as journal:
        journal.begin(make_terms())
        plain = PlainRegistry()
        for _ in range(60):
            slot += chance.choice((1, 1, 2, 5))
            changes = [
                Change("set", user, chance.choice(CLASSES), chance.choice((None, "High/Small")))
                if chance.random() < 0.6
                else Change(chance.choice(("remove", "erase")), user)
                for user in chance.choices(people, k=chance.choice((0, 1, 2, 8)))
            ]
            for registry in (journal.registry, plain):
                ask(registry, slot, *changes, rule=rule)
            assert state(journal.registry, people, slot, rule) == state(plain, people, slot, rule)


@pytest.mark.parametrize("action", ["remove", "erase"])
def test_rows_are_kept_while_their_requirement_is_in_force(registry: Registry, action: str) -> None:
    assert registry.next_expiry(RULE) is None
    ask(registry, 1, Change("set", "ann", THREE), Change("set", "bob", EIGHT))
    assert registry.next_expiry(RULE) is None
    ask(registry, 6, Change(action, "ann"), Change(action, "bob"))  # type: ignore[arg-type]
    assert held(registry) == {}
    names = {user: user if action == "remove" else erased_id(user, registry.salt) for user in ("ann", "bob")}
    assert set(registry.former_ids()) == set(names.values())
    assert registry.remembers("ann") == (action == "remove")
    assert registry.next_expiry(RULE) == 5 + 3
    registry.apply(7, RULE)
    assert rows_of(registry, "ann") == [(THREE, 1, 5)]
    registry.apply(8, RULE)
    assert registry.former_ids() == [names["bob"]]
    assert registry.next_expiry(RULE) == 5 + 8
    registry.apply(13, RULE)
    assert registry.former_ids() == []
    assert registry.next_expiry(RULE) is None
    assert not registry.remembers("bob")


def test_a_boundary_drops_a_limited_number_of_rows(registry: Registry) -> None:
    users = [f"user-{number}" for number in range(5)]
    ask(registry, 1, *(Change("set", user, THREE) for user in users))
    ask(registry, 6, *(Change("remove", user) for user in users))
    for slot, left in ((8, 3), (9, 1), (10, 0)):
        registry.apply(slot, RULE, 2)
        assert len(registry.former_ids()) == left
        assert registry.next_expiry(RULE) == (5 + 3 if left else None)
        registry.check()


def tails(registry: Registry, slot: int) -> list[tuple[str, Key, int]]:
    found = registry.tails(slot)
    return sorted(zip(found.users.texts(), found.keys, found.lasts.tolist(), strict=True))


def test_tails_are_requirements_that_ended_and_are_in_force(registry: Registry) -> None:
    ask(registry, 1, Change("set", "ann", THREE), Change("set", "bob", FOUR), Change("set", "eve", THREE))
    assert tails(registry, 1) == []
    ask(registry, 6, Change("set", "ann", EIGHT), Change("remove", "bob"))
    assert tails(registry, 6) == tails(registry, 7) == [("ann", THREE, 5), ("bob", FOUR, 5)]
    assert tails(registry, 8) == [("bob", FOUR, 5)]
    assert tails(registry, 9) == []
    rows = registry.rows()
    assert sorted(zip(rows.users.texts(), rows.keys, strict=True)) == [("ann", EIGHT), ("eve", THREE)]


def test_turnover_counts_who_joined_and_who_left_at_a_boundary(registry: Registry) -> None:
    ask(registry, 1, *(Change("set", f"old{user}", THREE) for user in range(10)))
    assert registry.turnover(1) == 10
    leaving = [Change("remove" if user % 2 else "erase", f"old{user}") for user in range(9)]
    ask(registry, 6, *leaving, *(Change("set", f"new{user}", THREE) for user in range(9)))
    assert sum(registry.sizes().values()) == 10, "as many as before"
    assert registry.turnover(6) == 18
    assert registry.turnover(5) == registry.turnover(7) == 0
    ask(registry, 8, Change("set", "new1", THREE, "High/Small"))
    assert registry.turnover(8) == 0, "another name for the same requirement"
    ask(registry, 9, Change("set", "new1", EIGHT))
    assert registry.turnover(9) == 0, "a change"


def test_a_revision_follows_every_change(registry: Registry) -> None:
    first = registry.revision()
    assert first.number == 0
    registry.ask([Change("set", "ann", THREE)])
    assert registry.revision() == first  # queued: not in force
    registry.apply(1, RULE)
    joined = registry.revision()
    assert joined.number == 1
    assert joined.chain != first.chain
    ask(registry, 2, Change("remove", "nobody"))
    registry.apply(3, RULE)
    assert registry.revision() == joined
    ask(registry, 4, Change("set", "ann", EIGHT))
    assert registry.revision().number == 2
    assert registry.revision().chain not in (joined.chain, first.chain)


def test_two_copies_that_went_on_separately_have_other_revisions(kept: Kept) -> None:
    with kept.open() as journal:
        journal.begin(make_terms())
        ask(journal.registry, 1, Change("set", "ann", THREE))
        before = journal.registry.revision()
        kept.back_up()
        ask(journal.registry, 2, Change("set", "bob", THREE))
        one = journal.registry.revision()
    kept.put_back()
    with kept.open() as journal:
        assert journal.registry.revision() == before
        journal.take_over(Batch((), None, None, 0))
        ask(journal.registry, 2, Change("set", "bob", EIGHT))
        other = journal.registry.revision()
        assert other.number == one.number
        assert other.chain != one.chain


def test_rosters_follow_the_registry(kept: Kept, tmp_path: Path) -> None:
    with kept.open() as journal:
        journal.begin(make_terms(unknown_users=5))
        journal.registry.ask([Change("set", "ann", THREE), Change("set", "bob", THREE)])
        publish(journal, tmp_path / "o.ndjson", 5)
        view = MemberView(journal.registry, journal.epochs())
        journal.registry.ask([Change("set", "ann", FOUR), Change("remove", "bob"), Change("set", "eve", FOUR)])

        def counted(slot: int) -> dict[str, Key]:
            roster = view.at(slot).roster
            return {
                user: roster.population.classes[row].key
                for user, row in zip(roster.users.tolist(), roster.classes.tolist(), strict=True)
            }

        standing = view.at(6)
        assert counted(6) == {"ann": UNREGISTERED, "eve": UNREGISTERED}  # at least as strict as what is in force
        assert standing.unregistered == (*UNREGISTERED, 5, 1)
        assert standing.turnover == 2
        assert standing.slots == 8 - 6  # until the earlier choice of `ann` is no longer in force
        assert counted(8) == {"ann": FOUR, "eve": UNREGISTERED}
        later = view.at(13)
        assert counted(13) == {"ann": FOUR, "eve": FOUR}
        assert later.unregistered == (*UNREGISTERED, 5, 0)
        assert later.turnover == 0


def test_a_roster_that_could_not_be_read_is_read_again(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """The changes took effect before the read failed: whoever left is not counted when the same slot is asked again."""
    with kept.open() as journal:
        journal.begin(make_terms())
        ask(journal.registry, 1, Change("set", "ann", FOUR), Change("set", "bob", THREE))
        view = MemberView(journal.registry, journal.epochs())
        assert len(view.at(1).roster) == 2
        journal.registry.ask([Change("remove", "ann")])

        def fail() -> None:
            raise StorageFailed("The disk fails.", "Wait.", path="", passing=True)

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
        [(THREE, None, 1, 5), (EIGHT, "High/Large", 6, None)],
    ]
    assert list(registry.histories([])) == []


def test_who_joined_by_request_is_known_until_they_leave_or_a_file_has_them(kept: Kept) -> None:
    with kept.open() as journal:
        journal.begin(make_terms())
        registry = journal.registry
        users = frozenset({"ann", "bob", "kim"})
        assert registry.joined_by_request() == frozenset()
        registry.ask([Change("set", user, FOUR) for user in users], by_request=True)
        registry.ask([Change("set", "zoe", FOUR)])
        registry.ask([Change("set", "ann", THREE)])  # a change by whomever makes no difference
        assert registry.joined_by_request() == users
        registry.ask([Change("erase", "bob")])
        assert registry.joined_by_request() == {"ann", "kim"}
    with kept.open() as journal:
        assert len(journal.registry.joined_by_request()) == 2
        journal.note_imported(b"file")
        assert journal.registry.joined_by_request() == frozenset()


@pytest.mark.parametrize("queued", [False, True], ids=["with the first terms", "through the queue"])
def test_everybody_is_stored_as_they_are(kept: Kept, queued: bool) -> None:
    users = [*ODD_IDS, *(f"u{user}" for user in range(300))]
    keys = [CLASSES[number % 3] for number in range(len(users))]
    words = [None if number % 2 else f"Wört\t{number % 5}\\" for number in range(len(users))]
    everybody = Enrolment(StringColumn.from_texts(users), KeyColumn.of(keys), words)
    with kept.open() as journal:
        journal.begin(make_terms(), changes=() if queued else everybody)
        if queued:
            journal.registry.ask(everybody)
        journal.registry.apply(1, RULE)
        wanted = {user: (user, *key, word, 1, None) for user, key, word in zip(users, keys, words, strict=True)}
        assert {member.user: tuple(member) for member in journal.registry.members()} == wanted
        journal.registry.check()
    with kept.open() as journal:
        rows = journal.registry.rows()
        assert rows.users.texts() == sorted(users, key=str.encode)
        assert list(rows.keys) == [wanted[user][1:3] for user in rows.users.texts()]
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
        assert registry.joined_by_request() == set(people[leaving:])


def ends(rows: Sequence[Membership], slot: int) -> int:
    """The first slot in which only the current requirement is in force."""
    return max((row.last + row.window for row in rows if row.last is not None), default=slot)


@pytest.mark.parametrize("unknown_users", [0, 5])
def test_what_is_foreseen_is_what_comes(kept: Kept, unknown_users: int) -> None:
    people, generator = [f"u{number}" for number in range(150)], random.Random(7)
    with kept.open() as journal:
        journal.begin(make_terms(unknown_users=unknown_users))
        registry, rule = journal.registry, COUNTING if unknown_users else RULE
        for slot in (1, 4, 6, 7, 13, 30):
            changes = [
                Change("set", user, generator.choice(CLASSES)) if action == "set" else Change(action, user)
                for user in generator.sample(people, 120)
                for action in generator.choices(("set", "set", "set", "remove", "erase"), k=generator.choice((1, 1, 2)))
            ]
            asked, queued = changes[20:], changes[:20]
            registry.ask(queued)
            before = {member.user: member.key for member in registry.members()}
            past = zip(people, map(list, registry.histories(people)), strict=True)
            known = {user for user, rows in past if any(row.first for row in drop_expired(rows, rule, slot))}
            seen = preview(journal, asked, slot=slot)
            assert registry.queued() == queued  # nothing was stored
            registry.ask(asked)
            registry.apply(slot, rule)
            registry.check()
            after = {member.user: member for member in registry.members()}
            moved = [user for user, member in after.items() if before.get(user) != member.key]
            rows = dict(zip(moved, registry.histories(moved), strict=True))
            transit = [user for user in moved if find_corner(find_in_force(rows[user], slot)) != after[user].key]
            sizes = Counter(member.key for member in after.values())
            assert seen.in_transition == len(transit)
            assert seen.until == max((ends(rows[user], slot) for user in transit), default=None)
            assert seen.registered == len(after)
            assert seen.returning == sum(user in known and user not in before for user in after)
            assert set(seen.alone) <= {key for key, size in sizes.items() if size == 1}
            if slot == 6:
                assert seen.in_transition > 20
