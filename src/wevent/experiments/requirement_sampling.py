"""Who asks for what: requirements for the users of a stream (spec 13)."""

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
    """How users get their requirements.

    Attributes:
        kind: "types" (ten contiguous tenths of the users, each with one ε and one w drawn at random: the paper),
            "equal" (every combination the same number of users), "independent" (every user draws),
            "ratio:R" (the first n·R users ask for the largest ε and the smallest w, the others for the smallest ε and
            the largest w), or "csv:PATH" (columns user,window,epsilon, or user,privacy,window with the words of the
            default levels).
        epsilons, windows: what is drawn from; not used with a CSV.
    """

    kind: str = "types"
    epsilons: Sequence[object] = ("0.6", "0.8", "1.0")
    windows: Sequence[int] = (40, 80, 120)

    def __post_init__(self) -> None:
        for name in ("kind", "epsilons", "windows"):
            value = getattr(self, name)
            if isinstance(value, str) != (name == "kind") or not hasattr(value, "__len__") or not len(value):
                raise InvalidOption(
                    f"{name} to be " + ("a word such as 'equal'" if name == "kind" else "several numbers"),
                    f"{value!r}" if isinstance(value, (str, int, float)) or value is None else type(value).__name__,
                    "Write Assigner('equal', ['0.5', '1'], [24, 48]).",
                    option=name,
                    value=value,
                )

    def assign(self, users: npt.NDArray[Any], *, seed: Sequence[int]) -> Assignment:
        """Give every user a requirement.

        Raises:
            InvalidOption: for an unknown kind or a ratio outside 0 to 1.
            InvalidRequirement: for a window or epsilon that no promise can be built on.
            InvalidRoster: for a CSV without the columns.
        """
        kind, _, argument = self.kind.partition(":")
        if kind == "csv":
            return _from_csv(Path(argument), users)
        combinations = [Requirement(window, epsilon) for epsilon in self.epsilons for window in self.windows]
        generator = np.random.default_rng([*seed, 7])
        count = len(users)
        if kind == "types":
            drawn = [
                Requirement(generator.choice(np.asarray(self.windows)).item(), _draw(generator, self.epsilons))
                for _ in range(TYPES)
            ]
            return _assignment(drawn, np.arange(count) * TYPES // max(count, 1))
        if kind == "equal":
            return _assignment(combinations, np.arange(count) % len(combinations))
        if kind == "independent":
            return _assignment(combinations, generator.integers(len(combinations), size=count))
        if kind == "ratio":
            epsilons = sorted(combinations, key=lambda level: level.nano)
            loose = Requirement.from_nano(min(self.windows), epsilons[-1].nano)
            strict = Requirement.from_nano(max(self.windows), epsilons[0].nano)
            return _assignment([loose, strict], (np.arange(count) >= round(count * _ratio(argument))).astype(np.int64))
        raise _unknown(self.kind)


@dataclass(frozen=True)
class Registered:
    """Everybody with the requirement they asked for.

    Attributes:
        requirements: what is asked for.
        choices: for each user of the stream, in its order, which of them.
    """

    requirements: Sequence[Requirement]
    choices: IntArray

    def assign(self, users: npt.NDArray[Any], *, seed: Sequence[int]) -> Assignment:
        """Give the first so many users what they asked for."""
        return _assignment(self.requirements, self.choices[: len(users)])


def _draw(generator: np.random.Generator, values: Sequence[object]) -> object:
    return values[int(generator.integers(len(values)))]


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
        "an assignment out of types, equal, independent, ratio:R (R from 0 to 1), csv:PATH",
        f"{kind!r}",
        "The paper uses types.",
        option="assign",
        value=kind,
    )


def _assignment(requirements: Sequence[Requirement], choices: IntArray) -> Assignment:
    """Users with equal requirements form one class; requirements nobody holds are left out."""
    held = np.bincount(choices, minlength=len(requirements))
    classes = sorted({level for level, size in zip(requirements, held.tolist(), strict=True) if size})
    position = {level: row for row, level in enumerate(classes)}
    row_of = np.array([position.get(level, -1) for level in requirements], dtype=np.int64)
    rows = row_of[choices]
    sizes = np.bincount(rows, minlength=len(classes))
    return Assignment(Population(dict(zip(classes, sizes.tolist(), strict=True))), rows)


def _from_csv(path: Path, users: npt.NDArray[Any]) -> Assignment:
    """Registered are the users of the CSV: those of the stream that it does not name are dropped."""
    if not path.is_file():
        raise InvalidOption(
            "an existing CSV file of requirements",
            f"{str(path)!r}",
            "Check the path after csv:.",
            option="assign",
            value=str(path),
        )
    with duckdb.connect() as connection:
        table = connection.execute(f"SELECT * FROM read_csv({file_list([str(path)])}, header=true, all_varchar=true)")
        names = [column[0] for column in table.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in table.fetchall()]
    requirement_of: dict[str, Requirement] = {}
    for row in rows:
        requirement_of[str(row.get("user"))] = _requirement(row, names)
    if not rows or len(requirement_of) < len(rows):
        raise InvalidRoster(
            "each user once, at least one",
            f"{len(rows)} rows of {len(requirement_of)} users",
            "Keep one row per user.",
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
        "the columns user,window,epsilon or user,privacy,window",
        ", ".join(names),
        "Add a header line with these names.",
        lengths=(len(names),),
    )
