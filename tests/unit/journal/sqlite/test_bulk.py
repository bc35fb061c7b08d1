"""Many users at once: the same registry as one by one."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.plain_registry import PlainRegistry
from tests.support.profiles import examples
from wevent.counting.string_column import StringColumn
from wevent.errors import InvalidMembership
from wevent.journal import SqliteJournal, Terms
from wevent.journal.sqlite import transaction
from wevent.journal.terms import Epoch, class_history
from wevent.journal.user_registry import Registry
from wevent.people.classes import ClassHistory, Restore
from wevent.people.membership import Change, Enrolment, KeyColumn, MemberColumns, TailColumns

pytestmark = pytest.mark.slow

A, B, C = (20, 500_000_000), (40, 100_000_000), (5, 1_000_000_000)
TERMS = Terms(stream="s", origin_us=0, length_us=60_000_000, cells=2, declared=[A, B, C])
RULE = class_history([Epoch(1, 1, TERMS)])


def rows(journal: SqliteJournal) -> list[Any]:
    journal.registry.check()
    return journal._database.execute("SELECT * FROM members ORDER BY user, first, window, nano").fetchall()


def columns(found: MemberColumns | TailColumns) -> list[Any]:
    lasts = [found.lasts.tolist()] if isinstance(found, TailColumns) else []
    return sorted(zip(found.users.texts(), found.keys, *lasts, strict=True))


@pytest.mark.parametrize("words", [None, ["High/Small", None] * 1000])
@pytest.mark.parametrize("numbered", [True, False])
def test_everybody_at_once_is_everybody_one_by_one(tmp_path: Path, words: Any, numbered: bool) -> None:
    numbers = np.random.default_rng(1).permutation(5_000)[:2_000] - 500
    users = numbers if numbered else StringColumn.from_texts([f"ü{one}" for one in numbers.tolist()])
    everybody = Enrolment(users, KeyColumn.of([A, B] * 1000), words)
    assert len(list(everybody)) == len(everybody) == 2_000
    found = []
    for name, changes in (("bulk", everybody), ("queue", list(everybody))):
        with SqliteJournal(tmp_path / name, write=True) as journal:
            journal.begin(TERMS, changes=changes)
            assert journal.registry.pending() == (0 if name == "bulk" else 2_000)
            journal.registry.apply(1, RULE)
            found.append(rows(journal))
            first, again = journal.registry.rows(), journal.registry.rows()  # as they were stored, and read back
            assert again.users.texts() == sorted((one.user for one in everybody), key=str.encode)
            assert columns(first) == columns(again)
    assert found[0] == found[1]
    with SqliteJournal(tmp_path / "bulk") as reopened:
        assert rows(reopened) == found[0]


def test_odd_ids_are_stored_as_they_are(tmp_path: Path) -> None:
    users = [
        '"',
        "\\",
        "\x01",
        "\x7f",
        " ",
        'a"b\\c\td',
        "é",
        "\u2028",
        "\ufeffx",
        "\uffff",
        "😀",
        "e\u0301",
        "7",
        "007",
    ]
    everybody = Enrolment(StringColumn.from_texts(users), KeyColumn.of([A, B] * (len(users) // 2)), [*users[1:], None])
    with SqliteJournal(tmp_path / "run.journal", write=True) as journal:
        journal.begin(TERMS, changes=everybody)
        assert journal.registry.pending() == 0
        wanted = [(one.user, *(one.key or ()), one.level, 1, None) for one in everybody]
        assert rows(journal) == sorted(wanted, key=lambda row: str(row[0]).encode())


def test_only_an_empty_registry_is_filled_at_once(tmp_path: Path) -> None:
    everybody = Enrolment(StringColumn.from_texts(["u", "v"]), KeyColumn.of([A, A]))
    with SqliteJournal(tmp_path / "run.journal", write=True) as journal:
        journal.begin(TERMS)
        journal.registry.ask([Change("set", "u", B)])
        assert not journal.registry.enrol(everybody, 1, RULE)
        journal.registry.apply(1, RULE)
        assert not journal.registry.enrol(everybody, 1, RULE)
        assert [one.user for one in journal.registry.members()] == ["u"]


@pytest.mark.parametrize("user", ["", "erased:1", "a\0b"])
def test_ids_that_nobody_can_have_are_refused(tmp_path: Path, user: str) -> None:
    with SqliteJournal(tmp_path / "run.journal", write=True) as journal:
        with pytest.raises(InvalidMembership):
            journal.begin(TERMS, changes=Enrolment(StringColumn.from_texts(["u", user]), KeyColumn.of([A, A])))
        assert journal.is_new


def test_a_portion_of_the_queue_takes_effect_in_its_own_slot(tmp_path: Path) -> None:
    with SqliteJournal(tmp_path / "run.journal", write=True) as journal:
        journal.begin(TERMS)
        journal.registry.ask([Change("set", "u", A), Change("set", "v", A)])
        journal.registry.apply(1, RULE)
        journal.registry.ask(
            [Change("set", "u", B), Change("set", "v", B), Change("set", "u", C), Change("remove", "v")]
        )
        assert journal.registry.apply(10, RULE, 2) == 2
        assert {one.user: (one.key, one.first) for one in journal.registry.members()} == {"u": (B, 10), "v": (B, 10)}
        assert journal.registry.apply(11, RULE, 1) == 1
        assert {one.user: (one.key, one.first) for one in journal.registry.members()} == {"u": (C, 11), "v": (B, 10)}
        assert journal.registry.apply(12, RULE) == 1
        assert {one.user: (one.key, one.first) for one in journal.registry.members()} == {"u": (C, 11)}
        ended = [("u", *A, None, 1, 9), ("u", *B, None, 10, 10)], [("v", *A, None, 1, 9), ("v", *B, None, 10, 11)]
        assert rows(journal) == [*ended[0], ("u", *C, None, 11, None), *ended[1]]


def test_a_few_changes_are_what_they_are_one_at_a_time(tmp_path: Path) -> None:
    chance = np.random.default_rng(2)
    found = []
    for most in (None, 1):
        with SqliteJournal(tmp_path / f"{most}.journal", write=True) as journal:
            journal.begin(TERMS)
            journal._database.execute("UPDATE facts SET value = ? WHERE name = 'salt'", (bytes(32),))
            chance = np.random.default_rng(2)
            for slot in range(1, 120):
                journal.registry.ask(_changes(chance))
                while journal.registry.pending():
                    journal.registry.apply(slot, RULE, most)
            found.append(rows(journal))
    assert found[0] == found[1]
    assert any(row[0].startswith("erased:") for row in found[0])


COUNTING = class_history([Epoch(1, 1, TERMS), Epoch(2, 30, replace(TERMS, unknown_users=2))])
RESTORED = class_history([Epoch(1, 1, TERMS)], (Restore(20, 0, (A, B)),))


@pytest.mark.parametrize("rule", [RULE, COUNTING, RESTORED])
@examples(8)
@given(data=st.data())
def test_many_changes_are_what_they_are_one_at_a_time(rule: ClassHistory, data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 2**32))
    slots = data.draw(st.lists(st.integers(1, 15), min_size=2, max_size=6).map(lambda gaps: np.cumsum(gaps).tolist()))
    found = []
    for most in (None, 1):
        with (
            tempfile.TemporaryDirectory() as folder,
            SqliteJournal(Path(folder) / "run.journal", write=True) as journal,
        ):
            journal.begin(TERMS)
            journal._database.execute("UPDATE facts SET value = ? WHERE name = 'salt'", (bytes(32),))
            chance = np.random.default_rng(seed)
            registry = Registry(journal._database, lambda revision: None)
            with transaction(journal._database.connection):  # syncing after each takes most of the time
                for slot in slots:
                    registry.ask(_wishes(chance, 150, 200))
                    while registry.pending():
                        registry.apply(slot, rule, most)
            found.append((rows(journal), registry._facts.data("registry")))
    assert found[0] == found[1]


@pytest.mark.parametrize("rule", [RULE, COUNTING, RESTORED])
@examples(8)
@given(seed=st.integers(0, 2**32), gaps=st.lists(st.integers(1, 30), min_size=2, max_size=6))
def test_many_changes_are_what_the_plain_rule_makes_of_them(rule: ClassHistory, seed: int, gaps: list[int]) -> None:
    """Whatever SQL does for speed: the rows are those of `wevent.people.membership`, applied one by one to lists."""
    with (
        tempfile.TemporaryDirectory() as folder,
        SqliteJournal(Path(folder) / "run.journal", write=True) as journal,
    ):
        plain = PlainRegistry()
        journal.begin(TERMS)
        journal._database.execute("UPDATE facts SET value = ? WHERE name = 'salt'", (plain.salt,))
        fast = Registry(journal._database, lambda revision: None)
        chance = np.random.default_rng(seed)
        for slot in np.cumsum(gaps).tolist():
            wishes = _wishes(chance, 150, 200)
            for registry in (fast, plain):
                assert registry.ask(wishes) == 200
                assert registry.apply(slot, rule) == 200
            assert sorted(fast.former_ids()) == sorted(plain.former_ids())
            assert fast.next_expiry(rule) == plain.next_expiry(rule)
            assert fast.turnover(slot) == plain.turnover(slot)
            assert fast.revision().number == plain.revision().number
            assert columns(fast.rows()) == columns(plain.rows())
            assert columns(fast.tails(slot)) == columns(plain.tails(slot))
        expected = [row for history in plain.kept.values() for row in history]
        assert sorted(rows(journal), key=str) == sorted(map(tuple, expected), key=str)


def _wishes(chance: np.random.Generator, users: int, number: int) -> list[Change]:
    """Wishes of which some are of the same user, and most are plain."""
    changes = []
    for user, action, key, level in chance.integers(0, [users, 12, 3, 2], (number, 4)).tolist():
        if action < 10:
            changes.append(Change("set", f"ü{user}", (A, B, C)[key], (None, "High/Small")[level]))
        else:
            changes.append(Change("remove" if action == 10 else "erase", f"ü{user}"))
    return changes


def _changes(chance: np.random.Generator) -> list[Change]:
    """Up to six wishes of five users, some of them several of one user."""
    changes = []
    for user, action, key in chance.integers(0, [5, 4, 3], (int(chance.integers(0, 7)), 3)).tolist():
        if action < 2:
            changes.append(Change("set", f"u{user}", (A, B, C)[key]))
        else:
            changes.append(Change("remove" if action == 2 else "erase", f"u{user}"))
    return changes
