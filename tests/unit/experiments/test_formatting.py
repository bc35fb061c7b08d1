"""Numbers as tables, sentences and pictures write them."""

import math

import pytest

from wevent.experiments.formatting import change, change_and_interval, is_higher, is_lower, short, spoken
from wevent.experiments.intervals import Interval


@pytest.mark.parametrize(
    ("value", "text"),
    [(37_123, "37,100"), (2.543e8, "2.54e+08"), (0.01234, "0.0123"), (0.0, "0"), (99.96, "100"), (math.nan, "-")],
)
def test_numbers_keep_three_digits(value, text):
    assert short(value) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.001, "-100%"),
        (0.92, "-8%"),
        (0.9951, "-0.5%"),
        (0.9996, "±0%"),
        (1.0, "±0%"),
        (9.99, "+899%"),
        (10.0, "10 times"),
        (210.95, "211 times"),  # +20,995 %
        (1e9, "1.00e+09 times"),
        (math.nan, "-"),
    ],
)
def test_changes_are_percent_until_times_read_better(ratio, text):
    assert change(ratio) == text


def test_millions_are_words():
    assert [spoken(value) for value in (999_400, 999_600, 2.5e9, 3e12, 0.02)] == [
        "999,000",
        "1 million",
        "2.5 billion",
        "3.00e+12",
        "0.02",
    ]


def test_what_is_written_as_no_change_is_none():
    assert not is_lower(Interval(0.9999, 0.9998, 0.99995))
    assert is_lower(Interval(0.99, 0.985, 0.995))
    assert not is_lower(Interval(0.9, 0.5, 1.1))
    assert is_higher(Interval(210.95, 150.0, 300.0))
    assert not is_higher(Interval(2.0, math.nan, math.nan))
    assert change_and_interval(Interval(2.0, math.nan, math.nan)) == ("+100%", "-")
    assert change_and_interval(Interval(8.0, 6.0, 15.0)) == ("8 times", "6 to 15 times")
