"""A journal of the first format is brought up to date together with the hold-out it needs, or not at all (spec 10)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest

from wevent.errors import InvalidJournal, StaleJournal, StorageFailed
from wevent.journal import SqliteJournal
from wevent.journal.sqlite.lock import lock_path
from wevent.journal.tables.facts import Facts
from wevent.journal.tables.side_mark import MARK_SIZE
from wevent.journal.tables.table_registry import TableRegistry
from wevent.people.membership import Change
from wevent.publishing.foreseeing import foresee

DATA = Path(__file__).parents[3] / "data"
NAMES = ("format1.journal", "format1-backup.journal")


@pytest.fixture(params=NAMES)
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A journal of the first format, in whose slots strangers may have been counted."""
    return Path(shutil.copy(DATA / request.param, tmp_path / "run.journal"))


def put_foreign_side_file(journal: Path) -> None:
    """Of another journal, which committed slots."""
    lock_path(journal).write_text(json.dumps({"journal": "another", "committed": 5}).ljust(MARK_SIZE))


def full_disk(*arguments: Any, **options: Any) -> None:
    raise apsw.FullError("database or disk is full")


def check_everybody_waits(journal: Path) -> None:
    with SqliteJournal(journal, write=True) as opened:
        committed = opened.head().committed
        assert [restore.slot for restore in opened.registry.restores()] == [committed]
        assert min(member.first for member in opened.registry.members()) > committed + 1


def test_everybody_waits(journal: Path) -> None:
    check_everybody_waits(journal)


def test_a_refused_open_changes_nothing(journal: Path) -> None:
    before = journal.read_bytes()
    put_foreign_side_file(journal)
    with pytest.raises(StaleJournal, match="another journal"):
        SqliteJournal(journal, write=True)
    assert journal.read_bytes() == before
    lock_path(journal).unlink()
    check_everybody_waits(journal)


def test_an_open_that_fails_half_way_keeps_the_format_and_lets_go(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(TableRegistry, "hold_out", full_disk)
        for _ in range(2):  # the second one is not told that this process holds the lock
            with pytest.raises(StorageFailed, match="room on the disk"):
                SqliteJournal(journal, write=True)
    database = apsw.Connection(str(journal))
    assert database.pragma("user_version") == 1
    database.close()
    check_everybody_waits(journal)


def test_starting_over_that_fails_lets_go(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_foreign_side_file(journal)
    with monkeypatch.context() as broken:
        broken.setattr(Facts, "add_unsafe", full_disk)
        for _ in range(2):
            with pytest.raises(StorageFailed, match="room on the disk"):
                SqliteJournal(journal, write=True, start_over=True)
    with SqliteJournal(journal, write=True, start_over=True) as opened:
        assert opened.registry.restores()


def test_what_a_change_means_is_foreseen_without_bringing_it_up_to_date(journal: Path) -> None:
    before = journal.read_bytes()
    with SqliteJournal(journal) as opened:
        members = opened.registry.members()
        user, (window, nano) = members[0].user, members[0].key
        seen = foresee(opened, [Change("set", user, (window, nano // 2))])
        assert (seen.registered, seen.waiting) == (len(members), 1)
        assert sum(size.registered for size in opened.registry.sizes(1).values()) == len(members)
        assert opened.registry.joined_by_request() == frozenset()
    assert journal.read_bytes() == before


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE members SET first = 'x' WHERE user = (SELECT max(user) FROM members)",
        "UPDATE members SET nano = 1",
        "UPDATE members SET last = 9999 WHERE user = (SELECT max(user) FROM members)",
        "UPDATE members SET first = 5, last = 4 WHERE user = (SELECT max(user) FROM members)",
        "UPDATE members SET window = 2.5",
        "UPDATE head SET committed = 'x'",
        "DELETE FROM epochs",
        "UPDATE epochs SET terms = '{}'",
    ],
)
def test_what_means_nothing_is_not_brought_up_to_date(journal: Path, damage: str) -> None:
    """From then on it would add up, and count as what was stored."""
    database = apsw.Connection(str(journal))
    database.execute(damage)
    database.close()
    with pytest.raises(InvalidJournal):
        SqliteJournal(journal, write=True)
    database = apsw.Connection(str(journal))
    assert database.pragma("user_version") == 1
    database.close()
