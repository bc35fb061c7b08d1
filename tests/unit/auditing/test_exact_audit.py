"""The exact audit passes what keeps its promise and catches what does not, down to a unit of 2^-64."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.broken_policies import TRAPS, UngatedLedger
from wevent import Population, Publisher, Requirement, SecureNoise, SeededNoise
from wevent.auditing.audit_subject import AuditSubject, Finding, build_subject
from wevent.auditing.exact import exact_audit
from wevent.auditing.exact.cases import SEARCHED, TINY, World
from wevent.auditing.exact.enumeration import Enumeration
from wevent.auditing.exact.exact_audit import audit_exactly
from wevent.auditing.exact.pairs import Case
from wevent.core import permit
from wevent.core.estimators import Sampling, laplace_error, sample
from wevent.core.mechanism import Measurement
from wevent.errors import InvalidOption
from wevent.publisher.release import Release

ONE = World(Population({Requirement(2, 1): 1000}), 1)
SAMPLED = World(Population({Requirement(2, 1): 1000, Requirement(2, "0.4"): 4}), 2)
REFUNDED = World(Population({Requirement(3, "0.6"): 1, Requirement(1, "0.38"): 1000}), 2)
NESTED = World(Population({Requirement(2, "0.8"): 50, Requirement(4, "0.8"): 50}), 1)


def audited(subject: AuditSubject, *worlds: Any, rounds: int = 6) -> list[Finding]:
    return audit_exactly(
        subject, seconds=0, seed=1, tiny=False, rounds=rounds, until_broken=True, worlds=worlds or (ONE, SAMPLED)
    )


def broken(subject: AuditSubject, *worlds: Any, rounds: int = 6) -> Finding:
    finding = next(found for found in audited(subject, *worlds, rounds=rounds) if found.broken)
    assert finding.confidence is None  # computed, not estimated
    return finding


def unclear(subject: AuditSubject, *worlds: Any) -> Finding:
    """What is neither called broken nor passed."""
    findings = audited(subject, *worlds, rounds=2)
    assert not any(finding.broken for finding in findings)
    return next(finding for finding in findings if finding.unclear)


def with_pieces(
    mechanism: str, ledger: Callable[..., Any] | None = None, refund: bool = False, **pieces: Any
) -> AuditSubject:
    """A mechanism with some pieces exchanged, behind a gate that may be none."""

    def make(population: Population, cells: int, noise: Any) -> Publisher:
        publisher = Publisher(population, cells, mechanism, noise=noise, refund=refund)
        publisher._pieces = replace(publisher._pieces, **{name: piece() for name, piece in pieces.items()})
        if ledger is not None:
            publisher._ledger = ledger(population, sensitivity=1, cells_per_user=1)
        return publisher

    return AuditSubject(f"{mechanism} with {', '.join(pieces)}", make)


# --- what keeps its promise -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["uniform", "pbu", "pba", "pft", "sample"])
def test_a_tight_mechanism_is_shown_to_spend_all_it_may(mechanism: str) -> None:
    findings = audited(build_subject(mechanism), ONE, rounds=2)
    assert [finding.broken for finding in findings] == [False]
    assert findings[0].requirement == Requirement(2, 1)
    assert 0.9999999 < findings[0].shown <= 1
    assert findings[0].trials == 2
    assert "slot 1" in findings[0].witness


def test_distribution_keeps_the_last_half_of_a_half() -> None:
    (finding,) = audited(build_subject("pbd"), ONE, rounds=2)
    assert not finding.broken
    assert finding.shown == pytest.approx(0.875)  # two probes of a quarter, an eighth after a quarter


def test_a_tiny_case_is_enumerated() -> None:
    population, cells, _ = TINY[0]
    tree = Enumeration(Case(build_subject("uniform"), population, cells, 0), np.zeros((1, 1), dtype=np.int64))
    assert tree.deepen(time.monotonic() + 600)
    assert tree.deepen(time.monotonic() + 600)
    assert tree.complete == 2
    # A slot: draws of −1, 0, 1; the victim absent or present in both streams, or in one; in either one once they differ.
    assert tree.found.trials == 9 + (9 + 6 * 9 + 3 * 12)
    assert float(tree.found.ratio) == pytest.approx(1.0)


def test_an_enumeration_that_runs_out_of_time_says_how_far_it_came() -> None:
    population, cells, _ = TINY[0]
    tree = Enumeration(Case(build_subject("uniform"), population, cells, 0), np.zeros((1, 1), dtype=np.int64))
    assert not tree.deepen(time.monotonic() - 1)
    assert tree.complete == 0


# --- what does not ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trap", "world"),
    [
        ("forgets its last publication", ONE),
        ("window one slot short, in the sum", NESTED),
        ("window one slot short, in the share", ONE),
        ("dissimilarity charge skipped", ONE),
        pytest.param("nullified by the smallest bound", SEARCHED[4], marks=pytest.mark.slow),
        pytest.param("shares rounded down after a refund", REFUNDED, marks=pytest.mark.slow),
    ],
)
def test_a_policy_that_overspends_without_a_gate(trap: str, world: Any) -> None:
    mistake = TRAPS[trap]
    subject = with_pieces("pbd", UngatedLedger, mistake.refund, policy=mistake.broken)
    assert broken(subject, world, rounds=25).shown < math.inf
    behind_the_gate = with_pieces("pbd", None, mistake.refund, policy=mistake.broken)
    assert not any(finding.broken for finding in audited(behind_the_gate, world, rounds=2))


def test_a_probability_rounded_up_by_one_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    right = permit.sampling_probability
    monkeypatch.setattr(permit, "sampling_probability", lambda *numbers: right(*numbers) + 1)
    finding = broken(build_subject("pbu"), SAMPLED)
    assert finding.requirement == Requirement(2, "0.4")
    assert finding.shown == pytest.approx(0.4, abs=1e-15)  # no float shows the difference


def test_a_noise_scale_one_step_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    right = permit.noise_scale
    monkeypatch.setattr(permit, "noise_scale", lambda *numbers: math.nextafter(right(*numbers), 0.0))
    assert broken(build_subject("uniform"), ONE).shown == pytest.approx(1.0)


def test_noise_for_another_relation() -> None:
    subject = build_subject("uniform")
    assert broken(replace(subject, options={"neighbours": "replace"}), SAMPLED).shown == pytest.approx(0.8)


class OneNoise(Sampling):
    def measure(self, permit, plan, counts, noise):
        spend = permit.for_sampling(plan.threshold)
        values = sample(counts, spend, noise) + noise.laplace(spend.noise, 1)
        return Measurement(values, laplace_error(spend.noise.scale))


class UsersPresent(Sampling):
    def measure(self, permit, plan, counts, noise):
        return super().measure(permit, plan, counts, noise)._replace(users=int(counts.sum()))


class FailsOnMany(Sampling):
    def measure(self, permit, plan, counts, noise):
        if counts.sum() > 999:
            raise ValueError("too many")
        return super().measure(permit, plan, counts, noise)


class CutOff(Sampling):
    def measure(self, permit, plan, counts, noise):
        spend = permit.for_sampling(plan.threshold)
        values = sample(counts, spend, noise)
        return Measurement(
            values + np.clip(noise.laplace(spend.noise, len(values)), -2, 2), laplace_error(spend.noise.scale)
        )


@pytest.mark.parametrize("estimator", [OneNoise, UsersPresent, FailsOnMany])
def test_what_one_stream_shows_and_the_other_never_does(estimator: type[Sampling]) -> None:
    finding = broken(with_pieces("pbu", estimator=estimator), ONE, SAMPLED)
    assert finding.shown == math.inf
    assert "victim" in finding.witness


def test_noise_that_is_cut_off() -> None:
    assert broken(with_pieces("pbu", estimator=CutOff), ONE, rounds=30).shown > 2


class LastSample(Sampling):
    """Keeps the sample of a slot and adds it to the next: a count that outlives its slot."""

    kept: Any = 0

    def measure(self, permit, plan, counts, noise):
        spend = permit.for_sampling(plan.threshold)
        now = sample(counts, spend, noise)
        values = now + self.kept + noise.laplace(spend.noise, len(now))
        self.kept = now
        return Measurement(values, laplace_error(spend.noise.scale))


def test_hidden_state_is_carried_along() -> None:
    assert 1 < broken(with_pieces("pbu", estimator=LastSample), ONE).shown < math.inf


class OneSample:
    """Draws one sample per slot: what the probe looked at is published."""

    def __init__(self, population: Population, cells: int, noise: Any) -> None:
        self._noise = noise
        self._kept: Any = None
        self._publisher = Publisher(population, cells, "pba", noise=self)

    def laplace(self, permit: Any, size: int) -> Any:
        return self._noise.laplace(permit, size)

    def respond(self, counts: Any, permit: Any) -> Any:
        return self._noise.respond(counts, permit)

    def binomial(self, counts: Any, permit: Any) -> Any:
        self._kept = self._noise.binomial(counts, permit) if self._kept is None else self._kept
        return self._kept

    @property
    def measured(self) -> Measurement | None:
        return self._publisher.measured

    def step(self, counts: Any) -> Release:
        self._kept = None
        return self._publisher.step(counts)


def test_one_sample_for_probe_and_publication() -> None:
    finding = broken(AuditSubject("one sample", OneSample), SAMPLED)
    assert finding.requirement == Requirement(2, "0.4")
    probability = math.expm1(0.1) / math.expm1(0.25)
    both = math.log1p(probability * math.expm1(0.5))  # what sampling hides of a loss of 0.25 twice
    assert finding.shown == pytest.approx(2 * both)


class OwnDice(Sampling):
    def measure(self, permit, plan, counts, noise):
        spend = permit.for_sampling(plan.threshold)
        values = sample(counts, spend, noise)
        dice = np.random.default_rng().laplace(0.0, spend.noise.scale, len(values))
        return Measurement(values + np.rint(dice).astype(np.int64), laplace_error(spend.noise.scale))


@pytest.mark.parametrize(
    "subject",
    [
        with_pieces("pbu", estimator=OwnDice),
        AuditSubject(
            "its own noise", lambda population, cells, noise: Publisher(population, cells, "pbu", noise=SecureNoise())
        ),
    ],
)
def test_randomness_that_does_not_come_from_the_source(subject: AuditSubject) -> None:
    finding = unclear(subject, ONE)
    assert finding.verdict == "own randomness"
    assert "randomness that the audit cannot see" in finding.obstacle


def test_a_seed_of_its_own_hides_nothing() -> None:
    subject = AuditSubject(
        "seeded", lambda population, cells, noise: Publisher(population, cells, "pbu", noise=SeededNoise(1))
    )
    assert broken(subject, ONE).shown == math.inf


def after(change: Callable[[Any], Any]) -> AuditSubject:
    """An honest measurement, and something done to it."""

    class Changed(Sampling):
        def measure(self, permit, plan, counts, noise):
            measured = super().measure(permit, plan, counts, noise)
            return measured._replace(values=change(measured.values))

    return with_pieces("pbu", estimator=Changed)


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (lambda values: np.maximum(values, 0), 1.0),
        (lambda values: np.minimum(values, 1), 0.0),
        (lambda values: np.sign(values) * np.sqrt(np.abs(values)), 1.0),
        (lambda values: 0.1 * values - 3, 1.0),
        (np.cumsum, 1.0),
    ],
    ids=["clipped", "clipped below the counts", "root", "scaled", "summed"],
)
def test_what_is_done_to_an_honest_measurement_is_followed(change: Callable[[Any], Any], shown: float) -> None:
    (finding,) = audited(after(change), ONE, rounds=1)
    assert finding.verdict == "nothing found"
    assert finding.shown == pytest.approx(shown, abs=0.01)


@pytest.mark.parametrize("change", [np.square, lambda values: values % 8], ids=["squared", "rest"])
def test_what_cannot_be_followed_is_neither_broken_nor_passed(change: Callable[[Any], Any]) -> None:
    finding = unclear(after(change), ONE)
    assert finding.verdict == "cannot say"
    assert "noise that the audit cannot follow" in finding.obstacle


class Redrawn(Sampling):
    """Draws again while something looks wrong."""

    most = 1

    def is_wrong(self, values, noise):
        return (values < 0).any()

    def measure(self, permit, plan, counts, noise):
        spend = permit.for_sampling(plan.threshold)
        kept = sample(counts, spend, noise)
        drawn = noise.laplace(spend.noise, len(kept))
        again = 0
        while self.is_wrong(kept + drawn, drawn) and again < self.most:
            object.__setattr__(spend.noise, "_used", False)
            drawn = noise.laplace(spend.noise, len(kept))
            again += 1
        return Measurement(kept + drawn, laplace_error(spend.noise.scale))


class RedrawnForEver(Redrawn):
    most = 10**9


class NeverZero(RedrawnForEver):
    def is_wrong(self, values, noise):
        return not noise.any()


@pytest.mark.parametrize(
    ("estimator", "shown"),
    [
        (Redrawn, 4.0),  # below zero twice as well: e^ε for the value, e^ε for the first draw
        (RedrawnForEver, 2 + math.log((1 - math.exp(-4) / (1 + math.exp(-2))) * (1 + math.exp(-2)))),
        (NeverZero, math.inf),
    ],
)
def test_draws_that_are_drawn_again_lose_what_a_table_shows(
    estimator: type[Sampling], shown: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact_audit, "_TABLE_S", 3600.0)  # a number of runs ends a table, on any machine
    finding = broken(with_pieces("uniform", estimator=estimator), ONE, rounds=1)
    assert finding.audit == "exact: tabulated"
    assert finding.requirement == Requirement(1, 2)
    assert finding.shown > 10 if shown == math.inf else finding.shown == pytest.approx(shown, abs=0.02)


def test_a_world_that_is_refused_is_left_out() -> None:
    whole = build_subject("uniform")

    def make(population: Population, cells: int, noise: Any) -> Any:
        if cells < 2:
            raise InvalidOption(f"{cells} cells.", "Declare more.", option="cells")
        return whole.make(population, cells, noise)

    with pytest.raises(InvalidOption, match="1 cells"):
        audited(AuditSubject("two cells", make), ONE)
    assert {finding.verdict for finding in audited(AuditSubject("two cells", make), rounds=1)} == {"nothing found"}


def test_a_publisher_that_cannot_be_copied_is_said() -> None:
    def make(population: Population, cells: int, noise: Any) -> Publisher:
        publisher = Publisher(population, cells, "pbu", noise=noise)
        publisher.lock = threading.Lock()
        return publisher

    finding = unclear(AuditSubject("locked", make), ONE)
    assert finding.verdict == "cannot say"
    assert "a state that cannot be copied" in finding.obstacle
