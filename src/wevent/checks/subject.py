"""The mechanism under check: publishers and streams to try it with, and how a failed check is reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wevent.core.arrays import IntArray
from wevent.core.mechanism import Mechanism, NoiseSource
from wevent.core.requirements import Population, Requirement
from wevent.noise.seeded import SeededNoise
from wevent.publisher import catalogue
from wevent.publisher.publisher import Publisher
from wevent.publisher.release import Release

SHORT, MIDDLE, LONG = Requirement(1, "0.3"), Requirement(3, "1.000000007"), Requirement(7, 2)
EVERYONE = Population({SHORT: 300, MIDDLE: 200, LONG: 100})
CELLS = ("north", "south", "east")


class CheckFailed(AssertionError):
    """A mechanism failed a check: a finding about its code, so a failed assertion and no `WeventError`.

    Attributes:
        check: the name of the check.
        mechanism: the name of the mechanism.
        problem: what is wrong.
        slot: the slot, None if the problem has none.
        slots, seed: arguments of the check.
    """

    def __init__(self, check: str, subject: Subject, problem: str, slot: int | None) -> None:
        self.check, self.mechanism, self.slots, self.seed = check, subject.row.name, subject.slots, subject.seed
        self.problem, self.slot = problem, slot
        place = "" if slot is None else f" in slot {slot}"
        again = f"check_mechanism(…, only=[{check!r}], slots={self.slots}, seed={self.seed})"
        super().__init__(f"{self.mechanism!r} fails the check {check!r}{place}: {problem}. Reproduce: {again}.")


class Broken(Exception):
    """Problem and slot of a failed check; `check_mechanism` makes a `CheckFailed` of it."""


def expect(holds: bool, problem: str, slot: int | None = None) -> None:
    """Fail the check unless this holds."""
    if not holds:
        raise Broken(problem, slot)


def expect_same(wanted: object, found: object, what: str, slot: int | None = None) -> None:
    """Fail the check unless two values are equal."""
    expect(wanted == found, f"{what}: {found}, not {wanted}", slot)


def expect_same_releases(wanted: Sequence[dict[str, Any]], found: Sequence[dict[str, Any]], when: str) -> None:
    """Fail the check at the first slot that differs, naming the part that does."""
    for one, other in zip(wanted, found, strict=True):
        for name, value in one.items():
            expect_same(value, other[name], f"{name} {when}", one["slot"])


def expect_same_state(first: Publisher, second: Publisher, when: str) -> None:
    """Fail the check unless two publishers would store the same bytes."""
    expect(first.state() == second.state(), f"another state {when}", first.slot)


@dataclass(frozen=True)
class Subject:
    """A mechanism and what to try it with.

    Attributes:
        row: the mechanism, available by its name.
        slots: length of the streams.
        seed: of everything that is drawn.
    """

    row: Mechanism
    slots: int = 60
    seed: int = 5
    _made: list[Publisher] = field(default_factory=list)

    def publisher(
        self,
        noise: NoiseSource | None = None,
        population: Population = EVERYONE,
        cells: int | Sequence[Any] = CELLS,
        **options: Any,
    ) -> Publisher:
        """Return a publisher of the mechanism (default: with seeded noise)."""
        source = SeededNoise(self.seed) if noise is None else noise
        made = Publisher(population, cells, self.row.name, noise=source, **options)
        self._made[:] = [made]
        return made

    def stream(self, slots: int | None = None, population: Population = EVERYONE) -> Iterator[IntArray]:
        """Yield counts that move, stand still and jump, the same ones in every call."""
        random = np.random.default_rng(self.seed)
        counts = np.zeros((len(population), len(CELLS)), dtype=np.int64)
        for slot in range(self.slots if slots is None else slots):
            if slot % 7 == 0:
                shares = random.dirichlet(np.ones(len(CELLS) + 1), len(population))[:, : len(CELLS)]
                counts = (shares * population.sizes[:, None]).astype(np.int64)
            yield counts.copy()

    @contextmanager
    def as_row(self, **pieces: Any) -> Iterator[Subject]:
        """Register the mechanism with some pieces watched, under another name: a built-in name is taken."""
        row = replace(self.row, name=f"{self.row.name} (watched)", **pieces)
        with available(row):
            yield Subject(row, self.slots, self.seed, self._made)

    def last_slot(self) -> int | None:
        """Return the open slot of the publisher that was made last."""
        return self._made[-1].slot if self._made else None


@contextmanager
def available(row: Mechanism) -> Iterator[None]:
    """Register a mechanism for the length of a block."""
    before = dict(catalogue._registered)
    catalogue.register(row)
    try:
        yield
    finally:
        catalogue._registered.clear()
        catalogue._registered.update(before)


def plain(releases: Iterable[Release]) -> list[dict[str, Any]]:
    """Return releases as plain types, to compare."""
    return [release.to_dict() for release in releases]
