"""`--quiet` and `--verbose`: before the command or behind it, and what they leave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.small_stream import Run, arguments_through, publish_through, publishing_folder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return publishing_folder(tmp_path, monkeypatch)


def test_quiet_says_nothing_but_what_was_asked_for(run: Run) -> None:
    assert publish_through(run, 5, "-q") == (0, "", "")
    assert run("-q", "publish", *arguments_through(6)) == (0, "", "")
    assert publish_through(run, 7)[2].startswith("Published slot 7.")
    assert "slot 7" in run("status", "run.journal", "--quiet")[1]
    assert run("backup", "run.journal", "copy.journal", "-q") == (0, "", "")
    assert json.loads(run("backup", "run.journal", "copy2.journal", "-q", "--json")[1])["through_slot"] == 7
    assert run("users", "run.journal", "remove", "1", "-q") == (0, "", "")
    assert run("-q", "users", "run.journal", "remove", "2") == (0, "", "")
    assert run("users", "-q", "run.journal", "remove", "3") == (0, "", "")
    assert run("init", "example", "-q") == (0, "", "")


def test_the_configuration_that_was_found_is_a_remark(run: Run) -> None:
    publish_through(run, 3, "-q")
    Path("wevent.toml").write_text('journal = "run.journal"\n')
    assert run("status")[2] == "Settings: wevent.toml\n"
    assert run("status", "-q")[2] == ""


def test_errors_are_said_quietly_too(run: Run) -> None:
    code, _, err = run("-q", "status", "missing.journal")
    assert (code, err.count("Error:")) == (2, 1)


def test_verbose_logs_more_and_log_wins(run: Run) -> None:
    assert "DEBUG wevent.publishing.loop" not in publish_through(run, 2, "-v")[2]
    assert "DEBUG wevent.publishing.loop" in publish_through(run, 3, "-vv")[2]
    assert "DEBUG wevent.publishing.loop" in run("-vv", "publish", *arguments_through(4))[2]
    assert "DEBUG wevent.publishing.loop" not in publish_through(run, 5, "-vv", "--log", "info")[2]
    assert "DEBUG wevent.publishing.loop" in publish_through(run, 6, "-q", "--log", "debug")[2]


def test_both_are_a_mistake(run: Run) -> None:
    for arguments in (("-q", "-v", "mechanisms"), ("-q", "mechanisms", "-v"), ("mechanisms", "-v", "-q")):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert "--quiet and --verbose exclude each other." in err
