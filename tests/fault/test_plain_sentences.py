"""What an operator can do wrong ends in one sentence and exit code 2; never in a traceback, never in exit code 1."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import wevent
from tests.support.commands import (
    CLOCK,
    PATIENCE_S,
    PEOPLE,
    START,
    Done,
    call,
    close,
    event,
    live,
    publish,
    run,
    slots_of,
    start,
    write_stream,
)

COMMANDS = {
    "verify": ("verify", "run.journal"),
    "verify --json": ("verify", "run.journal", "--json"),
    "status": ("status", "run.journal"),
    "statement": ("status", "run.journal", "--statement"),
    "releases": ("releases", "run.journal"),
    "releases csv": ("releases", "run.journal", "--format", "csv"),
    "users": ("users", "run.journal", "export"),
    "levels": ("levels", "run.journal"),
    "publish": ("publish", "events.csv", *CLOCK, *PEOPLE, "--end", "2026-01-01T00:07:00Z", "--journal", "run.journal"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_stream(tmp_path)
    return tmp_path


@pytest.fixture
def used(folder: Path) -> Path:
    assert publish(folder, 5).code == 0
    return folder


def assert_plain(done: Done, code: int = 2) -> None:
    assert done.code == code, done
    assert "Traceback" not in done.err
    assert "Exception ignored" not in done.err
    assert done.err.count("Error:") == (1 if code else 0), done


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_standard_output(used: Path, command: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = run(used, *COMMANDS[command], stdout=full)
    assert_plain(done, 2 if "do not run the command again" in done.err else 75)
    assert "standard output" in done.err.lower()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_has_gone(used: Path, command: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run(used, *COMMANDS[command], stdout=writing)
    finally:
        os.close(writing)
    assert_plain(done, 2 if command == "publish" else 0)
    if command != "publish":
        assert done.err == "" or "users;" in done.err


def test_a_verdict_does_not_depend_on_the_reader(used: Path) -> None:
    import apsw

    with apsw.Connection(str(used / "run.journal")) as database:
        database.execute("UPDATE slots SET chain = zeroblob(32) WHERE slot = 2")
    reading, writing = os.pipe()
    os.close(reading)
    assert run(used, "verify", "run.journal", stdout=writing).code == 1
    os.close(writing)


@pytest.mark.parametrize(
    "command",
    [
        *COMMANDS.values(),
        ("users", "run.journal", "list"),
        ("users", "run.journal", "list", "--json"),
        ("backup", "run.journal", "copy.journal"),
        ("doctor",),
        ("mechanisms",),
        ("mechanisms", "--json"),
        ("--help",),
    ],
    ids=" ".join,
)
def test_a_closed_standard_output(used: Path, command: tuple[str, ...]) -> None:
    """Nobody can have read it: also a verdict without a finding is not exit code 0."""
    shell = " ".join([sys.executable, "-m", "wevent.cli", *command, ">&-"])
    environment = {**os.environ, "PYTHONPATH": str(Path(wevent.__file__).parents[1])}
    done = subprocess.run(shell, shell=True, cwd=used, env=environment, capture_output=True, text=True, check=False)
    assert_plain(Done(done.returncode, "", done.stderr))
    assert "standard output" in done.stderr.lower()
    assert call(used, "verify", "run.journal").code == 0


def test_a_closed_standard_output_that_nothing_is_printed_to(used: Path) -> None:
    shell = " ".join([sys.executable, "-m", "wevent.cli", *COMMANDS["publish"], "--out", "out.ndjson", ">&-"])
    environment = {**os.environ, "PYTHONPATH": str(Path(wevent.__file__).parents[1])}
    done = subprocess.run(shell, shell=True, cwd=used, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    assert slots_of(used / "out.ndjson") == [1, 2, 3, 4, 5, 6, 7]


def test_what_was_not_seen_is_sent_again(used: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        assert run(used, *COMMANDS["publish"], stdout=full).code == 75
    done = run(used, *COMMANDS["publish"])
    assert done.code == 0
    (used / "seen.ndjson").write_text(done.out)
    assert slots_of(used / "seen.ndjson") == [6, 7]


@pytest.mark.parametrize("most", [0, 100, 4096, 8000, 12_000, 30_000, 36_000, 60_000])
def test_a_first_start_without_room(folder: Path, most: int) -> None:
    """A limit on the size of files: a disk that is full at the start, after the witness file, in the first slot."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most})); "
        "from wevent.cli import main; main(sys.argv[1:])"
    )
    arguments = [*COMMANDS["publish"], "--out", "out.ndjson"]
    environment = {**os.environ, "PYTHONPATH": str(Path(wevent.__file__).parents[1])}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert_plain(Done(done.returncode, done.stdout, done.stderr), 75)  # a full disk may pass
    seen = (folder / "out.ndjson").read_bytes() if (folder / "out.ndjson").exists() else b""
    again = run(folder, *arguments)
    assert again.code == 0, again
    assert (folder / "out.ndjson").read_bytes().startswith(seen)
    assert slots_of(folder / "out.ndjson") == [1, 2, 3, 4, 5, 6, 7]
    assert call(folder, "verify", "run.journal").code == 0


def test_files_after_live_lines_and_live_lines_after_files(folder: Path) -> None:
    child = start(folder, *live("--out", "out.ndjson"), stdin=subprocess.PIPE)
    _, err = child.communicate(event(1, 1) + close(120), timeout=PATIENCE_S)
    assert child.returncode == 0, err
    assert publish(folder, 4).code == 0
    child = start(folder, *live("--out", "out.ndjson"), stdin=subprocess.PIPE)
    _, err = child.communicate(event(241, 1) + close(300), timeout=PATIENCE_S)
    assert child.returncode == 0, err
    assert slots_of(folder / "out.ndjson") == [1, 2, 3, 4, 5]
    assert call(folder, "verify", "run.journal").code == 0


@pytest.mark.parametrize("journal", [":memory:", "."])
def test_a_journal_that_is_nowhere(folder: Path, journal: str) -> None:
    done = publish(folder, 3, journal=journal)
    assert_plain(done)
    assert sorted(one.name for one in folder.iterdir()) == ["events.csv", "users.csv"]
    assert_plain(call(folder, "status", journal))


@pytest.mark.parametrize("cells", ["1000000000000", "10000001", "0"])
def test_more_cells_than_there_can_be(folder: Path, cells: str) -> None:
    done = publish(folder, 3, "--cells", cells)
    assert_plain(done)
    assert "cells" in done.err


@pytest.mark.parametrize(
    "levels",
    [
        "levels = 3",
        "[levels]\nprivacy = 3\nwindow = {a = 1}",
        '[levels]\nprivacy = ["x"]\nwindow = ["y"]',
        "[levels]\nprivacy = {}\nwindow = {}",
        "[levels]\nprivacy = {High = true}\nwindow = {S = 4}",
        '[levels]\nprivacy = {High = 1}\nwindow = {S = "a while"}',
        '[levels]\nprivacy = {High = 1}\nwindow = {S = "0h"}',
        "[levels]\nprivacy = {High = 1}\nwindow = {S = 4}\ncombined = {x = 3}",
        '[levels]\nprivacy = {High = 1}\nwindow = {S = 4}\ncombined = {x = "Low/S"}',
        '[levels]\nprivacy = {High = 1}\nwindow = {S = 4}\ncombined = {"x/y" = "High/S"}',
        '[levels]\nprivacy = {"a/b" = 1}\nwindow = {S = 4}',
        "requirements_columns = 3",
        "requirements_columns = {user = 3}",
        'requirements_columns = {usr = "id"}',
        'requirements_columns = {user = "id", level = "id"}',
        "[levels]\nprivacy = {High = [1]}\nwindow = {S = 4}",
        "[levels]\nprivacy = {High = 0.5}\nwindow = {S = '4'}",
        "[levels]\nprivacy = {High = 0.5}",
        "[levels]\nprivacy = {High = nan}\nwindow = {S = {a = 1}}",
        "[[levels]]\nprivacy = 1",
    ],
)
def test_malformed_levels(folder: Path, levels: str) -> None:
    (folder / "levels.toml").write_text(levels)
    done = publish(folder, 3, "--config", "levels.toml")
    assert_plain(done)
    assert not (folder / "run.journal").exists()


def test_a_closed_standard_input(folder: Path) -> None:
    shell = " ".join([sys.executable, "-m", "wevent.cli", *live(), "<&-"])
    environment = {**os.environ, "PYTHONPATH": str(Path(wevent.__file__).parents[1])}
    done = subprocess.run(shell, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert_plain(Done(done.returncode, "", done.stderr))
    assert START in " ".join(live())
