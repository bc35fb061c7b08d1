"""A wall clock that jumps closes no slot ahead of time, and the operator is told; real processes with a shifted clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

import wevent
from tests.service.sending import Clock
from tests.service.serving_process import ROOT, Service, event_line
from tests.service.shifted_serving import SHIFTED, Shift
from tests.support.commands import slots_of, wait_for

PEOPLE = [(f"u{number}", 2, 0.5) for number in range(20)]


class Answering(Service):
    """A service that is waited for until it answers, ready or not."""

    def is_ready(self) -> bool:
        with suppress(httpx.TransportError):
            return bool(httpx.get(self.url + "/readyz", timeout=30).json()["status"] != "starting")
        return False


class Watched:
    """A service whose wall clock is shifted, and what it says."""

    def __init__(self, folder: Path) -> None:
        self.shift = Shift(folder)
        self.service = Answering(folder / "service", PEOPLE, slot="500ms", grace="5s")
        self.sender, self.admin = self.service.token("ingest"), self.service.token("admin")
        self.clock = Clock(0, 0)

    def start(self, **told: str) -> None:
        self.service.start(module=SHIFTED, told={**self.shift.environment, **told})
        self.clock = Clock.of(self.service, self.admin)

    def readiness(self) -> tuple[str, str]:
        told = httpx.get(self.service.url + "/readyz", timeout=30).json()
        return told["status"], told["clock"]

    def wait_until(self, status: str, clock: str) -> None:
        wait_for(lambda: self.readiness() == (status, clock), f"{status}, {clock}")

    def slots_behind(self) -> int:
        with self.service.asker(self.admin) as client:
            return int(client.get("/v1/admin/overview").raise_for_status().json()["slots_behind"])

    def goes_on(self) -> None:
        """Slots are released, and none of them before its end by the right clock."""
        before = self.service.committed(self.admin)
        self.service.wait_until_committed(before + 3, self.admin)
        committed = self.service.committed(self.admin)
        assert self.clock.end_us(committed) < self.shift.right_s() * 1e6, "a slot closed ahead"

    def takes_events(self, shifted_s: int = 0) -> bool:
        """Whether an event of now is counted; by the right clock, or by one that is shifted."""
        headers = {"Authorization": f"Bearer {self.sender}", "Content-Type": "application/x-ndjson"}
        content = event_line("u1", 1, self.shift.right_s() + shifted_s)
        answer = httpx.post(f"{self.service.url}/v1/events", content=content, headers=headers, timeout=30)
        return bool(answer.raise_for_status().json()["accepted"] == 1)

    def says(self, text: str) -> int:
        """How often the log does."""
        return self.service.log.count(text)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(tmp_path)
    yield watched
    watched.service.close()


def test_a_clock_that_is_ahead_for_a_while(watched: Watched) -> None:
    watched.start()
    watched.goes_on()
    watched.shift.set(300)
    watched.wait_until("ready", "jumped")
    watched.goes_on()
    wait_for(watched.takes_events, "an event that is in time by the right clock")
    wait_for(lambda: watched.takes_events(300), "an event that is in time by the wrong clock")
    watched.shift.set(0)
    watched.wait_until("ready", "steady")
    watched.goes_on()
    wait_for(watched.takes_events, "an event that is in time")
    assert watched.service.stop() == 0
    assert watched.says("the wall clock jumped by +300 s") == 1, watched.service.log
    assert watched.says("the wall clock is steady again") == 1
    assert watched.says("ahead of the clock") == 0


def test_a_clock_that_is_back_for_a_while(watched: Watched) -> None:
    watched.start()
    watched.goes_on()
    watched.shift.set(-300)
    watched.wait_until("ahead", "jumped")
    assert watched.slots_behind() < 0
    wait_for(watched.takes_events, "an event that is in time by the right clock")
    watched.shift.set(0)
    watched.wait_until("ready", "steady")
    watched.goes_on()
    wait_for(watched.takes_events, "an event that is in time")
    assert watched.service.stop() == 0
    assert watched.says("the wall clock jumped by -300 s") == 1, watched.service.log
    assert watched.says("slots are ahead of the clock by 300 s") == 1
    assert watched.says("the wall clock is steady again") == 1
    assert watched.says("slots are no longer ahead of the clock") == 1


def test_a_clock_that_stays_back_leaves_slots_ahead_of_it(watched: Watched) -> None:
    watched.start(WEVENT_STABLE_S="3")
    watched.goes_on()
    watched.shift.set(-300)
    watched.wait_until("ahead", "steady")
    assert not watched.takes_events(-300), "its slot is released"
    assert watched.slots_behind() < 0
    assert watched.service.stop() == 0


def test_a_clock_that_stays_ahead_is_followed(watched: Watched) -> None:
    watched.start(WEVENT_STABLE_S="3")
    watched.goes_on()
    watched.shift.set(60)
    before = watched.service.committed(watched.admin)
    watched.service.wait_until_committed(before + 120, watched.admin)
    watched.wait_until("ready", "steady")
    wait_for(lambda: watched.takes_events(60), "an event that is in time")
    assert watched.service.stop() == 0


def test_a_start_behind_what_was_released(watched: Watched) -> None:
    """The clock was wrong when it started, and nothing could show that; the next start finds the slots."""
    watched.shift.set(300)
    watched.start()
    watched.service.wait_until_committed(3, watched.admin)
    assert watched.service.stop() == 0
    watched.shift.set(0)
    watched.start(WEVENT_STABLE_S="3")
    watched.wait_until("ahead", "steady")
    assert watched.slots_behind() < 0
    assert not watched.takes_events()
    assert watched.says("slots are ahead of the clock, and events are late until then") == 1
    watched.shift.set(300)
    watched.service.wait_until_committed(watched.service.committed(watched.admin) + 3, watched.admin)
    watched.wait_until("ready", "steady")
    assert watched.service.stop() == 0
    assert watched.says("slots are no longer ahead of the clock") == 1


def test_lines_from_standard_input(tmp_path: Path) -> None:
    shift, out = Shift(tmp_path), tmp_path / "out.ndjson"
    rows = ["user,window,epsilon", *(f"{user},{window},{epsilon}" for user, window, epsilon in PEOPLE)]
    (tmp_path / "users.csv").write_text("\n".join(rows) + "\n")
    origin_s = int(shift.right_s())
    start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(origin_s))
    command = [sys.executable, "-m", SHIFTED, "publish", "-", "--slot", "500ms", "--start", start, "--cells", "4"]
    command += ["--requirements", "users.csv", "--journal", "run.journal", "--out", "out.ndjson"]
    path = os.pathsep.join((str(Path(wevent.__file__).parents[1]), str(ROOT)))
    child = subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, **shift.environment},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(lambda: len(slots_of(out)) > 2, "releases")
        for seconds in (300, 0):
            shift.set(seconds)
            before = slots_of(out)[-1]
            wait_for(lambda before=before: slots_of(out)[-1] > before + 2, "further releases")  # type: ignore[misc]
            assert origin_s + slots_of(out)[-1] * 0.5 < shift.right_s(), "a slot closed ahead"
        child.terminate()
        said = child.communicate(timeout=60)[1]
    finally:
        child.kill()
        child.communicate()
    assert child.returncode == 0
    assert said.count("the wall clock jumped by +300 s") == 1, said
    assert said.count("the wall clock is steady again") == 1
    slots = [json.loads(line)["slot"] for line in out.read_text().splitlines()]
    assert slots == list(range(1, len(slots) + 1))
