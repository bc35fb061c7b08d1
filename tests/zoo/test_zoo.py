"""Every bug of the zoo is caught by its quickest audit, which is silent about the same product without it.

The long form, every audit on every bug, is `python -m tests.zoo`, which also writes docs/results/zoo.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.zoo.audits import AUDITS, look
from tests.zoo.bug import Bug
from tests.zoo.bugs import BUGS

BROKEN_S, HEALTHY_S = 12.0, 0.5  # the most an audit may take; most take much less
PAGE = Path(__file__).parents[2] / "docs/results/zoo.md"


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_bug_is_caught(bug: Bug) -> None:
    assert look(bug.audits[0], bug.broken, BROKEN_S, seed=1)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_healthy_counterpart_passes(bug: Bug) -> None:
    assert look(bug.audits[0], bug.healthy, HEALTHY_S, seed=1) is None


def test_every_bug_has_a_name_of_its_own_and_audits_that_exist() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert {audit for bug in BUGS for audit in bug.audits} <= set(AUDITS)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_page_says_who_catches_it(bug: Bug) -> None:
    row = next(line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {bug.name} |"))
    assert "**" in row, "no audit caught it when the page was made"
