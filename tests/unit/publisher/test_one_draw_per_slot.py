"""A slot gets one draw: no second permit, no free draw after a failure, and a ledger that only shows."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from wevent import InvalidState, Population, Publisher, Requirement, SeededNoise

PEOPLE = Population({Requirement(10, 0.1): 1000, Requirement(4, 0.5): 1000})
COUNTS = np.array([[137, 400], [300, 20]])


class FailingOnce(SeededNoise):
    """Fails after it has drawn, once in every slot."""

    failing = True

    def laplace(self, permit, size):
        draws = super().laplace(permit, size)
        if self.failing:
            raise OSError("the estimator fell over")
        return draws


def test_the_public_ledger_reserves_nothing() -> None:
    publisher = Publisher(PEOPLE, 2)
    for name in ("reserve", "commit", "replay", "update", "load", "abandon"):
        assert not hasattr(publisher.ledger, name)
    assert publisher.ledger.remaining().tolist() == [500_000_000, 100_000_000]
    publisher.ledger.spent()[:] = 7
    publisher.ledger.remaining()[:] = 7
    assert publisher.ledger.spent().tolist() == [0, 0]
    with pytest.raises(AttributeError):
        publisher.ledger = None  # type: ignore[misc]


@pytest.mark.parametrize("mechanism", ["pft", "pbd", "pba", "pbu", "uniform", "sample", "bd", "ba"])
def test_a_failed_draw_is_charged_and_the_slot_repeats(mechanism: str) -> None:
    noise = FailingOnce(3)
    publisher = Publisher(PEOPLE, 2, mechanism, noise=noise)
    for slot in range(1, 41):
        noise.failing = True
        before = publisher.ledger.remaining()
        try:
            release = publisher.step(COUNTS)
        except OSError:
            drawn = before - publisher.ledger.remaining()
            assert (drawn > 0).any()
            noise.failing = False
            failed = publisher.state()
            restored = Publisher.restore(failed, SeededNoise(3))
            release, other = publisher.step(COUNTS), restored.step(COUNTS)
            assert release.charges.tolist() == other.charges.tolist() == drawn.tolist()
            replayed = Publisher.restore(failed)
            replayed.replay(release.probe_charges, release.publication_charges, None)
            assert replayed.ledger.spent().tolist() == publisher.ledger.spent().tolist(), "charged once"
        assert not release.fresh
        assert release.slot == slot


INTERRUPTED = ["commit", "_store", "_open_next", "_update_remaining", "abandon"]


@pytest.mark.parametrize("function", INTERRUPTED)
@pytest.mark.parametrize("line", range(12))
def test_an_interrupt_while_charges_are_stored_overspends_nothing(function: str, line: int) -> None:
    """Ctrl-C at any line, then the same publisher goes on, or says that it cannot."""
    noise = FailingOnce(3)
    noise.failing = False
    drawn: dict[int, float] = {}
    publisher = Publisher(Population({Requirement(3, 1): 100}), 2, "sample", noise=noise)
    laplace = noise.laplace

    def watched(permit: Any, size: int) -> Any:
        drawn[len(drawn)] = 1 / permit.scale
        return laplace(permit, size)

    noise.laplace = watched  # type: ignore[method-assign]
    passed = [0]

    def interrupt(frame: Any, event: str, _: object) -> Any:
        if frame.f_code.co_name == function and event == "line":
            passed[0] += 1
            if passed[0] > line:
                sys.settrace(None)
                raise KeyboardInterrupt
        return interrupt

    slots = 0
    with suppress(InvalidState):
        for _ in range(9):
            sys.settrace(interrupt)
            noise.failing = function == "abandon"
            try:
                publisher.step([[60, 30]])
            except (KeyboardInterrupt, OSError):
                noise.failing = False
            finally:
                sys.settrace(None)
            slots = publisher.slot
    assert sum(drawn.values()) <= -(-slots // 3) + 1e-9, "one whole epsilon in any three slots"
