"""A real `wevent serve` on a small stream of its own: invented people, slots of a second, events that are sent to it."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from tests.service.serving_process import Service, event_line
from wevent.core.requirements import Levels

CELLS = ("University", "Market", "Harbour", "Station", "Old town", "Park")
PEOPLE = 90
LEVELS = Levels(privacy={"High": "0.5", "Medium": "1.0", "Low": "2.0"}, window={"Small": 4, "Medium": 8, "Large": 12})
"""So small that a test can wait until an earlier choice ends."""


class Served(Service):
    """A stream whose people hold levels, on one port through all lives.

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
        self.cells = tuple(cells)
        self.began = (datetime.now(UTC) - ago).replace(microsecond=0)
        if slot.endswith("min"):
            self.began = self.began.replace(second=0)
        words = list(levels.offered())
        people = [(f"person-{number}", words[number % len(words)]) for number in range(PEOPLE)]
        start = f"{self.began:%Y-%m-%dT%H:%M:%SZ}"
        super().__init__(
            folder, people, slot=slot, cells=list(cells), service={"public": public}, stream="city", start=start
        )
        with (folder / "wevent.toml").open("a") as file:
            file.write(f"[levels.privacy]\n{_lines(levels.privacy)}\n[levels.window]\n{_lines(levels.window)}\n")
        self._port = _free_port()
        self.ingest = self.token("ingest")

    def run(self) -> Served:
        """Run it, until it listens."""
        self.start("--listen", f"127.0.0.1:{self._port}", ready=False)
        return self

    def page(self, user: str) -> str:
        """Return the address where a user chooses."""
        return f"{self.url}/choose#{self.link(user)}"

    def ask(self, path: str, token: str | None = None) -> Any:
        """Return the JSON that a call answers."""
        with self.asker(token) as client:
            return client.get(path).raise_for_status().json()

    def send(self, events: Sequence[tuple[str, str]]) -> None:
        """Send users and cells of now."""
        lines = b"".join(event_line(user, cell) for user, cell in events)
        with self.asker(self.ingest) as client:
            client.post("/v1/events", content=lines, headers={"Content-Type": "application/x-ndjson"})

    def wait_for_slot(self, slot: int) -> None:
        """Wait until a slot is released."""
        self.wait_until_committed(slot, self.ingest)


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
            except httpx.TransportError:
                continue


def _lines(words: Mapping[str, object]) -> str:
    return "".join(f"{word} = {number}\n" for word, number in words.items())


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
