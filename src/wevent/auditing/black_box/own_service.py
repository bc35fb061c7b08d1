"""A service of the audit's own: `wevent serve` with a small stream, for as long as a block lasts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
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
stream = "challenge"
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
_CELLS = [f"cell-{place}" for place in range(40)]


@contextmanager
def own_service(mechanism: str, options: Mapping[str, Any]) -> Iterator[Client]:
    """A client of a service that is there for this block, with all the rights it needs.

    Raises:
        InvalidOption: if the service does not start.
    """
    path = os.pathsep.join((str(Path(wevent.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])))
    environment = {**os.environ, "PYTHONPATH": path}
    with tempfile.TemporaryDirectory(prefix="wevent-challenge-") as name:
        folder = Path(name)
        lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in options.items() if value is not None)
        text = _CONFIGURATION.format(cells=json.dumps(_CELLS), mechanism=json.dumps(mechanism), options=lines)
        (folder / "wevent.toml").write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "wevent"]
        rights = ["--role", "ingest", "--role", "enrol", "--role", "read"]
        token = subprocess.run(
            [*command, "--quiet", "token", "--config", "wevent.toml", "create", *rights],
            cwd=folder,
            env=environment,
            check=False,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout.strip()
        process = subprocess.Popen(
            [*command, "serve", "--config", "wevent.toml"],
            cwd=folder,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            with Client(_address(process), token=token) as client:
                client.wait_until_ready()
                yield client
        finally:
            process.terminate()
            process.communicate(timeout=60)


def _address(process: subprocess.Popen[str]) -> str:
    """Where it listens: it says so when it does."""
    said = ""
    for line in process.stderr or ():
        said += line
        found = re.search(r"Serving (http://\S+)", line)
        if found:
            return found[1]
    raise InvalidOption(
        "a service that starts", said.strip()[-300:] or "none", "Try wevent serve by hand.", option="audits"
    )
