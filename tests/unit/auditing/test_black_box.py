"""The audit from outside: its bound is exact, it catches what is broken, and it leaves the honest alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import beta, binom

from tests.support.broken_from_outside import BROKEN, EverySlot, NegativeRedrawn, SaturatedNoise, subject
from tests.zoo.bugs import BUGS
from wevent.auditing.audit_subject import AuditSubject, Finding, build_subject
from wevent.auditing.black_box.black_box_audit import PROMISES, WHISPER, Effort, accepted_pairs, audit_black_box
from wevent.auditing.black_box.events import best_event
from wevent.auditing.black_box.loss_bounds import at_least, at_most, proven_loss, upper_tail
from wevent.auditing.black_box.observations import observe
from wevent.auditing.black_box.stream_pairs import Victim, pairs_for
from wevent.core.requirements import Requirement


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (1, 10), (10, 10), (7, 40), (250, 1000), (9_990, 10_000)])
@pytest.mark.parametrize("alpha", [0.05, 0.003])
def test_bounds_of_a_probability_are_those_of_clopper_and_pearson(hits: int, trials: int, alpha: float) -> None:
    low = beta.ppf(alpha, hits, trials - hits + 1) if hits else 0.0
    high = beta.ppf(1 - alpha, hits + 1, trials - hits) if hits < trials else 1.0
    assert at_least(hits, trials, alpha) == pytest.approx(low, abs=1e-9)
    assert at_most(hits, trials, alpha) == pytest.approx(high, abs=1e-9)
    assert upper_tail(hits, trials, 0.3) == pytest.approx(binom.sf(hits - 1, trials, 0.3), rel=1e-9, abs=1e-300)


def test_a_loss_is_proven_from_both_bounds() -> None:
    expected = math.log(at_least(700, 1000, 0.025) / at_most(300, 1000, 0.025))
    assert proven_loss((700, 1000), (300, 1000), 0.05) == expected
    assert proven_loss((0, 1000), (300, 1000), 0.05) == 0.0
    assert proven_loss((500, 1000), (500, 1000), 0.05) == 0.0


def test_a_bound_is_too_high_as_seldom_as_it_says() -> None:
    random = np.random.default_rng(4)
    here, there, runs = 0.3, 0.1, 200
    wrong = sum(
        proven_loss((int(mine), runs), (int(other), runs), 0.1) > math.log(here / there)
        for mine, other in zip(random.binomial(runs, here, 300), random.binomial(runs, there, 300), strict=True)
    )
    assert binom.sf(wrong - 1, 300, 0.1) > 1e-6


@pytest.mark.parametrize("options", [{}, {"neighbours": "replace"}, {"max_cells_per_user": 2}])
@pytest.mark.parametrize("promise", PROMISES)
def test_streams_of_a_pair_differ_by_one_user_of_one_class_in_one_window(promise: Requirement, options: dict) -> None:
    names = set()
    for pair in pairs_for(promise, Victim.from_options(options)):
        names.add(pair.name)
        changed = np.abs(pair.streams[0] - pair.streams[1])
        slots, classes, _ = np.nonzero(changed)
        assert set(classes) == {pair.population.index(promise)}
        assert slots.max() - slots.min() < promise.window
        most = options.get("max_cells_per_user", 1) * (2 if options.get("neighbours") == "replace" else 1)
        assert changed.sum(axis=(1, 2)).max() == most
        for stream in pair.streams:
            assert (stream.sum(axis=2) <= pair.population.sizes * options.get("max_cells_per_user", 1)).all()
    assert len(names) == (6 if options.get("neighbours") == "replace" else 7) + (promise.window == 1)


def test_the_event_that_is_chosen_tells_the_streams_apart() -> None:
    every_slot = subject(EverySlot)
    pair = next(accepted_pairs(every_slot, PROMISES[:1]))
    seen = observe(every_slot, pair, 0, 400), observe(every_slot, pair, 1, 400)
    hoped, event = best_event(pair, seen, 400)
    rates = [event.hits(pair, observe(every_slot, pair, stream, 1000)) / 1000 for stream in (0, 1)]
    assert 0.3 < hoped < 1.0
    assert rates[event.more_often] > 1.7 * rates[1 - event.more_often]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [kind for kind in BROKEN if kind is not SaturatedNoise], ids=lambda kind: kind.__name__
)
def test_what_is_broken_is_caught(kind: type[EverySlot]) -> None:
    small = kind is NegativeRedrawn  # breaks its promise by a fifth only
    findings = _audited(subject(kind), PROMISES[: 1 if small else 2], trials=40_000 if small else 24_000)
    assert any(finding.broken for finding in findings), findings


@pytest.mark.slow
def test_noise_that_is_cut_off_at_the_end_of_32_bits_is_caught() -> None:
    (finding,) = _audited(subject(SaturatedNoise), [WHISPER], trials=12_000)
    assert finding.broken, finding


@pytest.mark.slow
def test_a_threshold_that_is_chosen_for_those_present_is_caught() -> None:
    bug = next(one for one in BUGS if one.name.startswith("present users"))
    assert bug.broken.mechanism is not None
    (finding,) = _audited(bug.broken.mechanism, PROMISES[:1], trials=2500)
    assert finding.broken, finding
    assert "victim tips the balance" in finding.witness


def test_noise_that_repeats_between_many_cells_is_caught() -> None:
    bug = next(one for one in BUGS if one.name.startswith("noise that repeats"))
    with bug.broken.undone():
        (finding,) = _audited(build_subject("uniform"), PROMISES[:1], trials=400)
    assert finding.broken, finding
    assert "among many cells: difference between cells 64 apart, exactly" in finding.witness


@pytest.mark.slow
def test_the_honest_are_called_broken_as_seldom_as_promised() -> None:
    rounds, alarms = 20, 0
    for seed in range(rounds):
        findings = _audited(subject(EverySlot), PROMISES[1:2], trials=1200, seed=seed, confidence=0.9)
        alarms += any(finding.broken for finding in findings)
    assert binom.sf(alarms - 1, rounds, 0.1) > 1e-4


@pytest.mark.slow
def test_most_of_a_promise_that_is_used_up_is_shown() -> None:
    """One class and `uniform`: the loss is the whole promise, and more than 70 % of it is proven."""
    (finding,) = _audited(build_subject("uniform"), PROMISES[:1], trials=15_000, confidence=0.999)
    assert 0.7 < finding.shown <= 1.0, finding
    assert finding.confidence == 0.999
    assert finding.audit == "black box"
    assert "of its neighbour" in finding.witness


def _audited(
    audited: AuditSubject, promises: Sequence[Requirement], *, trials: int, seed: int = 1, confidence: float = 0.95
) -> list[Finding]:
    effort = Effort(trials=trials)
    return audit_black_box(audited, effort, seed=seed, confidence=confidence, promises=promises)
