"""Mechanisms that break their promise only somewhere: late, in large crowds, wide windows, many classes or cells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.broken_policies import UngatedLedger
from tests.zoo.bug import Undone, together
from tests.zoo.spending import lone_forgotten, short_ring
from wevent import Population, Publisher
from wevent.auditing.audit_subject import AuditSubject, Finding, build_subject
from wevent.auditing.exact.cases import LIVED, SEARCHED, SEARCHED_LOCAL, WIDE, World
from wevent.auditing.exact.exact_audit import audit_exactly
from wevent.auditing.exact.lives import Living
from wevent.auditing.exact.pairs import Case, PairMove, Playing
from wevent.core.estimators import Sampling, laplace_error, sample
from wevent.core.ledger import Ledger
from wevent.core.mechanism import Measurement


def measuring(estimator: type[Sampling]) -> AuditSubject:
    def make(population: Population, cells: int, noise: Any) -> Publisher:
        publisher = Publisher(population, cells, "pbu", noise=noise)
        publisher._pieces = replace(publisher._pieces, estimator=estimator())
        return publisher

    return AuditSubject(estimator.__name__, make)


def spending(policy: type[Any]) -> AuditSubject:
    def make(population: Population, cells: int, noise: Any) -> Publisher:
        publisher = Publisher(population, cells, "pbu", noise=noise)
        publisher._pieces = replace(publisher._pieces, policy=policy())
        publisher._ledger = UngatedLedger(population, sensitivity=1, cells_per_user=1)
        return publisher

    return AuditSubject(policy.__name__, make)


def broken(subject: AuditSubject, *worlds: Any, seconds: float = 0.0) -> list[Finding]:
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
def test_a_promise_that_breaks_in_an_unusual_world(subject: AuditSubject) -> None:
    assert broken(subject)


def test_a_promise_that_breaks_once_a_day() -> None:
    world = SEARCHED[0]
    assert not broken(spending(_EvenShares), world, seconds=1.0)
    finding = broken(spending(AllAtMidnight), world, seconds=200.0)[0]  # ends with the first: some seconds, if not busy
    assert finding.shown == pytest.approx(1.5)
    assert "slot 24" in finding.witness


def _loads_nothing() -> Undone:
    load = Ledger.load

    def forgetting(self: Ledger, population: Population, slot: int, exported: Any) -> None:
        load(self, population, slot, (exported[0], bytes(len(exported[1]))))

    return together((Ledger, "load", forgetting))


def _replays_nothing() -> Undone:
    replay = Ledger.replay
    return together((Ledger, "replay", lambda self, probe, publication: replay(self, 0 * probe, 0 * publication)))


@pytest.mark.parametrize(
    ("undone", "world", "shown"),
    [
        (short_ring(), WIDE, 10.2),
        (lone_forgotten(), LIVED, 1.95),
        (_loads_nothing(), LIVED, 1.95),
        (_replays_nothing(), LIVED, 1.775),
    ],
    ids=["a ring of 64 slots", "a class of one or none", "a restore", "a replay"],
)
def test_a_ledger_that_forgets_charges(undone: Undone, world: World, shown: float) -> None:
    assert not broken(build_subject("pbd"), world)
    with undone():
        (finding,) = broken(build_subject("pbd"), world)
    assert finding.shown == pytest.approx(shown, abs=0.02)
    assert finding.requirement.window == max(one.window for one in world.population.classes)


@pytest.mark.parametrize("worlds", [SEARCHED, SEARCHED_LOCAL], ids=["central", "local"])
def test_a_world_of_the_search_has_updates_returns_and_restores(worlds: tuple[World, ...]) -> None:
    (world,) = (world for world in worlds if world.life)
    populations = [change for _, change in world.life if change is not None]
    away = [all(one in people for people in populations) for one in world.population.classes]
    assert away.count(False) == 2
    assert sum(change is None for _, change in world.life) == 2
    assert max(slot for slot, _ in world.life) < max(one.window for one in world.population.classes)


def test_a_life_is_that_of_a_publisher_that_is_updated_and_restored() -> None:
    """Slot by slot the classes that are charged; charges stay with a class that is away."""
    case = Case(build_subject("uniform"), LIVED.population, 1, 0, LIVED.life)
    state = case.start()
    assert isinstance(state, Living)
    charges = [state.step(np.zeros((3, 1), dtype=np.int64)).publication_charges for _ in range(7)]
    assert {
        one.window: "".join("-+"[charge > 0] for charge in row)
        for one, row in zip(LIVED.population.classes, np.array(charges).T.tolist(), strict=True)
    } == {2: "+++++++", 3: "-++--++", 8: "++--+++"}


@pytest.mark.parametrize("name", ["lbu", "pbd"])
def test_states_that_a_restore_makes_anew_are_the_same_state(name: str) -> None:
    world = SEARCHED_LOCAL[-1] if name == "lbu" else LIVED
    playing = Playing(Case(build_subject(name), world.population, 1, 1, world.life))
    moment = playing.start()
    for _ in range(4):
        moment = playing.play(
            moment, PairMove(np.ones((3, 1), dtype=np.int64) * [[0], [0], [1]], frozenset({0}), frozenset())
        )
    assert (len(moment.first.states), len(moment.second.states)) == (1, 1)
