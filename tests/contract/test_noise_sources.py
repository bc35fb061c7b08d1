"""One contract for every noise source; laws are in tests/statistical, entropy in tests/unit/noise."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.scripted import permit_for
from wevent import SecureNoise, SeededNoise
from wevent.core.mechanism import NoiseSource
from wevent.core.permit import PermitMisused

SOURCES = {"secure": SecureNoise, "seeded": lambda: SeededNoise(7)}


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> NoiseSource:
    return SOURCES[request.param]()


def noise_permit(nano: int, sensitivity: int = 1):
    return permit_for([nano], [1], sensitivity=sensitivity).for_sampling(nano).noise


def test_it_says_whether_it_protects_anyone() -> None:
    assert SecureNoise().seeded is False
    assert SeededNoise(1).seeded is True


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_laplace_noise_is_a_vector_of_integers(source: NoiseSource, size: int) -> None:
    noise = source.laplace(noise_permit(10**8), size)
    assert noise.shape == (size,)
    assert noise.dtype == np.int64


def test_the_largest_noise_there_is_stays_clear_of_the_ends(source: NoiseSource) -> None:
    """Scale 2^52: noise that 64 bits would cut off, and hide nothing, is farther away than any draw."""
    noise = np.abs(source.laplace(noise_permit(1, sensitivity=4_503_599), 2000).astype(float))
    assert 0.8 * np.log(2) * 2.0**52 < np.median(noise) < 1.25 * np.log(2) * 2.0**52
    assert noise.max() < 2.0**58


@pytest.mark.parametrize("nano", [1, 1000, 10**9, 50 * 10**9])
def test_laplace_noise_at_the_ends_of_the_range(source: NoiseSource, nano: int) -> None:
    """From a billion down to next to nothing: the median of |noise| follows the scale."""
    noise = np.abs(source.laplace(noise_permit(nano), 2000))
    scale = 1e9 / nano
    if scale < 0.1:
        assert not noise.any()
    else:
        assert 0.8 * np.log(2) * scale - 1 < np.median(noise) < 1.25 * np.log(2) * scale + 1


def test_two_draws_differ(source: NoiseSource) -> None:
    first, second = (source.laplace(noise_permit(10**6), 50).tolist() for _ in range(2))
    assert first != second


@pytest.mark.parametrize("forged", [1.0, 1000, None, {"scale": 1.0}])
def test_noise_is_for_permits_only(source: NoiseSource, forged: object) -> None:
    counts = np.array([[3, 4]])
    with pytest.raises(PermitMisused, match="NoisePermit"):
        source.laplace(forged, 3)  # type: ignore[arg-type]
    with pytest.raises(PermitMisused, match="SamplingPermit"):
        source.binomial(counts, forged)  # type: ignore[arg-type]
    with pytest.raises(PermitMisused, match="ResponsePermit"):
        source.respond(counts, forged)  # type: ignore[arg-type]


def test_a_permit_of_one_kind_draws_no_other(source: NoiseSource) -> None:
    counts = np.array([[3, 4]])
    sampling, response = permit_for([10**8], [9]).for_sampling(10**9), permit_for([10**8], [9]).for_response(1)
    for permit in (sampling, response, permit_for([10**8], [9])):
        with pytest.raises(PermitMisused):
            source.laplace(permit, 2)  # type: ignore[arg-type]
    with pytest.raises(PermitMisused):
        source.binomial(counts, response)  # type: ignore[arg-type]
    with pytest.raises(PermitMisused):
        source.respond(counts, sampling)  # type: ignore[arg-type]


def test_a_permit_pays_for_one_draw(source: NoiseSource) -> None:
    """Two draws could be averaged, each at the price of both."""
    counts = np.array([[3, 4]])
    noise, sampling = noise_permit(10**8), permit_for([10**8], [9]).for_sampling(10**9)
    response = permit_for([10**8], [9]).for_response(1)
    source.laplace(noise, 2)
    source.binomial(counts, sampling)
    source.laplace(sampling.noise, 2)  # a sample and its noise are one draw each
    source.respond(counts, response)
    for again in (
        lambda: source.laplace(noise, 2),
        lambda: source.binomial(counts, sampling),
        lambda: source.laplace(sampling.noise, 2),
        lambda: source.respond(counts, response),
    ):
        with pytest.raises(PermitMisused, match="once"):
            again()


def sampling_permit():
    """Budget 0: nobody; a third of θ; θ and above: everyone."""
    return permit_for([0, 10**9 // 3, 10**9, 2 * 10**9], [10**6] * 4).for_sampling(10**9)


def test_binomial_keeps_a_part_of_each_entry(source: NoiseSource) -> None:
    counts = np.array([[5, 100, 0], [5, 100, 0], [5, 100, 0], [7, 1, 2]])
    counts.setflags(write=False)
    kept = source.binomial(counts, sampling_permit())
    assert kept.dtype == np.int64
    assert kept.shape == counts.shape
    assert kept[0].tolist() == [0, 0, 0]
    assert (kept[1] >= 0).all()
    assert (kept[1] <= counts[1]).all()
    assert 0 < kept[1, 1] < 100
    assert kept[2].tolist() == [5, 100, 0]
    assert kept[3].tolist() == [7, 1, 2]
    assert not np.shares_memory(kept, counts)
    kept[0, 0] = 1  # a result belongs to the caller


def test_binomial_of_nobody_and_of_millions(source: NoiseSource) -> None:
    assert not source.binomial(np.zeros((4, 2), dtype=np.int64), sampling_permit()).any()
    counts = np.full((4, 2), 3_000_000)
    kept = source.binomial(counts, sampling_permit())
    expected = 3e6 * np.expm1(1 / 3) / np.expm1(1)
    assert kept[1] == pytest.approx([expected] * 2, rel=0.01)


def test_two_samples_differ(source: NoiseSource) -> None:
    counts = np.full((4, 20), 1000)
    first, second = (source.binomial(counts, sampling_permit()).tolist() for _ in range(2))
    assert first != second


@pytest.mark.parametrize("cells", [1, 2, 3, 50])
def test_everyone_responds_exactly_once(source: NoiseSource, cells: int) -> None:
    answers = np.random.default_rng(1).integers(0, 30, (2, cells + 1))
    answers.setflags(write=False)
    reports = source.respond(answers, permit_for([10**8, 2 * 10**9], answers.sum(axis=1).tolist()).for_response(cells))
    assert reports.dtype == np.int64
    assert reports.shape == answers.shape
    assert (reports >= 0).all()
    assert reports.sum(axis=1).tolist() == answers.sum(axis=1).tolist()
    assert not np.shares_memory(reports, answers)


def test_nobody_responds_when_there_is_nobody(source: NoiseSource) -> None:
    answers = np.zeros((2, 4), dtype=np.int64)
    assert not source.respond(answers, permit_for([10**8, 10**9], [0, 0]).for_response(3)).any()


def test_a_huge_budget_tells_the_truth_and_a_tiny_one_next_to_nothing(source: NoiseSource) -> None:
    answers = np.array([[30_000, 0, 0], [30_000, 0, 0]])
    reports = source.respond(answers, permit_for([1, 49 * 10**9], [30_000] * 2).for_response(2))
    assert reports[1].tolist() == [30_000, 0, 0]
    assert reports[0] == pytest.approx([10_000] * 3, rel=0.1)
