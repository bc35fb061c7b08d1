"""Modules that one event crosses on its way: from a line to its release, from a POST to its reply and to its release.

`python -m benchmarks trace` measures this clone. Two real processes, `wevent publish -` and `wevent serve`, run under a
profile hook that notes the time and the module of every call of a function of wevent. The first slot or request is for
start-up. The calls that count lie between sending the second and seeing its result. A switch is a call of a function by
a function of another module.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import report

ROOT = Path(__file__).parents[1]
CONFIGURATION = """\
slot = "{slot}"
{start}
cells = 4
out = "{out}"
journal = "run.journal"
requirements = "requirements.csv"

[service]
listen = "127.0.0.1:0"
"""
_HOOK = """\
import atexit, json, sys, threading, time
calls = []
def hook(frame, event, argument):
    if event == "call" and (module := frame.f_globals.get("__name__", "")).startswith("wevent"):
        caller = frame.f_back
        while caller is not None and not caller.f_globals.get("__name__", "").startswith("wevent"):
            caller = caller.f_back
        calls.append((time.monotonic(), caller and caller.f_globals["__name__"], module))
def write():
    sys.setprofile(None)
    with open("calls.json", "w") as out:
        json.dump(calls, out)
atexit.register(write)
threading.setprofile(hook)
sys.setprofile(hook)
from wevent.cli import main
main()
"""


class Traced:
    """A command of wevent under the profile hook, in a folder of its own."""

    def __init__(self, folder: Path, source: Path, *arguments: str) -> None:
        self._folder = folder
        (folder / "requirements.csv").write_text("user,window,epsilon\nann,4,1\nbob,8,0.5\n")
        self.process = subprocess.Popen(
            [sys.executable, "-c", _HOOK, *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def send(self, *lines: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("".join(json.dumps(line) + "\n" for line in lines))
        self.process.stdin.flush()

    def read_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def crossed(self, since: float, until: float) -> tuple[list[str], int]:
        """End the command; return the modules and the number of switches between two moments."""
        self.process.terminate()
        self.process.communicate()
        calls = json.loads((self._folder / "calls.json").read_text())
        within = [(caller, module) for moment, caller, module in calls if since <= moment <= until]
        return sorted({module for _, module in within}), sum(1 for caller, module in within if caller != module)


def trace_event(folder: Path, source: Path) -> tuple[list[str], int]:
    """Trace one line of standard input until its slot is released."""
    start = 'start = "2026-01-01T00:00:00Z"'
    (folder / "wevent.toml").write_text(CONFIGURATION.format(slot="1min", start=start, out="-"))
    command = Traced(folder, source, "publish", "-", "--close-slots-by", "lines")
    since = 0.0
    for minute in range(2):
        time.sleep(1)  # what the first release leaves to do is not part of the second
        since = time.monotonic()
        command.send(
            {"time": f"2026-01-01T00:0{minute}:10Z", "user": "ann", "cell": 1},
            {"close": f"2026-01-01T00:0{minute + 1}:00Z"},
        )
        command.read_line()
    return command.crossed(since, time.monotonic())


def trace_post(folder: Path, source: Path) -> tuple[list[str], int]:
    """Trace one batch of one event until its reply."""
    service, url, token = _start_service(folder, source, "1h")
    since = 0.0
    for _ in range(2):
        since = time.monotonic()
        _post(url, token)
    return service.crossed(since, time.monotonic())


def trace_posted_event(folder: Path, source: Path) -> tuple[list[str], int]:
    """Trace one batch of one event until its slot is released."""
    service, url, token = _start_service(folder, source, "2s")
    releases = folder / "releases.ndjson"
    since = 0.0
    for _ in range(2):
        since = time.monotonic()
        _post(url, token)
        released = _lines(releases)
        while _lines(releases) < released + 2:  # at the second one the slot of the event is surely among them
            time.sleep(0.05)
    return service.crossed(since, time.monotonic())


def _lines(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0


def _start_service(folder: Path, source: Path, slot: str) -> tuple[Traced, str, str]:
    """Start a service; return it, the address that takes events and a token for it."""
    (folder / "wevent.toml").write_text(CONFIGURATION.format(slot=slot, start="", out="releases.ndjson"))
    create = [sys.executable, "-m", "wevent", "token", "run.journal", "create", "--role", "ingest"]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    token = subprocess.run(create, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout
    service = Traced(folder, source, "serve")
    assert service.process.stderr is not None
    address = next(word for line in service.process.stderr for word in line.split() if word.startswith("http://"))
    return service, address.rstrip("/.,") + "/v1/events", token.split()[-1]


def _post(url: str, token: str) -> None:
    """Send one event; try again while the service starts."""
    event = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "user": "ann", "cell": 1}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-ndjson"}
    request = urllib.request.Request(url, json.dumps(event).encode() + b"\n", headers)
    for attempt in range(50):
        try:
            with urllib.request.urlopen(request, timeout=60):
                return
        except urllib.error.URLError:
            if attempt == 49:
                raise
            time.sleep(0.2)


def main(arguments: Sequence[str] = ()) -> None:
    """Trace all three paths through the source tree that is named, or this clone's."""
    source = Path(arguments[0]) if arguments else ROOT / "src"
    rows = []
    for name, trace in (
        ("line to release", trace_event),
        ("POST to reply", trace_post),
        ("POST to release", trace_posted_event),
    ):
        with tempfile.TemporaryDirectory() as folder:
            modules, switches = trace(Path(folder), source)
        rows.append({"path": name, "modules": len(modules), "switches": switches, "names": ", ".join(modules)})
    report.write("trace", "Modules that an event crosses", rows)


if __name__ == "__main__":
    main(sys.argv[1:])
