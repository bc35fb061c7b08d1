"""`wevent check`: what publishing would meet, said before anything is spent; every classic mistake has its hint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.support.commands import RunCommand

pytestmark = pytest.mark.slow

CLOCK = ("--slot", "60s", "--start", "2026-01-01T00:00:00Z", "--end", "2026-01-01T00:10:00Z")
PEOPLE = ("--requirements", "users.csv", "--cells", "cells.txt")
SECRET = ("Xaver4711", "Geheimratshof")


@pytest.fixture
def run(invoke: RunCommand) -> RunCommand:
    rows = [f"u-{user},{4 + 4 * (user % 2)},0.5" for user in range(20)]
    Path("users.csv").write_text("\n".join(["user,window,epsilon", *rows]) + "\n")
    Path("cells.txt").write_text("north\nsouth\n")

    return invoke


def events(time: str = "2026-01-01T00:{:02d}:30Z", user: str = "u-{}", cell: str = "north") -> list[str]:
    return [f"{time.format(n % 10)},{user.format(n % 20)},{cell.format(n % 3)}" for n in range(60)]


def write(rows: list[str], header: str = "time,user,cell") -> None:
    Path("events.csv").write_text("\n".join([header, *rows]) + "\n")


def write_as(kind: str, rows: list[str]) -> str:
    """The rows as a file of this kind, all columns text."""
    write(rows)
    if kind == "csv":
        return "events.csv"
    parts = [dict(zip(("time", "user", "cell"), row.split(","), strict=True)) for row in rows]
    if kind == "ndjson":
        Path("events.ndjson").write_text("".join(json.dumps(part) + "\n" for part in parts))
        return "events.ndjson"
    duckdb.execute("COPY (FROM read_csv('events.csv', all_varchar = true)) TO 'events.parquet' (FORMAT parquet)")
    return "events.parquet"


def check(run: RunCommand, *more: str, inputs: str = "events.csv") -> dict[str, Any]:
    code, out, err = run("check", inputs, *CLOCK, *PEOPLE, "--json", *more)
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def reasons(found: dict[str, Any]) -> dict[str, tuple[int, str | None]]:
    rows = found["not_counted"]["reasons"]
    return {row["reason"]: (row["events"], row["looks_like"]) for row in rows if row["events"]}


@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet"])
def test_a_good_stream(run: RunCommand, kind: str) -> None:
    found = check(run, inputs=write_as(kind, events()))
    assert found["inputs"] == [{"file": f"events.{kind}", "columns": ["time", "user", "cell"]}]
    assert found["matching"] == {
        "events": 60,
        "first_event": "2026-01-01T00:00:30Z",
        "last_event": "2026-01-01T00:09:30Z",
        "of_registered_users": 60,
        "in_declared_cells": 60,
        "registered_who_occur": 20,
    }
    assert reasons(found) == {}
    assert found["hints"] == []
    assert [(row["window"], row["span"], row["users"]) for row in found["classes"]] == [
        (4, "4 minutes", 10),
        (8, "8 minutes", 10),
    ]
    assert found["expected_error"]["typical_error"] > 0


def test_a_field_of_one_record_is_no_column(run: RunCommand) -> None:
    inputs = write_as("ndjson", events())
    lines = Path(inputs).read_text().splitlines()
    own = json.dumps({**json.loads(lines[0]), "Xaver4711": 1, "\x1b]0;title\x07": 2})
    Path(inputs).write_text("\n".join([own, *lines[1:]]) + "\n")
    found = check(run, inputs=inputs)
    assert found["inputs"] == [{"file": inputs, "columns": ["time", "user", "cell"]}]
    _, out, err = run("init", "--from", inputs, "mine")
    assert "Xaver4711" not in Path("mine/wevent.toml").read_text() + out + err


def test_names_and_ids_command_no_terminal(run: RunCommand) -> None:
    write([f"{row},1" for row in events()], header="time,user,cell,\x1b]0;title\x07")
    _, out, _ = run("check", "events.csv", *CLOCK, *PEOPLE)
    assert "columns time, user, cell, \\x1b]0;title\\x07" in out
    Path("users.csv").write_text("user,window,epsilon\n\x1b]0;title\x07,4,0.5\nu-1,4,0.5\n")
    code, _, err = run("publish", "events.csv", *CLOCK, *PEOPLE, "--journal", "run.journal", "--out", "out.ndjson")
    assert code == 0, err
    _, out, _ = run("users", "run.journal", "list")
    assert "\\x1b]0;title\\x07  window 4" in out
    assert "\x1b" not in out


def test_the_text_says_that_it_is_private_and_what_the_json_says(run: RunCommand) -> None:
    write([*events(), "x"])
    code, out, _ = run("check", "events.csv", *CLOCK, *PEOPLE)
    assert code == 0
    assert out.startswith("For the operator, private:")
    for said in (
        "events.csv: columns time, user, cell",
        "60 of 60 (100.0%)",
        "not a record",
        "4 minutes",
        "not your data",
    ):
        assert said in out


@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet"])
@pytest.mark.parametrize(
    ("rows", "more", "reason", "number", "looks", "hint"),
    [
        (events(user="{}"), (), "unknown user", 60, "9", "Ids look like '9' in the events and like 'a-9'"),
        (events(user="U-{}"), (), "unknown user", 60, "A-9", "No events are of registered users"),
        (events(time="2025-01-01T00:{:02d}:30Z"), (), "before the first slot", 60, None, "events are of 2025"),
        (events(time="17672256{:02d}000"), (), None, 60, None, "use --time-unit ms"),
        (events(time="17672256{:02d}000000"), (), None, 60, None, "use --time-unit us"),
        (events(time="17672256{:02d}"), ("--time-unit", "ms"), "before the first slot", 60, None, "--time-unit s."),
        (events(cell="North"), (), "unknown cell", 60, "Aaaaa", "differs from a declared one by case or spaces"),
        (events(cell=" north"), (), "unknown cell", 60, " aaaaa", "differs from a declared one by case or spaces"),
        (events(cell="zone{}"), (), "unknown cell", 60, "aaaa9", "No event has a declared cell"),
        (
            events(time="2026-01-01 00:{:02d}"),
            (),
            "time without an offset",
            60,
            "9999-99-99 99:99",
            "give --timezone UTC",
        ),
        (events(time="01.02.2026"), (), "no time", 60, "99.99.9999", "No event has a time that can be read"),
    ],
)
def test_classic_mistakes(
    run: RunCommand,
    rows: list[str],
    more: tuple[str, ...],
    reason: str | None,
    number: int,
    looks: str,
    hint: str,
    kind: str,
) -> None:
    found = check(run, *more, inputs=write_as(kind, rows))
    if reason is not None:
        assert reasons(found) == {reason: (number, looks)}
    assert found["not_counted"]["rejected"] + found["not_counted"]["malformed"] == number
    assert any(hint in sentence for sentence in found["hints"]), found["hints"]


def test_texts_count_no_unit(run: RunCommand) -> None:
    early = ("--start", "2026-01-01T00:00:00Z", "--end", "2026-01-01T00:02:00Z")
    write(events())
    hints = check(run, *early)["hints"]
    assert hints == ["Most events lie outside start and end: compare the two spans."]


def test_a_calendar_that_names_no_day_of_the_stream(run: RunCommand) -> None:
    write(events())
    days = Path("days.csv")
    for text, hinted in (("day\n2025-01-03\n", True), ("day\n", True), ("day\n2026-01-01\n", False)):
        days.write_text(text)
        hints = check(run, "--seasonality", "60", "--special-days", "days.csv")["hints"]
        assert any("No special day" in sentence for sentence in hints) is hinted


def test_cells_numbered_from_one(run: RunCommand) -> None:
    write([row.replace("north", str(1 + n % 4)) for n, row in enumerate(events())])
    assert any("numbered from 1 on" in sentence for sentence in check(run, "--cells", "4")["hints"])
    write([row.replace("north", str(n % 5)) for n, row in enumerate(events())])
    assert check(run, "--cells", "4")["hints"] == []


def test_slot_numbers_outside(run: RunCommand) -> None:
    write([f"{1000 + n},u-{n},north" for n in range(9)], "slot,user,cell")
    code, out, err = run(*("check", "events.csv", "--slot-column", "slot", "--end", "5", *PEOPLE, "--json"))
    assert code == 0, err
    found = json.loads(out)
    assert "slot numbers in the events are 1000 to 1008" in found["hints"][0]
    assert found["classes"][0]["span"] is None


def test_a_class_of_one_is_warned_of(run: RunCommand) -> None:
    with Path("users.csv").open("a") as file:
        file.write("loner,9,0.9\n")
    write(events())
    assert "has one user" in check(run)["warnings"][0]


def test_nothing_of_an_event_is_shown(run: RunCommand) -> None:
    user, cell = SECRET
    write([*events(), f"2026-01-01T00:00:01Z,{user},north", f"2026-01-01T00:00:01Z,u-1,{cell}", f"{user} {cell}"])
    for form in ((), ("--json",)):
        _, out, err = run("check", "events.csv", *CLOCK, *PEOPLE, *form)
        assert user not in out + err
        assert cell not in out + err
        assert "Aaaaa9999" in out


def test_the_reasons_are_those_that_publish_prints(run: RunCommand) -> None:
    write([*events(), *events(user="x{}"), *events(cell="west")[:7], *events(time="2027-01-01T00:{:02d}:00Z")[:5], "y"])
    found = check(run)
    code, _, err = run("publish", "events.csv", *CLOCK, *PEOPLE, "--journal", "run.journal", "--out", "out.ndjson")
    assert code == 0
    assert "60 unknown user, 7 unknown cell, 5 after the last slot" in err
    assert reasons(found) == {
        "unknown user": (60, "a9"),
        "unknown cell": (7, "aaaa"),
        "after the last slot or in one that had not begun": (5, None),
        "not a record": (1, "a"),
    }


def files() -> dict[str, tuple[int, bytes]]:
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in Path().iterdir()}


def test_nothing_is_written_with_or_without_a_journal(run: RunCommand) -> None:
    write(events())
    named = ("--journal", "run.journal", "--out", "out.ndjson")
    before = files()
    assert run("check", "events.csv", *CLOCK, *PEOPLE, *named)[0] == 0
    assert files() == before
    assert run("publish", "events.csv", *CLOCK, *PEOPLE, *named)[0] == 0
    before = files()
    code, out, err = run("check", "events.csv", *CLOCK, *PEOPLE, *named)
    assert code == 0, err
    assert "Slots 11 to 10" in out
    assert files() == before


def test_a_journal_says_who_is_counted_where_and_what_is_pinned(run: RunCommand) -> None:
    write(events())
    named = ("--journal", "run.journal", "--out", "out.ndjson")
    half = ("--slot", "60s", "--start", "2026-01-01T00:00:00Z", "--end", "2026-01-01T00:02:00Z")
    assert run("publish", "events.csv", *half, *PEOPLE, *named, "--declare", "2,0.25")[0] == 0
    assert run("users", "run.journal", "set", "u-5", "--window", "2", "--epsilon", "0.25")[0] == 0
    later = ("--slot", "60s", "--start", "2026-01-01T00:00:00Z", "--end", "2026-01-01T00:10:00Z")
    code, out, err = run("check", "events.csv", *later, "--cells", "cells.txt", *named, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["clock"]["first_slot"] == 3
    assert found["people"] == {"counted": 20, "changes": None}
    sizes = {(one["window"], one["epsilon"]): one["users"] for one in found["classes"]}
    assert sizes == {(2, 0.25): 0, (4, 0.5): 10, (8, 0.25): 1, (8, 0.5): 9}  # the corner is as strict as both choices
    assert reasons(found) == {}
    assert run("publish", "events.csv", *later, "--cells", "cells.txt", *named)[0] == 0
    code, _, err = run("check", "events.csv", *later, "--cells", "3", *named)
    assert code == 2
    assert "cells" in err


def test_changed_requirements_are_said(run: RunCommand) -> None:
    write(events())
    named = ("--journal", "run.journal", "--out", "out.ndjson")
    assert run("publish", "events.csv", *CLOCK, *PEOPLE, *named)[0] == 0
    text = Path("users.csv").read_text().replace("u-0,4,0.5", "u-0,8,0.5") + "new,4,0.5\n"
    Path("users.csv").write_text(text)
    found = check(run, *named)
    changes = found["people"]["changes"]
    assert (changes["joining"], changes["changing"], changes["leaving"]) == (1, 1, 0)
    assert (changes["in_transition"], found["people"]["counted"]) == (0, 21)  # the new choice is the stricter one


def test_what_the_file_changes_is_said_as_publish_says_it(run: RunCommand) -> None:
    write(events())
    named = ("--journal", "run.journal", "--out", "out.ndjson")
    half = (*CLOCK[:-1], "2026-01-01T00:05:00Z")
    assert run("publish", "events.csv", *half, *PEOPLE, *named)[0] == 0
    assert run("users", "run.journal", "add", "asked", "--window", "4", "--epsilon", "0.5")[0] == 0
    Path("users.csv").write_text(Path("users.csv").read_text().replace("u-1,8,0.5", "u-1,4,0.5"))
    _, out, _ = run("check", "events.csv", *CLOCK, *PEOPLE, *named)
    (said,) = (line for line in out.splitlines() if line.startswith("Requirements:"))
    assert "1 user added by `users` is not in the file and leaves." in said
    assert "1 user is counted in a stricter class until slot 13 " in said
    _, _, err = run("publish", "events.csv", *CLOCK, *PEOPLE, *named)
    assert said in err


def test_an_edited_level_table_is_a_change_for_who_holds_the_level(run: RunCommand) -> None:
    write(events())
    Path("users.csv").write_text("user,level\n" + "".join(f"u-{user},High/Short\n" for user in range(20)))
    table = "[levels.privacy]\nHigh = 0.5\n[levels.window]\nShort = {}\n"
    Path("levels.toml").write_text(table.format(4))
    half, more = (*CLOCK[:-1], "2026-01-01T00:05:00Z"), ("--config", "levels.toml", "--journal", "run.journal")
    assert run("publish", "events.csv", *half, *PEOPLE, *more, "--out", "out.ndjson")[0] == 0
    Path("levels.toml").write_text(table.format(3))
    again = ("events.csv", *CLOCK, *PEOPLE, *more, "--out", "out.ndjson", "--reconfigure")
    code, out, err = run("check", *again, "--json")
    assert code == 0, err
    changes = json.loads(out)["people"]["changes"]
    assert (changes["relevelled"], changes["changing"], changes["in_transition"]) == (20, 0, 20)
    _, _, err = run("publish", *again)
    assert "20 get the new numbers of their level" in err
    assert f"counted in a stricter class until slot {changes['until']} " in err


def test_a_lost_journal_is_refused_as_publishing_refuses_it(run: RunCommand) -> None:
    write(events())
    arguments = ("events.csv", *CLOCK, *PEOPLE, "--journal", "run.journal", "--out", "out.ndjson")
    assert run("publish", *arguments)[0] == 0
    Path("run.journal").unlink()
    refused = run("publish", *arguments)
    assert refused[0] == 2
    assert run("check", *arguments) == refused
    assert run("check", *arguments, "--start-over")[0] == 0
    Path("empty.journal").touch()
    assert run("check", *arguments[:-3], "empty.journal")[0] == 0


def test_strict_changes_nothing_about_a_check(run: RunCommand) -> None:
    write([*events(), "x"])
    assert reasons(check(run, "--strict")) == {"not a record": (1, "a")}


def test_live_lines_cannot_be_checked(run: RunCommand) -> None:
    code, out, err = run("check", "-", "--slot", "60s", *PEOPLE)
    assert code == 0, err
    assert "Live lines cannot be checked before they come" in out
    assert "Expected error" in out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("check", "events.csv", *CLOCK, "--requirements", "users.csv"), "cells"),
        (("check", "absent.csv", *CLOCK, *PEOPLE), "absent.csv"),
        (("check", "events.csv", *CLOCK, *PEOPLE, "--user-column", "who"), "who"),
        (("check", "events.csv", *CLOCK, *PEOPLE, "--mechanism", "pbx"), "pbx"),
        (("check", "events.csv", *CLOCK, "--cells", "cells.txt"), "requirements"),
    ],
)
def test_settings_that_are_wrong_are_refused(run: RunCommand, arguments: tuple[str, ...], named: str) -> None:
    write(events())
    code, out, err = run(*arguments)
    assert code == 2
    assert named in err
    assert not out
    assert "Traceback" not in err
