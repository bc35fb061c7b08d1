"""One side of a pair over HTTP: the command `wevent serve` in this process, a real socket, and an injected clock."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.commands import PATIENCE_S, wait_for
from tests.support.neighbours.runs import Ended, cells_option, counted, declare, taken_over
from tests.support.neighbours.seen import Seen, differences, look
from tests.support.neighbours.service_pairs import CSV, SentBatch, ServicePair
from tests.support.neighbours.values import SECOND, SLOT_S, START_US
from wevent.cli import main
from wevent.events import live_source
from wevent.service.tokens import Tokens
from wevent.settings.values import format_time
from wevent.streams import clock as steady_clock

Answers = list[list[tuple[int, str]]]
"""Status and text of every attempt of every batch."""

_SERVING = re.compile(rb"Serving (http://\S+)")
_ASKED = ("/v1/about", "/v1/releases?from=1&limit=1000", "/v1/ledger", "/v1/levels", "/metrics", "/v1/admin/overview")
_BY_THE_TEST = re.compile(rb" httpx: | GET /v1/about | 401$", re.M)
"""It asks until a slot is released; a sender of another test, whose service had this port before, has no token here."""
_CHANGING = re.compile(rb"127\.0\.0\.1:\d+|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}")  # address, time of day
_LAST = b"The last slot is published"


class InjectedTime:
    """The module `time` with wall and boot clocks that move when told."""

    def __init__(self) -> None:
        self.now_us = START_US

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def time_ns(self) -> int:
        return self.now_us * 1000

    def clock_gettime_ns(self, _: int) -> int:
        return self.now_us * 1000


def compare_services(pair: ServicePair, folder: Path) -> tuple[Seen, dict[str, str]]:
    """Return what is seen with the target's records, and in what it differs from what is seen without them."""
    one, answers = observe_service(pair, folder / "run", with_target=True)
    other, fewer = observe_service(pair, folder / "run", with_target=False)
    found = differences(pair.pair, one, other)
    for number, (batch, here, there) in enumerate(zip(pair.batches, answers, fewer, strict=True)):
        if not _fits(batch, here, there):
            found[f"answer to batch {number} of the target"] = f"with: {here}\nwithout: {there}"
    return one, found


def observe_service(pair: ServicePair, folder: Path, *, with_target: bool) -> tuple[Seen, Answers]:
    """Run one side in a new folder; return all that can be seen of it, and the answers to all batches."""
    counted()
    folder.mkdir()
    try:
        _configure(pair, folder)
        tokens = Tokens(folder / "run.journal.tokens")
        driver = _Driver(
            pair, with_target, [tokens.create(["ingest"]).text for _ in range(2)], tokens.create(["admin"]).text
        )
        ended = _serve(folder, driver)
        seen = look([ended], folder, {"users.csv", "cells.txt", "wevent.toml"}, counted())
    finally:
        shutil.rmtree(folder)
    seen.shown |= driver.shown
    for number, (batch, answers) in enumerate(zip(pair.batches, driver.answers, strict=True)):
        seen.shown[f"status of batch {number}"] = [status for status, _ in answers]
        if not batch.targets:
            seen.shown[f"answer to batch {number}"] = answers
    return seen, driver.answers


def _fits(batch: SentBatch, here: list[tuple[int, str]], there: list[tuple[int, str]]) -> bool:
    """Return whether two answers to a batch differ in the target's records alone."""
    for (status, text), (other_status, other_text) in zip(here, there, strict=True):
        if status != other_status or status != 200:
            return status == other_status
        one, other = json.loads(text), json.loads(other_text)
        reasons = {*one["rejected"], *other["rejected"]}
        more = [one["rejected"].get(reason, 0) - other["rejected"].get(reason, 0) for reason in reasons]
        more.append(one["accepted"] - other["accepted"])
        if min(more) < 0 or sum(more) > batch.targets:
            return False
    return True


def _configure(pair: ServicePair, folder: Path) -> None:
    declare(pair.pair, folder)
    options = {
        **pair.pair.options,
        "requirements": "users.csv",
        "journal": "run.journal",
        "slot": f"{SLOT_S}s",
        "grace": f"{pair.pair.options['grace']}s",
        "start": format_time(START_US),
        "end": format_time(START_US + pair.pair.world.slots * SLOT_S * SECOND),
    }
    cells = cells_option(pair.pair)
    options["cells"] = int(cells) if cells.isdecimal() else cells
    lines = [f"{name} = {json.dumps(value)}" for name, value in options.items()]
    lines += ["[service]", "requests_per_minute = 0", f"max_body_bytes = {1 << 27}", f"max_batch_bytes = {1 << 27}"]
    (folder / "wevent.toml").write_text("\n".join(lines) + "\n")


class _Driver:
    """The senders and readers of a service, and its clock."""

    def __init__(self, pair: ServicePair, with_target: bool, senders: list[str], admin: str) -> None:
        self._pair, self._with_target, self._senders, self._admin = pair, with_target, senders, admin
        self.clock = InjectedTime()
        self.answers: Answers = []
        self.shown: dict[str, Any] = {"readiness": []}

    def drive(self, url: str, said: Callable[[], bytes]) -> None:
        """Send all batches at their moments, let all slots close, and read everything."""
        with httpx.Client(base_url=url, headers=_bearer(self._admin), timeout=PATIENCE_S) as client:
            joined = client.post("/v1/users", content=self._pair.joining, headers={"Content-Type": CSV})
            self.shown["import"] = joined.status_code, joined.text
            for number, batch in enumerate(self._pair.batches):
                self._settle(client, START_US + round(batch.arrival * SECOND))
                self.answers.append([self._send(client, number, batch) for _ in range(1 + batch.again)])
                self._look(client)
            self._settle(client, self._due(self._pair.pair.world.slots))
            wait_for(lambda: _LAST in said(), "the end of the stream")
            self._look(client)
            for path in _ASKED:
                found = client.get(path)
                self.shown[path] = found.status_code, found.text

    def _send(self, client: httpx.Client, number: int, batch: SentBatch) -> tuple[int, str]:
        headers = {"Content-Type": batch.kind, "Idempotency-Key": f"batch-{number}"} | _bearer(
            self._senders[batch.sender]
        )
        if batch.packed:
            headers["Content-Encoding"] = "gzip"
        answer = client.post("/v1/events", content=batch.body(with_target=self._with_target), headers=headers)
        return answer.status_code, answer.text

    def _settle(self, client: httpx.Client, moment_us: int) -> None:
        """Move the clock; what is due by then is released at its own moment of the grid, before the clock goes on."""
        slots = range(1, self._pair.pair.world.slots + 1)
        due = max((slot for slot in slots if self._due(slot) <= moment_us), default=0)
        if due:
            self.clock.now_us = max(self.clock.now_us, self._due(due))
            wait_for(lambda: client.get("/v1/about").json()["committed"] >= due, f"slot {due}")
        self.clock.now_us = max(self.clock.now_us, moment_us)

    def _due(self, slot: int) -> int:
        """Return when the release of a slot goes out: a second after the grace."""
        return START_US + (slot * SLOT_S + self._pair.pair.options["grace"] + 1) * SECOND

    def _look(self, client: httpx.Client) -> None:
        ready = client.get("/readyz")
        self.shown["readiness"].append((ready.status_code, ready.text))


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _serve(folder: Path, driver: _Driver) -> Ended:
    """Run the command until the driver is done with it; in the main thread, since signals end it."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    over, failures = threading.Event(), list[BaseException]()

    def said() -> bytes:
        text: bytes = err.buffer.getvalue()  # type: ignore[attr-defined]
        return text

    def address() -> bytes | None:
        found = _SERVING.search(said())
        return found and found[1]

    def drive() -> None:
        try:
            wait_for(lambda: over.is_set() or address() is not None, "an address")
            if (url := address()) is not None:
                driver.drive(url.decode(), said)
        except BaseException as failure:  # noqa: BLE001  it is raised again below
            failures.append(failure)
        finally:
            if not over.is_set():
                os.kill(os.getpid(), signal.SIGTERM)

    code = 0
    thread = threading.Thread(target=drive)
    with pytest.MonkeyPatch.context() as patch, open(os.devnull) as given, taken_over(folder, given, out, err):
        patch.setattr(steady_clock, "time", driver.clock)
        patch.setattr(steady_clock.wall_clock_us, "_clock", steady_clock.SteadyClock())
        patch.setattr(live_source, "_LOOK_S", 0.005)
        thread.start()
        try:
            main(["serve", "--listen", "127.0.0.1:0", "--log", "info"])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:  # noqa: BLE001  what a process would show
            traceback.print_exc()
            code = 1
        finally:
            over.set()
            thread.join()
    if failures:
        raise failures[0]
    lines = re.sub(_CHANGING, b"<changes>", said()).splitlines(True)
    told = b"".join(sorted(line for line in lines if not _BY_THE_TEST.search(line)))  # several threads write them
    return Ended(code, out.buffer.getvalue(), told)  # type: ignore[attr-defined]
