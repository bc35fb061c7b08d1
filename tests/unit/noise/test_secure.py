"""Secure by default: where the randomness comes from, and that nothing can replay it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from tests.support.commands import PATIENCE_S
from tests.unit.scripted import permit_for
from wevent import Population, Publisher, Requirement, SecureNoise, local
from wevent.noise.secure import _laplace_measurement, exact_binomial, uniform_below

POPULATION = Population({Requirement(2, "0.4"): 3, Requirement(2, 2): 3000})
COUNTS = np.array([[1] + [0] * 49, [40] * 50])


def run_python(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_publisher_without_arguments_holds_secure_noise() -> None:
    publisher = Publisher(POPULATION, cells=50)
    assert type(publisher._noise) is SecureNoise
    assert vars(publisher._noise) == {}, "nothing to seed, copy or replay"
    assert not publisher.seeded


def test_sampling_draws_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    real = os.urandom

    def counting(size: int) -> bytes:
        drawn.append(size)
        return real(size)

    monkeypatch.setattr(os, "urandom", counting)
    publisher = Publisher(POPULATION, cells=50, mechanism="pbu")
    assert publisher.step(COUNTS).threshold == 10**9, "the smaller class is sampled"
    first = sum(drawn)
    assert first > 0
    publisher.step(COUNTS)
    assert sum(drawn) > first, "bits are fetched for each draw, never kept"


@pytest.mark.parametrize(("byte", "kept"), [(0x00, 1000), (0xFF, 0)])
def test_the_sample_is_a_function_of_these_bits_alone(monkeypatch: pytest.MonkeyPatch, byte: int, kept: int) -> None:
    """All zeros are below any p, all ones above: then everyone or nobody is kept."""
    monkeypatch.setattr(os, "urandom", lambda size: bytes([byte]) * size)
    noise, counts = SecureNoise(), np.array([[1000, 1000], [7, 7]])
    sample = noise.binomial(counts, permit_for([300, 900], [2000, 14]).for_sampling(900))
    assert sample.tolist() == [[kept, kept], [7, 7]]


def test_the_local_randomizer_draws_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = random.SystemRandom.getrandbits

    def counting(self, width):
        calls.append(width)
        return real(self, width)

    monkeypatch.setattr(random.SystemRandom, "getrandbits", counting)
    monkeypatch.setattr("secrets.randbits", random.SystemRandom().getrandbits)
    random.seed(1)
    first = [local.randomize(0, cells=1000, epsilon="0.1") for _ in range(20)]
    random.seed(1)
    assert [local.randomize(0, cells=1000, epsilon="0.1") for _ in range(20)] != first
    assert 64 in calls


@pytest.mark.parametrize("mechanism", ["pbd", "uniform", "pbu", "sample", "plbu"])
def test_seeding_anything_does_not_make_two_publishers_equal(mechanism: str) -> None:
    histograms = []
    for _ in range(2):
        random.seed(5)
        np.random.seed(5)  # noqa: NPY002  the point: the global generator must not matter
        publisher = Publisher(POPULATION, cells=50, mechanism=mechanism)
        histograms.append([publisher.step(COUNTS).to_dict() for _ in range(3)])
    assert histograms[0] != histograms[1]


def test_restoring_a_state_twice_draws_differently() -> None:
    state = Publisher(POPULATION, cells=50, mechanism="pbu").state()
    one, two = (Publisher.restore(state).step(COUNTS).histogram.tolist() for _ in range(2))
    assert one != two


def test_parent_and_child_of_a_fork_draw_different_noise() -> None:
    """OpenDP's noise, the exact binomial and randomized response, all used once before the fork."""
    printed = run_python(
        """
        import json, os
        import numpy as np
        from wevent import Population, Publisher, Requirement, local
        from wevent.noise.secure import exact_binomial

        population = Population({Requirement(1, "0.1"): 10**6})
        publisher = Publisher(population, cells=64, mechanism="uniform")

        def draw():
            return {
                "laplace": publisher.step(np.zeros((1, 64), dtype=int)).histogram.tolist(),
                "binomial": exact_binomial(np.full(64, 1000), np.full(64, 2**63, dtype=np.uint64)).tolist(),
                "response": [local.randomize(0, cells=10**6, epsilon="0.1") for _ in range(16)],
            }

        draw()
        reader, writer = os.pipe()
        child = os.fork()
        drawn = json.dumps(draw())
        if child == 0:
            with os.fdopen(writer, "w") as pipe:
                pipe.write(drawn)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            print(pipe.read())
        os.waitpid(child, 0)
        print(drawn)
        """
    )
    child, parent = (json.loads(line) for line in printed.splitlines())
    assert set(child) == {"laplace", "binomial", "response"}
    for kind in child:
        assert child[kind] != parent[kind], kind


def test_opendp_is_loaded_when_secure_noise_is_first_used() -> None:
    printed = run_python(
        """
        import sys
        import wevent
        loaded = lambda: [name for name in ("opendp", "pandas", "polars", "scipy", "matplotlib") if name in sys.modules]
        print(loaded())
        population = wevent.Population({wevent.Requirement(2, 1): 10})
        wevent.Publisher(population, 2, "uniform", noise=wevent.SeededNoise(1)).step([[1, 2]])
        publisher = wevent.Publisher(population, 2, "uniform")
        print(loaded())
        publisher.step([[1, 2]])
        print(loaded())
        """
    )
    before, idle, used = printed.splitlines()
    assert before == idle == "[]"
    assert used == "['opendp']"  # and what takes it long to load is not, although it is installed


@pytest.mark.parametrize("block", [1, 2, 7])
def test_bits_drawn_block_by_block_are_the_same_bits(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """Memory does not grow with the users; a stream of words gives the same sample whatever the block."""
    counts = np.array([1, 64, 65, 0, 1000, 3, 128, 4097])
    probabilities = np.array([2**63, 2**62, 2**64 - 1, 5, 2**63 + 2**60, 2**63, 1, 3 * 2**62], dtype=np.uint64)

    def drawn() -> tuple[list[int], int]:
        generator, largest = random.Random(5), [0]

        def words(size: int) -> bytes:
            largest.append(size)
            return generator.randbytes(size)

        monkeypatch.setattr(os, "urandom", words)
        return exact_binomial(counts, probabilities).tolist(), max(largest)

    whole, _ = drawn()
    monkeypatch.setattr("wevent.noise.secure._BLOCK", block)
    parts, largest = drawn()
    assert parts == whole
    assert largest == 8 * block


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan"), 5e-324, 1e-310, 2.0**53, 1e19])
def test_scales_whose_noise_would_be_none_or_cut_off_are_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="noise scale"):
        _laplace_measurement(scale)


def test_laplace_is_64_bit() -> None:
    """`T=int` would be 32 bits: a scale of a hundred billion must not be clamped there."""
    noise = SecureNoise()
    draws = noise.laplace(permit_for([1], [1], sensitivity=100).for_sampling(1).noise, 50)
    assert draws.dtype == np.int64
    assert np.abs(draws).max() > 2**32


def scripted_bits(monkeypatch: pytest.MonkeyPatch, *words: int) -> list[int]:
    """os.urandom gives these 64-bit words, one after the other."""
    rest = list(words)

    def draw(size: int) -> bytes:
        number = size // 8
        taken = [rest.pop(0) for _ in range(number)]
        return np.array(taken, dtype=np.uint64).tobytes()

    monkeypatch.setattr(os, "urandom", draw)
    return rest


def test_the_bit_decomposition_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """n = 3, p = 0.101b: bit 1 with one 1 keeps two; bit 0 with no 1 drops none; bit 1 with a 0 keeps the last."""
    probability = np.array([0b101 << 61], dtype=np.uint64)
    top = 1 << 63
    rest = scripted_bits(monkeypatch, top, 0, 0)
    assert exact_binomial(np.array([3]), probability).tolist() == [3]
    assert rest == []
    scripted_bits(monkeypatch, top, top, 0)
    assert exact_binomial(np.array([3]), probability).tolist() == [2], "dropped at the 0 of p"


def test_the_undecided_after_the_last_bit_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fraction equal to p in all 64 bits is not below p."""
    probability = 0xF0F0F0F0F0F0F0F1
    digits = [probability >> (63 - bit) & 1 for bit in range(64)]
    scripted_bits(monkeypatch, *(digit << 63 for digit in digits))
    assert exact_binomial(np.array([1]), np.array([probability], dtype=np.uint64)).tolist() == [0]
    digits[-1] = 0  # one step lower is below
    scripted_bits(monkeypatch, *(digit << 63 for digit in digits))
    assert exact_binomial(np.array([1]), np.array([probability], dtype=np.uint64)).tolist() == [1]


@pytest.mark.parametrize("number", [1, 2, 63, 64, 65, 127, 128, 129, 1000])
def test_exactly_n_bits_are_counted(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """p = 1/2 and all zeros keeps n, all ones keeps none: no bit too many, none too few, next to other entries."""
    half = np.full(3, 2**63, dtype=np.uint64)
    counts = np.array([number, 1, 64])
    monkeypatch.setattr(os, "urandom", lambda size: b"\x00" * size)
    assert exact_binomial(counts, half).tolist() == [number, 1, 64]
    monkeypatch.setattr(os, "urandom", lambda size: b"\xff" * size)
    assert exact_binomial(counts, half).tolist() == [0, 0, 0]


def test_the_extremes_of_the_binomial() -> None:
    counts = np.array([0, 5, 5, 0])
    probabilities = np.array([2**63, 0, 2**64 - 1, 0], dtype=np.uint64)
    assert exact_binomial(counts, probabilities).tolist() == [0, 0, 5, 0]
    assert exact_binomial(np.array([], dtype=np.int64), np.array([], dtype=np.uint64)).tolist() == []


def test_uniform_numbers_are_rejected_not_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted_bits(monkeypatch, 3, 7, 5, 1, 6, 2)  # bound 5 needs three bits; 7, 5 and 6 are drawn again
    assert uniform_below(5, 3).tolist() == [3, 1, 2]
    scripted_bits(monkeypatch, 2**64 - 1)
    assert uniform_below(1, 1).tolist() == [0]
