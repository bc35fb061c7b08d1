"""Cause → sentence → exit code: every row of docs/reference/failures.md is provoked with the real command.

`WEVENT_WRITE_DOCS=1` writes the page anew.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

from tests.postgres.database_causes import (
    DATABASE_CAUSES,
    HELD_DATABASE,
    DatabaseCause,
    provoke_in_database,
    without_address,
)
from tests.support.commands import CLOCK, PEOPLE, Done, call, publish, write_stream
from wevent.journal.witness import lock_witness

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "failures.md"
END = ("--end", "2026-01-01T00:25:00Z")
OUT = ("--journal", "run.journal", "--out", "out.ndjson")
PUBLISH = ("publish", "events.csv", *CLOCK, *END, *PEOPLE, *OUT)
LOST_CHANGES = "UPDATE facts SET value = CAST('1' AS BLOB) WHERE name = 'changes lost'"
RESTORE = ("restore", "backup.journal", "run.journal", "--released-through", "20")


class Cause(NamedTuple):
    """What goes wrong, the command that meets it, what brings it about, and the exit code."""

    what: str
    command: tuple[str, ...]
    bring: Callable[[Path], object]
    code: int = 2


def nothing(folder: Path) -> None:
    """The command itself is the cause."""


def changed(old: str, new: str) -> tuple[str, ...]:
    """The publish command with one argument changed."""
    return tuple(new if one == old else one for one in PUBLISH)


def execute(statement: str, name: str = "run.journal") -> Callable[[Path], None]:
    def bring(folder: Path) -> None:
        database = apsw.Connection(str(folder / name))
        database.execute(statement)
        database.close()

    return bring


def write(name: str, content: str | bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def remove(*names: str) -> Callable[[Path], None]:
    return lambda folder: [(folder / name).unlink() for name in names] and None


def cut(name: str, keep: int) -> Callable[[Path], object]:
    """Keep the first lines of a file."""
    return lambda folder: (folder / name).write_bytes(
        b"".join((folder / name).read_bytes().splitlines(keepends=True)[:keep])
    )


def replaced(name: str, old: bytes, new: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes().replace(old, new, 1))


def all_of(*steps: Callable[[Path], object]) -> Callable[[Path], None]:
    return lambda folder: [step(folder) for step in steps] and None


def copied(source: str, target: str) -> Callable[[Path], object]:
    return lambda folder: shutil.copy(folder / source, folder / target)


OLD = copied("old.journal", "run.journal")


def scrambled(name: str) -> Callable[[Path], object]:
    """Every page after the second is gone."""

    def bring(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[:8192] + bytes(len(data) - 8192))

    return bring


def folder_at(name: str) -> Callable[[Path], object]:
    return lambda folder: ((folder / name).unlink(missing_ok=True), (folder / name).mkdir())


def pipe_at(name: str) -> Callable[[Path], object]:
    return lambda folder: ((folder / name).parent.mkdir(exist_ok=True), os.mkfifo(folder / name))


def loop(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).symlink_to(name)


NEWER = "PRAGMA user_version = 99"
SEEDED = execute("""UPDATE facts SET value = CAST('["seeded noise"]' AS BLOB) WHERE name = 'unsafe'""")
FLIP = "UPDATE slots SET payload = (SELECT payload FROM slots WHERE slot = 6) WHERE slot = 7"
BAD_BACKUP = all_of(remove("run.journal"), execute(FLIP, "backup.journal"))
COPY = execute("UPDATE head SET copied = 1")
FLIPPED = execute(FLIP)
MOVED = execute("UPDATE members SET nano = nano + 4000000 WHERE user = '7'")
USERS = ("users", "run.journal")
SET = (*USERS, "set", "7", "--window", "8", "--epsilon", "0.5")

CAUSES = [
    Cause("the journal is gone", PUBLISH, remove("run.journal")),
    Cause("the journal is empty", PUBLISH, write("run.journal", "")),
    Cause("another kind of file at the journal's place", PUBLISH, write("run.journal", "hello " * 500)),
    Cause("pages of the journal are damaged", PUBLISH, scrambled("run.journal")),
    Cause("a stored slot was changed and must be sent again", PUBLISH, all_of(FLIPPED, remove("out.ndjson"))),
    Cause("a stored membership was changed", PUBLISH, MOVED),
    Cause("the journal is from a newer wevent", PUBLISH, execute(NEWER)),
    Cause("the journal is a backup", PUBLISH, COPY),
    Cause("the journal is older than its witness file", PUBLISH, OLD),
    Cause("the journal is without its witness file", PUBLISH, remove("run.journal.witness")),
    Cause("a pipe among the stored events", PUBLISH, pipe_at("run.journal.events/0000000001.events")),
    Cause("no journal is named", PUBLISH[:-4], nothing),
    Cause("the journal's folder is missing", changed("run.journal", "no/run.journal"), nothing),
    Cause("a journal in memory", changed("run.journal", ":memory:"), nothing),
    Cause("a folder at the journal's place", changed("run.journal", "folder.journal"), folder_at("folder.journal")),
    Cause("a link that leads to itself at the journal's place", changed("run.journal", "link"), loop("link")),
    Cause("a name that no file can have", changed("out.ndjson", "x" * 300 + ".ndjson"), nothing),
    Cause("an argument that is not UTF-8", (*PUBLISH, "--stream", "\udcff"), nothing),
    Cause("a configuration that is no file", ("publish", "--config", "pipe"), pipe_at("pipe")),
    Cause("a configuration that is too long", ("publish", "--config", "c"), write("c", "#" * (1 << 21))),
    Cause("the events are missing", changed("events.csv", "nowhere.csv"), nothing),
    Cause("a column of the events is missing", PUBLISH, replaced("events.csv", b"user", b"person")),
    Cause("the requirements are missing", PUBLISH, remove("users.csv")),
    Cause("a user is in the requirements twice", PUBLISH, write("users.csv", "user,window,epsilon\n1,4,0.5\n1,8,0.5\n")),
    Cause("a level that is not offered", PUBLISH, write("users.csv", "user,level\n1,Low/Small\n2,low/small\n")),
    Cause("the requirements were cut at the end of a line", PUBLISH, cut("users.csv", 41)),
    Cause("a requirement that was not declared", PUBLISH, replaced("users.csv", b"5,8,", b"5,80,")),
    Cause("the start changed", changed(CLOCK[3], "2026-01-01T00:00:01Z"), nothing),
    Cause("the slot length changed", changed("60s", "2m"), nothing),
    Cause("the cells changed", changed("4", "5"), nothing),
    Cause("starting over where nothing was lost", (*PUBLISH, "--start-over"), nothing),
    Cause("an end before the start", changed(END[1], "2025-01-01T00:00:00Z"), nothing),
    Cause("the mechanism changed", (*PUBLISH, "--mechanism", "pba"), nothing),
    Cause("an output without a format", changed("out.ndjson", "out.txt"), nothing),
    Cause("a Parquet output and a journal that drops slots", (*changed("out.ndjson", "o.parquet"), "--keep", "8"), nothing),
    Cause("the output is an input", changed("out.ndjson", "events.csv"), nothing),
    Cause("the output holds something else", PUBLISH, write("out.ndjson", "hello\n")),
    Cause("the last line of the output was edited", PUBLISH, replaced("out.ndjson", b'"slot":20,', b'"slot": 20,')),
    Cause("the output of another journal", changed("run.journal", "other.journal"), nothing),
    Cause("the output's folder is missing", changed("out.ndjson", "no/out.ndjson"), nothing),
    Cause("--released-through where nothing is to be settled", (*PUBLISH, "--released-through", "15"), nothing),
    Cause("changes of the registry may be lost", PUBLISH, execute(LOST_CHANGES)),
    Cause("the output is a folder", PUBLISH, folder_at("out.ndjson")),
    Cause("a journal that ran with seeded noise", PUBLISH, SEEDED),
    Cause("users: no journal there", ("users", "nowhere.journal", "list"), nothing),
    Cause("users: a damaged registry", (*USERS, "list"), MOVED),
    Cause("users: a backup", SET, COPY),
    Cause("users: a journal that is behind", SET, OLD),
    Cause("users: somebody who is not registered", (*USERS, "remove", "nobody"), nothing),
    Cause("users: somebody who is registered already", (*USERS, "add", "7", "--window", "8", "--epsilon", "0.5"), nothing),
    Cause("users: an empty id", (*USERS, "add", "", "--window", "8", "--epsilon", "0.5"), nothing),
    Cause("users: an id that is not UTF-8", (*USERS, "add", "\udcff", "--window", "8", "--epsilon", "0.5"), nothing),
    Cause("users: an id that no event can have", (*USERS, "add", "x" * 300, "--window", "8", "--epsilon", "0.5"), nothing),
    Cause("users: neither epsilon nor privacy", (*USERS, "add", "new", "--window", "8"), nothing),
    Cause("users: a level that is not offered", (*USERS, "add", "new", "--level", "Hihg/Small"), nothing),
    Cause("users: an import in which many are missing", (*USERS, "import", "users.csv"), cut("users.csv", 50)),
    Cause("backup: something is there already", ("backup", "run.journal", "backup.journal"), nothing),
    Cause("backup: to a pipe", ("backup", "run.journal", "pipe", "--force"), pipe_at("pipe")),
    Cause("backup: a folder that is not there", ("backup", "run.journal", "no/new.journal"), nothing),
    Cause("backup: to the journal itself", ("backup", "run.journal", "run.journal"), nothing),
    Cause("backup: a damaged journal", ("backup", "run.journal", "new.journal"), scrambled("run.journal")),
    Cause("restore: the last slot is not stated", RESTORE[:3], remove("run.journal")),
    Cause("restore: a slot before the last one that went out", (*RESTORE[:4], "15"), remove("run.journal")),
    Cause("restore: a slot before the end of the backup", (*RESTORE[:4], "9"), remove("run.journal", "run.journal.witness")),
    Cause("restore: without witness file and statement", RESTORE, remove("run.journal", "run.journal.witness")),
    Cause("restore: nothing to restore", RESTORE, nothing),
    Cause("restore: no backup there", ("restore", "nowhere.journal", *RESTORE[2:]), nothing),
    Cause("restore: the journal as its own backup", ("restore", "run.journal", *RESTORE[2:]), nothing),
    Cause("restore: a backup of another journal", ("restore", "other.journal", *RESTORE[2:]), remove("run.journal")),
    Cause("restore: a damaged backup", RESTORE, BAD_BACKUP),
    Cause("restore: a backup from a newer wevent", RESTORE, all_of(remove("run.journal"), execute(NEWER, "backup.journal"))),
    Cause("restore: a backup with a log beside it", RESTORE, write("backup.journal-wal", "frames")),
    Cause("status: no journal there", ("status", "nowhere.journal"), nothing),
    Cause("status: a damaged journal", ("status", "run.journal"), scrambled("run.journal")),
    Cause("releases: a stored slot was changed", ("releases", "run.journal"), FLIPPED),
    Cause("releases: over the journal", ("releases", "run.journal", "--out", "run.journal"), nothing),
    Cause("releases: a part, into a file", ("releases", "run.journal", "--to", "5", "--out", "out.ndjson"), nothing),
    Cause("releases: a cell that is not declared", ("releases", "run.journal", "--cells", "1,north"), nothing),
    Cause("releases: to before from", ("releases", "run.journal", "--from", "9", "--to", "3"), nothing),
    Cause("verify: a stored slot was changed", ("verify", "run.journal"), FLIPPED, 1),
    Cause("verify: a stored membership was changed", ("verify", "run.journal"), MOVED, 1),
    Cause("verify: the journal is older than its witness file", ("verify", "run.journal"), OLD, 1),
    Cause("verify: no journal there", ("verify", "nowhere.journal"), nothing),
    Cause("verify: pages are damaged", ("verify", "run.journal"), scrambled("run.journal")),
]  # fmt: skip


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal and an output with 20 slots, a backup and a plain copy that end with slot 10, another journal."""
    folder = tmp_path_factory.mktemp("template")
    write_stream(folder)
    assert publish(folder, 10).code == 0
    assert call(folder, "backup", "run.journal", "backup.journal").code == 0
    shutil.copy(folder / "run.journal", folder / "old.journal")
    assert publish(folder, 15).code == 0  # a copy that lacks one transaction only gets it from the witness
    assert publish(folder, 20).code == 0
    assert publish(folder, 3, journal="other.journal", out="other.ndjson").code == 0
    return folder


def provoke(cause: Cause, template: Path, folder: Path) -> Done:
    shutil.copytree(template, folder, dirs_exist_ok=True)
    cause.bring(folder)
    return call(folder, *cause.command)


def sentence(done: Done, folder: Path) -> str:
    """What was said, without what differs from machine to machine."""
    lines = (done.err if done.code in (2, 75) else done.out).splitlines()
    said = [line for line in lines if line.startswith(("Error: ", "VIOLATION "))]
    assert said, done
    text = said[0].removeprefix("Error: ").replace(f"{folder.resolve()}/", "").replace(str(folder.resolve()), ".")
    return without_address(re.sub(r"process \d+ on \S+ since [^ ]+Z", "process PID on HOST since TIME", text))


def row(cause: Cause | DatabaseCause, text: str) -> str:
    return f"| {cause.what} | `{cause.command[0]}` | {text.replace('|', chr(92) + '|')} | {cause.code} |"


@pytest.fixture(scope="module")
def page() -> list[str]:
    return PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else []


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.what)
def test_every_cause_has_its_sentence(cause: Cause, template: Path, tmp_path: Path, page: list[str]) -> None:
    before = {one: one.read_bytes() for one in template.iterdir()}
    done = provoke(cause, template, tmp_path)
    assert done.code == cause.code, done
    assert "Traceback" not in done.err
    assert done.err.count("Error:") == (1 if cause.code == 2 else 0), done
    assert {one: one.read_bytes() for one in before} == before
    if "WEVENT_WRITE_DOCS" not in os.environ:
        assert row(cause, sentence(done, tmp_path)) in page


def test_a_held_journal(template: Path, tmp_path: Path, page: list[str]) -> None:
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    lock = lock_witness(tmp_path / "run.journal")
    try:
        for cause in HELD:
            done = call(tmp_path, *cause.command)
            assert done.code == 2, done
            if "WEVENT_WRITE_DOCS" not in os.environ:
                assert row(cause, sentence(done, tmp_path)) in page
    finally:
        lock.close()


@pytest.mark.parametrize("cause", [*DATABASE_CAUSES, HELD_DATABASE], ids=lambda cause: cause.what)
def test_every_cause_in_a_database(cause: DatabaseCause, tmp_path: Path, page: list[str]) -> None:
    write_stream(tmp_path)
    done = provoke_in_database(cause, tmp_path)
    assert done.code == cause.code, done
    assert "Traceback" not in done.err
    assert done.err.count("Error:") == (1 if cause.code in (2, 75) else 0), done
    if "WEVENT_WRITE_DOCS" not in os.environ:
        assert row(cause, sentence(done, tmp_path)) in page


HELD = [
    Cause("somebody publishes into the journal", PUBLISH, nothing),
    Cause("restore: somebody publishes into the journal", RESTORE, nothing),
]


def test_the_page_has_no_other_rows(template: Path, tmp_path: Path, page: list[str]) -> None:
    if "WEVENT_WRITE_DOCS" in os.environ:
        write_page(template, tmp_path)
        return
    rows = [line for line in page if line.startswith("| ") and not line.startswith("| cause")]
    assert len(rows) == len(CAUSES) + len(HELD) + len(DATABASE_CAUSES) + 1


def write_page(template: Path, place: Path) -> None:
    lines = [
        "# Failures",
        "",
        "What goes wrong, what is said about it, and the exit code. Made by `tests/fault/test_failures_table.py`, which",
        "provokes every row with the real command (`WEVENT_WRITE_DOCS=1` writes this page). The stream there has 60",
        "users and 20 slots; its backup ends with slot 10. Nothing is drawn or sent in any of these cases.",
        "",
        "| cause | command | what is said | exit code |",
        "|---|---|---|---|",
    ]
    for number, cause in enumerate(CAUSES):
        folder = place / str(number)
        lines.append(row(cause, sentence(provoke(cause, template, folder), folder)))
    folder = place / "held"
    shutil.copytree(template, folder)
    lock = lock_witness(folder / "run.journal")
    lines += [row(cause, sentence(call(folder, *cause.command), folder)) for cause in HELD]
    lock.close()
    for number, named in enumerate((*DATABASE_CAUSES, HELD_DATABASE)):
        folder = place / f"database{number}"
        folder.mkdir()
        write_stream(folder)
        lines.append(row(named, sentence(provoke_in_database(named, folder), folder)))
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
