"""The registry in a running stream: joins, leaves, changes, erasure (spec 10, 15)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.synthetic import CLASSES, SyntheticSource, make_journal, make_terms
from wevent.errors import InvalidJournal
from wevent.journal import SqliteJournal
from wevent.outputs import open_output
from wevent.people.membership import Change
from wevent.publishing.loop import MemberView, Publication, Running
from wevent.verification import verify_journal

SMALL, LARGE = CLASSES[2], CLASSES[1]  # windows 3 and 8
CORNER = (LARGE[0], SMALL[1])
"""At least as strict as both."""


@pytest.fixture
def journal(tmp_path: Path) -> Any:
    with make_journal(tmp_path / "run.journal", users=9) as journal:
        yield journal


def advance(journal: SqliteJournal, end: int, *changes: Change) -> None:
    journal.registry.ask(changes)
    output = open_output(str(journal.path.with_suffix(".ndjson")))
    Publication(journal, SyntheticSource(end), output, running=Running(last=end, batch=50)).run()
    output.close()


def size(journal: SqliteJournal, key: tuple[int, int]) -> list[int]:
    """n_g in every slot."""
    found = []
    for record in journal.releases():
        sizes = {(one.window, one.nano): number for one, number in record.group.population.items()}
        found.append(sizes[key])
    return found


def test_a_change_counts_in_a_stricter_class_until_the_earlier_requirement_is_over(journal: SqliteJournal) -> None:
    advance(journal, 5)
    advance(journal, 20, Change("set", "u2", LARGE))
    assert size(journal, SMALL) == [3] * 5 + [2] * 15
    assert size(journal, CORNER) == [0] * 5 + [1] * 2 + [0] * 13  # in force through 5 + 3 - 1
    assert size(journal, LARGE) == [3] * 7 + [4] * 13
    assert verify_journal(journal.path).ok


def test_a_change_back_keeps_what_was_held_in_force(journal: SqliteJournal) -> None:
    advance(journal, 5)
    advance(journal, 8, Change("set", "u2", LARGE))
    advance(journal, 20, Change("set", "u2", SMALL))
    assert size(journal, SMALL) == [3] * 5 + [2] * 10 + [3] * 5
    assert size(journal, CORNER) == [0] * 5 + [1] * 2 + [0] + [1] * 7 + [0] * 5  # LARGE through 8 + 8 - 1
    assert size(journal, LARGE) == [3] * 7 + [4] + [3] * 12
    assert verify_journal(journal.path).ok


@pytest.mark.parametrize("action", ["remove", "erase"])
def test_leaving_does_not_forget_and_an_erased_id_is_not_readable(journal: SqliteJournal, action: Any) -> None:
    advance(journal, 5)
    advance(journal, 7, Change(action, "u1"))
    rows = journal._database.execute("SELECT user FROM members").fetchall()
    assert (("u1",) in rows) == (action == "remove")
    assert len(rows) == 9
    advance(journal, 20, Change("set", "u1", SMALL))
    assert size(journal, LARGE) == [3] * 5 + [2] * 15
    assert size(journal, CORNER) == [0] * 7 + [1] * 5 + [0] * 8  # LARGE is in force through 5 + 8 - 1
    assert size(journal, SMALL) == [3] * 12 + [4] * 8
    assert verify_journal(journal.path).ok


def test_rows_that_are_no_longer_in_force_are_dropped(journal: SqliteJournal) -> None:
    advance(journal, 5)
    advance(journal, 13, Change("erase", "u2"))
    advance(journal, 14, Change("set", "new", SMALL))
    assert len(journal._database.execute("SELECT user FROM members").fetchall()) == 9
    assert not journal._database.execute("SELECT 1 FROM members WHERE user LIKE 'erased:%'").fetchall()


def test_changes_of_one_boundary_follow_each_other(journal: SqliteJournal) -> None:
    advance(journal, 5)
    advance(journal, 9, Change("remove", "u2"), Change("set", "u2", SMALL), Change("set", "x", LARGE))
    assert size(journal, SMALL) == [3] * 9
    assert size(journal, LARGE) == [3] * 5 + [4] * 4


def test_a_queue_counts_as_known(journal: SqliteJournal) -> None:
    advance(journal, 1)
    assert journal.registry.holds("u1")
    journal.registry.ask([Change("remove", "u1"), Change("set", "y", SMALL)])
    assert not journal.registry.holds("u1")
    assert journal.registry.holds("y")


def test_the_only_user_goes_on_being_counted(tmp_path: Path) -> None:
    with make_journal(tmp_path / "one.journal", users=0) as journal:
        advance(journal, 3, Change("set", "only", SMALL))
        advance(journal, 6, Change("set", "only", LARGE))
        assert [int(record.group.population.users) for record in journal.releases()] == [1] * 6


def test_a_million_users_load_in_seconds(tmp_path: Path) -> None:
    """Not asserted by the clock; a quadratic path would not end."""
    with SqliteJournal(tmp_path / "big.journal", write=True) as journal:
        journal.begin(make_terms())
        begun = time.perf_counter()
        journal.registry.ask(Change("set", str(user), CLASSES[user % 3]) for user in range(100_000))
        roster, most, *_ = MemberView(journal.registry, journal.epochs()).at(1)
        print(f"100,000 users: {time.perf_counter() - begun:.1f} s")
        assert len(roster) == 100_000
        assert most > 10**9
        assert roster.population.sizes.sum() == 100_000


def test_one_who_asks_does_not_make_the_publisher_wait_for_all_who_did(
    journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million may have joined by request, and whoever asks holds the transaction that a slot's commit waits for."""

    def everybody() -> frozenset[str]:
        raise AssertionError("everybody was read")

    monkeypatch.setattr(journal.registry, "joined_by_request", everybody)
    journal.registry.ask([Change("set", "new", SMALL)], by_request=True)
    journal.registry.ask([Change("remove", "u2")])


@pytest.mark.parametrize(
    "damage",
    [
        "user = CAST(user AS BLOB) WHERE user = 'u8'",
        "user = 'v' || char(0) WHERE user = 'u3'",
        "level = 'High/Small' WHERE user = 'u3'",
        "last = 7 WHERE user = 'u3'",
        "nano = (SELECT sum(nano) FROM members) - nano WHERE user IN ('u0', 'u1')",
    ],
)
def test_damaged_rows_do_not_add_up(journal: SqliteJournal, damage: str) -> None:
    advance(journal, 1)
    journal.registry.check()
    journal._database.execute(f"UPDATE members SET {damage}")
    with pytest.raises(InvalidJournal):
        SqliteJournal(journal.path).registry.check()
