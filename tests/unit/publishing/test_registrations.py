"""Changing who is registered, as a service would: by functions, with the journal in use or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wevent
from tests.support.commands import call
from tests.support.publications import publish
from tests.support.synthetic import CLASSES, make_journal
from wevent.errors import InvalidInput, InvalidMembership, NotRegistered, StaleJournal
from wevent.journal import back_up, open_journal
from wevent.journal.terms import class_history
from wevent.people.membership import Change
from wevent.publishing import registrations
from wevent.publishing.importing import digest_file
from wevent.publishing.registrations import Requested
from wevent.streams import requirements_file

LARGE = Requested("8", "0.6")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "run.journal"
    with make_journal(path, users=9) as journal:
        publish(journal, tmp_path / "o.ndjson", 5)
    return path


def held(path: Path) -> dict[str, tuple[tuple[int, int], int, str | None]]:
    with open_journal(path) as journal:
        return {member.user: (member.key, member.first, member.level) for member in journal.registry.members()}


def test_everybody_joins_changes_and_leaves_at_the_next_slot(path: Path) -> None:
    assert registrations.choose(path, "ann", LARGE).slot == 6
    assert registrations.choose(path, "u2", LARGE).slot == 6
    assert registrations.leave(path, "u0").slot == 6
    assert registrations.leave(path, "u1", erased=True).slot == 6
    now = held(path)
    assert now["ann"] == (CLASSES[1], 6, None)
    assert now["u2"] == (CLASSES[1], 6, None)
    assert not {"u0", "u1"} & set(now)
    assert registrations.leave(path, "u0", erased=True).slot == 6  # who left may still be erased
    with open_journal(path) as journal:
        assert not journal.registry.remembers("u0")


def test_a_change_is_told_until_when_earlier_choices_protect(path: Path) -> None:
    assert registrations.choose(path, "u2", LARGE, dry_run=True).earlier_until == 5 + 3
    first = registrations.choose(path, "u2", LARGE)
    assert (first.slot, first.earlier_until) == (6, 5 + 3)
    assert first.preview is not None
    assert (first.preview.in_transition, first.preview.until) == (1, 5 + 3)
    again = registrations.choose(path, "u2", LARGE)
    assert again.earlier_until == 5 + 3
    assert again.preview is not None
    assert again.preview.in_transition == 0  # nothing changes
    assert registrations.choose(path, "ann", LARGE).earlier_until is None


def test_a_request_after_a_publisher_died_with_its_draw_written_ahead(path: Path, tmp_path: Path) -> None:
    class Died(BaseException): ...

    def die(step: str) -> None:
        if step == "written ahead":
            raise Died

    with pytest.raises(Died), open_journal(path, write=True) as journal:
        publish(journal, tmp_path / "o.ndjson", 6, at=die)
    with open_journal(path) as journal:
        assert (journal.head().committed, journal.witnessed().committed) == (5, 6)
    assert registrations.choose(path, "ann", LARGE).slot == 7
    with open_journal(path) as journal:
        assert journal.head().committed == 6  # the draw of slot 6 is that one
    assert held(path)["ann"] == (CLASSES[1], 7, None)


def test_while_somebody_publishes_changes_wait_for_the_publisher(path: Path) -> None:
    with open_journal(path, write=True) as journal:
        assert registrations.choose(path, "ann", LARGE).slot is None
        assert journal.registry.queued() == [Change("set", "ann", CLASSES[1])]
        assert registrations.apply_changes(path).slot is None
        with pytest.raises(InvalidMembership):  # what is queued counts as known
            registrations.choose(path, "ann", LARGE, is_known=False)
    assert registrations.apply_changes(path).slot == 6
    assert held(path)["ann"] == (CLASSES[1], 6, None)


@pytest.mark.parametrize(
    "asked",
    [
        Requested("8"),
        Requested("8", "0.6", "High"),
        Requested("9", "0.6"),
        Requested("8", "0.5"),
        Requested("Small", None, "None"),
    ],
)
def test_what_nobody_may_hold_is_refused(path: Path, asked: Requested) -> None:
    before = held(path)
    with pytest.raises((InvalidMembership, ValueError)):
        registrations.choose(path, "ann", asked)
    assert held(path) == before


def test_who_is_known_and_who_is_not(path: Path) -> None:
    with pytest.raises(InvalidMembership, match="registered already"):
        registrations.choose(path, "u0", LARGE, is_known=False)
    for erased in (False, True):
        with pytest.raises(InvalidMembership, match="not registered"):
            registrations.leave(path, "ann", erased=erased)
    with pytest.raises(InvalidMembership, match="not registered"):
        registrations.choose(path, "ann", LARGE, is_known=True)
    with pytest.raises(InvalidMembership, match="erased"):
        registrations.choose(path, "erased:1", LARGE)


def test_a_file_is_imported_as_its_differences(path: Path, tmp_path: Path) -> None:
    users = tmp_path / "users.csv"
    with open_journal(path) as journal:
        rows = [f"{member.user},{member.key[0]},{member.key[1] / 10**9}" for member in journal.registry.members()]
    users.write_text("\n".join(["user,window,epsilon", *rows, "ann,8,0.6"]) + "\n")
    assert str(registrations.import_file(path, users)) == "1 join, 0 change, 0 leave"
    assert registrations.import_file(path, users).total == 0
    assert registrations.apply_changes(path).slot == 6
    users.write_text("\n".join(["user,window,epsilon", *rows[:4]]) + "\n")
    with pytest.raises(InvalidMembership, match="cut"):
        registrations.import_file(path, users)
    assert registrations.import_file(path, users, allow_removals=True).leaving == 6


@pytest.fixture
def replaced_while_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A requirements file with ann, in whose place one without her comes once the rows of the first have been read."""
    users, later = tmp_path / "users.csv", tmp_path / "later.csv"
    rows = [f"u{user},{window},{nano / 10**9}" for user in range(9) for window, nano in [CLASSES[user % 3]]]
    users.write_text("\n".join(["user,window,epsilon", *rows, "ann,8,0.6"]) + "\n")
    later.write_text("\n".join(["user,window,epsilon", *rows]) + "\n")
    read_rows = requirements_file._read_rows

    def replace_after(*arguments: Any) -> Any:
        rows = read_rows(*arguments)
        if later.exists():
            later.replace(users)
        return rows

    monkeypatch.setattr(requirements_file, "_read_rows", replace_after)
    return users


def test_a_file_that_changes_while_it_is_read_is_not_imported(path: Path, replaced_while_read: Path) -> None:
    with pytest.raises(InvalidInput, match="changed while it was read"):
        registrations.import_file(path, replaced_while_read)
    with open_journal(path) as journal:
        assert journal.registry.queued() == []
    assert registrations.import_file(path, replaced_while_read).total == 0
    assert registrations.apply_changes(path).slot == 6
    assert "ann" not in held(path)


def test_publishing_with_a_file_that_changes_while_it_is_read(tmp_path: Path, replaced_while_read: Path) -> None:
    (tmp_path / "events.csv").write_text("time,user,cell\n")
    settings = {
        "inputs": [str(tmp_path / "events.csv")],
        "journal": str(tmp_path / "new.journal"),
        "out": str(tmp_path / "new.ndjson"),
        "requirements": str(replaced_while_read),
        "cells": 3,
        "slot": "60s",
        "start": "2026-01-01T00:00:00Z",
        "end": "2026-01-01T00:03:00Z",
    }
    with pytest.raises(InvalidInput, match="changed while it was read"):
        wevent.publish(**settings)
    assert not (tmp_path / "new.journal").exists()
    assert wevent.publish(**settings).summary.last == 3
    assert "ann" not in held(tmp_path / "new.journal")


def test_a_copy_takes_no_change(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.journal"
    assert back_up(path, copy) == 5
    with pytest.raises(StaleJournal):
        registrations.choose(copy, "ann", LARGE)
    assert "ann" not in held(copy)


def test_a_file_is_known_by_its_content_its_levels_and_its_columns(tmp_path: Path) -> None:
    users, other = tmp_path / "users.csv", tmp_path / "other.csv"
    users.write_text("user,privacy,window\nann,High,Small\n")
    other.write_text("user,privacy,window\nbob,High,Small\n")
    levels = wevent.Levels({"High": "0.1"}, {"Small": 4})
    digest = digest_file(users, levels, {})
    assert digest_file(users, wevent.Levels({"High": "0.1"}, {"Small": 4}), {}) == digest
    others = digest_file(users, None, {}), digest_file(other, levels, {}), digest_file(users, levels, {"user": "id"})
    assert digest not in others


# As a service asks, whose publisher has the journal


def test_a_service_only_queues_and_says_what_its_publisher_will_make_of_it(path: Path) -> None:
    with open_journal(path, write=True) as journal:
        new = registrations.choose(path, "ann", LARGE, due_through=lambda: 0)
        assert (new.slot, new.earlier_until) == (7, None)
        assert new.person is not None
        assert new.person.current is not None
        assert (new.person.current.key, new.person.current.first) == (CLASSES[1], 7)
        changed = registrations.choose(path, "u2", LARGE, due_through=lambda: 0)
        assert (changed.slot, changed.earlier_until) == (7, 6 + 3)
        again = registrations.choose(path, "u2", Requested("4", "1"), due_through=lambda: 0)  # on top of what is queued
        assert again.earlier_until == 6 + 3  # what never began is not in force
        undone = registrations.choose(path, "u2", Requested("3", "0.4"), due_through=lambda: 0, dry_run=True)
        assert undone.earlier_until is None
        left = registrations.leave(path, "ann", due_through=lambda: 0)
        assert left.person is not None
        assert left.person.memberships == ()  # she never counted
        erased = registrations.leave(path, "u0", erased=True, due_through=lambda: 0)
        assert erased.person is not None
        assert [erased.person.kept_until(row) for row in erased.person.past] == [6 + 4 - 1]
        assert [change.action for change in journal.registry.queued()] == ["set", "set", "set", "remove", "erase"]
        assert len(journal.registry.joined_by_request()) == 0  # ann left again
        with pytest.raises(NotRegistered):
            registrations.leave(path, "ann", due_through=lambda: 0)
        assert (
            registrations.leave(path, "u0", erased=True, dry_run=True, due_through=lambda: 0).slot == 7
        )  # erasing again is no mistake
        assert journal.registry.apply(7, class_history(journal.epochs())) == 5
    now = held(path)
    assert now["u2"] == (CLASSES[0], 7, None)
    assert not {"ann", "u0"} & set(now)


def test_a_dry_run_of_a_service_stores_nothing(path: Path) -> None:
    registrations.choose(path, "ann", LARGE, due_through=lambda: 0, dry_run=True)
    registrations.leave(path, "u0", dry_run=True, due_through=lambda: 0)
    with open_journal(path) as journal:
        assert journal.registry.queued() == []


def test_a_part_of_the_people_may_be_imported(path: Path, tmp_path: Path) -> None:
    users = tmp_path / "some.csv"
    users.write_text("user,window,epsilon\nann,8,0.6\nu0,8,0.6\nu1,8,0.6\n")
    done = registrations.import_file(path, users, partial=True)
    assert (done.joining, done.changing, done.leaving, done.unchanged) == (1, 1, 0, 1)
    with open_journal(path) as journal:
        assert {change.user for change in journal.registry.queued()} == {"ann", "u0"}
        assert len(journal.registry.joined_by_request()) == 1
        assert journal.imported() == b""
    assert registrations.import_file(path, users, partial=True).unchanged == 3  # queued changes count
    assert registrations.apply_changes(path).slot == 6
    assert len(held(path)) == 10


def test_a_file_that_users_import_read_is_not_imported_again(tmp_path: Path) -> None:
    """A level table has another order in the journal than in the settings; the file is the same."""
    (tmp_path / "users.csv").write_text("user,level\n" + "".join(f"{user},Low/Small\n" for user in range(20)))
    (tmp_path / "events.csv").write_text("slot,user,cell\n1,1,0\n")
    (tmp_path / "wevent.toml").write_text(
        'inputs = ["events.csv"]\nslot_column = "slot"\ncells = 2\nrequirements = "users.csv"\n'
        'journal = "run.journal"\nout = "out.ndjson"\n'
        "[levels.privacy]\nLow = 0.9\nHigh = 0.1\n[levels.window]\nSmall = 4\nLarge = 8\n"
    )
    assert call(tmp_path, "publish", "--end", "3").code == 0
    assert call(tmp_path, "users", "run.journal", "import", "users.csv").code == 0
    assert call(tmp_path, "users", "run.journal", "set", "7", "--level", "High/Large").code == 0
    assert call(tmp_path, "publish", "--end", "5").code == 0
    assert held(tmp_path / "run.journal")["7"][2] == "High/Large"
