"""Windows as people write and read them."""

from __future__ import annotations

import pytest

from wevent.errors import InvalidRequirement
from wevent.settings.values import WindowReader, span_text

MINUTE = 60_000_000


@pytest.mark.parametrize(
    ("written", "slots"),
    [(40, 40), ("40", 40), (" 7 ", 7), ("24h", 1440), ("1d", 1440), ("90s", 2), ("1ms", 1), ("2 min", 2)],
)
def test_slots_and_durations(written: object, slots: int) -> None:
    assert WindowReader(MINUTE).read(written) == slots


@pytest.mark.parametrize("written", ["", "day", "0h", "-1h", "1.5h", "h", True, 0.5, None, "9" * 30, "٣"])
def test_what_is_neither(written: object) -> None:
    with pytest.raises(InvalidRequirement, match="or a duration such as 24h"):
        WindowReader(MINUTE).read(written)


def test_without_a_length_of_slots_a_duration_means_nothing() -> None:
    assert WindowReader(None).read("40") == 40
    with pytest.raises(InvalidRequirement, match="slot_column"):
        WindowReader(None).read("24h")


def test_what_is_rounded_up_is_said_once() -> None:
    windows = WindowReader(100 * MINUTE)
    assert [windows.read(text) for text in ("24h", "200min", "24h", "1h")] == [15, 2, 15, 1]
    assert windows.notes == (
        "Window 24h is no whole number of slots: it covers 15 slots (1 day 1 hour).",
        "Window 1h is no whole number of slots: it covers 1 slot (1 hour 40 minutes).",
    )


@pytest.mark.parametrize(
    ("length_us", "text"),
    [
        (120 * MINUTE, "2 hours"),
        (60 * MINUTE, "1 hour"),
        (90 * MINUTE, "1 hour 30 minutes"),
        (7 * 1440 * MINUTE, "7 days"),
        (500_000, "500 ms"),
        (1_500_000, "1 second 500 ms"),
        (1500, "1.5 ms"),
        (0, "0 ms"),
    ],
)
def test_spans_in_words(length_us: int, text: str) -> None:
    assert span_text(length_us) == text
