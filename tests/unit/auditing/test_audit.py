"""The audit finds what is wrong, and nothing where nothing is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.synthetic import SyntheticSource, make_journal
from tests.support.window_checker import violated_windows
from wevent.auditing.window_sums import WindowSums
from wevent.errors import InvalidJournal
from wevent.journal import SqliteJournal
from wevent.noise import SeededNoise
from wevent.outputs import open_output
from wevent.publishing.loop import Publication, Running
from wevent.verification import audit_journal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    publish(tmp_path / "a.journal")
    return tmp_path / "a.journal"


def publish(path: Path, **options: Any) -> None:
    with make_journal(path) as journal:
        output = open_output(str(path.with_suffix(".ndjson")))
        Publication(journal, SyntheticSource(40), output, running=Running(last=40, batch=7), **options).run()


def change(path: Path, statement: str) -> None:
    database = apsw.Connection(str(path))
    database.execute(statement)
    database.close()


@given(
    window=st.integers(1, 6),
    stretches=st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=7), max_size=5),
)
def test_window_sums_agree_with_adding_up(window: int, stretches: list[list[int]]) -> None:
    sums, slot, found = WindowSums(window, 10), 1, []
    for stretch in stretches:
        found += sums.feed(slot, np.array(stretch, dtype=np.int64))
        slot += len(stretch)
    charges = [charge for stretch in stretches for charge in stretch]
    expected = violated_windows([{(window, 10): (0, charge)} for charge in charges])
    assert [one.slot for one in found] == [one.last_slot for one in expected]


def test_slots_that_are_left_out_charged_nothing() -> None:
    sums = WindowSums(3, 10)
    assert sums.feed(1, np.array([6])) == []
    assert sums.feed(4, np.array([6])) == []
    assert [one.slot for one in sums.feed(6, np.array([6]))] == [6]


def test_a_journal_is_clean(path: Path) -> None:
    report = audit_journal(path)
    assert report.ok
    assert report.slots == 40
    assert all(0 < worst <= nano for (_, nano), worst in report.classes.items())
    assert set(report.to_dict()) >= {"ok", "slots", "classes", "violations"}


def test_it_works_while_someone_publishes(path: Path) -> None:
    from wevent.journal import SqliteJournal

    with SqliteJournal(path, write=True):
        assert audit_journal(path).ok


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DELETE FROM slots WHERE slot = 20", "missing"),
        ("DELETE FROM slots WHERE slot > 30", "committed"),
        ("UPDATE slots SET probe = 0, publication = 0 WHERE kind = 0", "charged to nobody"),
        ("UPDATE slots SET probe = 0 WHERE slot = 9", "hash chain"),
        ("UPDATE slots SET threshold = 5 WHERE slot = 9", "hash chain"),
        ("UPDATE slots SET dissimilarity = 0.123456 WHERE slot = 9", "hash chain"),
        ("UPDATE histograms SET data = x'93' WHERE slot = 1", "hash chain"),
        ("UPDATE epochs SET terms = replace(terms, 'add_remove', 'replace')", "hash chain"),
        ("UPDATE head SET link = x'00'", "does not end"),
        ("UPDATE slots SET kind = 2 WHERE slot = 1", "hash chain"),
        ("UPDATE facts SET value = '[\"seeded noise\"]' WHERE name = 'unsafe'", "seeded"),
        ('UPDATE populations SET data = \'{"turnover":0,"classes":[[3,400000000,30]]}\'', ""),
    ],
)
def test_a_change_is_found(path: Path, statement: str, problem: str) -> None:
    change(path, statement)
    try:
        report = audit_journal(path)
    except InvalidJournal:
        assert not problem
        return
    assert not report.ok
    assert any(problem in one["problem"] for one in report.violations)


def charge(path: Path, slot: int, charges: list[int]) -> None:
    """Store other publication charges of a slot; classes are (3, 0.4), (4, 1.0), the corner (8, 0.4) and (8, 0.6)."""
    database = apsw.Connection(str(path))
    database.execute("INSERT INTO charges VALUES (99999, ?)", (b"r" + np.array(charges, dtype="<i8").tobytes(),))
    database.execute("UPDATE slots SET publication = 99999 WHERE slot = ?", (slot,))
    database.close()


def test_an_overspent_window_is_named(path: Path) -> None:
    charge(path, 12, [0, 900_000_000, 0, 0])
    found = [one for one in audit_journal(path).violations if "limit" in one]
    assert found[0]["slot"] == 12
    assert (found[0]["window"], found[0]["epsilon"], found[0]["limit"]) == (4, 1.0, 1.0)
    assert found[0]["spend"] > 1.0


def test_a_class_that_was_charged_more_than_a_looser_one_is_named(path: Path) -> None:
    charge(path, 12, [3, 3, 2, 1])
    found = [one for one in audit_journal(path).violations if "looser" in one["problem"]]
    assert [(one["slot"], one["window"], one["epsilon"]) for one in found] == [(12, 8, 0.4)]
    change(path, "UPDATE slots SET kind = 3, shown = 0 WHERE slot = 12")
    assert not any("looser" in one["problem"] for one in audit_journal(path).violations)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("[3,400000000,30,30]", "[3,400000000,29,29]", "the size of a class"),
        ("[3,400000000,30,30]", "[3,400000000,30,29]", "their own class"),
        ('"unregistered":null', '"unregistered":[8,200000000,5,0]', "unregistered users were not counted"),
    ],
)
def test_another_population_is_found(path: Path, old: str, new: str, problem: str) -> None:
    database = apsw.Connection(str(path))
    ((data,),) = list(database.execute("SELECT data FROM populations"))
    assert isinstance(data, bytes)
    assert old.encode() in data
    database.execute("UPDATE populations SET data = ?", (data.replace(old.encode(), new.encode()),))
    database.close()
    assert any(problem in one["problem"] for one in audit_journal(path).violations)


def test_seeded_noise_is_a_violation(tmp_path: Path) -> None:
    publish(tmp_path / "s.journal", noise=SeededNoise(1))
    report = audit_journal(tmp_path / "s.journal")
    assert [one["problem"] for one in report.violations] == ["noise was seeded: whoever knows the seed can undo it"]


def test_a_retained_part_is_audited(path: Path) -> None:
    from wevent.journal import SqliteJournal
    from wevent.journal.contents import Batch

    with SqliteJournal(path, write=True) as journal:
        from wevent.journal.rebuild import rebuild_publisher

        state = rebuild_publisher(journal.load(), journal.epochs(), None).state()
        journal.commit(Batch((), None, state, 40))
        assert journal.compact(10) == 31
        assert [record.slot for record in journal.releases()] == list(range(31, 41))
        assert journal.load().state == state
    report = audit_journal(path)
    assert report.ok
    assert (report.first, report.slots) == (31, 10)


@pytest.mark.parametrize("content", [b"", b"not a database at all", b"SQLite format 3\0" + b"\0" * 50])
def test_what_is_no_journal_is_said_so(tmp_path: Path, content: bytes) -> None:
    other = tmp_path / "x.journal"
    other.write_bytes(content)
    with pytest.raises(InvalidJournal):
        audit_journal(other)
    with pytest.raises(InvalidJournal, match="no such file"):
        audit_journal(tmp_path / "missing.journal")


@pytest.mark.parametrize("table", ["histograms", "populations", "charges"])
def test_a_number_where_bytes_should_be_is_damage(path: Path, table: str) -> None:
    """Made into bytes, it would be as many zeros: more than there is memory."""
    change(path, f"UPDATE {table} SET data = {2**50}")
    with pytest.raises(InvalidJournal, match="damaged"):
        audit_journal(path)
    with SqliteJournal(path) as journal, pytest.raises(InvalidJournal, match="damaged"):
        list(journal.releases())
