"""One setup for every command: --config, ./wevent.toml, options on top, and the journal from the configuration."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.commands import RunCommand

CONFIG = """
inputs = ["rides.csv"]
slot = "60s"
start = "2026-01-01T00:00:00Z"
end = "2026-01-01T00:10:00Z"
cells = "cells.txt"
requirements = "riders.csv"
time_column = "started_at"
user_column = "rider"
cell_column = "zone"
timezone = "UTC"
journal = "run.journal"
out = "out.ndjson"
[levels.privacy]
Strict = 0.5
[levels.window]
Short = "4m"
Long = 8
"""


@pytest.fixture
def run(invoke: RunCommand) -> RunCommand:
    people = [f"r{n},Strict,{('Short', 'Long')[n % 2]}" for n in range(20)]
    Path("riders.csv").write_text("\n".join(["user,privacy,window", *people]) + "\n")
    Path("cells.txt").write_text("Centre\nHarbour\n")
    rows = [f"2026-01-01 00:{n % 10:02d}:{n % 60:02d},r{n % 20},{('Centre', 'Harbour')[n % 3 == 0]}" for n in range(90)]
    Path("rides.csv").write_text("\n".join(["started_at,rider,zone", *rows]) + "\n")
    Path("wevent.toml").write_text(CONFIG)

    return invoke


def test_every_command_finds_the_configuration(run: RunCommand) -> None:
    assert run("check", "--json")[0] == 0
    code, _, err = run("publish")
    assert code == 0, err
    assert "Settings: wevent.toml" in err
    for command in (
        ("status",),
        ("verify",),
        ("releases",),
        ("levels",),
        ("users", "list"),
        ("users", "export"),
        ("compare", "--mechanisms", "pba", "--repeats", "1"),
        ("plan", "--mechanisms", "pba", "--repeats", "1", "--slots", "20"),
    ):
        code, out, err = run(*command)
        assert code == 0, (command, err)
        assert "Settings: wevent.toml" in err, command
        assert out, command


def test_a_configuration_elsewhere_names_the_journal(run: RunCommand, tmp_path: Path) -> None:
    assert run("publish")[0] == 0
    (tmp_path / "elsewhere").mkdir()
    shutil.copy("wevent.toml", "other.toml")
    Path("wevent.toml").unlink()
    for command in (("status",), ("verify",), ("releases",), ("users",)):
        rest = ("list",) if command == ("users",) else ()
        code, out, err = run(*command, "--config", "other.toml", *rest)
        assert (code, err.count("Settings:")) == (0, 0), err
        assert out
        code, _, err = run(*command, *rest)
        assert code == 2
        assert "journal" in err.lower()
        code, _, err = run(*command, "--config", "other.toml", "run.journal", *rest)
        assert code == 2
        assert "exclude each other" in err


def test_a_journal_that_is_named_needs_no_configuration(run: RunCommand) -> None:
    assert run("publish")[0] == 0
    code, _, err = run("users", "run.journal", "list")
    assert (code, "Settings" in err) == (0, False)
    shutil.copy("run.journal", "list")
    shutil.copy("run.journal.witness", "list.lock")
    assert run("users", "list", "list")[0] == 0, "a journal of that name is a journal"


def test_options_win_over_the_file(run: RunCommand) -> None:
    code, out, _ = run("check", "--json", "--end", "2026-01-01T00:05:00Z")
    assert code == 0
    assert json.loads(out)["clock"]["last_slot"] == 5


def test_events_and_a_journal_of_ones_own_are_not_mixed_with_the_file(run: RunCommand) -> None:
    code, _, err = run("publish", "rides.csv", "--journal", "mine.journal")
    assert code == 2
    assert "wevent.toml is not used: events and a journal are named. With it: --config wevent.toml" in err
    code, _, err = run("publish", "rides.csv", "--journal", "mine.journal", "--config", "wevent.toml")
    assert code == 0, err


def test_a_simulation_reads_the_events_as_publishing_does(run: RunCommand) -> None:
    code, out, err = run("compare", "--json", "--mechanisms", "pba", "--repeats", "1", "--slots", "8")
    assert code == 0, err
    named = run(
        *("compare", "--stream", "file:rides.csv", "--config", "wevent.toml", "--json", "--mechanisms", "pba"),
        *("--repeats", "1", "--slots", "8"),
    )
    assert json.loads(named[1])["mechanisms"][0]["amre"] == json.loads(out)["mechanisms"][0]["amre"]
    flags = ("--time-column", "started_at", "--user-column", "rider", "--cell-column", "zone", "--timezone", "UTC")
    Path("wevent.toml").unlink()
    code, out, err = run(
        *("compare", "--stream", "file:rides.csv", *flags, "--cells", "cells.txt", "--slot", "60s", "--json"),
        *("--mechanisms", "pba", "--repeats", "1"),
    )
    assert code == 0, err
    assert json.loads(out)["stream"] == "rides.csv"
    code, _, err = run("compare", "--stream", "file:rides.csv", *flags)
    assert code == 2
    assert "--cells" in err
    code, _, err = run("compare", "--stream", "events")
    assert code == 2
    assert "inputs" in err


def test_a_plan_takes_people_cells_and_slots_from_the_configuration(run: RunCommand) -> None:
    code, out, err = run("plan", "--mechanisms", "pba", "--repeats", "1", "--slots", "20", "--json")
    assert code == 0, err
    classes = json.loads(out)["classes"]
    assert [(row["window"], row["users"]) for row in classes] == [(4, 10), (8, 10)]
    code, out, err = run("plan", "--class", "Strict/Long=7", "--mechanisms", "pba", "--repeats", "1", "--json")
    assert code == 0, err
    assert [(row["window"], row["users"]) for row in json.loads(out)["classes"]] == [(8, 7)]
    sample = ("plan", "--sample", "events", "--mechanisms", "pba", "--repeats", "1", "--json")
    code, out, err = run(*sample)
    assert code == 0, err
    assert json.loads(out)["mean_count"] < 5, "of the rides, not of an invented stream"
    Path("wevent.toml").unlink()
    code, _, err = run("plan")
    assert code == 2
    assert "--class" in err


def test_start_auto_warns(run: RunCommand) -> None:
    text = CONFIG.replace('start = "2026-01-01T00:00:00Z"', 'start = "auto"').replace('end = "2026', '# end = "2026')
    Path("wevent.toml").write_text(text)
    code, out, _ = run("check", "--json")
    assert code == 0
    assert "one user's event can decide" in json.loads(out)["hints"][0]
    code, _, err = run("publish", "-q")
    assert code == 0, err
    assert "Settings:" not in err
    assert "With --start auto the first and the last slot are read from the events" in err
    assert "unsafe" in run("status")[1]
