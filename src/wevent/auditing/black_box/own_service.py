"""A service of the audit's own: `wevent serve` with a small stream, for as long as a block lasts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import wevent
from wevent.client import Client
from wevent.errors import InvalidOption

_CONFIGURATION = """\
slot = "500ms"
grace = "200ms"
cells = {cells}
journal = "run.journal"
stream = "audit"
mechanism = {mechanism}
{options}
[levels.privacy]
Low = 1.0
[levels.window]
Small = 2
[service]
listen = "127.0.0.1:0"
requests_per_minute = 0
"""
_SAID = "said.log"
_START_S, _STOP_S = 60.0, 30.0  # for a service to start, and to stop before it is killed
_CELLS = [f"cell-{place}" for place in range(40)]


@contextmanager
def own_service(mechanism: str, options: Mapping[str, Any], *, module: str = "wevent") -> Iterator[Client]:
    """A client of a service that is there for this block, with all the rights it needs.

    Args:
        mechanism: by its name, as every process knows it.
        options: of a publisher.
        module: what `python -m` runs.

    Raises:
        InvalidOption: if the service does not start, or makes no token.
    """
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in options.items() if value is not None)
    text = _CONFIGURATION.format(cells=json.dumps(_CELLS), mechanism=json.dumps(mechanism), options=lines)
    with tempfile.TemporaryDirectory(prefix="wevent-audit-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "wevent.toml").write_text(text, encoding="utf-8")
        token = _token(module, folder)
        with _running(module, folder) as process, Client(_address(process, folder / _SAID), token=token) as client:
            client.wait_until_ready()
            yield client


def _environment() -> dict[str, str]:
    """With the wevent that is at work here, whatever else is installed."""
    path = os.pathsep.join((str(Path(wevent.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])))
    return {**os.environ, "PYTHONPATH": path}


def _token(module: str, folder: Path) -> str:
    """One with the roles of the audit."""
    rights = ["--role", "ingest", "--role", "enrol", "--role", "read"]
    command = [sys.executable, "-m", module, "--quiet", "token", "--config", "wevent.toml", "create", *rights]
    try:
        done = subprocess.run(
            command, cwd=folder, env=_environment(), check=False, capture_output=True, text=True, timeout=_START_S
        )
    except subprocess.TimeoutExpired:
        raise _failed("a token for a service", "", "wevent token create") from None
    if done.returncode:
        raise _failed("a token for a service", done.stderr, "wevent token create")
    return done.stdout.strip()


@contextmanager
def _running(module: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The service; what it says goes to a file, since a pipe that nobody reads would block it."""
    with (folder / _SAID).open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", module, "serve", "--config", "wevent.toml"],
            cwd=folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:  # the verdict does not depend on how it stops
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[bytes], said: Path) -> str:
    """Where it listens: it says so when it does."""
    late = time.monotonic() + _START_S
    while True:
        is_over = process.poll() is not None or time.monotonic() > late  # first: what it says last is read below
        text = said.read_text(encoding="utf-8", errors="replace")
        if found := re.search(r"Serving (http://\S+)\s", text):
            return found[1]
        if is_over:
            raise _failed("a service that starts", text, "wevent serve")
        time.sleep(0.05)


def _failed(expected: str, said: str, command: str) -> InvalidOption:
    received = said.strip()[-300:] or f"nothing, waited for {_START_S:g} s at most"
    return InvalidOption(expected, received, f"Try {command} by hand.", option="audits")
