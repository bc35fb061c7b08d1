"""The audit of a running service: victims whose presence is tossed for, and guesses from what it releases.

A service has one stream and a clock, so there is one run: in every span of w slots each victim is in a cell of their own or
absent, by the toss of a coin. Whatever else is known, the odds of a toss change by at most e^ε through everything that was
released (spec 1), so the number of right guesses is at most that of coins with e^ε / (1 + e^ε): a bound that many victims and
many spans of one run add up in (Steinke, Nasr and Jagielski 2023, for pure differential privacy).
"""

from __future__ import annotations

import math
import secrets
import time
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np

from wevent.auditing.audit_subject import Finding
from wevent.auditing.black_box.box_audit import Progress
from wevent.auditing.black_box.proven_loss import at_least
from wevent.client import Client
from wevent.core.arrays import BoolArray, FloatArray
from wevent.core.requirements import Requirement
from wevent.errors import InvalidOption
from wevent.schemas import OfferedLevel, ReleasedSlot, StreamInfo

_VICTIMS = 200
_FRESH = 1000  # slots after which a stream is no test that was just begun


class _Played(NamedTuple):
    """Tosses and what was released: spans × victims, and spans × victims × slots."""

    present: BoolArray
    values: FloatArray


def audit_service(
    client: Client,
    *,
    seconds: float,
    confidence: float = 0.95,
    share: float = 1.0,
    test_instance: bool = False,
    progress: Progress | None = None,
) -> list[Finding]:
    """The largest loss that is proven by what a service releases while invented people come and go.

    It registers people and sends events: for a test instance only. What it needs is a token with the roles ingest, enrol and
    read.

    Args:
        client: of the service, with such a token.
        seconds: about how long.
        confidence: the probability with which an honest service is not called broken.
        share: the part of 1 − confidence that belongs to this audit, where there are others.
        test_instance: whether somebody says that this is a test, also if people are registered or it has run for long.
        progress: told what is at work, seconds done and seconds wanted.

    Raises:
        InvalidOption: if it may be more than a test, or has no time for two spans.
        WeventError: as of the client.
    """
    begun = time.perf_counter()
    facts, levels = client.about(), client.levels()
    _refuse_in_use(facts, levels.users, test_instance)
    offer = min(levels.rows, key=lambda one: (one.window, -one.epsilon))
    spans = int(seconds / facts.slot_length_s / offer.window) - 2
    if spans < 2:
        raise InvalidOption(
            f"time for at least 4 spans of {offer.window} slots of {facts.slot_length_s:g} s",
            f"{seconds:g} s",
            "Give it more time, or the test instance shorter slots.",
            option="seconds",
            value=seconds,
        )
    played = _Play(client, facts, offer, progress, (begun, seconds)).play(spans)
    shown, witness, guesses = _judged(played, (1.0 - confidence) * share)
    requirement = Requirement(offer.window, f"{offer.epsilon!r}")
    return [
        Finding(
            audit="black box: service",
            requirement=requirement,
            shown=shown,
            broken=shown > requirement.epsilon,
            confidence=confidence,
            witness=witness,
            trials=guesses,
            seconds=time.perf_counter() - begun,
        )
    ]


def _refuse_in_use(facts: StreamInfo, users: int, test_instance: bool) -> None:
    if test_instance or (not users and facts.committed < _FRESH):
        return
    raise InvalidOption(
        "a test instance that was just begun: nobody registered, few slots released",
        f"a stream with {users} registered people and {facts.committed} slots",
        "The audit registers invented people and sends events: never point it at a stream that serves people. "
        "If this is a test, say so (--test-instance).",
        option="url",
    )


class _Play:
    """Invented people in a stream, slot after slot."""

    def __init__(
        self,
        client: Client,
        facts: StreamInfo,
        offer: OfferedLevel,
        progress: Progress | None,
        wanted: tuple[float, float],
    ) -> None:
        self._client, self._facts, self._offer, self._progress, self._wanted = client, facts, offer, progress, wanted
        self._cells = facts.cells[:_VICTIMS]
        run = secrets.token_hex(4)
        self._victims = [f"audit-{run}-{place}" for place in range(len(self._cells))]

    def play(self, spans: int) -> _Played:
        """Register, then toss and send in every slot, and wait for the releases."""
        lines = "".join(f"{name},{self._offer.window},{self._offer.epsilon!r}\n" for name in self._victims)
        self._client.import_requirements(f"user,window,epsilon\n{lines}".encode())
        first = self._slot_now() + 2  # whoever joins counts from the next slot on
        window = self._offer.window
        present = np.array([[secrets.randbits(1) for _ in self._victims] for _ in range(spans)], dtype=bool)
        for place in range(spans * window):
            self._send(first + place, present[place // window])
        released = self._released(first, first + spans * window - 1)
        return _Played(present, _arranged(released, spans, window, len(self._victims)))

    def _send(self, slot: int, present: BoolArray) -> None:
        """Wait until the slot is open, then send its events."""
        middle = self._begin(slot) + timedelta(seconds=self._facts.slot_length_s / 4)
        time.sleep(max(0.0, (middle - datetime.now(UTC)).total_seconds()))
        events = [
            {"time": middle, "user": name, "cell": cell}
            for name, cell, is_there in zip(self._victims, self._cells, present.tolist(), strict=True)
            if is_there
        ]
        if events:
            self._client.send(events)
        if self._progress is not None:
            begun, seconds = self._wanted
            self._progress("black box: service", min(int(time.perf_counter() - begun), int(seconds)), int(seconds))

    def _released(self, first: int, last: int) -> list[ReleasedSlot]:
        late = time.monotonic() + 60.0 + 10 * self._facts.slot_length_s
        while self._client.about().committed < last and time.monotonic() < late:
            time.sleep(min(self._facts.slot_length_s, 0.5))
        return list(self._client.releases(first, last))

    def _slot_now(self) -> int:
        origin = self._facts.slot_origin
        return 1 + math.floor((datetime.now(UTC) - origin).total_seconds() / self._facts.slot_length_s)

    def _begin(self, slot: int) -> datetime:
        return self._facts.slot_origin + timedelta(seconds=(slot - 1) * self._facts.slot_length_s)


def _arranged(released: list[ReleasedSlot], spans: int, window: int, victims: int) -> FloatArray:
    """Values by span, victim and slot; zeros where nothing was published."""
    values = np.zeros((spans, window, victims))
    for place, slot in enumerate(released[: spans * window]):
        if slot.histogram is not None:
            values[place // window, place % window] = slot.histogram[:victims]
    return np.moveaxis(values, 1, 2)


def _judged(played: _Played, alpha: float) -> tuple[float, str, int]:
    """A rule chosen on the first half of the spans, its guesses counted on the second; what they prove."""
    scores = np.clip(played.values, 0.0, 1.0).sum(axis=2), played.values.sum(axis=2)
    half = len(played.present) // 2
    name, number, low, high = _chosen(scores, played.present, half)
    absent, there = scores[number][half:] <= low, scores[number][half:] >= high
    right = int((there & played.present[half:]).sum() + (absent & ~played.present[half:]).sum())
    guesses = int(there.sum() + absent.sum())
    least = at_least(right, guesses, alpha) if guesses else 0.0
    shown = max(0.0, math.log(least / (1.0 - least))) if 0.0 < least < 1.0 else 0.0
    rule = f"{name} at least {high:.4g}: present; at most {low:.4g}: absent"
    return shown, f"victims in cells of their own: {rule}; right in {right} of {guesses} guesses", guesses


def _chosen(scores: tuple[FloatArray, FloatArray], present: BoolArray, half: int) -> tuple[str, int, float, float]:
    """Which values, and from where on they speak for presence or absence."""
    best = (-math.inf, "values cut off at 0 and 1", 0, 0.0, 1.0)
    for number, name in enumerate(("values cut off at 0 and 1", "values")):
        seen, truth = scores[number][:half], present[:half]
        for part in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5):
            low, high = (float(np.quantile(seen, place, method="nearest")) for place in (part, 1.0 - part))
            if low >= high:
                continue
            there, absent = seen >= high, seen <= low
            guesses = int(there.sum() + absent.sum())
            right = int((there & truth).sum() + (absent & ~truth).sum())
            least = at_least(right, guesses, 0.01)
            if least > best[0]:
                best = (least, name, number, low, high)
    return best[1:]
