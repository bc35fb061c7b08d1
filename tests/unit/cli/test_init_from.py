"""`wevent init --from`: names and types of columns, and nothing of what people did."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import duckdb
import pytest

from tests.support.commands import RunCommand
from wevent.publishing.template import guess_roles
from wevent.streams.inspection import Column

SECRETS = ("rider-0815", "Geheimhafen", "2026-03-02", "08:15", "17.5")


def rides(kind: str) -> str:
    row = {"started_at": "2026-03-02 08:15:00", "rider": "rider-0815", "zone": "Geheimhafen", "fare": "17.5"}
    Path("rides.csv").write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n")
    if kind == "ndjson":
        Path("rides.ndjson").write_text(json.dumps(row) + "\n")
    if kind == "parquet":
        query = "SELECT started_at::TIMESTAMP AS started_at, rider, zone, fare FROM 'rides.csv'"
        duckdb.execute(f"COPY ({query}) TO 'rides.parquet' (FORMAT parquet)")
    return f"rides.{kind}"


@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet"])
def test_a_configuration_to_fill_in(invoke: RunCommand, kind: str) -> None:
    events = rides(kind)
    code, out, err = invoke("init", "--from", events, "mine")
    assert code == 0, err
    text = Path("mine/wevent.toml").read_text()
    values = tomllib.loads(text)
    assert values["inputs"] == [f"../{events}"]
    assert (values["time_column"], values["user_column"], values["cell_column"]) == ("started_at", "rider", "zone")
    assert [key for key, value in values.items() if value == ""] == ["timezone", "start", "end", "cells"]
    assert "# Other columns: fare (numbers)." in text
    assert Path("mine/requirements.csv").read_text() == "user,privacy,window\n"
    assert not [secret for secret in SECRETS if secret in text + out + err]
    assert "Fill in timezone, start, end, cells in mine/wevent.toml" in out


def test_blanks_are_refused_together_and_what_is_filled_in_works(invoke: RunCommand) -> None:
    assert invoke("init", "--from", rides("csv"))[0] == 0
    for command in (("check",), ("publish",)):
        code, _, err = invoke(*command)
        assert code == 2
        assert "cells, start, end and timezone must be set." in err
    text = Path("wevent.toml").read_text()
    filled = {"cells": '"cells.txt"', "start": '"2026-03-02T00:00:00Z"', "end": '"2026-03-03T00:00:00Z"'}
    for key, value in {**filled, "timezone": '"UTC"'}.items():
        text = text.replace(f'\n{key} = ""', f"\n{key} = {value}")
    Path("wevent.toml").write_text(text)
    Path("cells.txt").write_text("Geheimhafen\nAirport\n")
    with Path("requirements.csv").open("a") as file:
        file.write("rider-0815,High,Small\n")
    code, out, err = invoke("check", "--json")
    assert code == 0, err
    assert json.loads(out)["matching"]["of_registered_users"] == 1
    assert json.loads(out)["not_counted"]["rejected"] == 0


def test_own_windows_and_epsilons_need_no_levels(invoke: RunCommand) -> None:
    Path("mine").mkdir()
    rows = "user,window,epsilon\nrider-0815,24,0.5\nb,24,1\nc,48,1\n"
    Path("mine/requirements.csv").write_text(rows)
    code, out, err = invoke("init", "--from", rides("csv"), "mine")
    assert code == 0, err
    assert out.startswith("Wrote mine/wevent.toml\nFill in timezone, start, end, cells in mine/wevent.toml.\n")
    assert Path("mine/requirements.csv").read_text() == rows
    text = Path("mine/wevent.toml").read_text()
    assert "levels" not in tomllib.loads(text)
    assert "requirements.csv has windows and epsilons of its own" in text
    assert "rider-0815" not in text
    there = ("--cells", "2", "--start", "2026-03-02T00:00:00Z", "--end", "2026-03-03T00:00:00Z", "--timezone", "UTC")
    code, out, err = invoke("check", "mine/wevent.toml", *there, "--json")
    assert code == 0, err
    assert len(json.loads(out)["classes"]) == 3


def test_nothing_is_overwritten_and_odd_files_are_refused(invoke: RunCommand) -> None:
    events = rides("csv")
    Path("wevent.toml").write_text("mine")
    code, _, err = invoke("init", "--from", events)
    assert code == 2
    assert "wevent.toml" in err
    assert Path("wevent.toml").read_text() == "mine"
    Path("semi.csv").write_text("a;b;c\n1;2;3\n")
    code, _, err = invoke("init", "--from", "semi.csv", "other")
    assert code == 2
    assert "separated by semicolons: save it again with commas" in err
    assert not Path("other").exists()
    assert invoke("init", "--from", "absent.csv", "other")[0] == 2
    code, _, err = invoke("init")
    assert code == 2
    assert "--from" in err


@pytest.mark.parametrize(
    ("columns", "roles"),
    [
        (
            (Column("ts", "whole numbers", 13), Column("userId", "whole numbers"), Column("cell", "text")),
            ("ts", "userId", "cell"),
        ),
        ((Column("a", "text"), Column("b", "times with an offset"), Column("c", "text")), ("b", None, None)),
        (
            (Column("date", "text"), Column("seen", "times with an offset"), Column("who", "text")),
            ("seen", "who", None),
        ),
        (
            (Column("USER_ID", "text"), Column("Timestamp", "times without an offset"), Column("Station", "text")),
            ("Timestamp", "USER_ID", "Station"),
        ),
    ],
)
def test_roles_by_name_and_type(columns: tuple[Column, ...], roles: tuple[str | None, ...]) -> None:
    found = guess_roles(columns)
    assert tuple(None if column is None else column.name for column in found.values()) == roles


def test_numbers_as_times_have_a_unit(invoke: RunCommand) -> None:
    Path("e.csv").write_text("time,user,cell\n1767225600000,1,2\n")
    assert invoke("init", "--from", "e.csv")[0] == 0
    assert tomllib.loads(Path("wevent.toml").read_text())["time_unit"] == "ms"


@pytest.mark.parametrize("line", ["2026-03-02 08:15:00,rider-0815,Geheimhafen", "rider-0815;17.5;Geheimhafen,1,x"])
def test_a_file_without_a_header_shows_nobody(invoke: RunCommand, line: str) -> None:
    Path("rides.csv").write_text(f"{line}\n{line}\n")
    code, out, err = invoke("init", "--from", "rides.csv", "mine")
    assert code == 2
    assert "is the header line missing?" in err
    assert not Path("mine").exists()
    assert not [secret for secret in SECRETS if secret in out + err]


def test_a_file_name_says_nothing_in_the_configuration(invoke: RunCommand) -> None:
    rides("csv")
    Path("rides.csv").rename("a\nunknown_users = 9\n.csv")
    code, _, err = invoke("init", "--from", "a\nunknown_users = 9\n.csv", "mine")
    assert code == 0, err
    assert "unknown_users" not in tomllib.loads(Path("mine/wevent.toml").read_text())
