"""Every bug of the zoo is caught by its quickest audit, which is silent about the same product without it.

The long form, every audit on every bug, is `python -m tests.zoo`, which also writes docs/results/zoo.md.
"""

from __future__ import annotations

import itertools
import time

import pytest

from tests.zoo.audits import AUDITS, look
from tests.zoo.bug import Bug, Persistence
from tests.zoo.bugs import BUGS

BROKEN = Persistence(rounds=20)
"""A number, no time: on a busy machine it takes longer and finds the same. It ends with the first that is found.

Audits that compute or compare find what they find, here within two rounds: nothing is left to chance. (Tables, which show
one bug in a tenth of a second, have six seconds of their own.) Noise in lives is chance. The first life is one that was
chosen. Of other lives about every second one shows its bug where a bug is rarest (4 of 8), so all 20 rarely miss one.
"""
HEALTHY = Persistence(seconds=0.5)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_bug_is_caught(bug: Bug) -> None:
    assert look(bug.audits[0], bug.broken, BROKEN, seed=1)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_healthy_counterpart_passes(bug: Bug) -> None:
    assert look(bug.audits[0], bug.healthy, HEALTHY, seed=1) is None


@pytest.mark.parametrize("name", ["saturated noise", "stale backup resumed, slots drawn again"])
def test_it_is_caught_on_a_machine_that_has_no_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that needs two rounds, and one that needs the later part of a life."""
    bug = next(one for one in BUGS if one.name == name)
    clock = itertools.count(0.0, 60.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    assert look(bug.audits[0], bug.broken, BROKEN, seed=1)


def test_no_test_leaves_it_to_the_black_box_which_looks_by_time() -> None:
    assert not any(bug.audits[0].startswith("black box") for bug in BUGS)


def test_every_bug_has_a_name_of_its_own_and_audits_that_exist() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert {audit for bug in BUGS for audit in bug.audits} <= set(AUDITS)
