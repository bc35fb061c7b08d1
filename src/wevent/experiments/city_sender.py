"""The invented city as a platform that talks to a service: its people choose levels, move, and are seen in real time."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice

import numpy as np

from wevent.client import Client
from wevent.core.arrays import IntArray
from wevent.errors import WeventError
from wevent.experiments.datasets.city import DISTRICTS, SLOTS_PER_DAY, City

TICK_S = 0.25
"""How often a batch is sent."""

_MORNING = SLOTS_PER_DAY * 6 // 24  # the first day begins when people are about to leave home
_FOR_EVER = 10**9
_STEP = timedelta(days=1) / SLOTS_PER_DAY


def person(number: int) -> str:
    """The id of a person."""
    return f"person-{number:06d}"


def requirement_rows(levels: Sequence[str], numbers: range, generator: np.random.Generator) -> bytes:
    """A requirements file in which everybody has drawn a level."""
    drawn = generator.choice(np.array(levels), len(numbers))
    return (
        b"user,level\n"
        + "".join(f"{person(one)},{level}\n" for one, level in zip(numbers, drawn, strict=True)).encode()
    )


class CitySender:
    """Sends who is where, as it happens.

    Args:
        client: with a token that may send and enrol.
        users: how many people live in the city.
        day_s: how long one of its days takes, in seconds.
        changes_per_minute: how many people change their mind about their level.
        seed: of the invented people.
    """

    def __init__(
        self, client: Client, *, users: int, day_s: float, changes_per_minute: float = 4.0, seed: int | None = None
    ) -> None:
        self._client, self._users = client, users
        self._step_s = day_s / SLOTS_PER_DAY
        self._chance = changes_per_minute * self._step_s / 60.0
        self._generator = np.random.default_rng(seed)
        self._levels: list[str] = []

    def enrol(self, numbers: range) -> None:
        """Let these people choose, each a level at random out of what is offered."""
        self._levels = [row.level for row in self._client.levels().rows if row.level is not None]
        self._client.import_requirements(requirement_rows(self._levels, numbers, self._generator))

    def run(self, stop: threading.Event) -> None:
        """Send until it is told to stop.

        Raises:
            WeventError: if the service refuses, or is away for too long.
        """
        try:
            self._live(stop)
        except WeventError:
            if not stop.is_set():
                raise

    def _live(self, stop: threading.Event) -> None:
        begun = time.monotonic()
        days = City(self._users, _FOR_EVER).walk(self._generator)
        for number, (present, district) in enumerate(islice(days, _MORNING, None)):
            late_s = time.monotonic() - begun - number * self._step_s
            if late_s > self._step_s:  # the machine was asleep or busy: nobody was seen meanwhile
                continue
            self._send_step(present, district, begun + number * self._step_s, stop)
            if stop.is_set():
                return
            if self._generator.random() < self._chance:
                self._change_mind()

    def _send_step(self, present: IntArray, district: IntArray, start: float, stop: threading.Event) -> None:
        """Everybody on the map is seen once within a step, each at a moment of their own."""
        order = self._generator.permutation(len(present))
        ticks = max(1, round(self._step_s / TICK_S))
        for tick, seen in enumerate(np.array_split(order, ticks), start=1):
            if stop.wait(max(0.0, start + tick * self._step_s / ticks - time.monotonic())):
                return
            self._client.send(_lines(present[seen], district[seen], self._step_s / ticks, self._generator))

    def _change_mind(self) -> None:
        level = str(self._generator.choice(np.array(self._levels)))
        self._client.set_requirement(person(int(self._generator.integers(self._users))), level=level)


def _lines(present: IntArray, district: IntArray, within_s: float, generator: np.random.Generator) -> bytes:
    """Events of the moments that have just passed."""
    now = datetime.now(UTC)
    moments = [now - timedelta(seconds=ago) for ago in generator.random(len(present)) * within_s]
    return "".join(
        f'{{"time":"{moment.isoformat()}","user":"{person(one)}","cell":"{DISTRICTS[place]}"}}\n'
        for moment, one, place in zip(moments, present.tolist(), district.tolist(), strict=True)
    ).encode()
