"""A requirements file that was cut at the end of a line must not remove people unnoticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import call, publish, write_stream


@pytest.fixture
def used(tmp_path: Path) -> Path:
    write_stream(tmp_path)
    assert publish(tmp_path, 5).code == 0
    return tmp_path


def drop(folder: Path, number: int) -> None:
    """Remove the last people of the file."""
    lines = (folder / "users.csv").read_text().splitlines(keepends=True)
    (folder / "users.csv").write_text("".join(lines[:-number]))


def registered(folder: Path) -> int:
    return len(json.loads(call(folder, "users", "run.journal", "list", "--json").out)["users"])


@pytest.mark.parametrize("importing", ["publish", "users"])
class TestRemovals:
    def imported(self, folder: Path, importing: str, *more: str) -> tuple[int, str]:
        if importing == "publish":
            done = publish(folder, 8, *more)
        else:
            done = call(folder, "users", "run.journal", "import", "users.csv", *more)
        return done.code, done.err

    def test_many_are_refused_and_nothing_is_stored(self, used: Path, importing: str) -> None:
        drop(used, 20)
        code, err = self.imported(used, importing)
        assert code == 2
        assert "20 of the 60 registered users are missing" in err
        assert "--allow-removals" in err
        assert registered(used) == 60
        assert json.loads(call(used, "status", "run.journal", "--json").out)["pending_changes"] == 0
        assert self.imported(used, importing)[0] == 2  # it was not written down as imported either

    def test_many_leave_if_the_operator_says_so(self, used: Path, importing: str) -> None:
        drop(used, 20)
        code, err = self.imported(used, importing, "--allow-removals")
        assert code == 0, err
        assert "0 join, 0 change, 20 leave" in err
        assert registered(used) == 40

    def test_few_leave_and_it_is_said(self, used: Path, importing: str) -> None:
        drop(used, 6)
        with (used / "users.csv").open("a") as file:
            file.write("new,4,0.5\n")
        text = (used / "users.csv").read_text().replace("\n7,8,0.6\n", "\n7,4,0.6\n")
        (used / "users.csv").write_text(text)
        code, err = self.imported(used, importing)
        assert code == 0, err
        assert "1 join, 1 change, 6 leave" in err
        assert registered(used) == 55


def test_one_of_a_few_may_leave(tmp_path: Path) -> None:
    write_stream(tmp_path)
    (tmp_path / "users.csv").write_text("user,window,epsilon\n1,4,0.5\n2,4,0.5\n3,4,0.5\n")
    assert publish(tmp_path, 5).code == 0
    drop(tmp_path, 1)
    assert publish(tmp_path, 6).code == 0


def test_with_a_new_epoch_too(used: Path) -> None:
    drop(used, 20)
    done = publish(used, 8, "--mechanism", "pba", "--reconfigure")
    assert done.code == 2
    assert "--allow-removals" in done.err
    assert registered(used) == 60
    assert publish(used, 8, "--mechanism", "pba", "--reconfigure", "--allow-removals").code == 0


def test_before_the_first_slot_any_file_is_taken(tmp_path: Path) -> None:
    write_stream(tmp_path)
    assert publish(tmp_path, 5, "--mechanism", "pft", "--estimator", "nonsense").code == 2
    drop(tmp_path, 30)
    assert publish(tmp_path, 5).code == 0
    assert registered(tmp_path) == 30


def test_a_changed_start_is_shown_as_two_times(used: Path) -> None:
    arguments = ("publish", "events.csv", "--slot", "60s", "--start", "2026-01-01T00:00:01Z", "--cells", "4")
    done = call(used, *arguments, "--end", "2026-01-01T00:09:01Z", "--journal", "run.journal", "--out", "out.ndjson")
    assert done.code == 2
    assert "2026-01-01T00:00:00Z" in done.err
    assert "2026-01-01T00:00:01Z" in done.err


@pytest.mark.parametrize("action", ["add", "set", "remove", "erase"])
def test_an_id_that_is_no_text(used: Path, action: str) -> None:
    options = ("--window", "4", "--epsilon", "0.5") if action in ("add", "set") else ()
    done = call(used, "users", "run.journal", action, "\udcff", *options)
    assert done.code == 2, done
    assert "UTF-8" in done.err


def test_nothing_is_charged_before_a_cut_file_is_refused(used: Path) -> None:
    drop(used, 20)
    done = publish(used, 12, "--released-through", "9", "--same-settings")
    assert done.code == 2
    assert "Nothing was changed" in done.err
    assert json.loads(call(used, "status", "run.journal", "--json").out)["slot"] == 5
