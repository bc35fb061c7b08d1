"""Time for live slots follows the wall clock, and no jump of it before the wall clock has stayed there."""

from __future__ import annotations

import itertools
import logging

import pytest

from wevent.settings.values import SECOND_US
from wevent.streams import clock as steady_clock
from wevent.streams.clock import STABLE_US, TOLERANCE_US, SteadyClock, WallClock, opening_us

MINUTE_S = STABLE_US // SECOND_US
TOLERANCE_S = TOLERANCE_US / SECOND_US
DAY_S = 86_400
MOST_AHEAD_S = 600
JUMPS_S = (TOLERANCE_S + 0.1, 300, DAY_S, 20_000 * DAY_S)
BOTH_WAYS = [sign * jump for jump in JUMPS_S for sign in (1, -1)]
STARTED_S = 30_000 * DAY_S


class Readings:
    """A clock and invented readings of it: `boot_s` goes on, `off_s` is how wrong the wall clock is."""

    def __init__(self) -> None:
        self.clock, self.boot_s, self.off_s = SteadyClock(), 1_000.0, 0.0
        self.read()

    def read(self, after_s: float = 0.0) -> tuple[float, float]:
        """How far the times by which slots close and begin are from the right one, in seconds."""
        self.boot_s += after_s
        right_us = round((STARTED_S + self.boot_s) * SECOND_US)
        self.clock.read(right_us + round(self.off_s * SECOND_US), round(self.boot_s * SECOND_US))
        closing_s, opening_s = ((one - right_us) / SECOND_US for one in (self.clock.closing_us, self.clock.opening_us))
        return closing_s, opening_s

    @property
    def jump_s(self) -> float:
        return self.clock.jump_us / SECOND_US

    @property
    def back_s(self) -> float:
        return self.clock.back_us / SECOND_US

    def both(self, jump_s: float) -> tuple[float, float]:
        """What is expected while the wall clock is wrong by so much, and is not followed."""
        closing_s = min(0, jump_s)
        return closing_s, min(max(0, jump_s), closing_s + MOST_AHEAD_S)


@pytest.mark.parametrize("rate", [5e-4, -5e-4, 0.083, -0.083])
def test_slewing_is_followed(rate: float) -> None:
    readings = Readings()
    for _ in range(18_000):
        readings.off_s += rate * 0.2
        assert readings.read(0.2) == pytest.approx((readings.off_s, readings.off_s), abs=1e-5)
        assert (readings.jump_s, readings.back_s) == (0, 0)
    assert abs(readings.off_s) > 1.7


@pytest.mark.parametrize("rest_s", [3_600, 30 * DAY_S])
def test_a_machine_that_slept_is_no_jump(rest_s: float) -> None:
    readings = Readings()
    assert readings.read(rest_s) == (0, 0)
    assert readings.jump_s == 0


@pytest.mark.parametrize("every_s", [0.2, 7.0])
@pytest.mark.parametrize("lasts_s", [0.0, 8.0, MINUTE_S - 0.5])
@pytest.mark.parametrize("jump_s", BOTH_WAYS)
def test_while_a_clock_is_wrong_both_have_to_agree(jump_s: float, lasts_s: float, every_s: float) -> None:
    """Ahead: slots go on as before. Back: they wait. No event that is in time by either clock is refused."""
    readings = Readings()
    readings.off_s = jump_s
    begun_s = readings.boot_s + every_s
    while readings.boot_s + every_s - begun_s <= lasts_s:
        assert readings.read(every_s) == pytest.approx(readings.both(jump_s))
        assert readings.jump_s == pytest.approx(jump_s)
        waits_s = max(0, -jump_s - (readings.boot_s - 1_000))
        assert readings.back_s == pytest.approx(waits_s if waits_s > TOLERANCE_S else 0)
    readings.off_s = 0
    for _ in range(20):
        assert readings.read(every_s) == (0, 0)
        assert (readings.jump_s, readings.back_s) == (0, 0)


@pytest.mark.parametrize("every_s", [0.2, 7.0, MINUTE_S])
@pytest.mark.parametrize("jump_s", BOTH_WAYS)
def test_a_clock_that_stays_where_it_is_for_a_minute_is_followed(jump_s: float, every_s: float) -> None:
    readings = Readings()
    readings.off_s = jump_s
    readings.read(0.2)
    begun_s = readings.boot_s
    while readings.boot_s + every_s - begun_s < MINUTE_S - 1e-6:
        assert readings.read(every_s) == pytest.approx(readings.both(jump_s))
    assert readings.read(every_s) == (jump_s, jump_s)
    assert readings.jump_s == 0


def test_a_clock_that_went_back_is_behind_until_it_has_caught_up() -> None:
    readings = Readings()
    readings.off_s = -300
    for second in range(1, 310):
        assert readings.read(1)[0] == -300
        assert readings.back_s == max(0, 300 - second if 300 - second > TOLERANCE_S else 0)


def test_slewing_after_a_jump_begins_no_minute_anew() -> None:
    readings = Readings()
    readings.off_s = 300
    readings.read(0.2)
    for _ in range(MINUTE_S - 1):
        readings.off_s += 0.03
        assert readings.read(1)[0] == 0
    assert readings.read(1) == pytest.approx((readings.off_s, readings.off_s), abs=1e-5)


def followed(moments_s: list[int], offsets_s: tuple[int, ...]) -> list[int]:
    """The rule, said once more: the offset of steady time at each reading."""
    used, begin = [offsets_s[0]], 0  # where the run of readings begins that are off to the same side
    for place in range(1, len(offsets_s)):
        before = used[-1]
        sides = [0 if abs(one - before) <= TOLERANCE_S else 1 if one > before else -1 for one in offsets_s]
        while begin < place and len(set(sides[begin : place + 1])) > 1:
            begin += 1
        if not sides[place]:
            used.append(offsets_s[place])
        elif moments_s[place] - moments_s[begin] < MINUTE_S:
            used.append(before)
        else:
            nearest = min(offsets_s[begin : place + 1], key=lambda one: abs(one - before))
            used.append(offsets_s[place] if abs(offsets_s[place] - nearest) <= TOLERANCE_S else nearest)
            begin = place
    return used


@pytest.mark.parametrize("every_s", [20, 30, 60])
def test_every_sequence_of_a_few_offsets(every_s: int) -> None:
    moments_s = [number * every_s for number in range(8)]
    for offsets_s in itertools.product((0, 2, 30, -30), repeat=len(moments_s)):
        clock = SteadyClock()
        told, expected = [], []
        for at, offset, used in zip(moments_s, offsets_s, followed(moments_s, offsets_s), strict=True):
            clock.read((at + offset + DAY_S) * SECOND_US, at * SECOND_US)
            told.append(tuple(one // SECOND_US - at - DAY_S for one in (clock.closing_us, clock.opening_us)))
            expected.append((min(offset, used), max(offset, used)))
        assert told == expected, offsets_s


class Invented:
    """Readings for a wall clock of the process."""

    def __init__(self) -> None:
        self.boot_us, self.off_us = 1_000 * SECOND_US, 0

    def __call__(self) -> tuple[int, int]:
        return STARTED_S * SECOND_US + self.boot_us + self.off_us, self.boot_us


def test_a_jump_is_logged_when_it_begins_and_ends(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    invented = Invented()
    monkeypatch.setattr(steady_clock, "_readings", invented)
    now_us = WallClock()

    def lines(off_s: int, seconds: int) -> list[str]:
        caplog.clear()
        invented.off_us = off_s * SECOND_US
        for _ in range(5 * seconds):
            invented.boot_us += SECOND_US // 5
            now_us()
        assert {record.levelno for record in caplog.records} <= {logging.WARNING}
        return [record.getMessage().partition(":")[0] for record in caplog.records]

    assert lines(0, 60) == []
    assert lines(300, 8) == ["the wall clock jumped by +300 s"]
    assert now_us.has_jumped()
    assert lines(600, 8) == []
    assert lines(0, 8) == ["the wall clock is steady again"]
    assert not now_us.has_jumped()
    assert lines(-300, 59) == ["the wall clock jumped by -300 s", "slots are ahead of the clock by 300 s"]
    assert lines(-300, 2) == ["the wall clock is steady again"]
    assert lines(-300, 230) == []
    assert lines(-300, 10) == ["slots are no longer ahead of the clock"]


def test_slots_begin_by_the_later_clock_and_only_after_a_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    invented = Invented()
    monkeypatch.setattr(steady_clock, "_readings", invented)
    now_us = WallClock()
    right_us = now_us()
    assert opening_us(now_us) == 0
    invented.off_us = 300 * SECOND_US
    assert (now_us(), opening_us(now_us)) == (right_us, right_us + 300 * SECOND_US)
    invented.off_us = -300 * SECOND_US
    assert (now_us(), opening_us(now_us)) == (right_us - 300 * SECOND_US, right_us)
    assert opening_us(lambda: right_us) == 0


def test_a_freeze_between_two_readings_is_no_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    class Frozen:
        """A machine that stands still for a while after each of the first readings."""

        def __init__(self) -> None:
            self.ns, self.number = 10**12, 0

        def read(self) -> int:
            read_ns = self.ns
            self.number += 1
            self.ns += 300 * 10**9 if self.number <= 4 else 1_000
            return read_ns

    frozen = Frozen()
    monkeypatch.setattr(steady_clock.time, "clock_gettime_ns", lambda kind: frozen.read())
    monkeypatch.setattr(steady_clock.time, "time_ns", lambda: 10**18 + frozen.read())
    now_us = WallClock()
    for _ in range(10):
        now_us()
        assert not now_us.has_jumped()
