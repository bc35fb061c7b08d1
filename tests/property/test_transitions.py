"""Users change their requirement without a waiting period, and no span costs more than it may (spec 15.1).

Losses are added up from the draws alone. With any rule disabled a life overspends, and the verifier reports it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.transitions.accountant import NO_SPAN, Accountant, Span
from tests.support.transitions.lives import ALL_CHANCES, MECHANISMS, Life
from tests.support.transitions.mutants import MUTANTS, disabled
from tests.support.transitions.scripted import SCENARIOS, ScriptedLife
from tests.support.transitions.systems import FileSystem
from wevent.journal import user_registry

LIVES = int(os.environ.get("WEVENT_TRANSITION_LIVES", "60"))
IN_FILES = max(4, LIVES // 100)
KEPT = (555,)  # a backup was restored before the changes of a version were applied
SEARCHED = 60  # lives in which a disabled rule is to be seen, should the known one no longer show it
EVENTS = ("change", "erase", "nothing lost", "remove", "restore", "set", "unregistered", "version", "version lost")


def test_no_span_costs_more_than_it_may() -> None:
    """All mechanisms and hostile policies; `WEVENT_TRANSITION_RESULT` names a file for the figures."""
    did: Counter[str] = Counter()
    worst = NO_SPAN
    with ProcessPoolExecutor() if LIVES > 200 else nullcontext() as pool:
        spans = (
            map(_live, (*range(LIVES), *KEPT))
            if pool is None
            else pool.map(_live, (*range(LIVES), *KEPT), chunksize=10)
        )
        for seed, (span, events) in enumerate(spans):
            assert span.ratio <= 1, f"life {seed}: {span}"
            worst = max(worst, span)
            did += events
    assert all(did[event] for event in (*EVENTS, *MECHANISMS)), did
    if name := os.environ.get("WEVENT_TRANSITION_RESULT"):
        figures = {
            "lives": LIVES,
            "worst_ratio": float(worst.ratio),
            "overspent": 0,
            "events": dict(sorted(did.items())),
        }
        Path(name).write_text(json.dumps(figures, indent=1) + "\n")


def _live(seed: int) -> tuple[Span, Counter[str]]:
    life = Life(seed, chances=ALL_CHANCES[seed % len(ALL_CHANCES)])
    try:
        return life.live(), life.did
    except Exception as error:
        error.add_note(f"in life {seed}")
        raise


@pytest.mark.parametrize("seed", range(IN_FILES))
def test_a_journal_in_a_file_spends_the_same_and_verifies(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parts in memory, which run many lives, draw what a real journal draws; also where a boundary has many portions."""
    if seed % 2:
        monkeypatch.setattr(user_registry, "_PORTION", 1)
    chances = ALL_CHANCES[seed % len(ALL_CHANCES)]
    in_memory, in_file = Life(seed, chances=chances), Life(seed, lambda noise: FileSystem(noise, tmp_path), chances)
    assert in_file.live().ratio <= 1
    in_memory.live()
    assert _close(in_file) == []
    assert in_file.class_losses == in_memory.class_losses


@pytest.mark.parametrize("name", SCENARIOS)
def test_scripted_lives_keep_every_promise(name: str, tmp_path: Path) -> None:
    life = ScriptedLife(SCENARIOS[name], lambda noise: FileSystem(noise, tmp_path))
    assert life.live().ratio <= 1
    assert _close(life) == []


@pytest.mark.parametrize("name", MUTANTS)
def test_a_disabled_rule_overspends_and_the_verifier_reports_it(name: str, tmp_path: Path) -> None:
    mutant = MUTANTS[name]
    with disabled(name):
        for seed in (mutant.seed, *range(SEARCHED)):
            if mutant.make_life(seed).live().ratio > 1:
                break
        else:
            pytest.fail(f"no life overspent although {name}")
    with disabled(name):
        life = mutant.make_life(seed, lambda noise: FileSystem(noise, tmp_path))
        assert life.live().ratio > 1, "the journal in a file does not overspend"
    assert _close(life), f"the verifier reports nothing although {name}"


def test_the_accountant_adds_up() -> None:
    accountant = Accountant(["u"])
    for slot, cost in enumerate((6, 4, 5), start=1):
        accountant.add(slot, {"u": Fraction(cost)}, {"u": (2, 10) if slot < 3 else (1, 4)})
    worst = accountant.find_worst()
    assert (worst.ratio, worst.window, worst.first) == (Fraction(5, 4), 1, 3)
    accountant.held["u"][2] = (2, 6)
    assert accountant.find_worst()[::4] == (Fraction(9, 6), 2)
    with pytest.raises(AssertionError, match="twice"):
        accountant.add(3, {"u": Fraction(1)}, {})


def _close(life: Life) -> list[dict[str, object]]:
    assert isinstance(life.system, FileSystem)
    life.system.close()
    return life.system.reported
