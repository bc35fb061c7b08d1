"""SIGKILL and standstills under load: no acknowledged event is lost, none counts twice, no slot goes out twice, and of the
events of a committed slot nothing is in any file (spec 1 and 10)."""

from __future__ import annotations

import json
import os
import platform
import random
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.service.leftovers import leftovers
from tests.service.sending import Books, Clock, Enroller, Sender, SentBatch, StreamReader, now_us, people
from tests.service.serving_process import WITNESSED, Service, event_line
from tests.support.commands import PATIENCE_S, wait_for
from wevent.journal import open_journal
from wevent.outputs.lines import ndjson_line

KILLS = int(os.environ.get("WEVENT_SERVICE_KILLS", "10"))
RESULT = os.environ.get("WEVENT_SERVICE_RESULT")
PER_STREAM = 50  # kills, before a new stream begins
SENDERS = 2
ENOUGH = 100 * min(KILLS, PER_STREAM)  # events of a stream that count
GRACE = "3s"  # longer than a restart takes: what is sent again comes while its slot is still open
STEPS = ("stepped", "due", "committed", "written", "written ahead", "emitted", "durable")
STEPS += ("began", "slots stored", "version stored", "position stored")


class Campaign:
    """A service under load that is killed again and again.

    Args:
        folder: of this campaign.
        seed: of what is left to chance.
    """

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.service = Service(folder / "service", people(SENDERS), grace=GRACE, time_unit="us")
        self.witness = folder / "witness.ndjson"
        self.killed: dict[str, int] = {}
        self.token = self.service.token("read")
        self._chance, self._run = random.Random(seed), secrets.token_hex(4)
        self._labelled, self._sentence = 0, folder / "sentence"
        self.start()
        self.clock = Clock.of(self.service, self.token)
        self.senders = [
            Sender(number, self.service, self.service.token("ingest"), self.clock, self._run)
            for number in range(SENDERS)
        ]
        self.enroller = Enroller(self.service, self.service.token("enrol"))
        self.reader = StreamReader(self.service, self.token)
        for thread in (*self.senders, self.enroller, self.reader):
            thread.start()

    def start(self) -> None:
        self._sentence.unlink(missing_ok=True)
        told = {"WEVENT_WITNESS": str(self.witness), "WEVENT_SENTENCE": str(self._sentence)}
        self.service.start(module=WITNESSED, told=told)

    def killed_at_a_step(self) -> None:
        """It ends by itself at the next labelled step."""
        step = STEPS[self._labelled % len(STEPS)]
        self._labelled += 1
        number = self._chance.randint(5, 30) if step in ("written", "durable") else self._chance.randint(1, 2)
        draft = self._sentence.with_name("draft")
        draft.write_text(f"{step}:{number}")
        draft.rename(self._sentence)
        assert self.service.died(), f"{step} was not reached"
        self._note(step)

    def killed_at_random(self) -> None:
        time.sleep(self._chance.uniform(0.05, 1.0))
        self.service.kill()
        self._note("anywhere")

    def stopped(self) -> None:
        """As an operator does, while events come."""
        assert self.service.stop() == 0

    def come_back(self) -> None:
        """Right after its end and a restart."""
        self.start()
        self.check_files()
        self.check_releases()

    def check_files(self) -> None:
        """Of slots that are out nothing is left; events go right after their release."""
        committed = self.service.committed(self.token)
        wait_for(
            lambda: not leftovers(self.service.folder, self._run, self.sent, self.clock, committed),
            f"everything of slots up to {committed} to go",
        )

    def sent(self) -> list[SentBatch]:
        """All batches so far."""
        return [batch for sender in self.senders for batch in list(sender.batches)]

    def check_releases(self) -> None:
        """What the API says of every slot is what the stream said."""
        with self.service.asker(self.token) as client:
            answer = client.get("/v1/releases?from=1&limit=10000", headers={"Accept": "application/x-ndjson"})
        lines = answer.raise_for_status().content.splitlines()
        for place, line in enumerate(lines, start=1):
            self.reader.take(place, line)

    def finish(self) -> tuple[int, int]:
        """Nobody kills any more: everything is answered, released and adds up. Slots, and events that were counted."""
        wait_for(lambda: sum(len(batch.events) for batch in self.sent() if batch.is_acknowledged) > ENOUGH, "events")
        for thread in (*self.senders, self.enroller):
            thread.finish()
        batches = self.sent()
        self.service.wait_until_committed(max(event.slot for batch in batches for event in batch.events), self.token)
        self.check_files()
        self.check_releases()
        assert self.service.stop() == 0
        self.reader.finish()
        with open_journal(self.service.journal) as journal:
            last = journal.head().committed
            stored = {record.slot: ndjson_line(record).rstrip(b"\n") for record in journal.releases()}
        out = (self.service.folder / "out.ndjson").read_bytes().splitlines()
        assert sorted(stored) == list(range(1, last + 1))
        assert out == [stored[slot] for slot in range(1, last + 1)], "every slot once in the output"
        assert self.reader.seen.items() <= stored.items(), "what was read is what is stored"
        audit = self.service.command("verify", "run.journal")
        assert audit.code == 0, audit
        listed = json.loads(self.service.command("users", "run.journal", "list", "--json").out)["users"]
        assert {row["user"] for row in listed} >= set(self.enroller.acknowledged), "who was told is registered"
        counted = Books(batches).check(self.witness, last)
        found = leftovers(self.service.folder, self._run, self.sent, self.clock, last)
        assert not found, found[:5]
        assert "Traceback" not in self.service.log
        return last, counted

    def _note(self, step: str) -> None:
        self.killed[step] = self.killed.get(step, 0) + 1


@pytest.fixture
def campaigns(tmp_path: Path) -> Iterator[list[Campaign]]:
    begun: list[Campaign] = []
    yield begun
    for campaign in begun:
        campaign.service.close()


def test_killed_under_load(tmp_path: Path, campaigns: list[Campaign]) -> None:
    begun, slots, counted, batches, registered = time.time(), 0, 0, 0, 0
    parts = max(1, KILLS // PER_STREAM)
    for part in range(parts):
        folder = tmp_path / str(part)
        folder.mkdir()
        campaign = Campaign(folder, seed=part)
        campaigns.append(campaign)
        for kill in range(KILLS // parts):
            if kill % 3 == 2:
                campaign.killed_at_random()
            else:
                campaign.killed_at_a_step()
            campaign.come_back()
        campaign.stopped()
        campaign.come_back()
        last, events = campaign.finish()
        slots, counted = slots + last, counted + events
        batches += sum(len(sender.batches) for sender in campaign.senders)
        registered += len(campaign.enroller.acknowledged)
    killed = {step: sum(one.killed.get(step, 0) for one in campaigns) for step in ("anywhere", *STEPS)}
    assert sum(killed.values()) == KILLS // parts * parts
    assert counted > ENOUGH
    if RESULT:
        result = {
            "command": "make soak",
            "kills": sum(killed.values()),
            "kills_by_step": {step: number for step, number in killed.items() if number},
            "streams": parts,
            "slots": slots,
            "batches": batches,
            "events_counted": counted,
            "people_registered": registered,
            "seconds": round(time.time() - begun, 1),
            "python": platform.python_version(),
            "outcome": "no acknowledged event or choice lost, no event counted twice, every slot once, nothing of committed"
            " slots in any file, every audit clean",
        }
        Path(RESULT).write_text(json.dumps(result, indent=2) + "\n")


def test_slots_that_closed_during_a_standstill_stay_closed(tmp_path: Path) -> None:
    service = Service(tmp_path / "service", people(1), slot="500ms", release_delay="150ms", time_unit="us")
    witness, read, ingest = tmp_path / "witness", service.token("read"), service.token("ingest")
    try:
        service.start(module=WITNESSED, told={"WEVENT_WITNESS": str(witness)})
        clock, reader = Clock.of(service, read), StreamReader(service, read)
        reader.start()
        wait_for(lambda: len(reader.seen) >= 2, "releases")
        held = _send_until_accepted(service, ingest, clock)
        service.freeze()
        frozen = clock.slot(now_us())
        _sleep_until(clock.end_us(frozen) + 100_000)
        with _slow_asker(service, ingest) as (send, answer):
            send(event_line("u0x2", 1, now_us()))  # received by nobody before its slot has closed
            missed = clock.slot(now_us())
            _sleep_until(clock.end_us(missed + 3) + 200_000)  # the due moment of a slot has just passed
            thawed_us = now_us()
            service.thaw()
            assert answer() == {"accepted": 0, "rejected": {"late": 1}}
        next_us = clock.end_us(clock.slot(thawed_us - 150_000)) + 150_000
        service.wait_until_committed(missed + 5, read)
        reader.finish()
        assert sorted(reader.seen) == list(range(1, max(reader.seen) + 1))
        caught_up = [reader.arrived_us[slot] for slot in range(frozen, missed + 3)]
        assert min(caught_up) >= next_us, "on the grid of due moments, not when it was ready"
        assert service.stop() == 0
        told = {line["slot"]: line["events"] for line in map(json.loads, witness.read_bytes().splitlines())}
        assert ["u0x1", 1] in told[held], "acknowledged before, counted after"
        assert all(not told[slot] for slot in range(frozen + 1, missed + 3))
        assert service.command("verify", "run.journal").code == 0
    finally:
        service.close()


def _sleep_until(moment_us: int) -> None:
    time.sleep(max(0, moment_us - now_us()) / 1e6)


def _send_until_accepted(service: Service, token: str, clock: Clock) -> int:
    """Send an event of now, on a busy machine another one of then; the slot of the one that was in time."""
    headers = {"Content-Type": "application/x-ndjson"}
    with service.asker(token) as client:
        while True:
            moment = now_us()
            answer = client.post("/v1/events", content=event_line("u0x1", 1, moment), headers=headers)
            if answer.raise_for_status().json() == {"accepted": 1, "rejected": {}}:
                return clock.slot(moment)


@contextmanager
def _slow_asker(service: Service, token: str) -> Iterator[tuple[Callable[[bytes], None], Callable[[], Any]]]:
    """Sends a batch now and reads its answer later."""
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:

        def send(body: bytes) -> None:
            head = f"POST /v1/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"
            head += f"Content-Type: application/x-ndjson\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)

        def answer() -> Any:
            with connection.makefile("rb") as file:
                return json.loads(file.read().partition(b"\r\n\r\n")[2])

        yield send, answer
