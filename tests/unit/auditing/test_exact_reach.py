"""Mechanisms that break their promise only somewhere: late, in large crowds, wide windows, many classes or cells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.broken_policies import UngatedLedger
from wevent import Population, Publisher
from wevent.auditing.challenged import Challenged, Finding
from wevent.auditing.exact import audit_exactly
from wevent.auditing.exact.cases import SEARCHED
from wevent.core.estimators.sampling import Sampling, laplace_error, sample
from wevent.core.mechanism import Measurement


def measuring(estimator: type[Sampling]) -> Challenged:
    def make(population: Population, cells: int, noise: Any) -> Publisher:
        publisher = Publisher(population, cells, "pbu", noise=noise)
        publisher._pieces = replace(publisher._pieces, estimator=estimator())
        return publisher

    return Challenged(estimator.__name__, make)


def spending(policy: type[Any]) -> Challenged:
    def make(population: Population, cells: int, noise: Any) -> Publisher:
        publisher = Publisher(population, cells, "pbu", noise=noise)
        publisher._pieces = replace(publisher._pieces, policy=policy())
        publisher.ledger = UngatedLedger(population, sensitivity=1, cells_per_user=1)
        return publisher

    return Challenged(policy.__name__, make)


def broken(subject: Challenged, *worlds: Any, seconds: float = 0.0) -> list[Finding]:
    found = audit_exactly(subject, seconds=seconds, seed=1, tiny=False, until_broken=True, worlds=worlds or None)
    return [finding for finding in found if finding.broken]


class Counted(Sampling):
    kind: Any = np.float32

    def measure(self, permit, plan, counts, noise):
        spend = permit.for_sampling(plan.threshold)
        kept = sample(counts, spend, noise).astype(self.kind).astype(np.int64)
        return Measurement(kept + noise.laplace(spend.noise, len(kept)), laplace_error(spend.noise.scale))


class CountedInInt32(Counted):
    kind = np.int32


class EightCellsWithNoise(Sampling):
    def measure(self, permit, plan, counts, noise):
        spend = permit.for_sampling(plan.threshold)
        kept = sample(counts, spend, noise)
        kept[:8] += noise.laplace(spend.noise, len(kept))[:8]
        return Measurement(kept, laplace_error(spend.noise.scale))


class _EvenShares:
    def probe(self, ledger):
        return None

    def offer(self, ledger, history):
        return ledger.epsilons // ledger.windows


class RemembersSeven(_EvenShares):
    def offer(self, ledger, history):
        return ledger.epsilons // np.minimum(ledger.windows, 7)


class ForgetsBeyondFourClasses(_EvenShares):
    def offer(self, ledger, history):
        return ledger.epsilons // (ledger.windows if len(ledger.epsilons) < 5 else 1)


class AllAtMidnight(_EvenShares):
    def offer(self, ledger, history):
        return ledger.epsilons if history.slot % 24 == 0 else super().offer(ledger, history)


@pytest.mark.parametrize(
    "subject",
    [
        measuring(Counted),
        measuring(CountedInInt32),
        measuring(EightCellsWithNoise),
        spending(RemembersSeven),
        spending(ForgetsBeyondFourClasses),
    ],
    ids=lambda subject: subject.name,
)
def test_a_promise_that_breaks_in_an_unusual_world(subject: Challenged) -> None:
    assert broken(subject)


def test_a_promise_that_breaks_once_a_day() -> None:
    world = SEARCHED[0]
    assert not broken(spending(_EvenShares), world, seconds=1.0)
    finding = broken(spending(AllAtMidnight), world, seconds=200.0)[0]  # ends with the first: some seconds, if not busy
    assert finding.shown == pytest.approx(1.5)
    assert "slot 24" in finding.witness
