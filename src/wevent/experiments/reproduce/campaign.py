"""The settings that the paper varies, and its figures (section 5.2; specification 13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from wevent.experiments.datasets.synthetic import Variant
from wevent.experiments.requirement_sampling import Assigner

Axis = Literal["epsilon", "window", "ratio-epsilon", "ratio-window"]
Measure = Literal["amre", "ajsd", "ms_per_slot"]

EPSILONS = ("0.2", "0.4", "0.6", "0.8", "1.0")
WINDOWS = (40, 80, 120, 160, 200)
RATIOS = ("0.1", "0.3", "0.5", "0.7", "0.9")
DEFAULT_EPSILON, DEFAULT_WINDOW = "0.6", 120

MECHANISMS = ("pft", "bd", "ba", "plbu", "pbd", "pba", "uniform", "sample", "pbu", "bd:std", "ba:std")
STREAMS = ("taxi", "foursquare", "tlns", "sin", "log")


@dataclass(frozen=True)
class Setting:
    """A point on one axis or two, and the requirements of the users there."""

    key: str
    assigner: Assigner
    places: Mapping[Axis, float]


def _draw_from_ranges(epsilon: str, window: int) -> Assigner:
    """Let types draw from {ε, …, 1.0} in steps of 0.2 and from {40, …, w} in steps of 40."""
    return Assigner("types", [one for one in EPSILONS if one >= epsilon], [one for one in WINDOWS if one <= window])


def _settings() -> Iterator[Setting]:
    for epsilon in EPSILONS:
        places: dict[Axis, float] = {"epsilon": float(epsilon)}
        if epsilon == DEFAULT_EPSILON:
            places["window"] = DEFAULT_WINDOW
        yield Setting(f"epsilon={epsilon}", _draw_from_ranges(epsilon, DEFAULT_WINDOW), places)
    for window in WINDOWS:
        if window != DEFAULT_WINDOW:
            yield Setting(f"window={window}", _draw_from_ranges(DEFAULT_EPSILON, window), {"window": window})
    for ratio in RATIOS:
        two_budgets = Assigner(f"ratio:{ratio}", ["0.6", "1.0"], [120])
        yield Setting(f"ratio-epsilon={ratio}", two_budgets, {"ratio-epsilon": float(ratio)})
    for ratio in RATIOS:
        two_windows = Assigner(f"ratio:{ratio}", ["0.6"], [40, 120])
        yield Setting(f"ratio-window={ratio}", two_windows, {"ratio-window": float(ratio)})


SETTINGS: Mapping[str, Setting] = {setting.key: setting for setting in _settings()}
"""Nineteen: five epsilons and five windows that share the default, and five of each ratio."""


def keys_on(axis: Axis) -> list[str]:
    """Return the keys of the settings on an axis, in order."""
    found = [setting for setting in SETTINGS.values() if axis in setting.places]
    return [setting.key for setting in sorted(found, key=lambda setting: setting.places[axis])]


_AXES: Mapping[Axis, str] = {
    "epsilon": "smallest epsilon",
    "window": "largest window (slots)",
    "ratio-epsilon": "ratio of users with epsilon 1.0 (others 0.6)",
    "ratio-window": "ratio of users with window 40 (others 120)",
}
_MEASURES: Mapping[Measure, tuple[str, str]] = {
    "amre": ("AMRE (mean squared error)", "AMRE"),
    "ajsd": ("AJSD (raw counts, as in the authors' code)", "AJSD"),
    "ms_per_slot": ("Running time", "ms per slot, one run"),
}


@dataclass(frozen=True)
class Figure:
    """A figure of the paper: a measure against an axis."""

    name: str
    measure: Measure
    axis: Axis

    @property
    def horizontal(self) -> str:
        return _AXES[self.axis]

    @property
    def vertical(self) -> str:
        return _MEASURES[self.measure][1]

    @property
    def title(self) -> str:
        return f"{_MEASURES[self.measure][0]} against the {self.horizontal}"


FIGURES: Mapping[str, Figure] = {
    figure.name: figure
    for figure in (
        Figure("amre-epsilon", "amre", "epsilon"),
        Figure("amre-window", "amre", "window"),
        Figure("amre-ratio-epsilon", "amre", "ratio-epsilon"),
        Figure("amre-ratio-window", "amre", "ratio-window"),
        Figure("ajsd-epsilon", "ajsd", "epsilon"),
        Figure("ajsd-window", "ajsd", "window"),
        Figure("time-epsilon", "ms_per_slot", "epsilon"),
        Figure("time-window", "ms_per_slot", "window"),
    )
}


@dataclass(frozen=True)
class Campaign:
    """The size of a reproduction: all results in a folder are of the same."""

    seed: int = 1
    repeats: int = 10
    users: int = 10_000
    slots: int = 10_000
    variant: Variant = "printed"
    mechanisms: tuple[str, ...] = MECHANISMS
    timed_slots: int = 500


QUICK = Campaign(repeats=5, slots=400, timed_slots=30)
