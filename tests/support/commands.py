"""The real commands on a small stream: 60 users in four cells, a minute per slot, from files or live lines."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import wevent
from wevent.cli import main

START = "2026-01-01T00:00:00Z"
CLOCK = ("--slot", "60s", "--start", START)
PEOPLE = ("--requirements", "users.csv", "--cells", "4")
RunCommand = Callable[..., tuple[int, str, str]]
"""Runs a command in process; returns its exit code and what it printed."""

PATIENCE_S = 600.0
"""Limit of every wait of a test, far above what a busy machine needs: only a test that fails reaches it."""


class Done:
    """How a command ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out[-800:]}\n{self.err[-2000:]}"


def write_stream(folder: Path, minutes: int = 30) -> None:
    """users.csv and events.csv."""
    users = ["user,window,epsilon", *(f"{user},{4 + 4 * (user % 2)},0.{5 + user % 3}" for user in range(60))]
    (folder / "users.csv").write_text("\n".join(users) + "\n")
    events = ["time,user,cell"]
    for minute in range(minutes):
        events += [
            f"2026-01-01T00:{minute:02d}:{user % 60:02d}Z,{user},{(user + minute) % 4}" for user in range(0, 60, 2)
        ]
    (folder / "events.csv").write_text("\n".join(events) + "\n")


def start(folder: Path, *arguments: str, **more: object) -> subprocess.Popen[str]:
    """A command as a process of its own, of the wevent that is under test."""
    environment = {**os.environ, "PYTHONPATH": str(Path(wevent.__file__).parents[1])}
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    command = [sys.executable, "-m", "wevent.cli", *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, **streams)  # type: ignore[call-overload,no-any-return]


def run(folder: Path, *arguments: str, **more: object) -> Done:
    """A command as a process of its own, to its end."""
    child = start(folder, *arguments, **more)
    out, err = child.communicate(timeout=PATIENCE_S)
    return Done(child.returncode, out or "", err or "")


def call(folder: Path, *arguments: str) -> Done:
    """A command in this process: quicker, where nothing depends on the process."""
    out, err, before = io.TextIOWrapper(io.BytesIO()), io.StringIO(), Path.cwd()
    code = 0
    os.chdir(folder)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main(arguments)
    except SystemExit as done:
        code = int(done.code or 0)
    finally:
        os.chdir(before)
    out.seek(0)
    return Done(code, out.read(), err.getvalue())


def publish(folder: Path, minutes: int, *more: str, journal: str = "run.journal", out: str = "out.ndjson") -> Done:
    """Publish the first minutes of events.csv."""
    end = ("--end", f"2026-01-01T00:{minutes:02d}:00Z")
    command = run if out == "-" else call
    return command(folder, "publish", "events.csv", *CLOCK, *end, *PEOPLE, "--journal", journal, "--out", out, *more)


def live(*more: str, journal: str = "run.journal") -> tuple[str, ...]:
    """The arguments of a live run whose slots are closed by lines."""
    return ("publish", "-", *CLOCK, "--close-slots-by", "lines", *PEOPLE, "--journal", journal, *more)


def event(second: float, user: object, cell: object = 1) -> str:
    """A live line."""
    return json.dumps({"time": _time(second), "user": user, "cell": cell}) + "\n"


def close(second: float) -> str:
    """A live line that closes what ended by then."""
    return json.dumps({"close": _time(second)}) + "\n"


def send(child: subprocess.Popen[str], *lines: str) -> None:
    """Write lines to a live run."""
    assert child.stdin is not None
    child.stdin.write("".join(lines))
    child.stdin.flush()


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


def slots_of(path: Path) -> list[int]:
    """The slots in an NDJSON file of releases, whole lines only."""
    if not path.exists():
        return []
    text = path.read_bytes()
    return [json.loads(line)["slot"] for line in text[: text.rfind(b"\n") + 1].splitlines()]


def _time(second: float) -> str:
    whole, part = divmod(round(second * 1_000_000), 1_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_767_225_600 + whole)) + f".{part:06d}Z"
