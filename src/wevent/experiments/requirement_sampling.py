"""Requirements for the users of a stream (specification 13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray
from wevent.core.requirements import Levels, Population, Requirement
from wevent.errors import InvalidOption, InvalidRoster
from wevent.streams.duckdb_tables import file_list

TYPES = 10  # of the authors' code


@dataclass(frozen=True)
class Assignment:
    """Each user's class: rows of the population, -1 for users who are not registered."""

    population: Population
    rows: IntArray


@dataclass(frozen=True)
class Assigner:
    """Requirements by a rule.

    Attributes:
        kind: "types" (ten contiguous tenths of the users, each with one ε and one w drawn at random: the paper),
            "equal" (every combination the same number of users), "independent" (every user draws),
            "ratio:R" (the first n·R users ask for the largest ε and the smallest w, the others for the smallest ε and
            the largest w), or "csv:PATH" (columns user,window,epsilon, or user,privacy,window with the words of the
            default levels).
        epsilons, windows: the values to draw from; not used with a CSV.
    """

    kind: str = "types"
    epsilons: Sequence[object] = ("0.6", "0.8", "1.0")
    windows: Sequence[int] = (40, 80, 120)

    def __post_init__(self) -> None:
        if not self.epsilons or not self.windows:
            raise InvalidOption(
                "An Assigner needs epsilons and windows.",
                "Write Assigner('equal', ['0.5', '1'], [24, 48]).",
                option="kind",
            )

    def assign(self, users: npt.NDArray[Any], *, seed: Sequence[int]) -> Assignment:
        """Give every user a requirement.

        Raises:
            InvalidOption: for an unknown kind or a ratio outside 0 to 1.
            InvalidRequirement: for an invalid window or epsilon.
            InvalidRoster: for a CSV without the columns.
        """
        kind, _, argument = self.kind.partition(":")
        if kind == "csv":
            return _from_csv(Path(argument), users)
        combinations = [Requirement(window, epsilon) for epsilon in self.epsilons for window in self.windows]
        generator = np.random.default_rng([*seed, 7])
        count = len(users)
        if kind == "types":
            drawn = []
            for _ in range(TYPES):
                window = generator.choice(np.asarray(self.windows)).item()
                drawn.append(Requirement(window, self.epsilons[int(generator.integers(len(self.epsilons)))]))
            return _group(drawn, np.arange(count) * TYPES // max(count, 1))
        if kind == "equal":
            return _group(combinations, np.arange(count) % len(combinations))
        if kind == "independent":
            return _group(combinations, generator.integers(len(combinations), size=count))
        if kind == "ratio":
            nanos = [level.nano for level in combinations]
            loose = Requirement.from_nano(min(self.windows), max(nanos))
            strict = Requirement.from_nano(max(self.windows), min(nanos))
            return _group([loose, strict], (np.arange(count) >= round(count * _ratio(argument))).astype(np.int64))
        raise _unknown(self.kind)


@dataclass(frozen=True)
class Registered:
    """Requirements by registration.

    Attributes:
        requirements: what users ask for.
        choices: for each user of the stream, in its order, the position of the requirement.
    """

    requirements: Sequence[Requirement]
    choices: IntArray

    def assign(self, users: npt.NDArray[Any], *, seed: Sequence[int]) -> Assignment:
        """Give the first so many users their requirements."""
        return _group(self.requirements, self.choices[: len(users)])


def _ratio(argument: str) -> float:
    try:
        ratio = float(argument)
    except ValueError:
        ratio = -1.0
    if not 0.0 <= ratio <= 1.0:
        raise _unknown(f"ratio:{argument}")
    return ratio


def _unknown(kind: str) -> InvalidOption:
    return InvalidOption(
        f"Unknown assignment {kind!r}.",
        "Choose from types, equal, independent, ratio:R (R from 0 to 1), csv:PATH.",
        option="assign",
        value=kind,
    )


def _group(requirements: Sequence[Requirement], choices: IntArray) -> Assignment:
    """Put users with equal requirements into one class; leave out requirements that nobody holds."""
    held = np.bincount(choices, minlength=len(requirements))
    classes = sorted({level for level, size in zip(requirements, held.tolist(), strict=True) if size})
    position = {level: row for row, level in enumerate(classes)}
    row_of = np.array([position.get(level, -1) for level in requirements], dtype=np.int64)
    rows = row_of[choices]
    sizes = np.bincount(rows, minlength=len(classes))
    return Assignment(Population(dict(zip(classes, sizes.tolist(), strict=True))), rows)


def _from_csv(path: Path, users: npt.NDArray[Any]) -> Assignment:
    """Register the users of the CSV: users of the stream that it does not name are dropped."""
    if not path.is_file():
        raise InvalidOption(
            f"No CSV file {str(path)!r} of requirements.",
            "Check the path after csv:.",
            option="assign",
            value=str(path),
        )
    with duckdb.connect() as connection:
        table = connection.execute(f"SELECT * FROM read_csv({file_list([str(path)])}, header=true, all_varchar=true)")
        names = [column[0] for column in table.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in table.fetchall()]
    requirement_of = {str(row.get("user")): _requirement(row, names) for row in rows}
    if not rows or len(requirement_of) < len(rows):
        raise InvalidRoster(
            f"{path.name} has {len(rows)} rows of {len(requirement_of)} users.",
            "Write one row per user.",
            duplicates=len(rows) - len(requirement_of),
        )
    classes = sorted(set(requirement_of.values()))
    position = {level: row for row, level in enumerate(classes)}
    sizes = np.bincount([position[level] for level in requirement_of.values()], minlength=len(classes))
    held = [requirement_of.get(str(user)) for user in users.tolist()]
    return Assignment(
        Population(dict(zip(classes, sizes.tolist(), strict=True))),
        np.array([-1 if level is None else position[level] for level in held], dtype=np.int64),
    )


def _requirement(row: dict[str, Any], names: Sequence[str]) -> Requirement:
    if {"user", "window", "epsilon"} <= set(names):
        window = str(row["window"]).strip()
        return Requirement(int(window) if window.isdecimal() else row["window"], str(row["epsilon"]).strip())
    if {"user", "privacy", "window"} <= set(names):
        return Levels.default().requirement(str(row["privacy"]), str(row["window"]))
    raise InvalidRoster(
        f"The columns of the CSV are {', '.join(names)}.",
        "Write user,window,epsilon or user,privacy,window in the header.",
        lengths=(len(names),),
    )
