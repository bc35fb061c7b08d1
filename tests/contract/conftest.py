"""The mechanisms under contract: every one there is, and one of the suite's own."""

from __future__ import annotations

import pytest

import wevent
from wevent.core.estimators.sampling import Sampling
from wevent.core.mechanism import Idle, Mechanism
from wevent.core.smoothers.hold import Hold
from wevent.publisher import catalogue


class EverySecond:
    """Two slots' budget in every odd slot; no probe."""

    def probe(self, ledger):
        return None

    def offer(self, ledger, history):
        if history.slot % 2 == 0:
            return Idle.NOT_DUE
        return ledger.epsilons // ((ledger.windows + 1) // 2)


OWN = Mechanism(
    name="every-second",
    summary="twice the even share in every second slot",
    policy=lambda declared, options: EverySecond(),
    estimator=lambda options: Sampling(),
    smoother=lambda options: Hold(),
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for a `mechanism` runs for every registered one: a new row is tested unasked."""
    if "mechanism" in metafunc.fixturenames:
        metafunc.parametrize("mechanism", [*wevent.mechanisms(), OWN.name])


@pytest.fixture(autouse=True)
def _own_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registered by the public call, for this suite only."""
    monkeypatch.setattr(catalogue, "_registered", dict(catalogue._registered))
    wevent.register(OWN)
