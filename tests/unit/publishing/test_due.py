"""Releases of live slots go out at fixed moments, however long a slot took."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.delayed_source import CLOCK, SECOND, DelayedSource, Wall
from tests.support.synthetic import MINUTE_US, make_journal
from wevent.counting.labels import Cells
from wevent.outputs import KeptOutput
from wevent.publishing.loop import DueMoments, Publication, Running, due_moments, due_offset_us
from wevent.settings import StreamSettings


@pytest.mark.parametrize(
    ("now_s", "goes_out_s"), [(0, 65), (60, 65), (65, 65), (66, 125), (124, 125), (125, 125), (300, 305)]
)
def test_a_release_waits_for_its_moment_or_the_next_one_of_the_grid(now_s: int, goes_out_s: int) -> None:
    moments = DueMoments(CLOCK, 5 * SECOND, lambda: now_s * SECOND)
    assert moments.of(1) == goes_out_s * SECOND


def release_times(path: Path, source: DelayedSource, wall: Wall, last: int, offset_s: int = 5) -> list[tuple[int, int]]:
    """Publish; return the slots and the second at which each was released. Slots that are released together are one."""
    told: list[tuple[int, int]] = []
    with make_journal(path) as journal:
        running = Running(
            last=last,
            due=DueMoments(CLOCK, offset_s * SECOND, wall),
            progress=lambda slot, last: told.append((slot, wall.us // SECOND)),
        )
        Publication(journal, source, KeptOutput(), running=running).run()
    return told


ON_TIME = [(slot, 60 * slot + 5) for slot in range(1, 6)]


@pytest.mark.parametrize(
    ("delays", "expected"),
    [
        ({}, ON_TIME),
        ({1: 4, 2: 3, 4: 2}, ON_TIME),
        ({2: 7}, [ON_TIME[0], (3, 185), *ON_TIME[3:]]),  # at the next moment, never when it is ready
    ],
)
def test_how_long_a_slot_takes_shows_nowhere(
    tmp_path: Path, delays: dict[int, int], expected: list[tuple[int, int]]
) -> None:
    wall = Wall()
    source = DelayedSource(5, wall, delays)
    assert release_times(tmp_path / "run.journal", source, wall, 5) == expected
    assert source.forgotten == [slot for slot, _ in expected], "the events of a slot go with its commit"
    assert source.counted == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("offset_s", [5, 60, 65, 150, 200, 600])
def test_every_release_has_a_moment_of_its_own_however_long_it_is_held(tmp_path: Path, offset_s: int) -> None:
    """Slots that closed while an earlier one was held are ready long before their own moments."""
    wall = Wall()
    found = release_times(tmp_path / "run.journal", DelayedSource(12, wall, {}), wall, 12, offset_s)
    assert found == [(slot, 60 * slot + offset_s) for slot in range(1, 13)]


@pytest.mark.parametrize(
    ("frozen_s", "expected"),
    [
        (0.1, ON_TIME),
        (3, ON_TIME),
        (20, [ON_TIME[0], (2, 185), *ON_TIME[2:]]),
        (70, [ON_TIME[0], (2, 245), (3, 245), *ON_TIME[3:]]),
    ],
)
def test_a_release_that_was_held_by_a_frozen_process_goes_out_on_the_grid(
    tmp_path: Path, frozen_s: float, expected: list[tuple[int, int]]
) -> None:
    """Slot 2 is drawn and held when the process stands still."""
    wall = Wall()
    source = DelayedSource(5, wall, {})
    frozen_us = round(frozen_s * SECOND)
    idle = source.idle

    def freeze(wait_s: float) -> bool:
        nonlocal frozen_us
        if source.counted[-1] == 2:
            wall.us, frozen_us = wall.us + frozen_us, 0
        return idle(wait_s)

    source.idle = freeze  # type: ignore[method-assign]
    assert release_times(tmp_path / "run.journal", source, wall, 5) == expected


def test_a_journal_that_is_ahead_of_the_clock_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    wall = Wall()
    due = DueMoments(CLOCK, 5 * SECOND, wall)

    def lines(last: int) -> list[str]:
        caplog.clear()
        Publication(journal, DelayedSource(6, wall, {}), KeptOutput(), running=Running(last=last, due=due)).run()
        assert all(record.levelname == "WARNING" for record in caplog.records)
        return [record.getMessage().partition(":")[0] for record in caplog.records]

    caplog.set_level("WARNING")
    with make_journal(tmp_path / "run.journal") as journal:
        assert lines(2) == []
        assert lines(3) == []
        wall.us = 0
        assert lines(5) == [
            "slot 3 is released and slot 4 begins in 180 s",
            "slots are no longer ahead of the clock",
        ]
        assert lines(6) == []


def test_nothing_is_in_the_journal_before_it_is_due(tmp_path: Path) -> None:
    wall = Wall()
    source = DelayedSource(3, wall, {})
    with make_journal(tmp_path / "run.journal") as journal:
        looked: list[tuple[int, int]] = []
        idle = source.idle

        def look(wait_s: float) -> bool:
            looked.append((journal.head().committed, wall.us))
            return idle(wait_s)

        source.idle = look  # type: ignore[method-assign]
        Publication(
            journal, source, KeptOutput(), running=Running(last=3, due=DueMoments(CLOCK, 5 * SECOND, wall))
        ).run()
        assert journal.head().committed == 3
    assert looked
    assert all(committed == 0 or at >= 60 * SECOND * committed + 5 * SECOND for committed, at in looked)


def test_a_run_that_is_stopped_drops_what_it_holds_if_the_next_one_counts_it_again(tmp_path: Path) -> None:
    wall = Wall()
    source = DelayedSource(3, wall, {})
    with make_journal(tmp_path / "run.journal") as journal:

        def stopped(wait_s: float) -> bool:
            return DelayedSource.idle(source, wait_s) or journal.head().committed == 1

        source.idle = stopped  # type: ignore[method-assign]
        running = Running(last=3, due=DueMoments(CLOCK, 5 * SECOND, wall))
        done = Publication(journal, source, KeptOutput(), running=running).run()
        assert (journal.head().committed, source.counted, source.forgotten) == (1, [1, 2], [1])
        assert (done.first, done.last) == (1, 1), "what was dropped is not reported"
        again = DelayedSource(3, wall, {})
        done = Publication(journal, again, KeptOutput(), running=running).run()
        assert (again.counted, again.forgotten, done.last) == ([2, 3], [2, 3], 3)


def test_what_takes_as_long_as_there_are_events_comes_after_the_release(tmp_path: Path) -> None:
    wall = Wall()
    source = DelayedSource(1, wall, {})
    order: list[str] = []
    source.forget = lambda through: order.append("forgotten")  # type: ignore[method-assign]
    with make_journal(tmp_path / "run.journal") as journal:
        running = Running(last=1, progress=lambda slot, last: order.append("told"), at=order.append)
        Publication(journal, source, KeptOutput(), running=running).run()
    assert [step for step in order if step in ("committed", "emitted", "told", "forgotten")] == [
        "committed",
        "emitted",
        "told",
        "forgotten",
    ]


def settings(**changes: Any) -> StreamSettings:
    fields: dict[str, Any] = {"inputs": ("-",), "cells": Cells.of(3), "slot_us": MINUTE_US}
    return StreamSettings(**{**fields, **changes})


def test_only_slots_that_the_clock_closes_have_moments() -> None:
    assert due_moments(settings(), CLOCK) is not None
    assert due_moments(settings(close_slots_by="lines"), CLOCK) is None
    assert due_moments(settings(inputs=("events.csv",)), CLOCK) is None


def test_unless_told_releases_go_out_soon_after_the_grace() -> None:
    assert due_offset_us(settings(grace_us=10 * SECOND)) == 11 * SECOND
    assert due_offset_us(settings(slot_us=SECOND)) == SECOND // 4
    assert due_offset_us(settings(release_delay_us=7)) == 7
