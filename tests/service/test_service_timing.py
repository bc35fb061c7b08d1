"""Nothing shows before it is due, and nothing shows how long it took: not in the API, the stream, the ledger, nor to
commands that read the journal (spec 10). With a clock that the test moves, and with the real process."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from tests.service.sending import Clock, StreamReader, now_us
from tests.service.serving_process import WITNESSED, Service
from tests.support.commands import PATIENCE_S, call, start, wait_for
from tests.support.live_events import BatchSource
from tests.support.synthetic import MINUTE_US, make_journal
from wevent.counting.labels import Cells
from wevent.outputs import KeptOutput
from wevent.publishing import loop
from wevent.publishing.loop import DueMoments, Publication, Running
from wevent.service import publishing_thread
from wevent.service.app import make_app
from wevent.service.context import ServiceContext
from wevent.service.publishing_thread import PublisherState
from wevent.settings import ServiceSettings, StreamSettings
from wevent.streams.clock import SlotClock
from wevent.streams.source import SlotCounts

SECOND = 1_000_000
SLOTS = SlotClock(0, MINUTE_US)
GRACE_S, DUE_S, TICK_S = 5, 20, 5
LAST = 6


class Wall:
    """A wall clock that moves when the test says so: who sleeps by it is woken, and the test waits until they sleep again."""

    def __init__(self) -> None:
        self.us = 0
        self._turn = threading.Condition()
        self._sleeping_until: int | None = None

    def __call__(self) -> int:
        return self.us

    def sleep(self, seconds: float) -> None:
        with self._turn:
            until = self.us + max(1, round(seconds * SECOND))
            self._sleeping_until = until
            self._turn.notify_all()
            self._turn.wait_for(lambda: self.us >= until)
            self._sleeping_until = None

    def advance(self, seconds: float, is_over: Callable[[], bool]) -> None:
        """Move on, as fast as whoever sleeps wakes up and falls asleep again."""
        target = self.us + round(seconds * SECOND)
        with self._turn:
            while not is_over():
                assert self._turn.wait_for(lambda: self._sleeping_until is not None or is_over(), PATIENCE_S)
                if is_over() or self._sleeping_until is None or self._sleeping_until > target:
                    break
                self.us, self._sleeping_until = self._sleeping_until, None
                self._turn.notify_all()
            self.us = target

    def done(self) -> None:
        with self._turn:
            self._turn.notify_all()


class Waiting(threading.Event):
    """An event whose waiting goes by the wall clock of the test."""

    def __init__(self, wall: Wall) -> None:
        super().__init__()
        self._wall = wall

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        if not self.is_set():
            self._wall.sleep(timeout)
        return self.is_set()


class SlowPublication(Publication):
    """Steps that take their time: `delays[slot]` seconds."""

    def __init__(self, *arguments: Any, wall: Wall, delays: dict[int, float], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._wall, self._delays = wall, delays

    def _step(self, counted: SlotCounts) -> Any:
        if self._delays.get(counted.slot):
            self._wall.sleep(self._delays[counted.slot])
        return super()._step(counted)


class Rig:
    """The whole service in this process, by the clock of the test."""

    def __init__(self, folder: Path, delays: dict[int, float], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: 0.0))  # steps take what the delays say
        self.wall, self.path, self.delays = Wall(), folder / "run.journal", delays
        self.journal = make_journal(self.path)
        self.state = PublisherState(GRACE_S * SECOND, DUE_S * SECOND, SLOTS, LAST, phase="running")
        monkeypatch.setattr(publishing_thread, "wall_clock_us", self.wall)
        settings = ServiceSettings(public=True, requests_per_minute=0, tokens=folder / "tokens")
        self.context = ServiceContext(settings, self.path, self.state, {})
        self.admin = self.context.tokens.create(["admin"]).text
        stream = StreamSettings(
            inputs=("-",), cells=Cells.of(["north", "south", "west"]), slot_us=MINUTE_US, grace_us=GRACE_S * SECOND
        )
        self.source = BatchSource(stream, SLOTS, LAST, folder=folder / "spool", now_us=self.wall)
        self.source.resume({"slot": 0, "time_unit": "s"})
        self.source._stopping = Waiting(self.wall)
        self.state.receiver = self.source
        self._failure: BaseException | None = None
        self.thread = threading.Thread(target=self._publish, daemon=True)

    def _publish(self) -> None:
        due = DueMoments(SLOTS, DUE_S * SECOND, self.wall)
        running = Running(last=LAST, due=due, progress=self._progress)
        try:
            SlowPublication(
                self.journal, self.source, KeptOutput(), running=running, wall=self.wall, delays=self.delays
            ).run()
        except BaseException as error:  # noqa: BLE001  told to the test
            self._failure = error
        finally:
            self.wall.done()

    def _progress(self, slot: int, last: int | None) -> None:
        self.state.committed = slot
        self.context.feed.wake(slot)

    async def watch(self, act: Callable[[httpx.AsyncClient, int], Any] | None = None) -> list[dict[str, Any]]:
        """What everybody sees, tick by tick, until all slots are out."""
        feed, streamed = self.context.feed, [0]
        await feed.open()
        following = asyncio.create_task(feed.follow())
        reading = asyncio.create_task(self._read(streamed))
        self.thread.start()
        seen = []
        transport = httpx.ASGITransport(make_app(self.context))
        headers = {"Authorization": f"Bearer {self.admin}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://service", headers=headers) as client:
            while self.state.committed < LAST:
                await asyncio.to_thread(self.wall.advance, TICK_S, lambda: not self.thread.is_alive())
                assert self._failure is None, self._failure
                assert self.wall.us < 2 * LAST * MINUTE_US, "no release came"
                while feed.committed < self.state.committed or streamed[0] < feed.committed:
                    await asyncio.sleep(0.005)
                seen.append({"at": self.wall.us // SECOND, "stream": streamed[0], **await look(client, self.path)})
                if act is not None:
                    await act(client, self.wall.us // SECOND)
        feed.close()
        await following
        await reading
        self.thread.join(PATIENCE_S)
        return seen

    async def _read(self, streamed: list[int]) -> None:
        async for text in self.context.feed.events(0, lambda: True):
            for line in text.splitlines():
                if line.startswith(b"id: "):
                    streamed[0] = int(line[4:])


async def look(client: httpx.AsyncClient, path: Path) -> dict[str, Any]:
    """Everything from which somebody could tell how far the stream is."""
    about, ledger = (await client.get("/v1/about")).json(), (await client.get("/v1/ledger")).json()
    releases = (await client.get("/v1/releases")).json()["releases"]
    overview = (await client.get("/v1/admin/overview")).json()
    metrics = (await client.get("/metrics")).text
    status = call(path.parent, "status", path.name, "--json")
    printed = call(path.parent, "releases", path.name)
    return {
        "about": about["committed"],
        "next due": about["next_due"],
        "ledger": ledger["slot"],
        "releases": len(releases),
        "overview": overview["committed"],
        "behind": overview["slots_behind"],
        "metrics": next(int(line.split()[1]) for line in metrics.splitlines() if line.startswith("wevent_slots_total")),
        "status": json.loads(status.out)["slot"] if status.code == 0 else 0,
        "printed": len(printed.out.splitlines()),
        "ready": (await client.get("/readyz")).status_code,
    }


SHOWN = ("stream", "about", "ledger", "releases", "overview", "metrics", "status", "printed")


def shown_at(seconds: int, delays: dict[int, float]) -> int:
    """The last slot that may show: each at its own due moment, or at the next of the grid once it is ready."""
    ready = out = 0.0
    for slot in range(1, LAST + 1):
        closes, own = 60 * slot + GRACE_S, 60 * slot + DUE_S
        ready = max(ready, out, closes) + delays.get(slot, 0)
        out = own
        while out < ready:
            out += 60
        if out > seconds:
            return slot - 1
    return LAST


NONE: dict[int, float] = {}
QUICK: dict[int, float] = {1: 14, 2: 9, 4: 14.9}
LATE: dict[int, float] = {2: 16, 4: 100}


def check_shown(seen: list[dict[str, Any]], delays: dict[int, float]) -> None:
    for moment in seen:
        may_show = shown_at(moment["at"], delays)
        assert {name: moment[name] for name in SHOWN} == dict.fromkeys(SHOWN, may_show), moment


def test_nothing_shows_before_it_is_due_nor_how_long_it_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traces = []
    for number, delays in enumerate((NONE, QUICK)):
        (tmp_path / str(number)).mkdir()
        traces.append(asyncio.run(Rig(tmp_path / str(number), delays, monkeypatch).watch()))
        check_shown(traces[-1], delays)
    assert traces[0] == traces[1]


def test_what_is_late_waits_for_the_next_moment_and_events_count_by_the_clock_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[int, Any] = {}

    async def send(client: httpx.AsyncClient, at: int) -> None:
        """An event of the slot before this one, and one of this one."""
        slot = at // 60
        lines = b"".join(
            b'{"time":%d,"user":"u1","cell":"north","sent":%d}\n' % (60 * one + 30, at)
            for one in (slot - 1, slot)
            if one < LAST
        )
        answer = await client.post("/v1/events", content=lines, headers={"Content-Type": "application/x-ndjson"})
        told[at] = answer.json()

    check_shown(asyncio.run(Rig(tmp_path, LATE, monkeypatch).watch(send)), LATE)
    for at, answer in told.items():
        open_slots = [slot for slot in (at // 60, at // 60 + 1) if 1 <= slot <= LAST and at < 60 * slot + GRACE_S]
        assert answer["accepted"] == len(open_slots), at  # whatever the publisher is busy with


def test_the_real_process_shows_nothing_before_it_is_due(tmp_path: Path) -> None:
    service = Service(tmp_path / "service", [("somebody", 4, 0.5)], slot="500ms", release_delay="400ms")
    admin = service.token("admin")
    early: list[tuple[str, int, int]] = []
    looked: dict[str, int] = {}
    over = threading.Event()
    try:
        service.start(module=WITNESSED, told={"WEVENT_WITNESS": str(tmp_path / "witness"), "WEVENT_STEP_S": "0.15"})
        clock, reader = Clock.of(service, admin), StreamReader(service, admin)
        follower = start(service.folder, "releases", "run.journal", "--follow")

        def note(name: str, slot: int) -> None:
            """Somebody has just seen that a slot is out."""
            seen_us = now_us()
            looked[name] = max(looked.get(name, 0), slot)
            if slot and seen_us < clock.end_us(slot) + 400_000:
                early.append((name, slot, seen_us - clock.end_us(slot)))

        def ask(name: str, path: str, slot_of: Callable[[Any], int]) -> None:
            with service.asker(admin) as client:
                while not over.is_set():
                    note(name, slot_of(client.get(path).json()))

        def follow() -> None:
            assert follower.stdout is not None
            for line in follower.stdout:
                note("releases --follow", json.loads(line)["slot"])

        def have_seen() -> bool:
            """Whether everybody has seen three slots; looks at the status meanwhile, in this thread: it prints."""
            note("status", json.loads(service.command("status", "run.journal", "--json").out)["slot"])
            looked["stream"] = max(reader.arrived_us, default=0)
            return len(looked) == 6 and min(looked.values()) >= 3

        watchers = [
            threading.Thread(target=ask, args=("about", "/v1/about", lambda told: told["committed"])),
            threading.Thread(target=ask, args=("ledger", "/v1/ledger", lambda told: told["slot"])),
            threading.Thread(
                target=ask,
                args=("releases", "/v1/releases", lambda told: max((r["slot"] for r in told["releases"]), default=0)),
            ),
            threading.Thread(target=follow),
        ]
        for watcher in (reader, *watchers):
            watcher.start()
        wait_for(have_seen, f"three slots: {looked}")
        over.set()
        follower.terminate()
        reader.finish()
        for watcher in watchers:
            watcher.join(PATIENCE_S)
        for slot, seen_us in reader.arrived_us.items():
            if seen_us < clock.end_us(slot) + 400_000:
                early.append(("stream", slot, seen_us - clock.end_us(slot)))
    finally:
        over.set()
        service.close()
    assert not early
    assert set(looked) == {"about", "ledger", "releases", "stream", "status", "releases --follow"}
