"""Senders that never give up, a reader that never forgets, and the books of who sent what: independent of the service."""

from __future__ import annotations

import gzip
import json
import random
import threading
import time
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from tests.service.serving_process import Service
from tests.support.commands import PATIENCE_S

CELLS = 4
CLASSES = ((4, 0.5), (8, 0.8))
PEOPLE = 1500  # of each sender
_AGAIN_S = 3.0  # after which a sender asks another replica, or the same one again
NEVER = 1 << 62

Matrix = dict[tuple[int, float], list[int]]
"""How many are in each cell, by class."""


def registered(sender: int, number: int) -> str:
    """Somebody who is registered."""
    return f"u{sender}x{number}"


def class_of(user: str) -> tuple[int, float]:
    """What a registered person holds."""
    return CLASSES[int(user.rpartition("x")[2]) % len(CLASSES)]


def cell_of(number: int) -> int:
    return number * 7 % CELLS


def people(senders: int) -> list[tuple[str, int, float]]:
    """Everybody who is registered."""
    return [
        (user, *class_of(user))
        for sender in range(senders)
        for number in range(PEOPLE)
        for user in [registered(sender, number)]
    ]


class Clock(NamedTuple):
    """The slots of the service, worked out from what it says in public; in microseconds."""

    origin_us: int
    length_us: int

    @classmethod
    def of(cls, service: Service, token: str) -> Clock:
        with service.asker(token) as client:
            about = client.get("/v1/about").raise_for_status().json()
        origin = datetime.fromisoformat(about["slot_origin"]) - datetime(1970, 1, 1, tzinfo=UTC)
        return cls(origin // timedelta(microseconds=1), round(about["slot_length_s"] * 1_000_000))

    def slot(self, moment_us: int) -> int:
        return (moment_us - self.origin_us) // self.length_us + 1

    def end_us(self, slot: int) -> int:
        return self.origin_us + slot * self.length_us


def now_us() -> int:
    return time.time_ns() // 1000


class SentEvent(NamedTuple):
    slot: int
    user: str
    cell: int


@dataclass
class SentBatch:
    """A batch, whatever became of it.

    Attributes:
        id: under which it is sent, as often as it takes.
        lines: what is sent.
        events: what is in it.
        answers: all that were given.
        known_until: the slot that was open when the last answer had come: its id may be kept until that one is committed.
        lacked_an_answer: whether an attempt had no answer: a replica that stands still may store it later.
    """

    id: str
    lines: bytes
    events: list[SentEvent]
    answers: list[dict[str, Any]] = field(default_factory=list)
    known_until: int = NEVER
    lacked_an_answer: bool = False

    @property
    def is_acknowledged(self) -> bool:
        """Whether the sender was told that every event of it will count."""
        return any(answer["accepted"] == len(self.events) for answer in self.answers)


class Sender(threading.Thread):
    """Sends batches one after the other, each until it is answered; now and then some again that were answered already, and
    the last ones whenever the service was away.

    Half of the people in it are registered, the others strangers with ids that occur nowhere else.

    Args:
        number: which sender.
        service: where to.
        token: of this sender.
        clock: of the slots.
        run: marks everything of this run.
        size: events per batch.
    """

    def __init__(self, number: int, service: Service, token: str, clock: Clock, run: str, size: int = 20) -> None:
        super().__init__(name=f"sender {number}", daemon=True)
        self.number, self.batches = number, list[SentBatch]()
        self.failure: BaseException | None = None
        self._service, self._token, self._clock, self._run, self._size = service, token, clock, run, size
        self._chance = random.Random(number)
        self._over = threading.Event()
        self._sent = 0

    def run(self) -> None:
        try:
            with httpx.Client(timeout=_AGAIN_S) as client:
                while not self._over.is_set():
                    batch = self._new()
                    self.batches.append(batch)
                    was_away = self._send(client, batch)
                    for known in self.batches[-4:] if was_away else [batch] if self._chance.random() < 0.1 else []:
                        self._send(client, known)
                    time.sleep(self._chance.uniform(0.01, 0.06))
        except BaseException as error:  # noqa: BLE001  told to the test
            self.failure = error

    def finish(self) -> None:
        """Let it end once everything is answered."""
        self._over.set()
        self.join(PATIENCE_S)
        assert not self.is_alive(), "a batch was never answered"
        if self.failure is not None:
            raise self.failure

    def _new(self) -> SentBatch:
        events, lines = [], []
        back_us = (
            0 if self._chance.random() < 0.8 else self._clock.length_us // 4
        )  # some for a slot that is in its grace
        for place in range(self._size):
            moment = now_us() - (back_us if place % 4 == 0 else 0)
            slot, number = self._clock.slot(moment), self._sent
            person = registered(self.number, number // 2 % PEOPLE)
            user = person if number % 2 == 0 else f"mk{self._run}-{slot}-{self.number}-{number}"
            cell = cell_of(number)
            self._sent += 1
            events.append(SentEvent(slot, user, cell))
            lines.append(json.dumps({"time": moment, "user": user, "cell": cell}))
        name = f"id{self._run}-{len(self.batches)}"  # the other senders have the same: ids are per token
        return SentBatch(name, "".join(line + "\n" for line in lines).encode(), events)

    def _send(self, client: httpx.Client, batch: SentBatch) -> bool:
        """Send it until it is answered; whether nobody was there for a while."""
        packed = self._chance.random() < 0.3
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Idempotency-Key": batch.id,
            "Content-Type": "application/x-ndjson",
            **({"Content-Encoding": "gzip"} if packed else {}),
        }
        body = gzip.compress(batch.lines, 1) if packed else batch.lines
        batch.known_until, was_away = NEVER, False
        while True:
            with suppress(httpx.TransportError):
                answer = client.post(self._service.url + "/v1/events", content=body, headers=headers)
                if answer.status_code != 503:
                    answer.raise_for_status()
                    batch.answers.append(answer.json())
                    batch.known_until = self._clock.slot(now_us())
                    return was_away
            was_away = batch.lacked_an_answer = True
            time.sleep(0.05)


class Enroller(threading.Thread):
    """Registers somebody new now and then, each until it is answered.

    Attributes:
        acknowledged: who was told that they are registered.
    """

    def __init__(self, service: Service, token: str) -> None:
        super().__init__(name="enroller", daemon=True)
        self._service, self._headers = service, {"Authorization": f"Bearer {token}"}
        self._over = threading.Event()
        self.acknowledged: list[str] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with httpx.Client(timeout=_AGAIN_S, headers=self._headers) as client:
                while not self._over.is_set():
                    self._register(client, f"newcomer-{len(self.acknowledged)}")
                    time.sleep(0.1)
        except BaseException as error:  # noqa: BLE001  told to the test
            self.failure = error

    def finish(self) -> None:
        self._over.set()
        self.join(PATIENCE_S)
        if self.failure is not None:
            raise self.failure

    def _register(self, client: httpx.Client, user: str) -> None:
        window, epsilon = CLASSES[0]
        while not self._over.is_set():
            with suppress(httpx.TransportError):
                path = f"{self._service.url}/v1/users/{user}/requirement"
                answer = client.put(path, json={"window": window, "epsilon": epsilon})
                if answer.status_code != 503:
                    answer.raise_for_status()
                    self.acknowledged.append(user)
                    return
            time.sleep(0.05)


class StreamReader(threading.Thread):
    """Reads the stream of releases through all lives of a service, from where it was.

    Attributes:
        seen: the bytes of every slot.
        arrived_us: when each was read first.
    """

    def __init__(self, service: Service, token: str) -> None:
        super().__init__(name="reader", daemon=True)
        self._service, self._headers = service, {"Authorization": f"Bearer {token}"}
        self._over = threading.Event()
        self.seen: dict[int, bytes] = {}
        self.arrived_us: dict[int, int] = {}
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._over.is_set():
                with suppress(httpx.TransportError):
                    self._read()
                time.sleep(0.02)
        except BaseException as error:  # noqa: BLE001  told to the test
            self.failure = error

    def finish(self) -> None:
        self._over.set()
        self.join(PATIENCE_S)
        if self.failure is not None:
            raise self.failure

    def _read(self) -> None:
        last = max(self.seen, default=0)
        headers = {**self._headers, "Last-Event-ID": str(last)}
        with httpx.stream("GET", self._service.url + "/v1/releases/stream", headers=headers, timeout=5) as answer:
            if answer.status_code != 200:
                return
            fields: dict[str, str] = {}
            for line in answer.iter_lines():
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                    continue
                if fields.get("event") == "release":
                    self.take(int(fields["id"]), fields["data"].encode())
                fields = {}
                if self._over.is_set():
                    return

    def take(self, slot: int, line: bytes) -> None:
        """A release, from wherever: always the same bytes."""
        arrived = now_us()
        assert json.loads(line)["slot"] == slot
        assert self.seen.setdefault(slot, line) == line, f"slot {slot} went out twice with different bytes"
        self.arrived_us.setdefault(slot, arrived)


class Books:
    """Who sent what, against what was handed to the steps.

    Args:
        batches: of all senders.
    """

    def __init__(self, batches: list[SentBatch]) -> None:
        self.batches = batches
        self.sent: dict[int, Counter[tuple[str, int]]] = defaultdict(Counter)
        self.acknowledged: dict[int, set[tuple[str, int]]] = defaultdict(set)
        for batch in batches:
            for event in batch.events:
                self.sent[event.slot][event.user, event.cell] += 1
                if batch.is_acknowledged:
                    self.acknowledged[event.slot].add((event.user, event.cell))
            late = {"accepted": 0, "rejected": {"late": len(batch.events)}}
            told = [answer for answer in batch.answers if answer != late] if batch.lacked_an_answer else batch.answers
            again = [answer for answer in told[1:] if answer not in (told[0], late)]
            assert not again, f"the same batch was answered {batch.answers[0]}, then {again[0]}"
        assert all(set(events.values()) == {1} for events in self.sent.values()), "every event is somebody else's"

    def check(self, witness: Path, last: int) -> int:
        """Compare with what the witness saw in slots up to the last; how many events were counted.

        Every acknowledged event is in its slot, none twice, none that nobody sent, and the matrix is made of them. A slot
        that was stepped again after a kill was handed the same events again.
        """
        seen: dict[int, tuple[list[tuple[str, int]], Matrix]] = {}
        for line in witness.read_bytes().splitlines():
            told = json.loads(line)
            slot, events = told["slot"], sorted((user, cell) for user, cell in told["events"])
            rows = zip(map(tuple, told["classes"]), told["matrix"], strict=True)
            matrix = {key: row for key, row in rows if key in CLASSES or any(row)}
            before = seen.setdefault(slot, (events, matrix))
            assert before == (events, matrix), f"slot {slot} was stepped again with other events"
        assert sorted(seen)[:last] == list(range(1, last + 1)), "slots are missing"
        for slot in range(1, last + 1):
            self._check_slot(slot, *seen[slot])
        return sum(len(seen[slot][0]) for slot in range(1, last + 1))

    def _check_slot(self, slot: int, events: list[tuple[str, int]], matrix: Matrix) -> None:
        counted = Counter(events)
        twice = [event for event, number in counted.items() if number > 1]
        assert not twice, f"counted twice in slot {slot}: {twice[:3]}"
        lost = self.acknowledged[slot] - set(counted)
        assert not lost, f"acknowledged and lost in slot {slot}: {sorted(lost)[:3]}"
        invented = set(counted) - set(self.sent[slot])
        assert not invented, f"counted in slot {slot} and never sent for it: {sorted(invented)[:3]}"
        expected = {key: [0] * CELLS for key in CLASSES}
        for user, cell in counted:
            if user.startswith("u"):
                expected[class_of(user)][cell] += 1
        assert matrix == expected, f"the matrix of slot {slot} is not made of its events"
