"""What people do wrong in their first hour, and the one sentence each of it is answered with."""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

import wevent
from tests.support.commands import call, write_stream
from wevent.cli import main

CLOCK = ("--slot", "60s", "--start", "2026-01-01T00:00:00Z", "--end", "2026-01-01T00:30:00Z")
PEOPLE = ("--requirements", "users.csv", "--cells", "4")
FILES = ("--journal", "run.journal", "--out", "out.ndjson")
PUBLISH = ("publish", "events.csv", *CLOCK, *PEOPLE, *FILES)
NO_LENGTH = """\
inputs = ["events.csv"]
slot_column = "slot"
end = 10
cells = 4
[levels.privacy]
High = 0.1
[levels.window]
day = "24h"
"""

Preparation = Callable[[Path], object]


class Mistake(NamedTuple):
    """A command, what it finds, and what its sentence says."""

    command: tuple[str, ...]
    said: str
    before: Preparation | None = None


def written(name: str, text: str) -> Preparation:
    """A file of this content."""
    return lambda folder: (folder / name).write_text(text)


def replaced(name: str, old: str, new: str) -> Preparation:
    """A file with something else in it."""

    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return change


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stream")
    write_stream(folder)
    return folder


@pytest.fixture(scope="module")
def published_stream(stream: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published") / "stream"
    shutil.copytree(stream, folder)
    assert call(folder, *PUBLISH).code == 0
    return folder


BEFORE_PUBLISHING = {
    "a misspelt command": Mistake(("pubish",), "Unknown command 'pubish'. Did you mean 'publish'?"),
    "a misspelt option": Mistake(("publish", "events.csv", "--requirments", "users.csv"), "'--requirements'"),
    "a misspelt mechanism": Mistake((*PUBLISH, "--mechanism", "pdb"), "Unknown mechanism 'pdb'. Did you mean 'pbd'?"),
    "a peer": Mistake(
        (*PUBLISH, "--mechanism", "spas"),
        "Mechanism 'spas' is a baseline and cannot publish. Use it with `wevent compare` only, or publish with pft.",
    ),
    "nothing said": Mistake(("publish",), "inputs, cells, slot, journal, requirements, start and end must be set."),
    "only events": Mistake(
        ("publish", "events.csv"), "Give --cells, --slot, --journal, --requirements, --start and --end"
    ),
    "no such configuration": Mistake(
        ("publish", "--config", "nowhere.toml"),
        "'nowhere.toml' is not readable (No such file or directory). Check the path.",
    ),
    "a configuration that is no TOML": Mistake(
        ("publish",), "(at line 1, column 10). Correct the line.", written("wevent.toml", "slot = 60s\n")
    ),
    "a misspelt key": Mistake(
        ("publish",),
        "Unknown setting 'slots' in 'wevent.toml'. Did you mean 'slot'?",
        written("wevent.toml", "slots = '1h'\n"),
    ),
    "no such events": Mistake(
        ("publish", "event.csv", *PUBLISH[2:]),
        "There is no input file 'event.csv'.",
    ),
    "a folder of events": Mistake(
        ("publish", "events", *PUBLISH[2:]),
        "The input 'events' is a folder. Name the files in it, such as 'events/*.csv'.",
        lambda folder: (folder / "events").mkdir(),
    ),
    "a configuration among the events": Mistake(
        ("publish", "wevent.toml", *PUBLISH[2:]),
        "A configuration is named by --config wevent.toml.",
        written("wevent.toml", "slot = '1h'\n"),
    ),
    "columns of other names": Mistake(
        PUBLISH,
        "events.csv has no column 'time'. Its columns: 'ts', 'id', 'place'. Name the columns with time_column",
        replaced("events.csv", "time,user,cell", "ts,id,place"),
    ),
    "one column twice": Mistake(
        (*PUBLISH, "--user-column", "cell"),
        "Time, user and cell have a column each, not 'time', 'cell', 'cell'.",
    ),
    "events with semicolons": Mistake(
        PUBLISH,
        "Its columns: 'time;user;cell'. Its fields are separated by semicolons: save it again with commas (.csv) or tabs",
        lambda folder: (folder / "events.csv").write_text((folder / "events.csv").read_text().replace(",", ";")),
    ),
    "tabs in a file of commas": Mistake(
        PUBLISH,
        "Its fields are separated by tabs: name it .tsv.",
        lambda folder: (folder / "events.csv").write_text((folder / "events.csv").read_text().replace(",", "\t")),
    ),
    "requirements with semicolons": Mistake(
        PUBLISH,
        "Its columns: 'user;window;epsilon'. Its fields are separated by semicolons:",
        lambda folder: (folder / "users.csv").write_text((folder / "users.csv").read_text().replace(",", ";")),
    ),
    "requirements without a column": Mistake(
        PUBLISH,
        "Its columns: 'user', 'window', 'eps'. Name them user and level",
        replaced("users.csv", "window,epsilon", "window,eps"),
    ),
    "an epsilon of 0": Mistake(
        PUBLISH, "users.csv, line 5: Epsilon must be greater than 0", replaced("users.csv", "\n3,8,0.5", "\n3,8,0")
    ),
    "a negative epsilon": Mistake(
        PUBLISH, "Epsilon must be greater than 0 and at most 50", replaced("users.csv", "\n3,8,0.5", "\n3,8,-1")
    ),
    "an epsilon in words": Mistake(
        PUBLISH,
        "Epsilon must be greater than 0 and at most 50, not 'high'.",
        replaced("users.csv", "\n3,8,0.5", "\n3,8,high"),
    ),
    "half a slot": Mistake(
        PUBLISH,
        "A window is a whole number of slots or a duration such as 24h, not '2.5'.",
        replaced("users.csv", "\n3,8,0.5", "\n3,2.5,0.5"),
    ),
    "a person twice": Mistake(
        PUBLISH, "users.csv, line 6: the id is in line 5 too.", replaced("users.csv", "\n3,8,0.5", "\n3,8,0.5\n3,4,0.5")
    ),
    "a word that is not offered": Mistake(
        PUBLISH,
        "Unknown privacy level 'Hihg'. Did you mean 'High'?",
        written("users.csv", "user,privacy,window\n1,Hihg,Large\n"),
    ),
    "half a level": Mistake(
        PUBLISH,
        "Unknown level 'High'. Levels: High/Small, High/Medium,",
        written("users.csv", "user,level\n1,High\n"),
    ),
    "nobody in the requirements": Mistake(
        PUBLISH, "users.csv has no rows. Write a row per user.", written("users.csv", "user,window,epsilon\n")
    ),
    "no such cells": Mistake(
        ("publish", "events.csv", *CLOCK, "--requirements", "users.csv", "--cells", "cells.txt", *FILES),
        "no such file of cells: 'cells.txt'. Check the path, or write a number, or labels",
    ),
    "cells that are no UTF-8": Mistake(
        ("publish", "events.csv", *CLOCK, "--requirements", "users.csv", "--cells", "cells.txt", *FILES),
        "cells.txt is not in UTF-8. Save it again as UTF-8.",
        lambda folder: (folder / "cells.txt").write_bytes("Café\nZoo\n".encode("cp1252")),
    ),
    "a cell twice": Mistake(
        ("publish", "events.csv", *CLOCK, "--requirements", "users.csv", "--cells", "a,b,a", *FILES),
        "Cell 'a' is declared twice.",
    ),
    "a slot in words": Mistake(
        ("publish", "events.csv", "--slot", "ten minutes", *CLOCK[2:], *PEOPLE, *FILES),
        "not 'ten minutes'. Write 60s, 5m, 100min, 1h or 1d.",
    ),
    "slots of no length": Mistake(
        ("publish", "events.csv", "--slot", "0s", *CLOCK[2:], *PEOPLE, *FILES), "slot must be longer than zero"
    ),
    "a start without its offset": Mistake(
        ("publish", "events.csv", "--slot", "60s", "--start", "2026-01-01", *CLOCK[4:], *PEOPLE, *FILES),
        "not '2026-01-01'. Add Z for UTC, or an offset such as +02:00",
    ),
    "an end before the start": Mistake(
        ("publish", "events.csv", *CLOCK[:4], "--end", "2025-01-01T00:00:00Z", *PEOPLE, *FILES),
        "end must be at least one slot after the start",
    ),
    "a folder that is not there": Mistake(
        ("publish", "events.csv", *CLOCK, *PEOPLE, "--journal", "there/run.journal"), "Make the folder first."
    ),
    "a journal that is none": Mistake(
        PUBLISH,
        "another kind of file, no wevent journal (run.journal)",
        written("run.journal", "hello, I am a text file"),
    ),
    "releases into the events": Mistake(
        ("publish", "events.csv", *CLOCK, *PEOPLE, "--journal", "run.journal", "--out", "events.csv"),
        "events.csv is an input, not a file of its own for the releases. Choose another file; this one is untouched.",
    ),
    "releases into a folder": Mistake(
        ("publish", "events.csv", *CLOCK, *PEOPLE, "--journal", "run.journal", "--out", "releases"),
        "The output 'releases' does not end in .ndjson, .csv or .parquet. Name a file in it.",
        lambda folder: (folder / "releases").mkdir(),
    ),
    "levels without windows": Mistake(
        ("levels",),
        "and if wanted [levels.combined], not ['privacy']. Give both.",
        written("wevent.toml", NO_LENGTH.partition("[levels.window]")[0]),
    ),
    "a plan for nobody": Mistake(("plan", "--class", "24:1.0=0"), "The planned population has no user."),
    "half a class": Mistake(("plan", "--class", "24"), "Invalid class '24'. Write WINDOW:EPSILON=USERS"),
    "no such stream": Mistake(("compare", "--stream", "cos"), "write file:events.csv for data of your own"),
    "no such file of a stream": Mistake(("compare", "--stream", "file:x.csv"), "Check the path after file:."),
    "a misspelt mechanism to compare": Mistake(("compare", "--mechanisms", "pdb"), "Did you mean 'pbd'?"),
    "no such experiment": Mistake(("reproduce", "--streams", "sinus"), "Choose from taxi, foursquare"),
    "no journal named": Mistake(
        ("status",), "No journal given. Pass JOURNAL, use --config, or run in a folder with wevent.toml."
    ),
    "no such journal": Mistake(("status", "x.journal"), "Check the path; `wevent publish` makes one."),
    "an audit of events": Mistake(
        ("verify", "events.csv"), "This is another kind of file, no wevent journal (events.csv)."
    ),
    "a picture of events": Mistake(
        ("plot", "events.csv"), "Name what `publish --out` or `wevent releases --out` made."
    ),
    "a configuration from nothing": Mistake(
        ("init", "--from", "x.csv"), "There is no input file 'x.csv'. Check the path."
    ),
    "a configuration from semicolons": Mistake(
        ("init", "--from", "rides.csv", "mine"),
        "Its columns: 'started_at;rider;zone'. Its fields are separated by semicolons:",
        written("rides.csv", "started_at;rider;zone\n2026-01-01 00:00:00;7;north\n"),
    ),
    "an example over another": Mistake(
        ("init", "."), "Choose another folder, or remove these files.", lambda folder: call(folder, "init", ".")
    ),
    "a day of slots without a length": Mistake(
        ("levels",),
        "no length (slot_column). Write the number of slots.",
        written("wevent.toml", NO_LENGTH),
    ),
}

AFTER_PUBLISHING = {
    "a token for nothing": Mistake(("token", "run.journal", "create"), "The token has no role. Give a role out of"),
    "a misspelt role": Mistake(("token", "run.journal", "create", "--role", "reed"), "Did you mean 'read'?"),
    "a token until a word": Mistake(
        ("token", "run.journal", "create", "--role", "read", "--expires", "soon"), "a duration such as 30d, or a time"
    ),
    "a token until yesterday": Mistake(
        ("token", "run.journal", "create", "--role", "read", "--expires", "2020-01-01T00:00:00Z"),
        "Invalid expiry '2020-01-01T00:00:00Z'",
    ),
    "a token until a local time": Mistake(
        ("token", "run.journal", "create", "--role", "read", "--expires", "2100-01-01"),
        "expires must be a time with its offset",
    ),
    "a token until no time": Mistake(
        ("token", "run.journal", "create", "--role", "read", "--expires", "999999999w"),
        "Invalid expiry '999999999w'",
    ),
    "no such token": Mistake(("token", "run.journal", "revoke", "12345678"), "`wevent token list` shows the ids."),
    "a link to nowhere": Mistake(
        ("token", "run.journal", "link", "3", "--url", "stats"), "such as https://stats.example"
    ),
    "a link for ever": Mistake(("token", "run.journal", "link", "3", "--expires", "500d"), "a second and 366 days"),
    "a link for nobody": Mistake(("token", "run.journal", "link", ""), "No user can have this id"),
    "tokens elsewhere": Mistake(
        ("token", "nowhere/run.journal", "create", "--role", "read"), "No such file or directory"
    ),
    "tokens that others read": Mistake(
        ("token", "others.journal", "list"),
        "others may read or change it (mode 0644)",
        lambda folder: (folder / "others.journal.tokens").touch(0o644),
    ),
    "tokens that are none": Mistake(
        ("token", "damaged.journal", "create", "--role", "read"),
        "damaged or changed by hand",
        lambda folder: (folder / "damaged.journal.tokens").touch(0o600),
    ),
    "a format that is none": Mistake(("releases", "run.journal", "--format", "xml"), "Use one of ndjson, csv"),
    "cells that are none": Mistake(("releases", "run.journal", "--cells", "north"), "It has 4, such as 0, 1, 2, 3."),
    "slots from the end": Mistake(("releases", "run.journal", "--from", "9", "--to", "3"), "Swap them."),
    "a picture of no cell": Mistake(("plot", "run.journal", "--cells", "north"), "It has 0, 1, 2, 3."),
    "a picture of no kind": Mistake(("plot", "run.journal", "--out", "x.docx"), ".png, .svg, .pdf, .jpg"),
    "a change of nobody": Mistake(
        ("users", "run.journal", "set", "nobody", "--window", "4", "--epsilon", "0.5"), "Use `add` for new users."
    ),
    "nobody to remove": Mistake(("users", "run.journal", "remove", "nobody"), "`list` shows all users."),
    "nobody to erase": Mistake(("users", "run.journal", "erase", "nobody"), "`list` shows all users."),
    "somebody new who is there": Mistake(
        ("users", "run.journal", "add", "3", "--window", "4", "--epsilon", "0.5"), "Use `set` to change a requirement."
    ),
    "a window that was not declared": Mistake(
        ("users", "run.journal", "set", "3", "--window", "400", "--epsilon", "0.5"),
        "declare it in a new configuration version (publish --reconfigure --declare 400,0.5).",
    ),
    "a word of no table": Mistake(
        ("users", "run.journal", "set", "3", "--privacy", "Secret", "--window", "Large"),
        "Levels of privacy: High, Medium, Low.",
    ),
    "another mechanism": Mistake((*PUBLISH, "--mechanism", "pba"), "('pft' in the journal, 'pba' now)"),
    "another slot length": Mistake(
        ("publish", "events.csv", "--slot", "30s", *CLOCK[2:], *PEOPLE, *FILES), "These stay for the life of a journal"
    ),
    "a restore that says too little": Mistake(
        ("restore", "backup.journal", "run.journal"),
        "--released-through SLOT, the last slot that was ever released, is missing.",
    ),
    "a restore the wrong way round": Mistake(
        ("restore", "run.journal", "copy.journal", "--released-through", "30"),
        "and the second one a backup (copy.journal). Swap them; nothing was changed.",
        lambda folder: call(folder, "backup", "run.journal", "copy.journal"),
    ),
    "a backup onto the journal": Mistake(("backup", "run.journal", "run.journal"), "Choose another name."),
}


def files(folder: Path) -> dict[str, bytes]:
    """What is in a folder, but for what SQLite keeps while it reads."""
    return {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if file.is_file() and not file.name.endswith(("-wal", "-shm", ".witness"))
    }


def answered(folder: Path, mistake: Mistake) -> None:
    """One sentence and exit code 2; and nothing else happened."""
    if mistake.before is not None:
        mistake.before(folder)
    before = files(folder)
    done = call(folder, *mistake.command)
    assert done.code == 2, done
    assert mistake.said in done.err, done
    assert sum(line.startswith("Error: ") for line in done.err.splitlines()) == 1
    assert "Traceback" not in done.err
    assert files(folder) == before


@pytest.mark.parametrize("name", BEFORE_PUBLISHING)
def test_a_mistake_before_publishing(name: str, stream: Path, tmp_path: Path) -> None:
    folder = tmp_path / "stream"
    shutil.copytree(stream, folder)
    answered(folder, BEFORE_PUBLISHING[name])


@pytest.mark.parametrize("name", AFTER_PUBLISHING)
def test_a_mistake_after_publishing(name: str, published_stream: Path) -> None:
    answered(published_stream, AFTER_PUBLISHING[name])


EVENTS = pd.DataFrame({"time": pd.to_datetime(["2026-01-01T00:00:10Z"]), "user": ["a"], "cell": ["x"]})
POPULATION = wevent.Population({wevent.Requirement(4, 1): 3})

IN_PYTHON: dict[str, tuple[Callable[[], Any], str]] = {
    "noise that is a seed": (lambda: wevent.Publisher(POPULATION, 2, noise=7), "SeededNoise(7) is for simulation only"),  # type: ignore[arg-type]
    "a population as a list": (lambda: wevent.Population([wevent.Requirement(4, 1)]), "Population"),  # type: ignore[arg-type]
    "an epsilon of none": (lambda: wevent.Requirement(4, 0), "Epsilon must be greater than 0"),
    "a misspelt mechanism": (lambda: wevent.Publisher(POPULATION, 2, "pdb"), "Did you mean 'pbd'"),
    "a peer": (lambda: wevent.Publisher(POPULATION, 2, "fast"), "Mechanism 'fast' is a baseline and cannot publish."),
    "events without a clock": (lambda: wevent.publish(EVENTS), "cells, slot, journal, requirements, start and end"),
    "releases from no file": (lambda: wevent.read_releases("nothing.ndjson"), "nothing.ndjson"),
    "a plan without people": (lambda: wevent.plan({}), "Give the number of users of each level."),  # type: ignore[arg-type]
    "a comparison of no stream": (lambda: wevent.compare("cos"), "file:events.csv"),
}


@pytest.mark.parametrize("name", IN_PYTHON)
def test_a_mistake_in_python(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call_it, said = IN_PYTHON[name]
    with pytest.raises(wevent.WeventError) as caught:
        call_it()
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert not list(tmp_path.iterdir())


HINTED: dict[str, tuple[Preparation, tuple[str, ...], str]] = {
    "ids of another kind": (
        lambda folder: (folder / "users.csv").write_text(
            "user,window,epsilon\n" + "".join(f"u-{i},4,0.5\n" for i in range(60))
        ),
        PUBLISH,
        "Ids look like '9' in the events and like 'a-9' in the requirements",
    ),
    "an end that is a second too early": (
        lambda folder: None,
        (*PUBLISH, "--end", "2026-01-01T00:29:59Z"),
        "the last one that is ends at 2026-01-01T00:29:00Z",
    ),
    "another year": (lambda folder: None, tuple(word.replace("2026", "2025") for word in PUBLISH), "year"),
    "cells in other letters": (
        lambda folder: [
            replaced("events.csv", f",{number}\n", f",{label}\n")(folder)
            for number, label in enumerate(("north", "east", "south", "west"))
        ],
        ("publish", "events.csv", *CLOCK, "--requirements", "users.csv", "--cells", "North,East,South,West", *FILES),
        "case",
    ),
}


@pytest.mark.parametrize("name", HINTED)
def test_a_check_tells_what_publishing_would_not(name: str, stream: Path, tmp_path: Path) -> None:
    """Each of these would publish zeros, spend every window, and end well."""
    folder = tmp_path / "stream"
    shutil.copytree(stream, folder)
    before, command, said = HINTED[name]
    before(folder)
    there = files(folder)
    done = call(folder, "check", *command[1:])
    assert done.code == 0, done
    assert said in done.out, done
    assert files(folder) == there


@pytest.mark.parametrize("command", [("status", "run.journal"), ("backup", "run.journal", "copy.journal")])
def test_a_working_folder_that_was_removed(tmp_path: Path, command: tuple[str, ...]) -> None:
    gone, errors = tmp_path / "gone", io.StringIO()
    gone.mkdir()
    before = Path.cwd()
    os.chdir(gone)
    try:
        gone.rmdir()
        with redirect_stderr(errors), pytest.raises(SystemExit) as done:
            main(command)
    finally:
        os.chdir(before)
    assert done.value.code == 2
    assert errors.getvalue() == (
        "Error: The working folder was removed. Change to an existing folder and run the same command again.\n"
    )


def test_a_witness_that_cannot_be_closed(stream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shutil.copytree(stream, tmp_path / "stream")
    close = os.close

    def fail(file: int) -> None:
        is_witness = os.readlink(f"/proc/self/fd/{file}").endswith(".witness")
        close(file)
        if is_witness:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "close", fail)
    done = call(folder, *PUBLISH)
    assert done.code == 75
    witness = folder.resolve() / "run.journal.witness"
    said = (
        f"Error: wevent failed to close {witness}: Input/output error. Check its disk; every released slot is stored."
    )
    assert done.err.splitlines()[-1] == said
