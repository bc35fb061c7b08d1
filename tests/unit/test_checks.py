"""The contract suite: every check can fail, says how, and leaves the catalogue as it was."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wevent
from tests.support.broken_policies import (
    TRAPS,
    FreeProbe,
    NoProbe,
    ProbeForgettingLedger,
    SilentProbe,
    SmallestBoundUnclipped,
    UngatedLedger,
    mechanism,
)
from wevent import InvalidOption, Mechanism, Population, Publisher, Requirement, UnknownMechanism
from wevent.checks import CHECKS, CheckFailed, check_mechanism
from wevent.checks.contract import expect_windows_hold
from wevent.checks.subject import Broken, available
from wevent.core.estimators import Sampling, laplace_error
from wevent.core.ledger import Ledger
from wevent.core.mechanism import Measurement, NoOffer
from wevent.core.policies import Absorption, Distribution, Uniform
from wevent.core.postprocess import LastValue

pytestmark = pytest.mark.slow

SOUND = Mechanism(
    name="sound",
    summary="every slot, for tests only",
    policy=lambda declared, options: Uniform(),
    estimator=lambda options: Sampling(),
    smoother=lambda options: LastValue(),
)


def with_policy(policy: Callable[[], Any], **more: Any) -> Mechanism:
    return replace(SOUND, policy=lambda declared, options: policy(), **more)


def with_estimator(estimator: Callable[[], Any]) -> Mechanism:
    return replace(SOUND, estimator=lambda options: estimator())


def with_smoother(smoother: Callable[[], Any]) -> Mechanism:
    return replace(SOUND, smoother=lambda options: smoother())


# --- broken policies --------------------------------------------------------------------------------------------------


class Greedy(Uniform):
    def offer(self, ledger, history):
        return ledger.epsilons


class Floats(Uniform):
    def offer(self, ledger, history):
        return ledger.epsilons / ledger.windows


class Counting(Uniform):
    """Counts for itself instead of reading the history: forgets when it is restored."""

    def __init__(self) -> None:
        self._calls = 0

    def offer(self, ledger, history):
        self._calls += 1
        return NoOffer.NOT_DUE if self._calls % 2 else super().offer(ledger, history)


class Scribbling(Uniform):
    def offer(self, ledger, history):
        history.measurement[:] = 0
        history.last_charges[:] = 0
        return super().offer(ledger, history)


class Planless(Uniform):
    def replan(self, ledger, history):
        raise ZeroDivisionError("no period")


def leaky() -> Mechanism:
    """The estimator leaves the number of people where the policy finds it."""
    people: list[int] = [0]

    class Leaving(Sampling):
        def measure(self, permit, plan, counts, noise):
            people[0] = int(counts.sum())
            return super().measure(permit, plan, counts, noise)

    class Reading(Uniform):
        def offer(self, ledger, history):
            return super().offer(ledger, history) // (2 if people[0] else 1)

    return replace(with_policy(Reading), estimator=lambda options: Leaving())


# --- broken estimators and smoothers ----------------------------------------------------------------------------------


class Truthful(Sampling):
    """Pays for noise and draws it, and publishes the truth."""

    def measure(self, permit, plan, counts, noise):
        measured = super().measure(permit, plan, counts, noise)
        return measured._replace(values=counts.sum(axis=0))


class Unseeded(Sampling):
    def measure(self, permit, plan, counts, noise):
        measured = super().measure(permit, plan, counts, noise)
        return measured._replace(values=measured.values + np.random.default_rng().integers(0, 1000))


class Hiding(Sampling):
    """Publishes zeros where the draw failed."""

    def measure(self, permit, plan, counts, noise):
        try:
            return super().measure(permit, plan, counts, noise)
        except OSError:
            return Measurement(np.zeros(counts.shape[1], dtype=np.int64), laplace_error(1.0))


class Overflowing(LastValue):
    def advance(self, state, measurement):
        after, estimate = super().advance(state, measurement)
        return after, estimate._replace(values=np.exp(estimate.values))


class Forgetting(LastValue):
    def load(self, dumped):
        return self.start(len(dumped[0]))


class Hoarding(LastValue):
    def __init__(self) -> None:
        self._kept: list[Any] = []

    def advance(self, state, measurement):
        self._kept.append(np.zeros(1))
        return super().advance(state, measurement)


class Swelling(LastValue):
    """A state that grows with the slots."""

    def start(self, cells, slot=1):
        return [], super().start(cells, slot)

    def advance(self, state, measurement):
        after, estimate = super().advance(state[1], measurement)
        return ([*state[0][-5000:], 0], after), estimate

    def dump(self, state):
        return [state[0], super().dump(state[1])]

    def load(self, dumped):
        return dumped[0], super().load(dumped[1])


class Certain(LastValue):
    """States no error."""

    def advance(self, state, measurement):
        after, estimate = super().advance(state, measurement)
        return after, estimate._replace(std_error=np.zeros(len(estimate.values)))


class Reusing(LastValue):
    """Publishes the same array in every slot, and writes into it."""

    def __init__(self) -> None:
        self._values = np.zeros(3)
        self._view = self._values.view()
        self._view.setflags(write=False)

    def advance(self, state, measurement):
        after, estimate = super().advance(state, measurement)
        self._values[:] = estimate.values
        return after, estimate._replace(values=self._view)


class Shifting(LastValue):
    """Publishes something else than was measured, under the measurement's law."""

    def advance(self, state, measurement):
        after, estimate = super().advance(state, measurement)
        return after, estimate._replace(values=estimate.values + 1)


def whispering() -> Mechanism:
    """The estimator tells the smoother something that no journal has."""
    told: list[int] = []

    class Telling(Sampling):
        def measure(self, permit, plan, counts, noise):
            told.append(1)
            return super().measure(permit, plan, counts, noise)

    class Told(LastValue):
        def advance(self, state, measurement):
            after, estimate = super().advance(state, measurement)
            return after, estimate._replace(values=estimate.values + len(told))

    return replace(SOUND, estimator=lambda options: Telling(), smoother=lambda options: Told())


def picky(options: Any) -> Sampling:
    if options.round:
        raise KeyError("round")
    return Sampling()


BROKEN: dict[str, tuple[str, Callable[[], Mechanism]]] = {
    **{
        label: ("within-its-means", lambda trap=trap: mechanism("broken", trap.broken)) for label, trap in TRAPS.items()
    },
    "no probe": ("within-its-means", lambda: mechanism("broken", NoProbe)),
    "a probe of nothing": ("within-its-means", lambda: mechanism("broken", SilentProbe)),
    "a probe nobody announced": ("within-its-means", lambda: with_policy(Distribution)),
    "a negative offer": ("within-its-means", lambda: mechanism("broken", SmallestBoundUnclipped)),
    "an offer of floats": ("within-its-means", lambda: with_policy(Floats)),
    "everything in every slot": ("within-its-means", lambda: with_policy(Greedy)),
    "a policy with a memory": ("within-its-means", lambda: with_policy(Counting)),
    "a policy that writes": ("within-its-means", lambda: with_policy(Scribbling)),
    "a plan that fails": ("within-its-means", lambda: with_policy(Planless)),
    "a policy that sees people": ("counts-unseen", leaky),
    "noise of its own": ("noise", lambda: with_estimator(Unseeded)),
    "a state that is not read": ("restored", lambda: with_smoother(Forgetting)),
    "a policy that forgets": ("restored", lambda: with_policy(Counting)),
    "told what no journal has": ("replayed", whispering),
    "another value than measured": ("noise", lambda: with_smoother(Shifting)),
    "hides a failed draw": ("failed-draws", lambda: with_estimator(Hiding)),
    "a shared budget that is not": ("populations", lambda: with_policy(Uniform, shared_budget=True)),
    "no error stated": ("noise", lambda: with_smoother(Certain)),
    "one array for all": ("noise", lambda: with_smoother(Reusing)),
    "the truth": ("noise", lambda: with_estimator(Truthful)),
    "values that overflow": ("finite", lambda: with_smoother(Overflowing)),
    "an option it falls over": ("windows", lambda: replace(SOUND, estimator=picky)),
    "an object per slot": ("memory", lambda: with_smoother(Hoarding)),
    "a state that grows": ("memory", lambda: with_smoother(Swelling)),
}


@pytest.mark.parametrize("label", BROKEN)
def test_a_broken_mechanism_is_caught_by_its_check(label: str) -> None:
    check, make = BROKEN[label]
    with pytest.raises(CheckFailed) as caught:
        check_mechanism(make(), only=[check], slots=30 if check == "memory" else 60)
    assert caught.value.check == check
    assert f"fails the check {check!r}" in str(caught.value)


@pytest.mark.parametrize("label", [label for label, (check, _) in BROKEN.items() if check == "within-its-means"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_is_caught_with_any_seed(label: str, seed: int) -> None:
    with pytest.raises(CheckFailed):
        check_mechanism(BROKEN[label][1](), only=["within-its-means"], seed=seed)


@pytest.mark.parametrize("check", CHECKS)
def test_the_sound_sibling_passes(check: str) -> None:
    assert check_mechanism(SOUND, only=[check], slots=30) == (check,)


# --- a broken gate: what a mechanism alone can't break ----------------------------------------------------------------


class ForgettingLedger(Ledger):
    """Whose last members leave takes their charges along."""

    def update(self, population, keep=None):
        carried = super().update(population, keep)
        self._charges[:] = 0
        self._resum()
        return carried


GATES = {
    "windows without a gate": (
        "windows",
        UngatedLedger,
        mechanism("broken", TRAPS["forgets its last publication"].broken),
    ),
    "windows without probes": ("windows", ProbeForgettingLedger, mechanism("broken", FreeProbe)),
    "charges that leave": ("populations", ForgettingLedger, SOUND),
    "populations": ("populations", ForgettingLedger, mechanism("broken", Absorption)),
}


@pytest.mark.parametrize("label", GATES)
def test_a_broken_gate_is_caught(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check, ledger, row = GATES[label]
    check_mechanism(row if row is SOUND else mechanism("broken", Distribution), only=[check])
    monkeypatch.setattr("wevent.publisher.publisher.Ledger", ledger)
    with pytest.raises(CheckFailed) as caught:
        check_mechanism(row, only=[check])
    assert caught.value.check == check


def test_every_check_is_seen_to_fail() -> None:
    assert {check for check, *_ in (*BROKEN.values(), *GATES.values())} == set(CHECKS)


# --- how it is told ---------------------------------------------------------------------------------------------------


def test_a_failure_names_check_mechanism_slot_and_seed() -> None:
    with pytest.raises(AssertionError) as caught:
        check_mechanism(replace(with_policy(Greedy), name="greedy"), seed=9)
    error = caught.value
    assert isinstance(error, CheckFailed)
    assert (error.check, error.mechanism, error.slot, error.seed) == ("within-its-means", "greedy", 2, 9)
    assert str(error) == (
        "'greedy' fails the check 'within-its-means' in slot 2: it asks "
        f"{Requirement(3, '1.000000007')} for 1000000007 nano-epsilons, and 0 are left. "
        "Reproduce: check_mechanism(…, only=['within-its-means'], slots=60, seed=9)."
    )


def test_an_error_of_the_mechanism_is_its_cause() -> None:
    with pytest.raises(CheckFailed, match="it raises KeyError: 'round'") as caught:
        check_mechanism(replace(SOUND, estimator=picky), only=["windows"])
    assert isinstance(caught.value.__cause__, KeyError)


def test_what_is_registered_stays_as_it_was() -> None:
    before = wevent.mechanisms()
    check_mechanism(SOUND, only=["memory", "within-its-means"], slots=20)
    with pytest.raises(CheckFailed):
        check_mechanism(with_policy(Greedy), only=["within-its-means"])
    assert wevent.mechanisms() == before
    with pytest.raises(UnknownMechanism):
        Publisher(Population({Requirement(1, 1): 1}), 2, "sound")


def test_a_greedy_mechanism_is_stopped_by_the_gate_all_the_same() -> None:
    """It offers the whole epsilon in every slot: refused until the last charge has left the longest window."""
    assert check_mechanism(with_policy(Greedy), only=["windows", "populations"])
    population = Population({Requirement(1, 1): 30, Requirement(7, 2): 10})
    with available(with_policy(Greedy)):
        made = Publisher(population, 2, SOUND.name, noise=wevent.SeededNoise(5))
    assert [made.slot - 1 for _ in range(20) if made.step([[1, 2], [3, 4]]).fresh] == [1, 8, 15]


def test_the_window_check_is_exact() -> None:
    requirement = Requirement(3, "1.000000007")
    nano = requirement.nano
    expect_windows_hold(requirement, [nano, 0, 0, nano])
    for charges, slot in ([nano, 0, 1], 3), ([0, nano, 0, 0, 0, nano, 1], 7), ([-1, nano], 1), ([0, 0.5], 2):
        with pytest.raises(Broken) as caught:
            expect_windows_hold(requirement, charges)
        assert caught.value.args[1] == slot


@pytest.mark.parametrize(
    ("asked", "option"), [({"only": ["windoes"]}, "only"), ({"slots": 5}, "slots"), ({"slots": 0}, "slots")]
)
def test_what_cannot_be_checked_is_refused(asked: dict[str, Any], option: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        check_mechanism("pbd", **asked)
    assert caught.value.option == option
    with pytest.raises(UnknownMechanism):
        check_mechanism("pbdd")


def test_a_measurement_survives_the_journal_whatever_its_numbers() -> None:
    """An estimator of one's own may measure in floats."""

    class Halving(Sampling):
        def measure(self, permit, plan, counts, noise):
            measured = super().measure(permit, plan, counts, noise)
            return Measurement(measured.values / 3, measured.error, users=measured.users)

    assert check_mechanism(with_estimator(Halving), only=["replayed", "restored"])


def test_the_how_to_does_what_it_says() -> None:
    """Every block of Python in it runs, its test included; with its mistake it fails in the check it names."""
    text = (Path(__file__).parents[2] / "docs/how-to/register-a-mechanism.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    names["test_the_contract"]()
    mistaken = re.search(r"odd windows\s+forgotten,\s+`(.*?)`", text)
    assert mistaken is not None
    wrong: dict[str, Any] = {}
    exec(blocks[0].replace("ledger.epsilons // ((ledger.windows + 1) // 2)", mistaken[1]), wrong)
    with pytest.raises(CheckFailed) as caught:
        check_mechanism(wrong["every_second"])
    assert re.search(r"```text\n(.*?) …", text)[1] in str(caught.value)
    assert set(re.findall(r"`([a-z-]+)`", text.split("| check |")[1].split("\n\n")[0])) == set(CHECKS)


def test_what_another_thread_keeps_meanwhile_is_not_the_mechanisms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is counted for the whole process: a notebook or a server has other things to do in it."""
    blocks, looks = sys.getallocatedblocks, itertools.count()
    monkeypatch.setattr("sys.getallocatedblocks", lambda: blocks() + 10_000 * (next(looks) >= 2))
    assert check_mechanism(SOUND, only=["memory"], slots=30)
