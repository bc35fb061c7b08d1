"""The streams of benchmarks are what they say: people who exist, the same for the same seed."""

from functools import partial

import numpy as np
import pytest

from benchmarks import hard_streams, held_back_streams, memoryless_streams

MAKERS = {
    **{kind: partial(held_back_streams.held_back, kind) for kind in held_back_streams.KINDS},
    **{kind: partial(memoryless_streams.memoryless, kind, classes=3) for kind in memoryless_streams.KINDS},
}


@pytest.mark.parametrize("kind", MAKERS)
def test_nobody_is_in_two_cells_and_a_seed_repeats(kind: str) -> None:
    counts, sizes = MAKERS[kind](users=900, slots=200, seed=7)
    again, _ = MAKERS[kind](users=900, slots=200, seed=7)
    other, _ = MAKERS[kind](users=900, slots=200, seed=8)
    assert counts.shape[:2] == (200, len(sizes))
    assert sizes.sum() == 900
    assert counts.min() >= 0
    assert (counts.sum(axis=2) <= sizes).all()
    np.testing.assert_array_equal(counts, again)
    assert (counts != other).any()
    assert counts.sum(axis=1).std(axis=0).max() > 1.0


def test_held_back_streams_are_others_than_those_that_constants_are_chosen_on() -> None:
    others = {"tlns", "sin", "log", *hard_streams.KINDS, *memoryless_streams.KINDS}
    assert not set(held_back_streams.KINDS) & others


@pytest.mark.parametrize("kind", memoryless_streams.KINDS)
def test_a_memoryless_slot_says_nothing_about_the_next(kind: str) -> None:
    counts, _ = memoryless_streams.memoryless(kind, users=10_000, classes=1, seed=7, slots=2_000)
    largest = counts.sum(axis=1)[:, counts.sum(axis=(0, 1)).argmax()].astype(float)
    assert abs(np.corrcoef(largest[1:], largest[:-1])[0, 1]) < 0.08
    assert largest.std() > 5 * np.sqrt(largest.mean())
