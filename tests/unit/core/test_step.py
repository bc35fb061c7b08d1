"""The one step: order of reserving, looking, measuring and charging."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.scripted import ScriptedNoise
from wevent import Population, Publisher, Requirement, SeededNoise
from wevent.core.builtin_mechanisms import BUILT_IN
from wevent.core.ledger import Ledger
from wevent.core.mechanism import NoOffer
from wevent.core.options import Options
from wevent.core.step import Assembled, advance, first_history, step

POPULATION = Population({Requirement(2, 1): 100, Requirement(4, 2): 50})


class Unreadable:
    """Counts that must not be looked at."""

    def __getattribute__(self, name: str) -> object:
        raise AssertionError(f"counts were read: {name}")


class Greedy:
    """Offers more than any window holds."""

    def probe(self, ledger):
        return ledger.shares

    def offer(self, ledger, history):
        return ledger.epsilons


class Idler(Greedy):
    """Probes, but never offers a publication."""

    def offer(self, ledger, history):
        return NoOffer.NOT_DUE


def pieces(name: str, **changes) -> Assembled:
    row, options = BUILT_IN[name], Options()
    made = Assembled(
        row.policy(POPULATION.classes, options), row.estimator(options), row.smoother(options), "error", False
    )
    return replace(made, **changes)


def test_a_refused_slot_repeats_without_reading_counts_or_drawing_noise() -> None:
    greedy = pieces("pbd", policy=Greedy())
    history = first_history(2, 3, greedy.smoother)
    outcome = step(greedy, Ledger(POPULATION), history, Unreadable(), Unreadable())  # type: ignore[arg-type]
    assert outcome.kind == "repeated"
    assert outcome.reservation is None
    assert outcome.charges is None


def test_a_slot_that_is_not_due_reads_no_counts_either() -> None:
    idle = pieces("pbd", policy=Idler())
    outcome = step(idle, Ledger(POPULATION), first_history(2, 3, idle.smoother), Unreadable(), Unreadable())  # type: ignore[arg-type]
    assert outcome.kind == "repeated"
    assert outcome.reservation is not None
    assert outcome.measurement is None


def test_the_step_changes_neither_ledger_nor_history() -> None:
    made = pieces("pbd")
    ledger, history = Ledger(POPULATION), first_history(2, 3, made.smoother)
    before = (ledger.slot, ledger.export(), ledger.spent().tolist())
    outcome = step(made, ledger, history, np.full((2, 3), 5), ScriptedNoise([True]))
    assert outcome.kind == "published"
    assert (ledger.slot, ledger.export(), ledger.spent().tolist()) == before
    assert (history.slot, history.last_fresh) == (1, 0)
    after, estimate = advance(history, outcome, made, ledger)
    assert (after.slot, after.last_fresh, history.slot) == (2, 1, 1)
    assert estimate.values.tolist() == [10, 10, 10]


class Probing(ScriptedNoise):
    """Adds a chosen number to the probe's sum."""

    def __init__(self, addition: int) -> None:
        super().__init__([])
        self._addition = addition

    def laplace(self, permit, size):
        return np.array([self._addition]) if size == 1 else np.zeros(size, dtype=np.int64)


@pytest.mark.parametrize(
    ("mechanism", "threshold", "limit"),
    [
        ("pbd", None, math.sqrt(2 * 4**2)),  # sqrt(err): one class, noise error only
        ("pba", None, math.sqrt(2 * 8**2)),
        ("bd", None, 4),
        ("bd", "scale", 4),
        ("bd", "std", math.sqrt(2) * 4),
        ("ba", None, 8),
        ("ba", "std", math.sqrt(2) * 8),
    ],
)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_published_only_above_the_limit(mechanism: str, threshold: str | None, limit: float, neighbours: str) -> None:
    """ε = 1, w = 4: the first offer is 1/4 for distribution and 1/8 for absorption; replace doubles the limit."""
    limit *= 2 if neighbours == "replace" else 1
    cells = 1000  # dis has steps of 1/1000
    population = Population({Requirement(4, 1): 5})
    for distance, fresh in [(math.floor(limit * cells), False), (math.floor(limit * cells) + 1, True)]:
        publisher = Publisher(
            population,
            cells,
            mechanism,
            noise=Probing(distance),
            neighbours=neighbours,  # type: ignore[arg-type]
            threshold=threshold,  # type: ignore[arg-type]
        )
        release = publisher.step(np.zeros((1, cells), dtype=int))
        assert release.dissimilarity == distance / cells
        assert release.fresh is fresh


def test_the_dissimilarity_compares_with_the_last_fresh_release() -> None:
    publisher = Publisher(Population({Requirement(50, 50): 1000}), 2, "pbd", noise=Probing(100))
    assert publisher.step([[100, 0]]).dissimilarity == (100 + 100) / 2
    assert publisher.step([[100, 20]]).dissimilarity == (20 + 100) / 2
    assert publisher.step([[0, 0]]).dissimilarity == (120 + 100) / 2


def test_the_probe_and_the_publication_draw_separate_samples() -> None:
    """▲ c̃ is discarded: a published slot samples twice, a repeated one once."""

    class Counting(ScriptedNoise):
        samples = 0

        def binomial(self, counts, permit):
            self.samples += 1
            return super().binomial(counts, permit)

    noise = Counting([True, False])
    publisher = Publisher(Population({Requirement(2, "0.1"): 2, Requirement(2, 2): 1000}), 2, "pbd", noise=noise)
    counts = [[1, 1], [300, 400]]
    assert publisher.step(counts).fresh
    assert noise.samples == 2
    assert not publisher.step(counts).fresh
    assert noise.samples == 3


def test_the_permits_decide_scales_and_probabilities() -> None:
    """Seen by the noise source: scale Δ/θ of the probe from e¹, of the publication from e²; p_g from both budgets."""
    seen: list[tuple[float, int]] = []

    class Watching(ScriptedNoise):
        def laplace(self, permit, size):
            seen.append((permit.scale, size))
            return super().laplace(permit, size)

    population = Population({Requirement(4, 1): 10})
    Publisher(population, 3, "pbd", noise=Watching([True]), neighbours="replace", max_cells_per_user=2).step(
        [[1, 2, 3]]
    )
    assert seen == [(pytest.approx(4 / 0.125), 1), (pytest.approx(4 / 0.25), 3)]


def test_every_mechanism_starts_from_zeros() -> None:
    for name in BUILT_IN:
        noise = ScriptedNoise([False] * 3)
        publisher = Publisher(POPULATION, 3, name, noise=noise)
        release = publisher.step(np.zeros((2, 3), dtype=int))
        if not BUILT_IN[name].local:
            assert release.histogram.tolist() == [0.0, 0.0, 0.0]
        assert release.slot == 1


def test_the_error_of_a_release_is_that_of_its_noise() -> None:
    publisher = Publisher(Population({Requirement(1, 1): 100}), 1, "uniform", noise=SeededNoise(3))
    errors = [publisher.step([[50]]).histogram[0] - 50 for _ in range(4000)]
    release = publisher.step([[50]])
    assert release.std_error is not None
    assert np.std(errors) == pytest.approx(release.std_error[0], rel=0.1)
    low, high = release.interval(0.9)
    reach = (high - low)[0] / 2
    inside = np.mean(np.abs(errors) <= reach)
    assert inside > 0.88
    assert np.mean(np.abs(errors) <= reach - 1) < 0.9
