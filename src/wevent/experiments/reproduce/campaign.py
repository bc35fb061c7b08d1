"""What the paper varied, and what it drew (section 5.2; spec 13)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from wevent.experiments.assign import Assigner
from wevent.experiments.datasets.synthetic import Variant

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
    """One point of the horizontal axes: where it lies on which, and who asks for what."""

    key: str
    places: tuple[tuple[Axis, float], ...]
    assigner: Assigner


def _of_ranges(epsilon: str, window: int) -> Assigner:
    """Types draw from {ε, …, 1.0} in steps of 0.2 and from {40, …, w} in steps of 40."""
    return Assigner(
        "types",
        [allowed for allowed in EPSILONS if float(allowed) >= float(epsilon)],
        [allowed for allowed in WINDOWS if allowed <= window],
    )


def all_settings() -> list[Setting]:
    """The nineteen: five epsilons and five windows that share the default, and five of each ratio."""
    settings = []
    for epsilon in EPSILONS:
        places: list[tuple[Axis, float]] = [("epsilon", float(epsilon))]
        if epsilon == DEFAULT_EPSILON:
            places.append(("window", float(DEFAULT_WINDOW)))
        settings.append(Setting(f"epsilon={epsilon}", tuple(places), _of_ranges(epsilon, DEFAULT_WINDOW)))
    for window in WINDOWS:
        if window != DEFAULT_WINDOW:
            place: tuple[Axis, float] = ("window", float(window))
            settings.append(Setting(f"window={window}", (place,), _of_ranges(DEFAULT_EPSILON, window)))
    for ratio in RATIOS:
        two_budgets = Assigner(f"ratio:{ratio}", ["0.6", "1.0"], [120])
        settings.append(Setting(f"ratio-epsilon={ratio}", (("ratio-epsilon", float(ratio)),), two_budgets))
    for ratio in RATIOS:
        two_windows = Assigner(f"ratio:{ratio}", ["0.6"], [40, 120])
        settings.append(Setting(f"ratio-window={ratio}", (("ratio-window", float(ratio)),), two_windows))
    return settings


@dataclass(frozen=True)
class Figure:
    """One figure of the paper: what is measured against what."""

    name: str
    measure: Measure
    axis: Axis
    title: str
    horizontal: str
    vertical: str


_HORIZONTAL: dict[Axis, str] = {
    "epsilon": "smallest epsilon",
    "window": "largest window (slots)",
    "ratio-epsilon": "ratio of users with epsilon 1.0 (others 0.6)",
    "ratio-window": "ratio of users with window 40 (others 120)",
}
_MEASURES: dict[Measure, tuple[str, str]] = {
    "amre": ("AMRE (mean squared error)", "AMRE"),
    "ajsd": ("AJSD (raw counts, as in the authors' code)", "AJSD"),
    "ms_per_slot": ("Running time", "ms per slot, one run"),
}


def _figure(measure: Measure, axis: Axis) -> Figure:
    title, vertical = _MEASURES[measure]
    name = f"{'time' if measure == 'ms_per_slot' else measure}-{axis}"
    return Figure(name, measure, axis, f"{title} against the {_HORIZONTAL[axis]}", _HORIZONTAL[axis], vertical)


FIGURES = (
    _figure("amre", "epsilon"),
    _figure("amre", "window"),
    _figure("amre", "ratio-epsilon"),
    _figure("amre", "ratio-window"),
    _figure("ajsd", "epsilon"),
    _figure("ajsd", "window"),
    _figure("ms_per_slot", "epsilon"),
    _figure("ms_per_slot", "window"),
)


@dataclass(frozen=True)
class Campaign:
    """How large the whole is. Two runs into one folder must agree on everything here."""

    seed: int = 1
    repeats: int = 10
    users: int = 10_000
    slots: int = 10_000
    variant: Variant = "printed"
    mechanisms: tuple[str, ...] = MECHANISMS
    timed_slots: int = 500

    def to_dict(self) -> dict[str, Any]:
        """In plain types."""
        return {**asdict(self), "mechanisms": list(self.mechanisms)}


QUICK = Campaign(repeats=5, slots=400, timed_slots=30)
