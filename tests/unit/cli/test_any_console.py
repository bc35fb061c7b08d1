"""Every command on consoles that lack our signs, in narrow ones, and where no colours are wanted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import write_stream
from tests.support.small_stream import arguments_through

pytestmark = pytest.mark.slow

FEW = ("--repeats", "2", "--slots", "20", "--mechanisms", "pbu,uniform")
COMMANDS = {
    "publish": ("publish", *arguments_through(8), "--json"),
    "check": ("check", *arguments_through(12)),
    "status": ("status", "run.journal"),
    "verify": ("verify", "run.journal"),
    "levels": ("levels", "run.journal"),
    "releases": ("releases", "run.journal", "--from", "5"),
    "users": ("users", "run.journal", "list"),
    "export": ("users", "run.journal", "export"),
    "plan": ("plan", "--class", "4:1=500", "--class", "8:0.5=100", *FEW),
    "compare": ("compare", "--users", "100", "--stream", "log", *FEW),
    "demo": ("demo", "--users", "100", "--slots", "10"),
    "mechanisms": ("mechanisms",),
    "doctor": ("doctor",),
    "help": ("compare", "--help"),
    "mistake": ("status", "µε…"),
}
ENCODINGS = {
    "cp1252": {"PYTHONIOENCODING": "cp1252"},
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "cp437": {"PYTHONIOENCODING": "cp437"},
    "C": {"LANG": "C", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
}
SLOW = ("check", "plan", "compare", "demo")
NUMBER = re.compile(r"\d[\d,.]*")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("console")
    write_stream(folder)
    with (folder / "users.csv").open("a", encoding="utf-8") as file:
        file.write("Jürgen 日本,4,0.5\n")
    assert call(folder, "publish", *arguments_through(7), "-q").returncode == 0
    return folder


def call(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    return subprocess.run(
        [sys.executable, "-m", "wevent.cli", *arguments],
        cwd=folder,
        env={**kept, **environment},
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        (name, encoding)
        for name in COMMANDS
        for encoding in ENCODINGS
        if encoding in ("cp1252", "ascii") or name not in SLOW
    ],
)
def test_no_console_ends_a_command(folder: Path, name: str, encoding: str) -> None:
    done = call(folder, *COMMANDS[name], **ENCODINGS[encoding])
    assert b"Traceback" not in done.stderr, done.stderr.decode("latin-1")
    assert done.returncode == (2 if name == "mistake" else 0), done.stderr.decode("latin-1")
    assert b"\x1b" not in done.stdout + done.stderr  # no control codes where no terminal is
    if encoding == "ascii" and name != "export":
        assert (done.stdout + done.stderr).isascii()


def test_data_are_utf8_on_any_console(folder: Path) -> None:
    exported = call(folder, "users", "run.journal", "export", PYTHONIOENCODING="ascii").stdout.decode("utf-8")
    assert "Jürgen 日本,4,0.5,\n" in exported
    listed = call(folder, "users", "run.journal", "list", PYTHONIOENCODING="ascii").stdout.decode("ascii")
    assert "J\\xfcrgen \\u65e5\\u672c  window 4" in listed


@pytest.mark.parametrize("name", ["check", "status", "verify", "levels", "plan", "compare", "demo", "mechanisms"])
def test_tables_fit_and_no_number_is_cut(folder: Path, name: str) -> None:
    wide = call(folder, *COMMANDS[name], COLUMNS="200").stdout.decode()
    for columns in (80, 60):
        narrow = call(folder, *COMMANDS[name], COLUMNS=str(columns)).stdout.decode()
        assert "…" not in narrow
        rows = [line for line in narrow.splitlines() if line.startswith(" ")]  # sentences are wrapped by the terminal
        assert max(map(len, rows), default=0) <= columns
        if name not in ("compare", "demo"):  # whose times and secure noise differ from run to run
            assert sorted(set(NUMBER.findall(wide))) == sorted(set(NUMBER.findall(narrow)))


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_no_color_is_heeded_on_a_terminal(folder: Path, environment: dict[str, str], coloured: bool) -> None:
    import pty

    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "wevent.cli", *COMMANDS["compare"]],
        cwd=folder,
        env={**os.environ, "TERM": "xterm-256color", **environment},
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    printed = b""
    try:
        while part := os.read(ours, 4096):
            printed += part
    except OSError:  # the terminal is closed when the command ends
        pass
    assert child.wait() == 0
    os.close(ours)
    colours = re.findall(rb"\x1b\[[\d;]*3[0-8](?:;[\d;]*)?m", printed)
    assert bool(colours) is coloured
