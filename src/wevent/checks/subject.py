"""The mechanism under check: publishers and streams to try it with, and how a broken check is told."""

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
    """A mechanism broke a check: a finding about its code, so an assertion that failed and no `WeventError`.

    Attributes:
        check: the name of the check.
        mechanism: the name of the mechanism.
        expected, received: what the check is about and what came.
        slot: where, None if it is about no slot.
        slots, seed: what the check was run with.
    """

    def __init__(self, check: str, subject: Subject, broken: Broken) -> None:
        self.check, self.mechanism, self.slots, self.seed = check, subject.row.name, subject.slots, subject.seed
        self.expected, self.received, self.slot = broken.expected, broken.received, broken.slot
        place = "" if self.slot is None else f" (slot {self.slot})"
        again = f"check_mechanism(…, only=[{check!r}], slots={self.slots}, seed={self.seed})"
        super().__init__(
            f"Expected mechanism {self.mechanism!r} to keep the check {check!r}: {self.expected}; "
            f"received {self.received}{place}. To see it again: {again}."
        )


class Broken(Exception):
    """What was expected in a check and what came; `check_mechanism` makes a `CheckFailed` of it."""

    def __init__(self, expected: str, received: str, slot: int | None = None) -> None:
        super().__init__(expected, received, slot)
        self.expected, self.received, self.slot = expected, received, slot


def expect(holds: bool, expected: str, received: object, slot: int | None = None) -> None:
    """Break the check unless this holds."""
    if not holds:
        raise Broken(expected, f"{received}", slot)


def expect_same(first: object, second: object, what: str, slot: int | None = None) -> None:
    """Break the check unless two things that are shown in full are equal."""
    expect(first == second, f"{what}: {first}", second, slot)


@dataclass(frozen=True)
class Subject:
    """A mechanism and what to try it with.

    Attributes:
        row: the mechanism, available by its name.
        slots: how long streams are.
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
        """A publisher of the mechanism; with seeded noise unless told otherwise."""
        source = SeededNoise(self.seed) if noise is None else noise
        made = Publisher(population, cells, self.row.name, noise=source, **options)
        self._made[:] = [made]
        return made

    def stream(self, slots: int | None = None, population: Population = EVERYONE) -> Iterator[IntArray]:
        """Counts that move, stand still and jump, always the same ones."""
        random = np.random.default_rng(self.seed)
        counts = np.zeros((len(population), len(CELLS)), dtype=np.int64)
        for slot in range(self.slots if slots is None else slots):
            if slot % 7 == 0:
                shares = random.dirichlet(np.ones(len(CELLS) + 1), len(population))[:, : len(CELLS)]
                counts = (shares * population.sizes[:, None]).astype(np.int64)
            yield counts.copy()

    @contextmanager
    def as_row(self, **pieces: Any) -> Iterator[Subject]:
        """The same mechanism with some pieces watched, under another name: a built-in name can't be taken."""
        row = replace(self.row, name=f"{self.row.name} (watched)", **pieces)
        with available(row):
            yield Subject(row, self.slots, self.seed, self._made)

    def last_slot(self) -> int | None:
        """The open slot of the publisher made last: where an error came from."""
        return self._made[-1].slot if self._made else None


@contextmanager
def available(row: Mechanism) -> Iterator[None]:
    """Registered for the length of a block; what was registered before is back afterwards."""
    before = dict(catalogue._registered)
    catalogue.register(row)
    try:
        yield
    finally:
        catalogue._registered.clear()
        catalogue._registered.update(before)


def plain(releases: Iterable[Release]) -> list[dict[str, Any]]:
    """Releases as plain types, to compare."""
    return [release.to_dict() for release in releases]


def expect_same_releases(first: Sequence[dict[str, Any]], second: Sequence[dict[str, Any]], what: str) -> None:
    """Break the check at the first slot that differs, naming the part that does."""
    for mine, other in zip(first, second, strict=True):
        for name, value in mine.items():
            expect_same(value, other[name], f"{what}, {name}", mine["slot"])


def expect_same_state(first: Publisher, second: Publisher, what: str) -> None:
    """Break the check unless two publishers would store the same bytes."""
    expect(first.state() == second.state(), f"{what} to leave the same state", "another one", first.slot)
