"""Randomized response: one law for the client, the secure and the seeded source, and an unbiased estimate (spec 9)."""

from __future__ import annotations

import secrets

import numpy as np
import pytest
from scipy import stats

from tests.statistical.goodness import ALPHA, has_mean, has_variance, p_value
from tests.unit.scripted import permit_for
from wevent import Population, Publisher, Requirement, SecureNoise, SeededNoise, local
from wevent.core.budget import response_probability
from wevent.core.estimators import randomize

CELLS, BUDGET = 3, 10**9
SIZE = 30_000
SOURCES = {"secure": SecureNoise, "seeded": lambda: SeededNoise(20240611)}


def truth_and_lie(factor: float = 1.0) -> tuple[float, float]:
    """p and q; a factor other than 1 is a wrong p."""
    p = factor * np.exp(BUDGET / 1e9) / (np.exp(BUDGET / 1e9) + CELLS)
    return p, (1 - p) / CELLS


def law_of(answer: int, factor: float = 1.0) -> np.ndarray:
    """P(report) for one user with this answer."""
    p, q = truth_and_lie(factor)
    return np.where(np.arange(CELLS + 1) == answer, p, q)


def fits(reports: np.ndarray, law: np.ndarray) -> bool:
    """Chi-square of report totals against a law, at level ALPHA."""
    return stats.chisquare(reports, law * reports.sum()).pvalue > ALPHA


@pytest.mark.parametrize("answer", range(CELLS + 1))
def test_the_clients_reports(answer: int) -> None:
    cell = None if answer == CELLS else answer
    reports = [local.randomize(cell, cells=CELLS, epsilon=1) for _ in range(SIZE)]
    totals = np.bincount(reports, minlength=CELLS + 1)
    assert fits(totals, law_of(answer))
    for factor in (0.9, 1.1):
        assert not fits(totals, law_of(answer, factor)), "a truth probability 10 % off is rejected"


@pytest.mark.parametrize("answer", range(CELLS + 1))
@pytest.mark.parametrize("source", SOURCES)
def test_the_reports_of_a_class_where_all_answer_the_same(source: str, answer: int) -> None:
    answers = np.zeros((1, CELLS + 1), dtype=np.int64)
    answers[0, answer] = 10 * SIZE
    totals = SOURCES[source]().respond(answers, permit_for([BUDGET], [10 * SIZE]).for_response(CELLS))[0]
    assert totals.sum() == 10 * SIZE
    assert fits(totals, law_of(answer))
    for factor in (0.95, 1.05):
        assert not fits(totals, law_of(answer, factor))


ANSWERS = np.array([9, 4, 0, 6])  # three cells, absent


def report_law(cell: int) -> np.ndarray:
    """The exact law of the number of reports for a cell: Binomial(C_j, p) + Binomial(n − C_j, q)."""
    p, q = truth_and_lie()
    own, users = ANSWERS[cell], ANSWERS.sum()
    return np.convolve(
        stats.binom(own, p).pmf(np.arange(own + 1)), stats.binom(users - own, q).pmf(np.arange(users - own + 1))
    )


def per_user(repeats: int) -> np.ndarray:
    """Every user randomizes on their own: the definition."""
    users = np.repeat(np.arange(CELLS + 1), ANSWERS).tolist()
    return np.array(
        [
            np.bincount(
                [randomize(answer, cells=CELLS, budget=BUDGET, draw_bits=secrets.randbits) for answer in users],
                minlength=CELLS + 1,
            )
            for _ in range(repeats)
        ]
    )


def per_class(source, repeats: int) -> np.ndarray:
    """The whole class at once."""
    budgets, answers = [BUDGET] * 20, np.tile(ANSWERS, (20, 1))
    draws = [
        source.respond(answers, permit_for(budgets, [int(ANSWERS.sum())] * 20).for_response(CELLS))
        for _ in range(repeats // 20)
    ]
    return np.concatenate(draws)


@pytest.mark.parametrize("kind", ["per user", *SOURCES])
def test_class_level_reports_have_the_law_of_users_who_randomize_on_their_own(kind: str) -> None:
    """The law of every cell's total, and the covariance of two cells: −C_a p q − C_b p q − (others) q²."""
    totals = per_user(8000) if kind == "per user" else per_class(SOURCES[kind](), 8000)
    assert (totals.sum(axis=1) == ANSWERS.sum()).all()
    for cell in range(CELLS + 1):
        law = report_law(cell)
        assert p_value(totals[:, cell], lambda values, law=law: law[values], 0, len(law) - 1) > ALPHA
    p, q = truth_and_lie()
    covariance = -(ANSWERS[0] + ANSWERS[1]) * p * q - (ANSWERS[2] + ANSWERS[3]) * q * q
    centred = totals - totals.mean(axis=0)
    assert has_mean(centred[:, 0] * centred[:, 1], covariance)
    assert not has_mean(centred[:, 0] * centred[:, 1], 0.5 * covariance)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("mechanism", ["lbu", "plbu"])
def test_the_published_estimate_is_unbiased_and_states_its_error(source: str, mechanism: str) -> None:
    population = Population({Requirement(1, 1): 60, Requirement(2, 3): 40})
    counts = np.array([[20, 5, 0], [0, 10, 0]])
    publisher = Publisher(population, CELLS, mechanism, noise=SOURCES[source]())
    releases = [publisher.step(counts) for _ in range(2500)]
    histograms = np.array([release.histogram for release in releases])
    for cell, total in enumerate(counts.sum(axis=0)):
        assert has_mean(histograms[:, cell], total)
        assert not has_mean(histograms[:, cell], total + 10)  # at least 12 standard errors away
    # the stated error is the part that does not depend on counts: exact for a cell that nobody is in
    assert has_variance(histograms[:, 2], releases[0].std_error[2] ** 2)


def test_the_servers_estimate_is_unbiased() -> None:
    users = np.repeat([0, 1, 2, None], [9, 4, 0, 6]).tolist()
    estimates = np.array(
        [
            local.estimate([local.randomize(user, cells=CELLS, epsilon=1) for user in users], cells=CELLS, epsilon=1)
            for _ in range(1000)
        ]
    )
    for cell, total in enumerate([9, 4, 0]):
        assert has_mean(estimates[:, cell], total)


def test_the_rounded_truth_is_the_laws_truth() -> None:
    assert response_probability(BUDGET, CELLS) / 2**64 == pytest.approx(truth_and_lie()[0], rel=1e-15)
