"""Verification of journals: every change of stored slots is found, and an unchanged journal is clean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stored_slots import chain_again, change_blob, change_entry, read_blob, read_entry, store_blob
from tests.support.synthetic import SyntheticSource, make_journal
from tests.support.window_checker import violated_windows
from wevent.errors import InvalidJournal
from wevent.journal import SqliteJournal
from wevent.noise import SeededNoise
from wevent.outputs import open_output
from wevent.publishing.loop import Publication, Running
from wevent.verification import verify_journal
from wevent.verification.slot_check import WindowSums


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
    report = verify_journal(path)
    assert report.ok
    assert report.slots == 40
    assert all(0 < worst <= nano for (_, nano), worst in report.classes.items())
    assert set(report.to_dict()) >= {"ok", "slots", "classes", "violations"}


def test_it_works_while_someone_publishes(path: Path) -> None:
    from wevent.journal import SqliteJournal

    with SqliteJournal(path, write=True):
        assert verify_journal(path).ok


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DELETE FROM slots WHERE slot = 20", "missing"),
        ("DELETE FROM slots WHERE slot > 30", "committed"),
        ("UPDATE slots SET chain = x'00' WHERE slot = 9", "hash chain"),
        ("UPDATE epochs SET terms = replace(terms, 'add_remove', 'replace')", "configuration version"),
        ("UPDATE epochs SET first = 2", "configuration version"),
        ("UPDATE head SET chain = x'00'", "does not begin or end"),
        ("UPDATE head SET anchor = x'00'", "does not begin or end"),
        ("UPDATE facts SET value = CAST('[\"seeded noise\"]' AS BLOB) WHERE name = 'unsafe'", "seeded"),
    ],
)
def test_a_change_is_found(path: Path, statement: str, problem: str) -> None:
    change(path, statement)
    assert any(problem in one["problem"] for one in verify_journal(path).violations)


def fresh_slot(path: Path) -> int:
    """Return a slot with a fresh release."""
    return next(slot for slot in range(1, 41) if read_entry(path, slot)["kind"] == 0)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"probe": b"", "publication": b""}, "charged to nobody"),
        ({"threshold": 5}, "hash chain"),
        ({"dissimilarity": 0.123456}, "hash chain"),
        ({"slot": 50}, "hash chain"),
        ({"kind": 1, "shown": 41}, "does not fit"),
        ({"kind": 4}, "does not fit"),
        ({"kind": 3}, "does not fit"),
        ({"histogram": b""}, "does not fit"),
        ({"histogram": b"x" * 32}, "a blob that the slot names"),
        ({"version": 2}, "configuration version"),
        ({"version_digest": b"x" * 32}, "configuration version"),
    ],
)
def test_a_changed_slot_is_found(path: Path, changes: dict[str, Any], problem: str) -> None:
    slot = fresh_slot(path)
    change_entry(path, slot, **changes)
    found = [one["problem"] for one in verify_journal(path).violations if one["slot"] == slot]
    assert "the hash chain is broken: what is stored is not what was committed" in found
    assert any(problem in one for one in found)


@pytest.mark.parametrize("which", ["population", "publication", "histogram"])
def test_a_changed_blob_is_found(path: Path, which: str) -> None:
    """The chain has the name of a blob alone, so the content is compared with its name."""
    slot = fresh_slot(path)
    name = read_entry(path, slot)[which]
    whole = read_blob(path, name)
    damaged = {
        "population": whole.replace(b'"turnover":', b'"turnover":1'),
        "publication": b"r" + np.array([1, 1, 1, 1], dtype="<i8").tobytes(),
        "histogram": whole[:-1],
    }
    change_blob(path, name, damaged[which])
    found = [one["problem"] for one in verify_journal(path).violations]
    assert "a blob that the slot names is missing or is not what was committed" in found


def test_a_missing_histogram_is_found(path: Path) -> None:
    slot = fresh_slot(path)
    name = read_entry(path, slot)["histogram"]
    change(path, f"DELETE FROM blobs WHERE hash = x'{name.hex()}'")
    found = [(one["slot"], one["problem"]) for one in verify_journal(path).violations]
    assert found == [(slot, "a blob that the slot names is missing or is not what was committed")]


def test_another_histogram_in_a_repeat_is_found(path: Path) -> None:
    """Also if the chain was computed anew."""
    first, *later = (read_entry(path, slot) for slot in range(1, 41))
    repeat = next(entry["slot"] for entry in later if entry["kind"] == 0) + 1
    change_entry(path, repeat, kind=1, shown=1, histogram=first["histogram"])
    chain_again(path)
    problems = {(one["slot"], one["problem"]) for one in verify_journal(path).violations}
    assert (repeat, "the release does not fit the slot's outcome") in problems


def charge(path: Path, slot: int, charges: list[int]) -> None:
    """Store other publication charges of a slot; classes are (3, 0.4), (4, 1.0), the corner (8, 0.4) and (8, 0.6)."""
    raw = np.array(charges, dtype="<i8").tobytes()
    change_entry(path, slot, publication=store_blob(path, b"r" + raw, raw))
    chain_again(path)


def test_an_overspent_window_is_named(path: Path) -> None:
    charge(path, 12, [0, 900_000_000, 0, 0])
    found = [one for one in verify_journal(path).violations if "limit" in one]
    assert found[0]["slot"] == 12
    assert (found[0]["window"], found[0]["epsilon"], found[0]["limit"]) == (4, 1.0, 1.0)
    assert found[0]["spend"] > 1.0


def test_a_negative_charge_is_named(path: Path) -> None:
    charge(path, 12, [0, -1, 0, 0])
    found = [(one["slot"], one["problem"]) for one in verify_journal(path).violations]
    assert (12, "a charge is negative") in found


def test_a_class_that_was_charged_more_than_a_looser_one_is_named(path: Path) -> None:
    charge(path, 12, [3, 3, 2, 1])
    found = [one for one in verify_journal(path).violations if "looser" in one["problem"]]
    assert [(one["slot"], one["window"], one["epsilon"]) for one in found] == [(12, 8, 0.4)]
    change_entry(path, 12, kind=3, shown=0, histogram=b"")
    assert not any("looser" in one["problem"] for one in verify_journal(path).violations)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("[3,400000000,30,30]", "[3,400000000,29,29]", "the size of a class"),
        ("[3,400000000,30,30]", "[3,400000000,30,29]", "their own class"),
        ('"unregistered":null', '"unregistered":[8,200000000,5,0]', "unregistered users were not counted"),
    ],
)
def test_another_population_is_found(path: Path, old: str, new: str, problem: str) -> None:
    name = read_entry(path, 20)["population"]
    data = read_blob(path, name)
    assert old.encode() in data
    change_blob(path, name, data.replace(old.encode(), new.encode()))
    assert any(problem in one["problem"] for one in verify_journal(path).violations)


def test_seeded_noise_is_a_violation(tmp_path: Path) -> None:
    publish(tmp_path / "s.journal", noise=SeededNoise(1))
    report = verify_journal(tmp_path / "s.journal")
    assert [one["problem"] for one in report.violations] == ["noise was seeded: whoever knows the seed can undo it"]


def test_a_retained_part_is_audited(path: Path) -> None:
    from wevent.journal import SqliteJournal
    from wevent.journal.record import Batch

    with SqliteJournal(path, write=True) as journal:
        from wevent.journal.rebuild import rebuild_publisher

        state = rebuild_publisher(journal.load(), journal.epochs(), None).state()
        journal.commit(Batch((), None, state, 40))
        assert journal.compact(10) == 31
        assert [record.slot for record in journal.releases()] == list(range(31, 41))
        assert journal.load().state == state
    report = verify_journal(path)
    assert report.ok
    assert (report.first, report.slots) == (31, 10)


@pytest.mark.parametrize("content", [b"", b"not a database at all", b"SQLite format 3\0" + b"\0" * 50])
def test_what_is_no_journal_is_said_so(tmp_path: Path, content: bytes) -> None:
    other = tmp_path / "x.journal"
    other.write_bytes(content)
    with pytest.raises(InvalidJournal):
        verify_journal(other)
    with pytest.raises(InvalidJournal, match="no such file"):
        verify_journal(tmp_path / "missing.journal")


@pytest.mark.parametrize("which", ["population", "publication", "histogram"])
def test_a_number_where_bytes_should_be_is_damage(path: Path, which: str) -> None:
    """Made into bytes, it would be as many zeros: more than there is memory."""
    change(path, f"UPDATE blobs SET data = {2**50} WHERE hash = x'{read_entry(path, fresh_slot(path))[which].hex()}'")
    with pytest.raises(InvalidJournal, match="damaged"):
        verify_journal(path)
    with SqliteJournal(path) as journal, pytest.raises(InvalidJournal, match="damaged"):
        list(journal.releases())
