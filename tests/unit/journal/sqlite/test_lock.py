"""Where the system has no locks that keep a second writer out, journals can be read and not written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import wevent
from tests.support.commands import Done, publish, write_stream

pytestmark = pytest.mark.slow

_HIDDEN = "import sys; sys.modules['fcntl'] = None; from wevent.cli import main; main(sys.argv[1:])"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_stream(tmp_path, minutes=6)
    assert publish(tmp_path, 5).code == 0
    return tmp_path


def without_locks(folder: Path, *arguments: str) -> Done:
    """A command on a system without `fcntl`."""
    environment = {**os.environ, "PYTHONPATH": str(Path(wevent.__file__).parents[1])}
    command = [sys.executable, "-c", _HIDDEN, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def test_a_journal_is_read(folder: Path) -> None:
    assert without_locks(folder, "releases", "run.journal").out == (folder / "out.ndjson").read_text()
    assert "writer: none" in without_locks(folder, "status", "run.journal").out
    assert without_locks(folder, "verify", "run.journal").code == 0
    assert without_locks(folder, "backup", "run.journal", "copy.journal").code == 0


@pytest.mark.parametrize("journal", ["run.journal", "new.journal"])
def test_it_is_not_written(folder: Path, journal: str) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    command = (
        "publish",
        "events.csv",
        "--slot",
        "60s",
        "--start",
        "2026-01-01T00:00:00Z",
        "--end",
        "2026-01-01T00:06:00Z",
    )
    more = ("--requirements", "users.csv", "--cells", "4", "--journal", journal, "--out", "out.ndjson")
    done = without_locks(folder, *command, *more)
    assert done.code == 2
    assert "Linux or macOS" in done.err
    assert "Traceback" not in done.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
