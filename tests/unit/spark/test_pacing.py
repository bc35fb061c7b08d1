"""When batches begin, and when their releases go out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from wevent import InvalidSettings
from wevent.publishing.configuration import load_settings
from wevent.settings import Settings
from wevent.settings.values import SECOND_US
from wevent.spark.publication import AVAILABLE_NOW, moments_of, with_trigger
from wevent.streams.clock import SlotClock


def settings(**changes: Any) -> Settings:
    given = {"inputs": "-", "cells": 2, "journal": "run.journal", "slot": "60s"}
    return load_settings(None, {**given, **changes}, ("journal",))


@pytest.mark.parametrize(("slot", "every_s"), [("60s", 7.5), ("1d", 10), ("2s", 0.5), ("40s", 5)])
def test_an_eighth_of_a_slot_within_bounds(slot: str, every_s: float) -> None:
    every_us, _ = with_trigger(None, settings(slot=slot))
    assert every_us == every_s * SECOND_US


def test_releases_are_due_when_spark_has_had_the_time() -> None:
    assert with_trigger(timedelta(seconds=5), settings(grace="10s"))[1].release_delay_us == 25 * SECOND_US
    assert with_trigger("5s", settings(grace="10s", release_delay="20s"))[1].release_delay_us == 20 * SECOND_US
    with pytest.raises(InvalidSettings, match="20 s late, the grace and 2 triggers"):
        with_trigger("5s", settings(grace="10s", release_delay="19s"))


def test_a_release_that_missed_its_moment_does_not_make_the_next_one_miss_its_own() -> None:
    due = moments_of(5 * SECOND_US, settings(release_delay="20s"), SlotClock(0, 60 * SECOND_US))
    assert due is not None
    now = {"us": 0}
    due._now_us = lambda: now["us"]
    assert due.of(1) == due.own(1) == 80 * SECOND_US
    now["us"] = 80 * SECOND_US + 1
    assert due.of(1) == 95 * SECOND_US, "a quarter of a slot later: Spark waits for it"
    now["us"] = 200 * SECOND_US
    assert due.of(1) == 200 * SECOND_US
    assert due.of(2) == 200 * SECOND_US


def test_what_is_there_now() -> None:
    told = settings()
    assert with_trigger(AVAILABLE_NOW, told) == (None, told)
    assert moments_of(None, told, SlotClock(0, 1)) is None


@pytest.mark.parametrize("trigger", ["0s", "soon", ""])
def test_no_pace(trigger: str) -> None:
    with pytest.raises(InvalidSettings, match="trigger"):
        with_trigger(trigger, settings())
