"""The mechanisms with a replicate axis against the publisher itself: same budgets exactly, same law of releases."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from wevent import Population, Requirement, experiments
from wevent.core.ledger import Ledger
from wevent.core.mechanism import History, Idle
from wevent.core.registry import BUILT_IN
from wevent.core.settings import Options
from wevent.core.threshold import reporting_errors
from wevent.experiments import metrics
from wevent.experiments.assign import Assigner
from wevent.experiments.choices import Choice
from wevent.experiments.datasets.synthetic import synthetic_stream
from wevent.experiments.reproduce.batches import run_publishers
from wevent.experiments.reproduce.replicated import ENGINES
from wevent.experiments.reproduce.replicated.draws import choose_thresholds, laplace, sampling_probabilities
from wevent.experiments.reproduce.replicated.replicates import Replicates
from wevent.experiments.trial import Assigned, Trial


def replicates(
    *, repeats, slots, users=2_000, windows=(5, 10, 20), epsilons=("0.6", "0.8", "1.0"), stream="sin", seed=1
):
    source = synthetic_stream(stream, users=users, slots=slots)
    draw = Assigned(Assigner("types", epsilons, windows), seed)
    return Replicates.of([draw.trial(source, repeat) for repeat in range(repeats)])


def charges_by_the_core(name, population, fresh):
    """What the core's policy and ledger charge when the publications are these."""
    row = BUILT_IN[name]
    policy = row.policy(population.classes, Options())
    ledger = Ledger(population, pinned=population.classes if row.shared_budget else ())
    last, last_charges, charges = 0, np.full(len(population), -1, dtype=np.int64), []
    for slot, published in enumerate(fresh.tolist(), start=1):
        offer = policy.offer(ledger, History(slot, last, last_charges, np.zeros(2), None))
        reservation = ledger.reserve(policy.probe(ledger), None if isinstance(offer, Idle) else offer)
        ledger.commit(reservation, reservation.publication_budgets if published else None)
        assert not (published and isinstance(offer, Idle)), f"published in slot {slot}, which {name} does not offer"
        spent = reservation.probe_budgets
        if published:
            last, last_charges = slot, reservation.publication_budgets
            spent = spent + last_charges
        charges.append(spent)
    return np.array(charges)


@pytest.mark.parametrize("label", list(ENGINES))
def test_budgets_are_exactly_those_of_the_core_for_the_same_decisions(label):
    batch = replicates(repeats=4, slots=300, epsilons=("0.7", "1.001", "0.333333333"))
    run = ENGINES[label](batch, np.random.default_rng(5))
    for replicate, population in enumerate(batch.populations):
        expected = charges_by_the_core(label.split(":")[0], population, run.fresh[:, replicate])
        np.testing.assert_array_equal(run.charges[:, replicate, : len(population)], expected)
        assert metrics.worst_window_share(expected, population) <= 1.0
    assert run.fresh.any(axis=0).all()


@pytest.mark.parametrize("label", list(ENGINES))
def test_releases_have_the_law_of_single_runs(label):
    """Errors and publications of 80 replicates against 80 runs of `wevent.Publisher` on the same people."""
    batch = replicates(repeats=80, slots=40)
    together = ENGINES[label](batch, np.random.default_rng(11))
    single = run_publishers(Choice.parse(label), batch, seed=[12])
    for measure in (_log_error, _early_error, lambda run, truth: run.fresh.sum(axis=0)):
        left, right = measure(together, batch.truth), measure(single, batch.truth)
        assert stats.ks_2samp(left, right).pvalue > 1e-4
        if np.std(left - right):
            assert stats.ttest_rel(left, right).pvalue > 1e-4
    np.testing.assert_allclose(
        np.nanmean(np.broadcast_to(together.reach, single.reach.shape)), np.nanmean(single.reach), rtol=0.25
    )


@pytest.mark.parametrize("label", ["pbd", "pba"])
def test_long_runs_with_the_windows_of_the_paper_have_the_same_errors(label):
    batch = replicates(repeats=40, slots=300, users=10_000, windows=(40, 80, 120))
    together = ENGINES[label](batch, np.random.default_rng(21))
    single = run_publishers(Choice.parse(label), batch, seed=[22])
    for measure in (_log_error, lambda run, truth: run.fresh.sum(axis=0)):
        assert stats.ttest_rel(measure(together, batch.truth), measure(single, batch.truth)).pvalue > 1e-4


def _log_error(run, truth):
    return np.log(metrics.squared_errors(run.releases, truth).mean(axis=0) + 1.0)


def _early_error(run, truth):
    return run.releases[2, :, 1] - truth[2, :, 1]


def test_a_wrong_engine_is_noticed():
    """The comparison has teeth: half of the noise, or a publication too many, is rejected."""
    batch = replicates(repeats=80, slots=40)
    run = ENGINES["pba"](batch, np.random.default_rng(11))
    single = run_publishers(Choice.parse("pba"), batch, seed=[12])
    halved = run.releases - (run.releases - batch.truth) / 2
    left = np.log(metrics.squared_errors(halved, batch.truth).mean(axis=0) + 1.0)
    assert stats.ks_2samp(left, _log_error(single, batch.truth)).pvalue < 1e-6
    run.fresh[np.flatnonzero(~run.fresh[:, 0])[5], 0] = True
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(
            run.charges[:, 0, : len(batch.populations[0])],
            charges_by_the_core("pba", batch.populations[0], run.fresh[:, 0]),
        )


def test_thresholds_are_those_of_the_core():
    generator = np.random.default_rng(3)
    budgets = generator.integers(0, 4_000_000_000, (200, 7))
    budgets[generator.random(budgets.shape) < 0.2] = 0
    budgets[0] = 0
    sizes = generator.integers(0, 50, (200, 7))
    chosen = choose_thresholds(budgets, sizes.astype(float))
    assert chosen.epsilon[0] == 0.0
    assert np.isinf(chosen.error[0])
    for row in range(1, 200):
        candidates, errors = reporting_errors(budgets[row], sizes[row])
        assert chosen.error[row] == pytest.approx(errors.min())
        assert errors[candidates == round(chosen.epsilon[row] * 1e9)].min() == pytest.approx(errors.min())


def test_noise_and_sampling_have_their_closed_forms():
    noise = laplace(np.random.default_rng(1), np.array([0.5]), (200_000, 1))
    q = np.exp(-0.5)
    assert noise.var() == pytest.approx(2 * q / (1 - q) ** 2, rel=0.03)
    chances = sampling_probabilities(np.array([[100_000_000, 400_000_000, 800_000_000]]), np.array([0.4]))
    assert chances[0].tolist() == pytest.approx([np.expm1(0.1) / np.expm1(0.4), 1.0, 1.0])


def test_padding_changes_nothing():
    """A replicate gives the same budgets alone and beside one with more classes."""
    small = Population({Requirement(5, 1): 40})
    large = Population({Requirement(4, 1): 10, Requirement(6, "0.5"): 20, Requirement(9, 2): 10})
    counts = [np.full((50, 1, 2), 20, dtype=np.int32), np.full((50, 3, 2), 5, dtype=np.int32)]
    batch = Replicates.of([Trial(small, counts[0]), Trial(large, counts[1])])
    assert batch.truth[0].tolist() == [[20, 20], [15, 15]]
    run = ENGINES["pbd"](batch, np.random.default_rng(1))
    np.testing.assert_array_equal(run.charges[:, 0, :1], charges_by_the_core("pbd", small, run.fresh[:, 0]))


def test_replicates_can_be_taken_apart_again():
    batch = replicates(repeats=3, slots=20)
    again = Replicates.of(batch.trials)
    assert again.populations == batch.populations
    np.testing.assert_array_equal(again.counts, batch.counts)


def test_only_reproductions_use_the_second_implementation():
    """`compare`, `plan` and `demo` measure the product: nothing outside of `reproduce` knows the engines."""
    package = Path(experiments.__file__).parents[1]
    users = [path for path in package.rglob("*.py") if "replicated" in path.read_text()]
    assert users
    assert all(package / "experiments" / "reproduce" in path.parents for path in users)
