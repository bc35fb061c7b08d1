"""The city as a platform: who enrols, what is sent, when it ends."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from examples.live_city import CitySender, person
from wevent.errors import ServiceUnreachable
from wevent.experiments.datasets.city import DISTRICTS


class Recorder:
    """Stands in for a client: takes everything, and says stop after some batches."""

    def __init__(self, stop: threading.Event, batches: int) -> None:
        self.stop, self.left = stop, batches
        self.files: list[bytes] = []
        self.events: list[dict[str, Any]] = []
        self.chosen: list[tuple[str, str]] = []
        self.fails = False

    def levels(self) -> Any:
        return SimpleNamespace(rows=[SimpleNamespace(level="High/Small"), SimpleNamespace(level=None)])

    def import_requirements(self, file: bytes) -> None:
        self.files.append(file)

    def set_requirement(self, user: str, *, level: str) -> None:
        self.chosen.append((user, level))

    def send(self, lines: bytes) -> None:
        if self.fails:
            raise ServiceUnreachable("No answer.", "Wait.")
        self.events += [json.loads(line) for line in lines.splitlines()]
        self.left -= 1
        if not self.left:
            self.stop.set()


def sender(recorder: Recorder, **more: Any) -> CitySender:
    return CitySender(recorder, users=300, day_s=60.0, seed=1, **more)  # type: ignore[arg-type]


def test_people_choose_what_is_offered() -> None:
    recorder = Recorder(threading.Event(), 1)
    sender(recorder).enrol(range(3, 5))
    assert recorder.files == [f"user,level\n{person(3)},High/Small\n{person(4)},High/Small\n".encode()]


def test_everybody_on_the_map_is_seen_now_and_once_a_step() -> None:
    recorder = Recorder(threading.Event(), 1)
    begun = datetime.now(UTC)
    sender(recorder).run(recorder.stop)  # a day of 60 s has 288 steps of 0.2 s, a batch each
    assert len(recorder.events) > 50
    assert len({event["user"] for event in recorder.events}) == len(recorder.events)
    assert {event["cell"] for event in recorder.events} <= set(DISTRICTS)
    for event in recorder.events:
        assert begun - timedelta(seconds=1) < datetime.fromisoformat(event["time"]) <= datetime.now(UTC)


def test_some_change_their_mind() -> None:
    recorder = Recorder(threading.Event(), 3)
    city = sender(recorder, changes_per_minute=1e6)
    city.enrol(range(300))
    city.run(recorder.stop)
    assert recorder.chosen
    assert {level for _, level in recorder.chosen} == {"High/Small"}


def test_a_service_that_is_away_is_an_error_unless_it_was_to_end() -> None:
    recorder = Recorder(threading.Event(), 1)
    recorder.fails = True
    with pytest.raises(ServiceUnreachable):
        sender(recorder).run(recorder.stop)
    recorder.stop.set()
    sender(recorder).run(recorder.stop)
