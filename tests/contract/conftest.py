"""The mechanisms under contract: every one there is, one of the suite's own, and `pft` without anchors, and with a cycle."""

from __future__ import annotations

from dataclasses import replace

import pytest

import wevent
from wevent.core.builtin_mechanisms import BUILT_IN
from wevent.core.estimators import Sampling
from wevent.core.mechanism import Mechanism, NoOffer
from wevent.core.options import ClassWeights, Options
from wevent.core.postprocess import LastValue


class EverySecond:
    """Two slots' budget in every odd slot; no probe."""

    def probe(self, ledger):
        return None

    def offer(self, ledger, history):
        if history.slot % 2 == 0:
            return NoOffer.NOT_DUE
        return ledger.epsilons // ((ledger.windows + 1) // 2)


OWN = Mechanism(
    name="every-second",
    summary="twice the even share in every second slot",
    policy=lambda declared, options: EverySecond(),
    estimator=lambda options: Sampling(),
    smoother=lambda options: LastValue(),
)


def _with_weights(name: str, weights: ClassWeights) -> Mechanism:
    """`pft` with these weights of classes."""

    def chosen(options: Options) -> Options:
        return replace(options, class_weights=weights)

    row = BUILT_IN["pft"]
    return replace(
        row,
        name=name,
        policy=lambda declared, options: row.policy(declared, chosen(options)),
        estimator=lambda options: row.estimator(chosen(options)),
        smoother=lambda options: row.smoother(chosen(options)),
    )


ALIKE, WEIGHTED = _with_weights("pft-alike", "equal"), _with_weights("pft-weighted", "budget")


CYCLIC = replace(
    BUILT_IN["pft"],
    name="pft-cycle",
    summary="pft with a cycle and a calendar",
    policy=lambda declared, options: BUILT_IN["pft"].policy(declared, _with_cycle(options)),
    smoother=lambda options: BUILT_IN["pft"].smoother(_with_cycle(options)),
)


def _with_cycle(options: Options) -> Options:
    return replace(options, seasonality=(12.0,), special_days=(13, 25, 49, 61))


OTHERS = (OWN, ALIKE, WEIGHTED, CYCLIC)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for a `mechanism` runs for every registered one: a new row is tested unasked."""
    if "mechanism" in metafunc.fixturenames:
        metafunc.parametrize("mechanism", [*wevent.mechanisms(), *(row.name for row in OTHERS)])


@pytest.fixture(autouse=True)
def _own_mechanism(_own_catalogue: None) -> None:
    """Registered by the public call, for this suite only."""
    for row in OTHERS:
        wevent.register(row)
