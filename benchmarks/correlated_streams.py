"""Invented streams in which requirement and cell go together: class × cell counts with known truth, from a seed."""

from typing import Any, NamedTuple

import numpy as np

from benchmarks import hard_streams
from benchmarks.hard_streams import NINE, TWENTY_FIVE, Requirements

USERS, SLOTS, CELLS = 10_000, 1000, 5
INDEPENDENT = float("inf")  # the alpha of cells whose mix of classes is everyone's


class People(NamedTuple):
    """Who asks for what: requirements, and the part of the users that holds each."""

    requirements: Requirements
    shares: tuple[float, ...]


PEOPLE = {
    "narrow": People(NINE, (1 / 9,) * 9),
    "wide": People([(window, epsilon) for window in (40, 80, 120) for epsilon in (0.1, 0.5, 0.9)], (1 / 9,) * 9),
    "very wide": People([(10, 1.0), (200, 0.1)], (0.9, 0.1)),
    "25 classes": People(TWENTY_FIVE, (1 / 25,) * 25),
}


class Case(NamedTuple):
    """One stream.

    Attributes:
        people: a name from `PEOPLE`.
        alpha: each cell's mix of classes is Dirichlet(alpha) per class: the smaller, the more they correlate.
        change: how the mix changes: "", "jumps" (a new one every 250 slots), "rotates" (cells exchange theirs every 250),
            "waves" (to and fro between two, every 400 slots), "fades" (from one to everyone's).
        stay: a kind of hard stream whose users stay where they are; "": users are redrawn in every slot.
        users: how many there are.
        cells: how many there are.
    """

    people: str
    alpha: float
    change: str = ""
    stay: str = ""
    users: int = USERS
    cells: int = CELLS

    def __str__(self) -> str:
        alpha = "∞" if self.alpha == INDEPENDENT else f"{self.alpha:g}"
        parts = [self.people, f"alpha {alpha}"]
        parts += [f"that {self.change}"] if self.change else []
        parts += [f"users stay: {self.stay}"] if self.stay else []
        parts += [f"n = {self.users:,}"] if self.users != USERS else []
        parts += [f"{self.cells} cells"] if self.cells != CELLS else []
        return ", ".join(parts)


def correlated(case: Case, seed: int) -> tuple[Any, Any]:
    """Counts (slots, classes, cells) and class sizes."""
    return _staying(case, seed) if case.stay else _redrawn(case, seed)


def _redrawn(case: Case, seed: int) -> tuple[Any, Any]:
    """Cells that swell and shrink by two fifths, with users who are others in every slot."""
    generator = np.random.default_rng([3, seed])
    base = generator.dirichlet(np.full(case.cells, 2.0)) * 0.8
    phase = generator.random(case.cells) * 2.0 * np.pi
    chances = base * (1.0 + 0.4 * np.sin(0.01 * np.arange(SLOTS)[:, None] + phase))
    chances /= np.maximum(1.0, chances.sum(axis=1, keepdims=True))
    counts = generator.poisson(case.users * chances[:, :, None] * _mixes(case, generator)).transpose(0, 2, 1)
    return counts, np.maximum(_sizes(case), counts.sum(axis=2).max(axis=0))


def _staying(case: Case, seed: int) -> tuple[Any, Any]:
    """The cells of a hard stream; within a class, users keep their place as long as the cells' borders let them."""
    generator = np.random.default_rng([5, seed])
    chances = hard_streams.cell_chances(case.stay, SLOTS, case.cells, generator)
    if case.stay == "appear":  # all of them, one after the other: a single one would be a matter of luck
        chances = np.where(
            np.arange(SLOTS)[:, None] < generator.integers(1, SLOTS, case.cells), 0.0, chances.max(axis=0)
        )
    sizes = _sizes(case)
    favour = _mixes(case, generator)[0] / np.array(PEOPLE[case.people].shares)  # cells × classes, 1 without correlation
    counts = np.empty((SLOTS, len(sizes), case.cells), dtype=np.int64)
    for row, size in enumerate(sizes):
        own = chances * favour[:, row]
        own /= np.maximum(1.0, own.sum(axis=1).max())
        places = np.sort(generator.random(size))
        counts[:, row] = np.diff(np.searchsorted(places, np.cumsum(own, axis=1)), axis=1, prepend=0)
    return counts, sizes


def _sizes(case: Case) -> Any:
    sizes = np.floor(np.array(PEOPLE[case.people].shares) * case.users).astype(np.int64)
    sizes[0] += case.users - sizes.sum()
    return sizes


def _mixes(case: Case, generator: np.random.Generator) -> Any:
    """The part of a cell's users that each class has; slots (or 1) × cells × classes."""
    shares = np.array(PEOPLE[case.people].shares)
    if case.alpha == INDEPENDENT:
        return np.broadcast_to(shares, (1, case.cells, len(shares)))
    drawn = generator.dirichlet(case.alpha * len(shares) * shares, (4, case.cells))
    time = np.arange(SLOTS)
    if case.change == "jumps":
        return drawn[time // 250 % 4]
    if case.change == "rotates":
        return np.stack([np.roll(drawn[0], turn, axis=0) for turn in range(4)])[time // 250 % 4]
    if case.change == "waves":
        part = 0.5 + 0.5 * np.sin(2.0 * np.pi * time / 400.0)[:, None, None]
        return part * drawn[0] + (1.0 - part) * drawn[1]
    if case.change == "fades":
        part = np.linspace(1.0, 0.0, SLOTS)[:, None, None]
        return part * drawn[0] + (1.0 - part) * shares
    return drawn[:1]
