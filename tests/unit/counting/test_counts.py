"""Counts are checked before anything is spent, and no message ever shows one."""

from __future__ import annotations

import pickle
import traceback
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from wevent import Counts, InvalidCounts, Population, Publisher, Requirement, SeededNoise
from wevent.counting.roster import Rejected, checked_matrix

SECRET = 987654
SIZES = np.array([SECRET + 10, 20])

BAD: dict[str, Any] = {
    "negative": [[SECRET, -SECRET], [0, 0]],
    "fractional": [[SECRET, 0.5], [0, 0]],
    "fractional secret": [[SECRET + 0.25, 0], [0, 0]],
    "nan": [[SECRET, np.nan], [0, 0]],
    "infinite": [[SECRET, np.inf], [0, 0]],
    "one row": [[SECRET, SECRET]],
    "flat": [SECRET, 0, 0, 0],
    "three columns": [[SECRET, 0, 0], [0, 0, 0]],
    "scalar": SECRET,
    "ragged": [[SECRET, 0], [0]],
    "cell above": [[0, 0], [0, SECRET]],
    "row above": [[SECRET, 11], [0, 0]],
    "text": [[str(SECRET), "0"], ["0", "0"]],
    "objects": np.array([[SECRET, 0], [0, 0]], dtype=object),
    "complex": [[SECRET + 1j, 0], [0, 0]],
    "unsigned beyond int64": np.array([[2**63 + SECRET, 0], [0, 0]], dtype=np.uint64),
    "beyond any integer type": [[2**70 + SECRET, 0], [0, 0]],
    "beyond exact floats": [[float(SECRET * 10**15), 0], [0, 0]],
    "dates": np.array([[SECRET, 0], [0, 0]], dtype="datetime64[s]"),
}


@pytest.mark.parametrize(
    ("case", "wrapped"), [*((case, False) for case in BAD), *((case, True) for case in BAD if case != "ragged")]
)
def test_a_message_never_shows_a_count(case: str, wrapped: bool) -> None:
    counts = BAD[case]
    if wrapped:
        counts = Counts(np.asarray(counts))
    with pytest.raises(InvalidCounts) as caught:
        checked_matrix(counts, SIZES, 2, 1)
    error = caught.value
    shown = [str(error), repr(error), repr(error.args), repr(error.facts), error.problem, repr(vars(error))]
    shown.append("".join(traceback.format_exception_only(error)))
    shown.append(repr(pickle.loads(pickle.dumps(error)).args))
    for text in shown:
        assert str(SECRET) not in text
    assert error.__cause__ is None
    assert error.__context__ is None or str(SECRET) not in str(error.__context__)


def test_a_counts_object_does_not_show_its_values() -> None:
    counts = Counts(np.array([[SECRET, 1]]), Rejected(SECRET))
    assert str(SECRET) not in repr(counts)
    assert str(SECRET) not in str(counts)


@pytest.mark.parametrize(
    "counts",
    [
        [[3, 4], [5, 6]],
        np.array([[3, 4], [5, 6]]),
        np.array([[3, 4], [5, 6]], dtype=np.uint8),
        np.array([[3, 4], [5, 6]], dtype=np.int32),
        np.array([[3.0, 4.0], [5.0, 6.0]], dtype=np.float32),
        np.asfortranarray(np.array([[3, 4], [5, 6]])),
        pd.DataFrame([[3, 4], [5, 6]]),
        pl.DataFrame({"a": [3, 5], "b": [4, 6]}),
        Counts(np.array([[3, 4], [5, 6]])),
    ],
)
def test_whole_numbers_of_any_kind_are_taken(counts: Any) -> None:
    matrix = checked_matrix(counts, np.array([7, 11]), 2, 1)
    assert matrix.dtype == np.int64
    assert matrix.tolist() == [[3, 4], [5, 6]]


def test_the_limits_are_inclusive() -> None:
    assert checked_matrix([[7, 0]], np.array([7]), 2, 1).tolist() == [[7, 0]]
    assert checked_matrix([[7, 7, 0]], np.array([7]), 3, 2).tolist() == [[7, 7, 0]]
    assert checked_matrix([[0, 0]], np.array([0]), 2, 1).tolist() == [[0, 0]]
    for counts, k in ([[4, 4]], 1), ([[8, 0]], 2), ([[6, 6, 3]], 2):
        with pytest.raises(InvalidCounts):
            checked_matrix(counts, np.array([7]), len(counts[0]), k)


@pytest.mark.parametrize("entries", [[2**62, 2**62], [2**63 - 1, 1], [2**62] * 4])
def test_a_sum_that_overflows_is_seen(entries: list[int]) -> None:
    with pytest.raises(InvalidCounts):
        checked_matrix(np.array([entries]), np.array([100]), len(entries), 1)


def test_the_callers_array_is_neither_changed_nor_kept() -> None:
    counts = np.array([[3, 4], [5, 6]])
    counts.setflags(write=False)
    publisher = Publisher(
        Population({Requirement(2, 1): 10, Requirement(3, 1): 20}), 2, "uniform", noise=SeededNoise(1)
    )
    release = publisher.step(counts)
    assert not np.shares_memory(release.histogram, counts)
