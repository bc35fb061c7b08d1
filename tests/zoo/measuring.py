"""Bugs of measurements: noise, sampling and thresholds that are not what was paid for (spec 5, 6 and 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tests.zoo.bug import Bug, Subject, Undone, replaced, together
from tests.zoo.spending import rebuilt
from wevent.auditing.audit_subject import AuditSubject, build_subject
from wevent.core import estimators, permit, step
from wevent.core.budget import noise_scale, sampling_probability
from wevent.core.estimators import Sampling, _choose, laplace_error, sample
from wevent.core.mechanism import Measurement, NoiseSource, Plan
from wevent.core.permit import Permit
from wevent.core.requirements import Population, Requirement
from wevent.noise import SecureNoise, SeededNoise

ONE_CLASS = Population({Requirement(2, 1): 20})
MIXED = Population({Requirement(1, "0.2"): 2, Requirement(1, 4): 200})
NEARLY = Population({Requirement(1, 2): 2, Requirement(1, 8): 2})  # whether one more is there decides what OBS chooses
STRICTEST = Population({Requirement(1, "0.000000002"): 20})  # noise as wide as can be
MECHANISMS = ("exact", "black box")


def _with_noise(name: str, mechanism: str, broken: Callable[[NoiseSource], Any], **options: Any) -> AuditSubject:
    """A mechanism as it is shipped, whose draws go through something."""
    whole = build_subject(mechanism, **options)

    def make(population: Population, cells: int, noise: NoiseSource | None) -> Any:
        return whole.make(population, cells, broken(SecureNoise() if noise is None else noise))

    return AuditSubject(name, make, options)


class _Through:
    """A source of noise in front of another: everything goes through."""

    def __init__(self, inner: NoiseSource) -> None:
        self.inner = inner
        self.seeded = getattr(inner, "seeded", True)

    def laplace(self, permit: Any, size: int) -> Any:
        return self.inner.laplace(permit, size)

    def binomial(self, counts: Any, permit: Any) -> Any:
        return self.inner.binomial(counts, permit)

    def respond(self, counts: Any, permit: Any) -> Any:
        return self.inner.respond(counts, permit)


class OneValue(_Through):
    def laplace(self, permit: Any, size: int) -> Any:
        return np.repeat(self.inner.laplace(permit, 1), size)


class Saturated(_Through):
    """Noise of 32 bits, cut off at the ends; then it is added to the counts."""

    def laplace(self, permit: Any, size: int) -> Any:
        ends = np.iinfo(np.int32)
        return np.clip(self.inner.laplace(permit, size), ends.min, ends.max)


class WrongBudget(Sampling):
    """Noise for the whole ε of the window, although a slot has a part of it."""

    def __init__(self, population: Population) -> None:
        self._epsilon = min(one.nano for one in population.classes)

    def measure(self, permit: Permit, plan: Plan, counts: Any, noise: NoiseSource) -> Measurement:
        spend = permit.for_sampling(plan.threshold)
        object.__setattr__(spend.noise, "scale", noise_scale(self._epsilon, permit.sensitivity))
        values = sample(counts, spend, noise)
        values += noise.laplace(spend.noise, len(values))
        return Measurement(values, laplace_error(spend.noise.scale), users=int(permit.sizes.sum()))


class FloatLaplace(Sampling):
    """Laplace noise as a float, by the textbook's logarithm of a uniform number."""

    def measure(self, permit: Permit, plan: Plan, counts: Any, noise: NoiseSource) -> Measurement:
        spend = permit.for_sampling(plan.threshold)
        values = sample(counts, spend, noise)
        uniform = np.random.default_rng().random(len(values)) - 0.5
        noisy = values - spend.noise.scale * np.sign(uniform) * np.log1p(-2 * np.abs(uniform))
        return Measurement(noisy, laplace_error(spend.noise.scale), users=int(permit.sizes.sum()))


class PresentUsers(Sampling):
    """OBS is told how many of each class are present, not how many are registered."""

    def measure(self, permit: Permit, plan: Plan, counts: Any, noise: NoiseSource) -> Measurement:
        present = counts.sum(axis=1)
        choice = _choose(permit.budgets.tobytes(), present.tobytes(), permit.sensitivity, permit.cells_per_user)
        return super().measure(permit, plan._replace(threshold=choice.nano), counts, noise)


class RedrawsNegative(Sampling):
    """Draws again, once, if a count comes out below zero."""

    def measure(self, permit: Permit, plan: Plan, counts: Any, noise: NoiseSource) -> Measurement:
        spend = permit.for_sampling(plan.threshold)
        kept = sample(counts, spend, noise)
        values = kept + noise.laplace(spend.noise, len(kept))
        if (values < 0).any():
            object.__setattr__(spend.noise, "_used", False)  # permits refuse a second draw
            values = kept + noise.laplace(spend.noise, len(kept))
        return Measurement(values, laplace_error(spend.noise.scale), users=int(permit.sizes.sum()))


def rounded_up(budget: int, threshold: int, cells_per_user: int = 1) -> int:
    return sampling_probability(budget, threshold, cells_per_user) + 1


def one_sample() -> Undone:
    """The sample of the probe is kept and published."""

    @contextmanager
    def undone() -> Iterator[None]:
        kept: list[Any] = []

        def first(counts: Any, spend: Any, noise: NoiseSource) -> Any:
            kept[:] = [sample(counts, spend, noise)]
            return kept[0]

        def again(counts: Any, spend: Any, noise: NoiseSource) -> Any:
            return kept[0].copy()

        with replaced(step, "sample", first), replaced(estimators, "sample", again):
            yield

    return undone


def in_blocks() -> Undone:
    """Secure noise is drawn for 64 cells, and said again for the next."""
    whole = SecureNoise.laplace

    def laplace(self: SecureNoise, permit: Any, size: int) -> Any:
        return np.resize(whole(self, permit, min(size, 64)), size)

    return together((SecureNoise, "laplace", laplace))


def _seeded() -> AuditSubject:
    whole = build_subject("uniform")
    return AuditSubject(
        "seeded", lambda population, cells, noise: whole.make(population, cells, noise or SeededNoise(20260101))
    )


def _healthy(mechanism: str, population: Population = ONE_CLASS, **options: Any) -> Subject:
    return Subject(mechanism=build_subject(mechanism, **options), population=population)


def _broken(one: AuditSubject, population: Population = ONE_CLASS, **others: Any) -> Subject:
    return Subject(mechanism=one, population=population, **others)


MEASURING = (
    Bug(
        name="one noise value for all cells",
        sentence="Noise is drawn once per slot and added to every cell: differences between cells are exact.",
        origin="a scalar where a vector was meant; numpy adds it without a word",
        broken=_broken(_with_noise("one value", "uniform", OneValue)),
        healthy=_healthy("uniform"),
        audits=MECHANISMS,
    ),
    Bug(
        name="noise scale from the wrong budget",
        sentence="The noise is for the ε of the whole window; the slot is charged its part.",
        origin="the formula for one release, copied into a stream",
        broken=_broken(rebuilt("wrong budget", "uniform", estimator=WrongBudget)),
        healthy=_healthy("uniform"),
        audits=MECHANISMS,
    ),
    Bug(
        name="sampling probability rounded up",
        sentence="p is the next multiple of 2^-64 above the true value, as float64 gives it half of the time.",
        origin="▲ of section 6 of the specification",
        broken=_broken(build_subject("pbu"), MIXED, undone=together((permit, "sampling_probability", rounded_up))),
        healthy=_healthy("pbu", MIXED),
        audits=("exact",),
    ),
    Bug(
        name="float Laplace low bits",
        sentence="Noise is a float: the low bits of the sum tell what it was added to.",
        origin="Mironov, CCS 2012; still in many libraries",
        broken=_broken(rebuilt("float Laplace", "uniform", estimator=lambda population: FloatLaplace())),
        healthy=_healthy("uniform"),
        audits=MECHANISMS,
    ),
    Bug(
        name="present users instead of registered ones in OBS",
        sentence="The threshold is the best for those who are present, and the noise shows which it is.",
        origin="▲ of section 1 of the specification: n_g comes from the registry only",
        broken=_broken(rebuilt("present users", "pbu", estimator=lambda population: PresentUsers()), NEARLY),
        healthy=_healthy("pbu", NEARLY),
        audits=MECHANISMS,
    ),
    Bug(
        name="saturated noise",
        sentence="Noise is cut off at 32 bits before it is added: a value at the end is the end plus the true count.",
        origin="OpenDP's `T=int`, which means 32 bits; ▲ of section 6 of the specification",
        broken=_broken(_with_noise("saturated", "uniform", Saturated, neighbours="replace"), STRICTEST),
        healthy=_healthy("uniform", STRICTEST, neighbours="replace"),
        audits=MECHANISMS,
    ),
    Bug(
        name="one sample shared by dissimilarity and publication",
        sentence="The publication takes the sample that the probe looked at: who is in it loses both budgets at once.",
        origin="▲ of section 7 of the specification",
        broken=_broken(build_subject("pba"), MIXED, undone=one_sample()),
        healthy=_healthy("pba", MIXED),
        audits=MECHANISMS,
    ),
    Bug(
        name="redraw that depends on the drawn value",
        sentence="A release with a negative count is drawn again.",
        origin="▲ of section 10 of the specification; a clean-up that looks harmless",
        broken=_broken(rebuilt("redraws", "uniform", estimator=lambda population: RedrawsNegative())),
        healthy=_healthy("uniform"),
        audits=MECHANISMS,
    ),
    Bug(
        name="seeded entropy",
        sentence="The noise comes from a generator with a fixed seed: everybody can draw it too.",
        origin="a seed that was left in after a test",
        broken=_broken(_seeded()),
        healthy=_healthy("uniform"),
        audits=("journal", "black box"),
    ),
    Bug(
        name="noise that repeats in blocks of 64 cells",
        sentence="Secure noise is drawn for 64 cells and used again for the next 64: their differences are exact.",
        origin="a review: a buffer of fixed size that is filled once",
        broken=_broken(build_subject("uniform"), undone=in_blocks()),
        healthy=_healthy("uniform"),
        audits=("noise", "black box"),
    ),
)
