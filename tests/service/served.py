"""A real `wevent serve` on a small stream of its own: invented people, slots of a second, events that are sent to it."""

from __future__ import annotations

import json
import random
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.commands import PATIENCE_S, call, start, wait_for
from wevent.core.requirements import Levels

CELLS = ("University", "Market", "Harbour", "Station", "Old town", "Park")
PEOPLE = 90
LEVELS = Levels(privacy={"High": "0.5", "Medium": "1.0", "Low": "2.0"}, window={"Small": 4, "Medium": 8, "Large": 12})
"""So small that a test can wait until an earlier choice ends."""


class Served:
    """A stream in a folder, and the process that serves it, if one runs.

    Args:
        folder: an empty one.
        cells: the labels.
        slot: how long a slot is.
        ago: how long before now the first slot begins.
        public: whether releases are for everybody.
        levels: what people choose from; small windows, unless told.
    """

    def __init__(
        self,
        folder: Path,
        *,
        cells: Sequence[str] = CELLS,
        slot: str = "1s",
        ago: timedelta = timedelta(),
        public: bool = True,
        levels: Levels = LEVELS,
    ) -> None:
        self.folder, self.cells = folder, tuple(cells)
        self._process: subprocess.Popen[str] | None = None
        self._port = _free_port()
        self.began = (datetime.now(UTC) - ago).replace(microsecond=0)
        if slot.endswith("min"):
            self.began = self.began.replace(second=0)
        (folder / "cells.txt").write_text("".join(f"{label}\n" for label in self.cells), encoding="utf-8")
        words = list(levels.offered())
        rows = "".join(f"person-{number},{words[number % len(words)]}\n" for number in range(PEOPLE))
        (folder / "requirements.csv").write_text(f"user,level\n{rows}", encoding="utf-8")
        (folder / "wevent.toml").write_text(
            f'stream = "city"\nslot = "{slot}"\nstart = "{self.began:%Y-%m-%dT%H:%M:%SZ}"\ncells = "cells.txt"\n'
            'requirements = "requirements.csv"\njournal = "run.journal"\nout = "releases.ndjson"\n\n'
            f"[levels.privacy]\n{_lines(levels.privacy)}\n[levels.window]\n{_lines(levels.window)}\n"
            f'[service]\nlisten = "127.0.0.1:{self._port}"\npublic = {str(public).lower()}\nrequests_per_minute = 0\n',
            encoding="utf-8",
        )
        self.ingest = self.token("ingest")

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> Served:
        """Run it, until it answers."""
        arguments = ("serve", "--config", "wevent.toml")
        self._process = start(self.folder, *arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for("/healthz")
        return self

    def stop(self) -> None:
        """Let it end, as a service manager does; twice is fine."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def token(self, role: str) -> str:
        """A new token of this role."""
        done = call(self.folder, "token", "create", "--role", role, "--json")
        assert done.code == 0, done
        text: str = json.loads(done.out)["token"]
        return text

    def link(self, user: str, *, expires: str = "1h") -> str:
        """A person's own link."""
        done = call(self.folder, "token", "link", user, "--expires", expires, "--json")
        assert done.code == 0, done
        url: str = json.loads(done.out)["url"]
        return url

    def unlink(self, user: str) -> None:
        """Revoke all links of a person."""
        assert call(self.folder, "token", "unlink", user).code == 0

    def ask(self, path: str, token: str | None = None, body: bytes | None = None, kind: str = "") -> Any:
        """The JSON that a call answers."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if body is not None:
            headers["Content-Type"] = kind
        request = urllib.request.Request(self.url + path, body, headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            return json.load(response)

    def send(self, events: Sequence[tuple[str, str]]) -> None:
        """Send users and cells of now."""
        now = datetime.now(UTC).isoformat()
        lines = "".join(json.dumps({"time": now, "user": user, "cell": cell}) + "\n" for user, cell in events)
        self.ask("/v1/events", self.ingest, lines.encode(), "application/x-ndjson")

    def wait_for(self, path: str) -> None:
        """Wait until a call succeeds."""

        def succeeds() -> bool:
            try:
                self.ask(path)
                return True
            except OSError:
                assert self._process is None or self._process.poll() is None, "the service has ended"
                return False

        wait_for(succeeds, f"an answer from {path}")

    def wait_for_slot(self, slot: int) -> None:
        """Wait until a slot is released."""
        wait_for(lambda: self.ask("/v1/about")["committed"] >= slot, f"slot {slot}")


class Crowd:
    """Sends events of most people several times a second, until it is stopped; a service that is away is no fault."""

    def __init__(self, served: Served) -> None:
        self._served, self._over = served, threading.Event()
        self._thread = threading.Thread(target=self._walk, daemon=True)

    def __enter__(self) -> Crowd:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _walk(self) -> None:
        chance = random.Random(7)
        weights = [1 / (place + 1) for place in range(len(self._served.cells))]
        while not self._over.wait(0.3):
            users = chance.sample(range(PEOPLE), PEOPLE * 2 // 3)
            cells = chance.choices(self._served.cells, weights, k=len(users))
            try:
                self._served.send([(f"person-{user}", cell) for user, cell in zip(users, cells, strict=True)])
            except OSError:
                continue


def _lines(words: Mapping[str, object]) -> str:
    return "".join(f"{word} = {number}\n" for word, number in words.items())


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
