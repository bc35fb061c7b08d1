"""What users ask for: requirements, the levels they pick them from, and how many users hold each."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import total_ordering
from types import MappingProxyType
from typing import Any

from wevent.core.arrays import IntArray, frozen_ints
from wevent.core.budget import MAX_EPSILON, NANO, parse_nano
from wevent.core.limits import MAX_USERS, MAX_WINDOW
from wevent.errors import InvalidPopulation, InvalidRequirement, did_you_mean


@total_ordering
class Requirement:
    """One user's promise: in every `window` consecutive slots the user loses at most `epsilon` (Definition 4, EPDP).

    Args:
        window: w, a whole number of slots, at least 1.
        epsilon: ε as a number or a decimal string, read as a decimal and floored to nano-epsilons (spec 3);
            at least 2·w nano-epsilons, at most 50.

    Raises:
        InvalidRequirement: if no promise can be built on the numbers.

    >>> Requirement(window=40, epsilon="0.6").nano
    600000000
    """

    __slots__ = ("nano", "window")

    window: int
    nano: int

    def __init__(self, window: int, epsilon: object) -> None:
        object.__setattr__(self, "window", _whole_window(window))
        object.__setattr__(self, "nano", _legal_nano(epsilon, self.window))
        if not self.share:
            raise InvalidRequirement(
                f"Epsilon {epsilon!r} is too small for a window of {self.window} slots (at least {2 * self.window}e-9).",
                "Raise epsilon or shorten the window.",
                window=self.window,
                epsilon=epsilon,
            )

    @classmethod
    def from_nano(cls, window: int, nano: int) -> Requirement:
        """Build from an exact number of nano-epsilons, as stored in states and journals.

        Accepts less than 2·window nano-epsilons: the corner class may be a requirement that no user can choose (spec 15.1).

        Raises:
            InvalidRequirement: for a window or nano-epsilons out of range.
        """
        requirement = cls.__new__(cls)
        object.__setattr__(requirement, "window", _whole_window(window))
        object.__setattr__(requirement, "nano", _legal_nano(f"{nano}e-9", requirement.window))
        return requirement

    @property
    def key(self) -> tuple[int, int]:
        """Window and nano-epsilons, as states, journals and requirements files are compared by."""
        return self.window, self.nano

    @property
    def epsilon(self) -> float:
        """ε as the nearest float; `nano` is exact."""
        return self.nano / NANO

    @property
    def share(self) -> int:
        """ε // (2·w): the unit in which both halves of the budget are counted (spec 3)."""
        return self.nano // (2 * self.window)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Requirement does not change; make a new one")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Requirement):
            return NotImplemented
        return self.window == other.window and self.nano == other.nano

    def __lt__(self, other: Requirement) -> bool:
        return (self.window, self.nano) < (other.window, other.nano)

    def __hash__(self) -> int:
        return hash((self.window, self.nano))

    def __repr__(self) -> str:
        return f"Requirement(window={self.window}, epsilon={self.epsilon!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Requirement.from_nano, (self.window, self.nano)


def _whole_window(window: object) -> int:
    try:
        whole = operator.index(window)  # type: ignore[arg-type]
    except TypeError:
        whole = 0
    if isinstance(window, bool) or not 1 <= whole <= MAX_WINDOW:
        raise InvalidRequirement(
            f"Window must be a whole number of slots from 1 to {MAX_WINDOW}, not {window!r}.",
            "Give the number of consecutive slots that the guarantee covers.",
            window=window,
        )
    return whole


def _legal_nano(epsilon: object, window: int) -> int:
    try:
        nano = parse_nano(epsilon)
    except ValueError:
        nano = 0
    if not 0 < nano <= MAX_EPSILON * NANO:
        raise InvalidRequirement(
            f"Epsilon must be greater than 0 and at most {MAX_EPSILON}, not {epsilon!r}.",
            "Typical values: 0.1 (strict) to 2 (relaxed).",
            window=window,
            epsilon=epsilon,
        )
    return nano


def _default_privacy() -> dict[str, object]:
    return {"High": "0.1", "Medium": "0.5", "Low": "0.9"}


def _default_window() -> dict[str, int]:
    return {"Small": 40, "Medium": 80, "Large": 120}


@dataclass(frozen=True)
class Levels:
    """The words users choose from, and the numbers they stand for (spec 10; paper, section 4.3).

    Higher privacy is a smaller epsilon; a larger window protects a longer span. A level is a word of each, "High/Large",
    or a name of its own for such a pair.

    Args:
        privacy: word → epsilon.
        window: word → slots.
        combined: name → pair, such as {"strict": "High/Large"}.

    Raises:
        InvalidRequirement: if a pair is no promise, or a combined name stands for none.

    >>> Levels.default().requirement("High", "Large")
    Requirement(window=120, epsilon=0.1)
    >>> Levels(combined={"strict": "High/Large"}).choose("strict")
    Requirement(window=120, epsilon=0.1)
    """

    privacy: Mapping[str, object] = field(default_factory=_default_privacy)
    window: Mapping[str, int] = field(default_factory=_default_window)
    combined: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("privacy", "window", "combined"):
            if not isinstance(getattr(self, name), Mapping):
                raise InvalidRequirement(
                    f"Levels of {name} must be a mapping, not {type(getattr(self, name)).__name__}.",
                    "Write Levels(privacy={'High': '0.1', …}, window={'Small': 40, …}).",
                )
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        slashed = next((name for name in self.combined if "/" in name), None)
        if slashed is not None:
            raise InvalidRequirement(
                f"Combined level {slashed!r} contains a slash.",
                "Choose a name without a slash: it separates privacy and window.",
                level=slashed,
            )
        self.offered()

    @classmethod
    def default(cls) -> Levels:
        """High 0.1 / Medium 0.5 / Low 0.9 and Small 40 / Medium 80 / Large 120."""
        return cls()

    def requirement(self, privacy: str, window: str) -> Requirement:
        """Return the requirement a pair of levels stands for."""
        return Requirement(self._pick("window", window), self._pick("privacy", privacy))

    def choose(self, level: str) -> Requirement:
        """Return the requirement a level stands for: a pair such as "High/Large", or a combined name.

        Raises:
            InvalidRequirement: naming the words that are offered.
        """
        pair = str(self.combined.get(level, level))
        privacy, slash, window = pair.partition("/")
        if slash and privacy in self.privacy and window in self.window:
            return self.requirement(privacy, window)
        names = (*self._pairs(), *self.combined)
        raise InvalidRequirement(
            f"Unknown level {pair!r}.",
            did_you_mean(pair, names, f"Levels: {', '.join(names)}."),
            level=level,
        )

    def offered(self) -> dict[str, Requirement]:
        """Return every level and what it stands for: all pairs, then the combined names."""
        pairs = {pair: self.choose(pair) for pair in self._pairs()}
        return {**pairs, **{name: self.choose(name) for name in self.combined}}

    def _pairs(self) -> list[str]:
        return [f"{privacy}/{window}" for privacy in self.privacy for window in self.window]

    def _pick(self, kind: str, name: str) -> Any:
        table: Mapping[str, object] = getattr(self, kind)
        if not isinstance(name, str) or name not in table:
            raise InvalidRequirement(
                f"Unknown {kind} level {name!r}.",
                did_you_mean(str(name), table, f"Levels of {kind}: {', '.join(table)}."),
                level=name,
            )
        return table[name]

    def __reduce__(self) -> tuple[Any, ...]:
        return Levels, (dict(self.privacy), dict(self.window), dict(self.combined))


class Population:
    """How many registered users hold each requirement: all a mechanism may know about people (spec 2).

    Users with the same requirement form a class. Classes are ascending by (window, epsilon): the row order of every
    class × cell matrix. A class of size 0 is declared: no user is counted in it.

    Args:
        sizes: requirement → number of registered users who are counted in the class.
        own: requirement → number of them whose own requirement is the class, 0 for a requirement left out (default: all).
            The others are in transition (spec 15.1). Only `threshold_sizes` reads it.

    >>> Population({Requirement(40, 1.0): 3000, Requirement(120, "0.6"): 7000}).sizes.tolist()
    [3000, 7000]
    """

    __slots__ = ("_index", "classes", "own", "sizes")

    classes: tuple[Requirement, ...]
    own: IntArray
    sizes: IntArray

    def __init__(self, sizes: Mapping[Requirement, int], own: Mapping[Requirement, int] | None = None) -> None:
        if not isinstance(sizes, Mapping):
            raise InvalidPopulation(
                f"A population must be a mapping from requirement to number of users, not {type(sizes).__name__}.",
                "Write Population({Requirement(window=40, epsilon=1.0): 3000, …}).",
            )
        if not sizes:
            raise InvalidPopulation(
                "The population has no requirement class.",
                "Declare the requirements that users may hold, with the number of users of each.",
            )
        for requirement, size in sizes.items():
            _check_class(requirement, size)
        if sum(map(int, sizes.values())) > MAX_USERS:  # of Python integers: it does not wrap
            raise InvalidPopulation(
                f"The population has more than {MAX_USERS} registered users.",
                "Split it into several streams: sums of counts and noise would not fit 64 bits.",
            )
        self.classes = tuple(sorted(sizes))
        self.sizes = frozen_ints([int(sizes[requirement]) for requirement in self.classes])
        self.own = self.sizes if own is None else _checked_own(own, sizes, self.classes)
        self._index = {requirement: row for row, requirement in enumerate(self.classes)}

    def index(self, requirement: Requirement) -> int:
        """Return the row of a requirement's class.

        Raises:
            InvalidPopulation: if the population has no such class.
        """
        try:
            return self._index[requirement]
        except (KeyError, TypeError):
            raise InvalidPopulation(
                f"The population has no class {requirement!r}.",
                "population.classes lists all.",
                requirement=requirement,
            ) from None

    @property
    def users(self) -> int:
        """All registered users."""
        return int(self.sizes.sum())

    @property
    def threshold_sizes(self) -> IntArray:
        """Sizes that OBS chooses θ with: `own`, or `sizes` where own users are under half of all (spec 15.3)."""
        return self.sizes if 2 * int(self.own.sum()) < self.users else self.own

    def items(self) -> Iterator[tuple[Requirement, int]]:
        return zip(self.classes, self.sizes.tolist(), strict=True)

    def __contains__(self, requirement: object) -> bool:
        return requirement in self._index

    def __len__(self) -> int:
        return len(self.classes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Population):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def _values(self) -> tuple[object, ...]:
        return self.classes, self.sizes.tobytes(), self.own.tobytes()

    def __repr__(self) -> str:
        return f"Population({len(self.classes)} classes, {self.users} users)"


def _checked_own(own: object, sizes: Mapping[Requirement, int], classes: tuple[Requirement, ...]) -> IntArray:
    """Return the own users per class, each from 0 to the size of the class."""
    if not isinstance(own, Mapping):
        raise InvalidPopulation(
            f"Own users must be a mapping from requirement to number, not {type(own).__name__}.",
            "Leave it out if no user is in transition.",
        )
    for requirement, number in own.items():
        _check_class(requirement, number)
        if number > sizes.get(requirement, 0):
            raise InvalidPopulation(
                f"{requirement!r} has {number} own users, more than the class has users ({sizes.get(requirement, 0)}).",
                "Count those users of the class whose own requirement it is.",
                requirement=requirement,
            )
    return frozen_ints([int(own.get(requirement, 0)) for requirement in classes])


def _check_class(requirement: object, size: object) -> None:
    if not isinstance(requirement, Requirement):
        raise InvalidPopulation(
            f"A class must be a Requirement, not {type(requirement).__name__}.",
            "Write Requirement(window=40, epsilon=1.0): 3000.",
            requirement=requirement,
        )
    try:
        whole = operator.index(size)  # type: ignore[arg-type]
    except TypeError:
        whole = -1
    if isinstance(size, bool) or not 0 <= whole <= MAX_USERS:
        raise InvalidPopulation(
            f"The number of users of {requirement!r} must be from 0 to {MAX_USERS}, not {size!r}.",
            "Count the users registered with this requirement, present or not.",
            requirement=requirement,
        )
