"""The real service as a process of its own, with short slots; for tests that talk to it over a socket."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support import commands
from tests.support.commands import PATIENCE_S, wait_for

CONFIGURATION = """
slot = "{slot}"
cells = "{cells}"
journal = "run.journal"
mechanism = "pbd"
[levels.privacy]
High = 0.1
Low = 0.9
[levels.window]
Small = 4
Large = 8
[service]
listen = "127.0.0.1:0"
requests_per_minute = 0
{service}
"""


@dataclass
class ServiceProcess:
    """A service that runs."""

    folder: Path
    child: subprocess.Popen[str]
    address: str
    tokens: dict[str, str]

    def __post_init__(self) -> None:
        self.client = httpx.Client(base_url=self.address, timeout=PATIENCE_S)

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def header(self, role: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[role]}"}

    def ask(self, method: str, path: str, role: str | None = "admin", **more: Any) -> httpx.Response:
        headers = {**(self.header(role) if role else {}), **more.pop("headers", {})}
        return self.client.request(method, path, headers=headers, **more)

    def send(self, events: list[dict[str, Any]], batch: str | None = None) -> dict[str, Any]:
        """Send a batch that must be taken."""
        lines = "".join(json.dumps(event) + "\n" for event in events)
        headers = {"Content-Type": "application/x-ndjson", **({"Idempotency-Key": batch} if batch else {})}
        answer = self.ask("POST", "/v1/events", "ingest", content=lines, headers=headers)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def committed(self) -> int:
        return int(self.ask("GET", "/v1/about").json()["committed"])

    def wait_for(self, slot: int) -> None:
        """Until a slot is released."""
        wait_for(lambda: self.committed() >= slot, f"slot {slot}")

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """End it; its exit code and what it said on standard error."""
        self.client.close()
        self.child.send_signal(number)
        said = self.child.communicate(timeout=PATIENCE_S)[1]
        return self.child.returncode, said


def configure(
    folder: Path, slot: str = "300ms", service: str = "", top: str = "", cells: str = "north,south,east,west"
) -> None:
    (folder / "wevent.toml").write_text(top + CONFIGURATION.format(slot=slot, service=service, cells=cells))


def make_tokens(folder: Path) -> dict[str, str]:
    tokens = {}
    for role in ("ingest", "enrol", "read", "admin"):
        done = commands.call(folder, "token", "--config", "wevent.toml", "create", "--role", role)
        assert done.code == 0, done
        tokens[role] = done.out.strip()
    return tokens


def start(folder: Path, *more: str) -> ServiceProcess:
    """Start a service in a folder that is configured; returns once it listens."""
    tokens_file = folder / "tokens.json"
    if not tokens_file.exists():
        tokens_file.write_text(json.dumps(make_tokens(folder)))
    child = commands.start(folder, "serve", "--config", "wevent.toml", *more)
    assert child.stderr is not None
    said = ""
    while not (found := re.search(r"Serving (http://\S+)", said)):
        line = child.stderr.readline()
        assert line, f"it did not start: {said}"
        said += line
    return ServiceProcess(folder, child, found[1], json.loads(tokens_file.read_text()))


@contextmanager
def running(folder: Path, *more: str) -> Iterator[ServiceProcess]:
    """A service for the length of a block; it is ended however the block ends."""
    service = start(folder, *more)
    try:
        yield service
    finally:
        if service.child.poll() is None:
            service.child.kill()
            service.child.wait()
        for stream in (service.child.stdout, service.child.stderr):
            if stream is not None:
                stream.close()
        service.client.close()
