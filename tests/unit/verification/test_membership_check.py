"""Independent check of memberships: hand-built journals, healthy ones and one that breaks each rule (spec 15.5)."""

from __future__ import annotations

import hashlib
import json
import struct
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wevent.people.classes import (
    ClassHistory,
    Key,
    Restore,
    VersionClasses,
    find_corner,
    find_counting_class,
    find_unregistered_class,
)
from wevent.people.membership import Boundary, Change, Membership, drop_expired, erased_id, find_current, find_in_force
from wevent.verification.membership_check import (
    JournalRows,
    RestoreRow,
    Row,
    Run,
    Version,
    check_memberships,
    find_unordered,
)

SALT = b"s" * 32
LOOSE, STRICT = (2, 900), (6, 300)
WIDE = (8, 900)  # neither looser nor stricter than NARROW
NARROW = (2, 300)
BOTH = (8, 300)
U = (6, 150)  # unregistered users beside LOOSE and STRICT

SIZE = "the size of a class is not the number of users that the rules count in it"
OWN = "the number of users who are counted in their own class is wrong"
MISSING = "a live class is missing"
LOOSER = "users were counted in a looser class than a requirement in force allows"
UNREGISTERED = "unregistered users were not counted in the class that the rules give"
KNOWN = "known ids may have been counted as unregistered users"
NO_NOTE = "a user who joined may have been counted as unregistered, and no row says so"
RESTORE = "a restore leaves out a requirement that users may have held in slots released elsewhere"
DIGEST = "the registry does not add up: a membership is not what was stored"
TWO = "a user holds two requirements at once"

Span = tuple[int, int, dict[Key, tuple[int, int]], list[int] | None]


def version(first: int, *declared: Key, limit: int = 0) -> Version:
    terms = {"declared": [list(key) for key in declared], "unknown_users": limit, "neighbours": "add_remove"}
    return Version.from_terms(first, terms)


def digest(rows: list[Row], restores: list[RestoreRow]) -> bytes:
    total = 0
    for one in restores:
        text = f"{one.slot},{one.silent_through},{one.doubted}".encode()
        total += int.from_bytes(hashlib.blake2b(text, key=SALT, digest_size=8).digest(), "little")
    user_key, level_key, number_key, key = (word | 1 for word in struct.unpack("<4Q", SALT))
    for user, window, nano, level, first, last in rows:
        numbers = [window, nano, first, -1 if last is None else last]
        row = weigh(words(user), user_key) + weigh(words(level or ""), level_key) + weigh(numbers, number_key)
        total += mix(row, key)
    return (total % 2**64).to_bytes(8, "little")


def words(text: str) -> list[int]:
    data = text.encode()
    return [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]


def weigh(numbers: list[int], key: int) -> int:
    return sum(mix(number, key**power) for power, number in enumerate(numbers, start=1))


def mix(number: int, key: int) -> int:
    product = number * key % 2**64
    return (product ^ product >> 32) * key % 2**64


def span(first: int, last: int, sizes: Mapping[Key, Any], unregistered: tuple[Key, int, int] | None = None) -> Span:
    """Slots with one population. A class is given by its size, or by its size and the users counted in their own class."""
    both = {key: (size, size) if isinstance(size, int) else size for key, size in sizes.items()}
    return first, last, both, None if unregistered is None else [*unregistered[0], *unregistered[1:]]


def journal(
    versions: list[Version],
    rows: list[Row],
    spans: list[Span],
    restores: list[RestoreRow] | None = None,
    *,
    complete_from: int = 1,
    elsewhere: tuple[int, ...] = (),
) -> JournalRows:
    rows = sorted(rows, key=lambda row: (not row[0].startswith("erased:"), row[0]))
    runs = []
    for first, last, sizes, unregistered in spans:
        classes = [[*key, *both] for key, both in sorted(sizes.items())]
        population = {"turnover": 0, "classes": classes, "unregistered": unregistered}
        runs.append(Run(first, last, population, first in elsewhere))
    restores = restores or []
    return JournalRows(
        rows, restores, versions, runs, SALT, digest(rows, restores), max(run.last for run in runs), complete_from
    )


def found_in(tables: JournalRows) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    check_memberships(tables, lambda slot, problem, **_: found.append((slot, problem)))
    return sorted(set(found))


def restore(slot: int, *doubted: Key, silent_through: int = 0) -> RestoreRow:
    return RestoreRow(slot, silent_through, json.dumps(sorted(doubted), separators=(",", ":")))


PLAIN = [version(1, LOOSE, STRICT)]
MIXED = [version(1, NARROW, WIDE)]
OPEN = [version(1, LOOSE, STRICT, limit=10)]
COUNTED = (U, 10, 0)


def row(user: str, key: Key, first: int, last: int | None = None) -> Row:
    return user, *key, None, first, last


class TestOneUser:
    """Rows of one user, and the class that the user is counted in."""

    def test_join_and_leave(self) -> None:
        spans = [
            span(1, 2, {LOOSE: 0, STRICT: 0}),
            span(3, 5, {LOOSE: 1, STRICT: 0}),
            span(6, 9, {LOOSE: 0, STRICT: 0}),
        ]
        assert found_in(journal(PLAIN, [row("u", LOOSE, 3, 5)], spans)) == []
        assert found_in(journal(PLAIN, [row("u", LOOSE, 3, 6)], spans)) == [(6, SIZE)]
        assert found_in(journal(PLAIN, [row("u", LOOSE, 2, 5)], spans)) == [(2, SIZE)]

    def test_change_to_a_looser_class(self) -> None:
        rows = [row("u", STRICT, 1, 4), row("u", LOOSE, 5)]
        strict, tail, loose = {LOOSE: 0, STRICT: 1}, {LOOSE: 0, STRICT: (1, 0)}, {LOOSE: 1, STRICT: 0}
        assert found_in(journal(PLAIN, rows, [span(1, 4, strict), span(5, 9, tail), span(10, 12, loose)])) == []
        early = [span(1, 4, strict), span(5, 8, tail), span(9, 12, loose)]
        assert found_in(journal(PLAIN, rows, early)) == [(9, SIZE)]
        assert found_in(journal(PLAIN, rows, early, complete_from=12)) == [(9, LOOSER)]
        late = [span(1, 4, strict), span(5, 10, tail), span(11, 12, loose)]
        assert found_in(journal(PLAIN, rows, late)) == [(10, SIZE)]

    def test_own_size(self) -> None:
        rows = [row("u", STRICT, 1, 4), row("u", LOOSE, 5)]
        spans = [span(1, 9, {LOOSE: 0, STRICT: 1}), span(10, 12, {LOOSE: 1, STRICT: 0})]
        assert found_in(journal(PLAIN, rows, spans)) == [(5, OWN)]

    def test_change_to_a_stricter_class(self) -> None:
        rows = [row("u", LOOSE, 1, 4), row("u", STRICT, 5)]
        spans = [span(1, 4, {LOOSE: 1, STRICT: 0}), span(5, 9, {LOOSE: 0, STRICT: 1})]
        assert found_in(journal(PLAIN, rows, spans)) == []
        late = [span(1, 5, {LOOSE: 1, STRICT: 0}), span(6, 9, {LOOSE: 0, STRICT: 1})]
        assert found_in(journal(PLAIN, rows, late)) == [(5, SIZE)]
        assert found_in(journal(PLAIN, rows, late, complete_from=9)) == [(5, LOOSER)]

    def test_mixed_change(self) -> None:
        rows = [row("u", NARROW, 1, 4), row("u", WIDE, 5)]
        none = {NARROW: 0, WIDE: 0, BOTH: 0}
        first, corner, then = {**none, NARROW: 1}, {**none, BOTH: (1, 0)}, {**none, WIDE: 1}
        assert found_in(journal(MIXED, rows, [span(1, 4, first), span(5, 5, corner), span(6, 9, then)])) == []
        assert found_in(journal(MIXED, rows, [span(1, 4, first), span(5, 9, then)])) == [(5, SIZE)]

    def test_loosest_class_has_the_largest_share(self) -> None:
        """Both (4, 200) and (8, 290) are strict enough. The second has the larger epsilon and the smaller share per slot."""
        none = dict.fromkeys([(2, 300), (3, 400), (4, 200), (8, 290), (8, 200)], 0)
        rows = [row("u", (2, 300), 1, 4), row("u", (3, 400), 5)]
        begin, end = span(1, 4, {**none, (2, 300): 1}), span(6, 9, {**none, (3, 400): 1})
        versions = [version(1, (2, 300), (3, 400), (4, 200), (8, 290))]
        assert found_in(journal(versions, rows, [begin, span(5, 5, {**none, (4, 200): (1, 0)}), end])) == []
        assert found_in(journal(versions, rows, [begin, span(5, 5, {**none, (8, 290): (1, 0)}), end])) == [(5, SIZE)]

    def test_change_back_at_the_same_boundary(self) -> None:
        assert found_in(journal(PLAIN, [row("u", STRICT, 1)], [span(1, 9, {LOOSE: 0, STRICT: 1})])) == []

    def test_change_back_later(self) -> None:
        rows = [row("u", LOOSE, 1, 4), row("u", STRICT, 5, 5), row("u", LOOSE, 6)]
        strict = {LOOSE: 0, STRICT: (1, 0)}
        spans = [span(1, 4, {LOOSE: 1, STRICT: 0}), span(5, 5, {LOOSE: 0, STRICT: 1}), span(6, 10, strict)]
        assert found_in(journal(PLAIN, rows, [*spans, span(11, 12, {LOOSE: 1, STRICT: 0})])) == []
        assert found_in(journal(PLAIN, rows, [*spans[:2], span(6, 12, {LOOSE: 1, STRICT: 0})])) == [(6, SIZE)]

    def test_two_requirements_at_once(self) -> None:
        rows = [row("u", STRICT, 1, 5), row("u", LOOSE, 5)]
        found = found_in(journal(PLAIN, rows, [span(1, 6, {LOOSE: 0, STRICT: 1})]))
        assert (5, TWO) in found

    @pytest.mark.parametrize("renamed", [True, False])
    def test_erased_id_that_registers_again(self, renamed: bool) -> None:
        name = "u" if renamed else erased_id("u", SALT)
        rows = [row(name, STRICT, 1, 4), row("u", LOOSE, 7)]
        left, tail = span(5, 6, {LOOSE: 0, STRICT: 0}), span(7, 9, {LOOSE: 0, STRICT: (1, 0)})
        begin, end = span(1, 4, {LOOSE: 0, STRICT: 1}), span(10, 12, {LOOSE: 1, STRICT: 0})
        assert found_in(journal(PLAIN, rows, [begin, left, tail, end])) == []
        assert found_in(journal(PLAIN, rows, [begin, left, span(7, 12, {LOOSE: 1, STRICT: 0})])) == [(7, SIZE)]

    def test_rows_that_were_dropped_give_bounds(self) -> None:
        """A second user left, and the rows of that user are dropped. Sizes of earlier slots exceed the rows."""
        spans = [span(1, 4, {LOOSE: 2, STRICT: 0}), span(5, 9, {LOOSE: 1, STRICT: 0})]
        assert found_in(journal(PLAIN, [row("u", LOOSE, 1)], spans, complete_from=6)) == []
        assert found_in(journal(PLAIN, [row("u", LOOSE, 1)], spans)) == [(1, SIZE)]
        few = [span(1, 4, {LOOSE: 0, STRICT: 0}), span(5, 9, {LOOSE: 1, STRICT: 0})]
        assert found_in(journal(PLAIN, [row("u", LOOSE, 1)], few, complete_from=6)) == [(1, LOOSER)]

    def test_digest(self) -> None:
        tables = journal(PLAIN, [row("u", LOOSE, 1)], [span(1, 3, {LOOSE: 1, STRICT: 0})])
        assert found_in(tables._replace(stored=bytes(32))) == [(3, DIGEST)]
        assert found_in(tables._replace(rows=[("u", *LOOSE, "High", 1, None)])) == [(3, DIGEST)]


class TestClasses:
    """Live classes follow from versions and restores."""

    @pytest.mark.parametrize(("versions", "lost"), [(PLAIN, LOOSE), (MIXED, BOTH), (OPEN, U)])
    def test_a_class_is_missing(self, versions: list[Version], lost: Key) -> None:
        sizes = dict.fromkeys([LOOSE, STRICT, NARROW, WIDE, BOTH, U], 0)
        unregistered = COUNTED if versions is OPEN and lost != U else None
        del sizes[lost]
        found = found_in(journal(versions, [], [span(1, 3, sizes, unregistered)]))
        assert (1, MISSING) in found

    def test_more_classes_without_users(self) -> None:
        assert found_in(journal(PLAIN, [], [span(1, 3, {LOOSE: 0, STRICT: 0, WIDE: 0})])) == []
        assert found_in(journal(PLAIN, [], [span(1, 3, {LOOSE: 0, STRICT: 0, WIDE: 1})])) == [(1, SIZE)]

    def test_dropped_class_is_retained(self) -> None:
        """Users are moved at the boundary after the first slot of the version."""
        versions = [*PLAIN, version(11, LOOSE)]
        rows = [row("u", STRICT, 1, 11), row("u", LOOSE, 12)]
        begin = span(1, 11, {LOOSE: 0, STRICT: 1})
        tail, end = span(12, 16, {LOOSE: 0, STRICT: (1, 0)}), span(17, 20, {LOOSE: 1})
        assert found_in(journal(versions, rows, [begin, tail, end])) == []
        assert found_in(journal(versions, [], [span(1, 15, {LOOSE: 0, STRICT: 0}), span(16, 20, {LOOSE: 0})])) == [
            (16, MISSING)
        ]

    def test_dropped_class_that_a_user_still_holds(self) -> None:
        """Many users are moved over several boundaries: a requirement in force stays live, and with it the corner."""
        versions = [*MIXED, version(11, NARROW)]
        rows = [row("u", WIDE, 1, 13), row("u", NARROW, 14)]
        none = {NARROW: 0, WIDE: 0, BOTH: 0}
        spans = [span(1, 13, {**none, WIDE: 1}), span(14, 20, {**none, BOTH: (1, 0)}), span(21, 22, {NARROW: 1})]
        assert found_in(journal(versions, rows, spans)) == []
        spans[1:2] = [span(14, 18, spans[1][2]), span(19, 20, {NARROW: 1})]
        assert found_in(journal(versions, rows, spans)) == [(19, MISSING), (19, SIZE)]

    def test_slots_released_elsewhere_have_charges_only(self) -> None:
        spans = [
            span(1, 4, {LOOSE: 1, STRICT: 0}),
            span(5, 6, {LOOSE: 0, STRICT: 0}),
            span(7, 9, {LOOSE: 1, STRICT: 0}),
        ]
        assert found_in(journal(PLAIN, [row("u", LOOSE, 1)], spans, elsewhere=(5,))) == []
        spans[1] = span(5, 6, {LOOSE: 0})
        assert found_in(journal(PLAIN, [row("u", LOOSE, 1)], spans, elsewhere=(5,))) == [(5, MISSING)]


class TestUnregistered:
    """Unregistered users, users who join, and ids that are known."""

    def test_joiner(self) -> None:
        rows = [row("u", U, 0, 4), row("u", LOOSE, 5)]
        before, tail = {LOOSE: 0, STRICT: 0, U: 10}, {LOOSE: 0, STRICT: 0, U: (11, 10)}
        spans = [span(1, 4, before, COUNTED), span(5, 9, tail, COUNTED)]
        after = {LOOSE: 1, STRICT: 0, U: 10}
        assert found_in(journal(OPEN, rows, [*spans, span(10, 12, after, COUNTED)])) == []
        within = [spans[0], span(5, 9, before, COUNTED), span(10, 12, after, COUNTED)]
        assert found_in(journal(OPEN, rows, within)) == [(5, SIZE)]
        at_once = [spans[0], span(5, 12, after, COUNTED)]
        assert found_in(journal(OPEN, rows, at_once)) == [(5, SIZE)]
        unnoted = [spans[0], span(5, 8, after, COUNTED)]
        assert found_in(journal(OPEN, rows[1:], unnoted)) == [(5, NO_NOTE)]
        assert found_in(journal(OPEN, rows[1:], unnoted, complete_from=6)) == []  # a dropped row may have made it known

    def test_known_ids(self) -> None:
        rows = [row("u", LOOSE, 1, 4)]
        here, gone = {LOOSE: 1, STRICT: 0, U: 10}, {LOOSE: 0, STRICT: 0, U: 10}
        spans = [span(1, 4, here, COUNTED), span(5, 10, gone, (U, 10, 1)), span(11, 12, gone, COUNTED)]
        assert found_in(journal(OPEN, rows, spans)) == []
        assert found_in(journal(OPEN, rows, [spans[0], span(5, 12, gone, COUNTED)])) == [(5, KNOWN)]
        soon = [spans[0], span(5, 8, gone, (U, 10, 1)), span(9, 12, gone, COUNTED)]
        assert found_in(journal(OPEN, rows, soon)) == [(9, KNOWN)]
        erased = [row(erased_id("u", SALT), LOOSE, 1, 4)]
        assert found_in(journal(OPEN, erased, [spans[0], span(5, 12, gone, COUNTED)])) == [(5, KNOWN)]

    def test_joined_and_left_at_one_boundary(self) -> None:
        """The note stays, so the id is known: no second note is due when the id joins again."""
        rows = [row("u", U, 0, 4), row("u", LOOSE, 7)]
        none, tail = {LOOSE: 0, STRICT: 0, U: 10}, {LOOSE: 0, STRICT: 0, U: (11, 10)}
        spans = [span(1, 4, none, COUNTED), span(5, 6, none, (U, 10, 1)), span(7, 9, tail, COUNTED)]
        assert found_in(journal(OPEN, rows, spans)) == []

    def test_limit(self) -> None:
        spans = [span(1, 4, {LOOSE: 0, STRICT: 0, U: 11}, (U, 11, 0))]
        assert found_in(journal(OPEN, [], spans)) == [(1, UNREGISTERED)]
        assert (1, UNREGISTERED) in found_in(journal(PLAIN, [], [span(1, 4, {LOOSE: 0, STRICT: 10}, (STRICT, 10, 0))]))

    def test_version_changes_their_class(self) -> None:
        versions = [*OPEN, version(11, LOOSE, (3, 400), limit=20)]
        new = (3, 200)
        begin = span(1, 10, {LOOSE: 0, STRICT: 0, U: 10}, COUNTED)
        none = {LOOSE: 0, (3, 400): 0, STRICT: 0, U: 0, new: 0}
        tail = span(11, 15, {**none, U: (20, 0)}, (U, 20, 0))
        then = span(16, 16, {**none, new: 20}, (new, 20, 0))
        end = span(17, 20, {LOOSE: 0, (3, 400): 0, new: 20}, (new, 20, 0))
        assert found_in(journal(versions, [], [begin, tail, then, end])) == []
        early = span(11, 16, {**none, new: 20}, (new, 20, 0))
        assert found_in(journal(versions, [], [begin, early, end])) == [(11, UNREGISTERED)]
        assert found_in(journal(versions, [], [begin, tail, span(16, 20, then[2], (new, 20, 0))])) == []
        last = [span(11, 14, tail[2], (U, 20, 0)), span(15, 15, tail[2], (U, 20, 0))]
        assert found_in(journal(versions, [], [begin, *last, then, end])) == []
        last[1] = span(15, 15, {**none, new: 20}, (new, 20, 0))
        assert found_in(journal(versions, [], [begin, *last, then, end])) == [(15, UNREGISTERED)]


class TestRestores:
    """Restores put requirements in force for every id."""

    DOUBTED = (LOOSE, STRICT, U)
    SILENT = restore(10, silent_through=16)

    def spans(self, through: int, *, unregistered_through: int = 15, size: int = 1) -> list[Span]:
        """Slots 5 to 10 were released elsewhere; a user in LOOSE is counted in U through a slot."""
        none: dict[Key, Any] = {LOOSE: 0, STRICT: 0, U: 0}
        spans = [span(1, 4, {**none, LOOSE: 1, U: 10}, COUNTED), span(5, 10, none)]
        for slot in range(11, 21):
            counted = slot > unregistered_through
            sizes = {**none, U: (10 * counted + size * (slot <= through), 10 * counted), LOOSE: int(slot > through)}
            spans.append(span(slot, slot, sizes, COUNTED if counted else None))
        return spans

    def found(
        self, spans: list[Span], one: RestoreRow, rows: list[Row] | None = None, versions: list[Version] = OPEN
    ) -> list[tuple[int, str]]:
        return found_in(journal(versions, rows or [row("u", LOOSE, 1)], spans, [one], elsewhere=(5,)))

    def test_doubt(self) -> None:
        doubt = restore(10, *self.DOUBTED)
        assert self.found(self.spans(15), doubt) == []
        assert self.found(self.spans(14), doubt) == [(15, SIZE)]
        assert self.found(self.spans(15, unregistered_through=14), doubt) == [(15, UNREGISTERED)]
        assert (10, RESTORE) in self.found(self.spans(15), restore(10, LOOSE, STRICT))

    def test_doubt_lasts_through_the_first_slot_of_a_version(self) -> None:
        doubt, versions = restore(10, *self.DOUBTED), [*OPEN, version(15, LOOSE, STRICT, limit=10)]
        assert self.found(self.spans(15), doubt, versions=versions) == []
        assert self.found(self.spans(14), doubt, versions=versions) == [(15, SIZE)]

    def test_no_doubt(self) -> None:
        assert self.found(self.spans(10, unregistered_through=10), restore(10)) == []

    def test_id_that_registers_after_the_restore(self) -> None:
        rows = [row("u", LOOSE, 1), row("v", U, 0, 12), row("v", LOOSE, 13)]
        none: dict[Key, Any] = {LOOSE: 0, STRICT: 0, U: 0}
        spans = [*self.spans(15)[:4], span(13, 15, {**none, U: (2, 0)})]
        spans += [
            span(16, 17, {**none, LOOSE: 1, U: (11, 10)}, COUNTED),
            span(18, 20, {**none, LOOSE: 2, U: 10}, COUNTED),
        ]
        assert self.found(spans, restore(10, *self.DOUBTED), rows) == []
        spans[4] = span(13, 15, {**none, U: (1, 0), LOOSE: 1})
        assert self.found(spans, restore(10, *self.DOUBTED), rows) == [(13, SIZE)]

    def test_silence(self) -> None:
        silent = [
            span(one[0], one[1], {LOOSE: 0, STRICT: 0, U: 0}) if 11 <= one[0] <= 16 else one
            for one in self.spans(10, unregistered_through=10)
        ]
        assert self.found(silent, self.SILENT) == []
        spans = [span(1, 10, {NARROW: 0, WIDE: 0, BOTH: 0}), span(11, 16, {NARROW: 0, WIDE: 0})]
        assert found_in(journal(MIXED, [], spans, [self.SILENT])) == [(11, MISSING)]
        assert self.found(self.spans(10, unregistered_through=16), self.SILENT) == [
            (slot, SIZE) for slot in range(11, 17)
        ]
        counted = [*silent[:7], self.spans(10, unregistered_through=10)[7], *silent[8:]]
        assert self.found(counted, self.SILENT) == [(16, SIZE), (16, UNREGISTERED)]


def test_order_of_charges() -> None:
    keys = [NARROW, LOOSE, WIDE, BOTH]
    good = np.array([[3, 9, 3, 3], [0, 0, 0, 0], [5, 5, 2, 1]], dtype=np.int64)
    assert list(find_unordered(keys, good, good)) == []
    bad = good.copy()
    bad[2, 3] = 4  # BOTH more than WIDE
    assert list(find_unordered(keys, good, bad)) == [(2, BOTH)]
    assert list(find_unordered(keys, bad, good)) == [(2, BOTH)]


# ------------------------------------------------------------------ random lives, by the registry's own rules

CLASSES = [(2, 900), (3, 400), (5, 700), (6, 300)]
USERS = ["a", "b", "c", "d"]


ACTIONS: tuple[Literal["set", "remove", "erase"] | None, ...] = (None, None, None, "set", "set", "remove", "erase")


@st.composite
def lives(draw: st.DrawFn) -> JournalRows:
    """Draw a journal whose rows and populations follow from `wevent.people`."""
    last = draw(st.integers(10, 40))
    firsts = [1, *sorted(draw(st.sets(st.integers(4, last), max_size=2)))]
    declared = st.sets(st.sampled_from(CLASSES), min_size=1)
    versions = [version(first, *draw(declared), limit=draw(st.sampled_from([0, 7]))) for first in firsts]
    lost = draw(
        st.one_of(st.none(), st.tuples(st.integers(2, 8), st.integers(0, 5), st.sampled_from(["doubt", "silent"])))
    )
    built = [
        VersionClasses(one.first, one.declared, find_unregistered_class(one.declared, one.limit, "add_remove"))
        for one in versions
    ]
    rows: dict[str, list[Membership]] = {}
    spans: list[Span] = []
    elsewhere: set[int] = set()
    restores: list[Restore] = []
    complete_from = 1
    for slot in range(1, last + 1):
        classes = ClassHistory([one for one in built if one.first <= slot], restores)
        in_force = classes.version_at(slot)
        if lost is not None and lost[0] <= slot <= lost[0] + lost[1]:
            spans.append(span(slot, slot, dict.fromkeys(in_force.classes, 0)))
            elsewhere.add(slot)
            if slot == lost[0] + lost[1]:
                silent = lost[2] == "silent"
                doubted = () if silent else tuple(sorted(in_force.classes))
                restores.append(Restore(slot, slot + classes.max_window if silent else 0, doubted))
            continue
        for user in USERS:
            history = rows.get(user, [])
            kept = drop_expired(history, classes, slot)
            complete_from = complete_from if kept == history else slot
            current = find_current(kept)
            must = current is not None and current.key not in in_force.declared and slot > in_force.first
            action = draw(st.sampled_from(ACTIONS))
            if must or action == "set":
                change = Change("set", user, draw(st.sampled_from(sorted(in_force.declared))), None)
                kept = Boundary(classes, slot, SALT).apply(kept, change)
            elif action and kept:
                kept = Boundary(classes, slot, SALT).apply(kept, Change(action, user, None, None))
            rows[user] = kept
        live = classes.live(slot)
        if not classes.is_silent(slot):  # users who were not moved yet keep their class live
            live = live.union(*(find_in_force(history, slot) for history in rows.values() if find_current(history)))
            live |= {find_corner(live)}
        sizes, own = Counter(dict.fromkeys(live, 0)), Counter[Key]()
        former = 0
        for history in rows.values():
            current = find_current(history)
            former += bool(history) and current is None
            if current is not None and not classes.is_silent(slot):
                found = find_counting_class(find_in_force(history, slot) | classes.doubted(slot), live)
                sizes[found] += 1
                own[found] += found == current.key
        unregistered = classes.unregistered_class(slot)
        counted = None
        if unregistered is not None:
            counted = unregistered, 7, former
            sizes[unregistered] += 7
            own[unregistered] += 7 * (unregistered == in_force.unregistered)
        spans.append(span(slot, slot, {key: (sizes[key], own[key]) for key in sizes}, counted))
    stored = [restore(one.slot, *one.doubted, silent_through=one.silent_through) for one in restores]
    everybody: list[Row] = [tuple(one) for history in rows.values() for one in history]  # type: ignore[misc]
    return journal(versions, everybody, spans, stored, complete_from=complete_from, elsewhere=tuple(elsewhere))


@given(lives())
def test_random_lives_are_healthy(tables: JournalRows) -> None:
    assert found_in(tables) == []


@given(lives(), st.data())
def test_random_lives_with_another_size_are_found(tables: JournalRows, data: st.DataObject) -> None:
    exact = [at for at, run in enumerate(tables.runs) if run.first >= tables.complete_from and not run.elsewhere]
    if not exact:
        return
    at = data.draw(st.sampled_from(exact))
    run = tables.runs[at]
    classes = [list(one) for one in run.population["classes"]]
    one = data.draw(st.sampled_from(classes))
    one[2] += data.draw(st.sampled_from([-1, 1]))
    tables.runs[at] = run._replace(population={**run.population, "classes": classes})
    assert (run.first, SIZE) in found_in(tables)
