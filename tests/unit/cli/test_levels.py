"""Levels as people meet them: what is offered, what a change means before it is made, and words that stay."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import RunCommand
from wevent.journal import open_journal

CONFIG = """
inputs = ["events.csv"]
requirements = "users.csv"
cells = 4
slot = "10min"
start = "2026-01-01T00:00:00Z"
end = "2026-01-01T02:00:00Z"
journal = "run.journal"
out = "out.ndjson"

[requirements_columns]
user = "id"
level = "plan"

[levels.privacy]
High = 0.1
Low = 1

[levels.window]
hour = "1h"
while = "85min"

[levels.combined]
strict = "High/while"
"""
WHILE = {"window": 9, "epsilon": 0.1, "odds": math.exp(0.1)}


@pytest.fixture
def run(invoke: RunCommand) -> RunCommand:
    Path("wevent.toml").write_text(CONFIG)
    write_users()
    events = [f"2026-01-01T0{minute // 60}:{minute % 60:02d}:00Z,u{minute % 20},{minute % 4}" for minute in range(120)]
    Path("events.csv").write_text("\n".join(["time,user,cell", *events]) + "\n")

    return invoke


def write_users(strict: int = 5, without: int = 0, more: str = "") -> None:
    rows = [f"u{user},{'strict' if user < strict else 'Low/hour'}" for user in range(20)]
    Path("users.csv").write_text("\n".join(["id,plan", *rows[without:]]) + "\n" + more)


def publish(run: RunCommand, *more: str) -> str:
    code, _, err = run("publish", "--config", "wevent.toml", *more)
    assert code == 0, err
    return err


def held() -> dict[str, tuple[tuple[int, int], str | None]]:
    with open_journal(Path("run.journal")) as journal:
        return {member.user: (member.key, member.level) for member in journal.registry.members()}


def shown(run: RunCommand, *arguments: str) -> Any:
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_what_a_configuration_offers(run: RunCommand) -> None:
    found = shown(run, "levels", "--config", "wevent.toml")
    assert (found["slot_seconds"], found["declared"], found["numbers"]) == (600, True, [])
    assert found["notes"] == ["Window 85min is no whole number of slots: it covers 9 slots (1 hour 30 minutes)."]
    assert {row["level"]: (row["span"], row["users"]) for row in found["levels"]} == {
        "High/hour": ("1 hour", 0),
        "High/while": ("1 hour 30 minutes", 5),
        "Low/hour": ("1 hour", 15),
        "Low/while": ("1 hour 30 minutes", 0),
        "strict": ("1 hour 30 minutes", 5),
    }
    assert found["levels"][-1] == {"level": "strict", **WHILE, "span": "1 hour 30 minutes", "users": 5}
    code, out, _ = run("levels", "--config", "wevent.toml")
    assert code == 0
    assert "any 1 hour 30 minutes" in out
    assert "Window 85min" in out


def test_words_survive_import_export_and_another_import(run: RunCommand) -> None:
    err = publish(run)
    assert "Window 85min is no whole number of slots: it covers 9 slots (1 hour 30 minutes)." in err
    assert held()["u0"] == ((9, 100_000_000), "strict")
    assert held()["u9"] == ((6, 1_000_000_000), "Low/hour")
    assert {"u0": "strict", "u9": "Low/hour"}.items() <= {
        row["user"]: row["level"] for row in shown(run, "users", "run.journal", "list")["users"]
    }.items()
    Path("exported.csv").write_text(run("users", "run.journal", "export")[1])
    assert Path("exported.csv").read_text().splitlines()[:2] == ["user,window,epsilon,level", "u0,9,0.1,strict"]
    before = held()
    assert "0 join, 0 change, 0 leave" in run("users", "run.journal", "import", "exported.csv")[2]
    assert held() == before
    rows = {row["level"]: row for row in shown(run, "levels", "run.journal")["levels"]}
    assert rows["strict"] == {"level": "strict", **WHILE, "span": "1 hour 30 minutes", "users": 5}


def test_an_import_says_how_long_earlier_choices_protect_and_stores_nothing_if_asked(run: RunCommand) -> None:
    publish(run)
    assert publish(run).count("Requirements") == 0
    write_users(strict=2)
    said = "0 join, 3 change, 0 leave. 3 users are counted in a stricter class until slot 21 (2026-01-01T03:20:00Z) at"
    before = held()
    arguments = ("users", "run.journal", "import", "users.csv", "--config", "wevent.toml")
    for _ in range(2):
        code, out, err = run(*arguments, "--dry-run")
        assert (code, out) == (0, "3 changes\nnothing was stored; it would be in force from slot 13 on\n")
        assert said in err
        assert held() == before
    found = shown(run, *arguments, "--dry-run")
    assert (found["stored"], found["in_force_from"]) == (False, 13)
    difference = found["difference"]
    assert (difference["registered"], difference["changing"], difference["in_transition"]) == (20, 3, 3)
    assert (difference["until"], difference["until_time"]) == (21, "2026-01-01T03:20:00Z")
    assert f"Requirements: {said}" in publish(run, "--end", "2026-01-01T02:10:00Z")
    with open_journal(Path("run.journal")) as journal:
        assert sorted(member.first for member in journal.registry.members())[-4:] == [1, 13, 13, 13]
    rows = {row["level"]: row for row in shown(run, "levels", "run.journal")["levels"]}
    assert rows["strict"]["users"] == 2


def test_a_change_of_one_person_says_it_too(run: RunCommand) -> None:
    publish(run)
    dry = run("users", "run.journal", "set", "u0", "--level", "Low/hour", "--dry-run")[1].splitlines()
    assert dry == [
        "nothing was stored; it would be in force from slot 13 on",
        "From 2026-01-01T02:00:00Z on, any 1 hour lose at most 1. "
        "Until 2026-01-01T03:20:00Z the earlier choice protects as well.",
    ]
    assert held()["u0"][1] == "strict"
    done = shown(run, "users", "run.journal", "set", "u0", "--level", "Low/hour")
    assert (done["stored"], done["in_force_from"], done["earlier_until"]) == (True, 13, 21)
    assert done["consequences"]["in_transition"] == 1
    assert held()["u0"] == ((6, 1_000_000_000), "Low/hour")
    out = run("users", "run.journal", "add", "new", "--window", "81min", "--epsilon", "1")[1]
    assert "From 2026-01-01T02:00:00Z on, any 1 hour 30 minutes lose at most 1.\n" in out
    assert "Window 81min is no whole number of slots: it covers 9 slots (1 hour 30 minutes)." in out
    assert "Warning: only one user holds window 9, epsilon 1. The number of users per requirement is public" in out
    code, _, err = run("users", "run.journal", "set", "new", "--level", "stritc")
    assert code == 2
    assert "Unknown level 'stritc'. Did you mean 'strict'?" in err
    for arguments in (("--level", "strict", "--window", "hour"), ("--window", "4"), ()):
        assert run("users", "run.journal", "set", "new", *arguments)[0] == 2


def test_a_file_that_drops_who_was_added_and_brings_back_who_was_erased_says_so(run: RunCommand) -> None:
    publish(run)
    for user in ("ann", "bob"):
        assert run("users", "run.journal", "add", user, "--level", "strict")[0] == 0
    assert run("users", "run.journal", "erase", "u0")[0] == 0
    write_users(more="bob,strict\n")
    _, _, err = run("users", "run.journal", "import", "users.csv", "--config", "wevent.toml")
    assert "1 join, 0 change, 1 leave. 1 user added by `users` is not in the file and leaves." in err
    assert "1 user returns after leaving." in err
    write_users(without=1, more="kim,Low/hour\n")  # bob came with a file by now
    _, _, err = run("users", "run.journal", "import", "users.csv", "--config", "wevent.toml", "--allow-removals")
    assert "1 join, 0 change, 2 leave" in err
    assert "added by" not in err


def test_a_new_level_table_says_how_long_the_earlier_one_protects(run: RunCommand) -> None:
    publish(run)
    Path("wevent.toml").write_text(CONFIG.replace("High = 0.1", "High = 0.2"))
    err = publish(run, "--reconfigure", "--end", "2026-01-01T02:30:00Z")
    assert "Requirements: 0 join, 0 change, 0 leave, 5 get the new numbers of their level." in err
    assert "5 users are counted in a stricter class until slot 22 (2026-01-01T03:30:00Z) at the latest" in err
    assert held()["u0"] == ((9, 200_000_000), "strict")
    with open_journal(Path("run.journal")) as journal:
        assert {member.first for member in journal.registry.members()} == {1, 14}


def test_a_class_of_one_is_warned_of_at_the_start(run: RunCommand) -> None:
    write_users(strict=1)
    assert "Warning: only one user holds window 9, epsilon 0.1." in publish(run)
    assert "Warning" not in publish(run, "--end", "2026-01-01T02:10:00Z")


def test_slots_without_a_length_have_no_durations(run: RunCommand) -> None:
    Path("events.csv").write_text("slot,user,cell\n1,u1,1\n")
    Path("users.csv").write_text("user,window,epsilon\nu1,40,1\nu2,40,1\n")
    arguments = ("events.csv", "--slot-column", "slot", "--end", "3", "--cells", "4", "--journal", "run.journal")
    more = ("--declare", "8,0.5")
    assert run("publish", *arguments, "--requirements", "users.csv", "--out", "out.ndjson", *more)[0] == 0
    found = shown(run, "levels", "run.journal")
    assert (found["slot_seconds"], found["declared"]) == (None, False)
    assert found["numbers"] == [{"level": None, "window": 40, "epsilon": 1.0, "odds": math.e, "span": None, "users": 2}]
    assert "any 40 slots" in run("levels", "run.journal")[1]
    code, _, err = run("users", "run.journal", "set", "u1", "--window", "24h", "--epsilon", "1")
    assert code == 2
    assert "slots have numbers and no length" in err
    out = run("users", "run.journal", "set", "u1", "--window", "8", "--epsilon", "0.5")[1]
    assert "From slot 4 on, any 8 slots lose at most 0.5. Until slot 43 the earlier choice protects as well." in out


def test_a_journal_or_a_configuration(run: RunCommand) -> None:
    assert shown(run, "levels")["declared"]  # ./wevent.toml
    Path("wevent.toml").rename("other.toml")
    for arguments in ((), ("run.journal", "--config", "other.toml"), ("nowhere.journal",)):
        code, _, err = run("levels", *arguments)
        assert (code, err[:7]) == (2, "Error: ")


def test_an_epsilon_is_said_in_odds(run: RunCommand) -> None:
    """A person who reads the table learns what High and Low mean for them."""
    assert "by a factor of at most e^epsilon: 1.11 at 0.1, 2.72 at 1." in run("levels")[1]
