"""The commands around a journal: what they print, and one sentence and exit code 2 for every mistake."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import duckdb
import pytest

from tests.support.commands import PATIENCE_S, RunCommand, slots_of, wait_for
from tests.support.stored_slots import change_entry
from wevent.cli.publish import command as publish_command
from wevent.settings import RunOptions

pytestmark = pytest.mark.slow

CLOCK = ("--slot", "60s", "--start", "2026-01-01T00:00:00Z")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    users = ["user,window,epsilon", *(f"{user},{4 + 4 * (user % 2)},0.{5 + user % 3}" for user in range(60))]
    Path("users.csv").write_text("\n".join(users) + "\n")
    events = ["time,user,cell"]
    for minute in range(30):
        events += [
            f"2026-01-01T00:{minute:02d}:{user % 60:02d}Z,{user},{(user + minute) % 4}" for user in range(0, 60, 2)
        ]
    Path("events.csv").write_text("\n".join(events) + "\n")
    return tmp_path


@pytest.fixture
def run(folder: Path, invoke: RunCommand) -> RunCommand:
    return invoke


def publish(run: RunCommand, minutes: int, *more: str, journal: str = "run.journal") -> tuple[int, str, str]:
    end = f"2026-01-01T00:{minutes:02d}:00Z"
    arguments = ("--requirements", "users.csv", "--cells", "4", "--journal", journal, "--out", "out.ndjson")
    return run("publish", "events.csv", *CLOCK, "--end", end, *arguments, *more)


def test_publish_resume_audit(run: RunCommand) -> None:
    assert publish(run, 10)[0] == 0
    code, _, err = publish(run, 20)
    assert code == 0
    assert "Published slots 11 to 20." in err
    assert [json.loads(line)["slot"] for line in Path("out.ndjson").read_text().splitlines()] == list(range(1, 21))
    code, out, _ = run("verify", "run.journal", "--json")
    assert code == 0
    report = json.loads(out)
    assert report["ok"]
    assert report["slots"] == 20
    assert report["violations"] == []
    assert {"window", "epsilon", "worst_window_spend"} == set(report["classes"][0])
    assert "Nothing new" in publish(run, 20)[2]


def test_the_journal_is_for_its_owner_only(run: RunCommand) -> None:
    publish(run, 5)
    assert os.stat("run.journal").st_mode & 0o077 == 0


def test_a_violation_is_exit_code_1(run: RunCommand) -> None:
    publish(run, 5)
    change_entry(Path("run.journal"), 2, threshold=1)
    code, out, _ = run("verify", "run.journal")
    assert code == 1
    assert "VIOLATION in slot 2" in out


def test_status_releases_and_backup(run: RunCommand) -> None:
    publish(run, 12)
    code, out, _ = run("status", "run.journal")
    assert code == 0
    assert "slot 12" in out
    assert "Budget left" in out
    facts = json.loads(run("status", "run.journal", "--json")[1])
    assert facts["slot"] == 12
    assert facts["writer"] is None
    assert json.loads(run("status", "run.journal", "--statement")[1])["neighbours"] == "add_remove"
    assert run("releases", "run.journal")[1] == Path("out.ndjson").read_text()
    lines = run("releases", "run.journal", "--from", "12", "--format", "csv")[1].splitlines()
    assert len(lines) == 1 + 4
    assert run("releases", "run.journal", "--out", "all.parquet")[0] == 0
    import duckdb

    found = duckdb.connect().execute("SELECT count(*), min(slot), max(slot) FROM 'all.parquet'").fetchall()
    assert found == [(48, 1, 12)]
    assert run("backup", "run.journal", "copy.journal")[0] == 0
    code, _, err = publish(run, 15, journal="copy.journal")
    assert code == 2
    assert "--released-through" in err
    code, _, err = publish(run, 15, "--released-through", "13", journal="copy.journal")
    assert code == 2
    assert "--widest-window" in err
    stated = ("--released-through", "13", "--same-settings")
    code, _, err = publish(run, 15, *stated, journal="copy.journal")
    assert code == 2
    assert "--accept-lost-changes" in err
    assert publish(run, 15, "--accept-lost-changes", journal="copy.journal")[0] == 0
    assert run("verify", "copy.journal")[0] == 0
    code, _, err = run("backup", "run.journal", "run.journal")
    assert code == 2


def test_users(run: RunCommand) -> None:
    publish(run, 5)
    assert "in force from slot 6 on" in run("users", "run.journal", "add", "n1", "--window", "4", "--epsilon", "0.5")[1]
    assert run("users", "run.journal", "set", "n1", "--window", "8", "--epsilon", "0.5")[0] == 0
    rows = json.loads(run("users", "run.journal", "list", "--json")[1])["users"]
    assert len(rows) == 61
    assert next(row for row in rows if row["user"] == "n1")["window"] == 8
    assert run("users", "run.journal", "remove", "n1")[0] == 0
    assert run("users", "run.journal", "erase", "3")[0] == 0
    exported = run("users", "run.journal", "export")[1]
    assert len(exported.splitlines()) == 60
    Path("again.csv").write_text(exported.replace("\n0,", "\n1000,"))
    assert "2 changes\nin force from slot 6 on" in run("users", "run.journal", "import", "again.csv")[1]
    assert "61 users" not in run("users", "run.journal", "list")[2]
    assert publish(run, 10)[0] == 0
    assert run("verify", "run.journal")[0] == 0


def test_an_imported_file_is_imported_once(run: RunCommand) -> None:
    publish(run, 5)
    run("users", "run.journal", "add", "n1", "--window", "4", "--epsilon", "0.5")
    publish(run, 6)
    assert len(json.loads(run("users", "run.journal", "list", "--json")[1])["users"]) == 61
    again = json.loads(run("users", "run.journal", "import", "users.csv", "--json")[1])["difference"]
    assert (again["leaving"], again["registered"]) == (0, 61)
    Path("users.csv").write_text(Path("users.csv").read_text() + "n2,4,0.5\n")
    publish(run, 7)
    rows = json.loads(run("users", "run.journal", "list", "--json")[1])["users"]
    assert {"n1", "n2"} & {row["user"] for row in rows} == {"n2"}


def test_a_requirement_that_was_not_declared_needs_a_new_epoch(run: RunCommand) -> None:
    publish(run, 5)
    wish = ("users", "run.journal", "add", "bob", "--window", "4", "--epsilon", "0.1")
    code, _, err = run(*wish)
    assert code == 2
    assert "--reconfigure --declare 4,0.1" in err
    assert publish(run, 10, "--mechanism", "bd", "--reconfigure", "--declare", "4,0.1")[0] == 0
    assert run(*wish)[0] == 0
    assert publish(run, 12)[0] == 0
    assert run("verify", "run.journal")[0] == 0


def test_start_auto_is_written_down(run: RunCommand) -> None:
    common = ("--requirements", "users.csv", "--cells", "4", "--journal", "auto.journal", "--out", "auto.csv")
    assert run("publish", "events.csv", "--slot", "60s", "--start", "auto", *common)[0] == 0
    assert json.loads(run("status", "auto.journal", "--json")[1])["unsafe"] == ["start auto"]
    assert run("publish", "events.csv", "--slot", "60s", "--start", "auto", *common)[0] == 0


def test_unknown_users_may_be_counted(run: RunCommand) -> None:
    assert publish(run, 5, "--unknown-users", "3")[0] == 0
    classes = json.loads(run("status", "run.journal", "--json")[1])["classes"]
    assert [(one["window"], one["epsilon"]) for one in classes if one["users"] == 3] == [(8, 0.25)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("verify", "missing.journal"), "no such file"),
        (("releases", "users.csv"), "another kind of file"),
        (("users", "users.csv", "list"), "another kind of file"),
        (("backup", "users.csv", "copy"), "another kind of file"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(run: RunCommand, arguments: tuple[str, ...], said: str) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert said in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--requirements", "twice.csv"), "is in line"),
        (("--user-column", "person"), "person"),
        (("--out", "out.xlsx"), "does not end in"),
        (("--declare", "x"), "WINDOW,EPSILON"),
    ],
)
def test_bad_input_of_publish(run: RunCommand, more: tuple[str, ...], said: str) -> None:
    Path("twice.csv").write_text("user,window,epsilon\n1,4,1\n1,8,1\n")
    code, _, err = publish(run, 5, *more)
    assert code == 2
    assert said in err
    assert err.count("Error:") == 1
    assert publish(run, 5)[0] == 0  # nothing is left over that blocks the right command


def test_bad_changes_of_users_never_name_them(run: RunCommand) -> None:
    publish(run, 5)
    for arguments in (
        ("add", "secret-7", "--window", "900", "--epsilon", "1"),
        ("add", "secret-7", "--window", "4"),
        ("add", "1", "--window", "4", "--epsilon", "1"),
        ("set", "secret-7", "--window", "4", "--epsilon", "1"),
        ("remove", "secret-7"),
        ("set", "1", "--window", "Tiny", "--privacy", "High"),
    ):
        code, out, err = run("users", "run.journal", *arguments)
        assert code == 2
        assert "secret-7" not in out + err


def test_doctor(run: RunCommand) -> None:
    code, out, _ = run("doctor", "--json")
    assert code == 0
    assert all(one["ok"] for one in json.loads(out)["checks"])
    assert run("doctor", "--folder", "missing")[0] == 1


def test_a_live_run_stops_on_sigterm_and_says_how_to_resume(folder: Path) -> None:
    command = [sys.executable, "-m", "wevent.cli", "publish", "-", "--slot", "1s", "--cells", "4"]
    command += ["--requirements", "users.csv", "--journal", "live.journal", "--out", "live.ndjson"]
    for _ in range(2):
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        before = len(slots_of(Path("live.ndjson")))
        wait_for(lambda before=before: len(slots_of(Path("live.ndjson"))) > before, "a release")  # type: ignore[misc]
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate(timeout=PATIENCE_S)
        assert child.returncode == 0, err
        assert "Run the same command again to resume" in err
    slots = [json.loads(line)["slot"] for line in Path("live.ndjson").read_text().splitlines()]
    assert slots == list(range(1, len(slots) + 1))
    assert len(slots) >= 2


def test_released_through_where_nothing_is_to_be_settled(run: RunCommand) -> None:
    publish(run, 10)
    code, _, err = publish(run, 12, "--released-through", "5")
    assert code == 2
    assert "Nothing is to be settled: leave --released-through out." in err
    assert publish(run, 12, "--released-through", "10")[0] == 0


@pytest.mark.parametrize("ending", ["ndjson", "csv", "parquet"])
def test_an_export_begins_where_it_is_told(run: RunCommand, ending: str) -> None:
    publish(run, 10)
    for _ in range(2):  # the same again changes nothing
        assert run("releases", "run.journal", "--from", "8", "--out", f"r.{ending}")[0] == 0
        found = duckdb.sql(f"SELECT DISTINCT slot FROM 'r.{ending}' ORDER BY slot").fetchall()
        assert [slot for (slot,) in found] == [8, 9, 10]


def test_users_say_what_protects_from_when_on(run: RunCommand) -> None:
    publish(run, 10)
    assert run("users", "run.journal", "set", "1", "--window", "4", "--epsilon", "0.5")[1] == (
        "in force from slot 11 on\n"
        "From 2026-01-01T00:10:00Z on, any 4 minutes lose at most 0.5. "
        "Until 2026-01-01T00:17:00Z the earlier choice protects as well.\n"
    )
    assert run("users", "run.journal", "add", "new", "--window", "4", "--epsilon", "0.5")[1] == (
        "in force from slot 11 on\nFrom 2026-01-01T00:10:00Z on, any 4 minutes lose at most 0.5.\n"
    )


def test_options_of_the_command_in_the_file(run: RunCommand) -> None:
    for entry in (
        *fields(RunOptions),
        *(one for one in publish_command.params if one.name in ("log", "config", "json")),
    ):
        Path("stream.toml").write_text(f"{entry.name} = 100\n")
        code, _, err = publish(run, 3, "--config", "stream.toml")
        assert code == 2
        assert f"It is an option of the command, for one run: --{str(entry.name).replace('_', '-')}" in err


def test_a_time_without_an_offset_names_the_option(run: RunCommand) -> None:
    Path("events.csv").write_text("time,user,cell\n2026-01-01T00:00:01,1,1\n")
    code, _, err = publish(run, 3)
    assert code == 0
    assert "1 malformed" in err
    assert "--timezone" in err
    assert "0 malformed" in publish(run, 3, "--timezone", "UTC")[2]


def test_the_doctor_looks_at_the_folder_of_a_journal(run: RunCommand) -> None:
    Path("deeper").mkdir()
    assert run("doctor", "--journal", "deeper/run.journal")[0] == 0
    code, out, _ = run("doctor", "--journal", "nowhere/run.journal")
    assert (code, "there is no folder nowhere" in out) == (1, True)
