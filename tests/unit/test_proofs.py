"""docs/explanation/proofs.md, step by step, with the numbers that the code really uses: in exact fractions or 60 digits."""

from __future__ import annotations

import itertools
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from tests.unit.test_paper_map import check_row, table_rows
from wevent.core.budget import NANO, noise_scale, response_probability, sampling_probability
from wevent.core.ledger import Ledger
from wevent.core.limits import MAX_CELLS
from wevent.core.mechanism import History, NoOffer
from wevent.core.policies import Absorption
from wevent.core.requirements import Population, Requirement

ROOT = Path(__file__).parents[2]
_TINY = Decimal("1e-40")
BUDGETS = [(1, 2), (10_000_000, 400_000_000), (300_000_000, 1_000_000_000), (NANO, 5 * NANO), (49 * NANO, 50 * NANO)]


@pytest.fixture(autouse=True)
def digits() -> object:
    with localcontext() as context:
        context.prec = 70
        yield


def exact(fraction: Fraction) -> Decimal:
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def laplace(number: int, scale: Decimal) -> Decimal:
    """P[Z = number], but for the factor that all have."""
    return (-abs(number) / scale).exp()


def outcomes(records: tuple[int, ...], kept: Decimal, scale: Decimal, *, distance: bool) -> dict[object, Decimal]:
    """The law of a slot's output if one user has these records in two cells and others are known: base (3, 1), l = (2, 2)."""
    law: dict[object, Decimal] = {}
    for chosen in itertools.product((True, False), repeat=len(records)):
        weight, counts = Decimal(1), [3, 1]
        for record, is_kept in zip(records, chosen, strict=True):
            weight *= kept if is_kept else 1 - kept
            counts[record] += is_kept
        if distance:
            true = abs(counts[0] - 2) + abs(counts[1] - 2)
            for out in range(-6, 15):
                law[out] = law.get(out, Decimal(0)) + weight * laplace(out - true, scale)
        else:
            for out in itertools.product(range(-2, 9), repeat=2):
                noise = laplace(out[0] - counts[0], scale) * laplace(out[1] - counts[1], scale)
                law[out] = law.get(out, Decimal(0)) + weight * noise
    return law


def worst_loss(k: int, replace: bool, kept: Decimal, scale: Decimal, *, distance: bool) -> Decimal:
    """The largest ratio of two neighbours' probabilities, over all records that a user may have and all outputs tried."""
    sets = [records for size in range(k + 1) for records in itertools.combinations((0, 1), size)]
    laws = {records: outcomes(records, kept, scale, distance=distance) for records in sets}
    pairs = (
        itertools.permutations(sets, 2) if replace else [pair for one in sets[1:] for pair in ((one, ()), ((), one))]
    )
    return max(laws[left][out] / laws[right][out] for left, right in pairs for out in laws[left])


@pytest.mark.parametrize("distance", [False, True], ids=["histogram", "distance"])
@pytest.mark.parametrize("replace", [False, True], ids=["add_remove", "replace"])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(("budget", "threshold"), BUDGETS)
def test_thinning_loses_no_more_than_the_budget(
    budget: int, threshold: int, k: int, replace: bool, distance: bool
) -> None:
    scale = Decimal(noise_scale(threshold, 2 * k if replace else k))
    kept = Decimal(sampling_probability(budget, threshold, k)) / 2**64
    promised = (Decimal(budget) / NANO).exp()
    assert worst_loss(k, replace, kept, scale, distance=distance) <= promised * (1 + _TINY)


def test_it_would_notice_too_large_a_probability_and_too_little_noise() -> None:
    promised = Decimal("0.3").exp()
    kept = {k: Decimal(sampling_probability(300_000_000, NANO, k)) / 2**64 for k in (1, 2)}
    scale = {delta: Decimal(noise_scale(NANO, delta)) for delta in (1, 2)}
    assert worst_loss(1, False, kept[1] * Decimal("1.001"), scale[1], distance=False) > promised
    assert worst_loss(1, True, kept[1], scale[1], distance=True) > promised  # replace with the noise of add_remove
    assert worst_loss(2, False, kept[2], scale[1], distance=False) > promised  # two records with the noise of one


@pytest.mark.parametrize("cells", [1, 2, 100, MAX_CELLS])
@pytest.mark.parametrize("budget", [1, 2, 1000, NANO, 50 * NANO])
def test_a_rounded_truth_is_still_the_likeliest_answer(budget: int, cells: int) -> None:
    truth = Fraction(response_probability(budget, cells), 2**64)
    lie = (1 - truth) / cells
    assert truth >= lie
    assert exact(truth / lie) <= (Decimal(budget) / NANO).exp()


def test_blocks_of_a_class_are_disjoint_and_a_window_holds_at_most_w_shares() -> None:
    """Without what is cut off at the half, which is for classes that come back."""
    random = Random(5)
    for _ in range(200):
        windows = np.array([random.randrange(1, 12) for _ in range(random.randrange(1, 4))])
        shares = np.array([random.randrange(1, 9) for _ in windows])
        far = np.full(len(windows), 10**9)
        charged, none = np.ones(len(windows), dtype=bool), np.zeros(len(windows), dtype=np.int64)
        ledger = SimpleNamespace(windows=windows, shares=shares, halves=far, publication_spent=none, charged=charged)
        published: list[tuple[int, np.ndarray]] = []
        last, charges = 0, np.full(len(windows), -1)
        for slot in range(1, 60):
            offer = Absorption().offer(ledger, History(slot, last, charges, none, None))  # type: ignore[arg-type]
            if isinstance(offer, NoOffer) or random.random() < 0.6:
                continue
            refunded = offer - np.array([random.randrange(int(one)) for one in offer]) * (random.random() < 0.3)
            last, charges = slot, refunded
            published.append((slot, -(-refunded // shares)))
        for row, window in enumerate(windows.tolist()):
            check_blocks([(slot, int(taken[row])) for slot, taken in published], window)


def check_blocks(published: list[tuple[int, int]], window: int) -> None:
    for (slot, taken), (following, its) in itertools.pairwise(published):
        assert slot + taken - 1 < following - its + 1
    for first in range(1, 60):
        assert sum(taken for slot, taken in published if first <= slot < first + window) <= window


@pytest.mark.parametrize(("charged", "holds"), [("last", True), ("first", False), ("none", False)])
def test_what_a_restore_charges_covers_whatever_was_lost(charged: str, holds: bool) -> None:
    """True charges of a class in every span stay within ε, whatever the lost slots and the later ones cost.

    All that is left is charged in the last of the lost slots; in the first of them, or nowhere, would not do.
    """
    random = Random(7)
    assert all(survives_a_restore(random, charged) for _ in range(300)) == holds


def survives_a_restore(random: Random, charged: str) -> bool:
    requirement = Requirement.from_nano(random.randrange(1, 9), 1000)
    backup, through = sorted(random.randrange(0, 25) for _ in range(2))
    lost, restored = (Ledger(Population({requirement: 1})) for _ in range(2))
    true: list[int] = []
    for slot in range(1, 41):
        left = int((lost if slot <= through else restored).remaining()[0])
        spent = random.choice([0, random.randrange(left + 1), left])
        true.append(spent)
        if slot <= through:
            replay(lost, spent)
        if slot <= backup or slot > through:
            replay(restored, spent)
        else:
            here = slot == {"last": through, "first": backup + 1, "none": 0}[charged]
            replay(restored, int(restored.remaining()[0]) if here else 0)
    return max(sum(true[first : first + requirement.window]) for first in range(40)) <= 1000


def replay(ledger: Ledger, spent: int) -> None:
    ledger.replay(np.zeros(1, dtype=np.int64), np.array([spent], dtype=np.int64))


@pytest.mark.parametrize("row", table_rows(ROOT / "docs/explanation/proofs.md"), ids=lambda row: row[0][:40])
def test_every_step_names_code_and_tests_that_exist(row: tuple[str, str, str]) -> None:
    check_row(row)
