"""Which mechanisms there are: the built-in ones, installed ones (entry points) and registered ones."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from types import MappingProxyType

from wevent.core.builtin_mechanisms import BUILT_IN
from wevent.core.mechanism import Mechanism
from wevent.errors import InvalidOption, UnknownMechanism, find_nearest

ENTRY_POINT_GROUP = "wevent.mechanisms"

SIMULATED_ONLY: Mapping[str, str] = MappingProxyType(
    {
        "spas": "SPAS, corrected: release when a sparse-vector test finds a change",
        "rescuedp": "RescueDP, corrected: adaptive sampling, small cells in groups, a Kalman filter",
        "fast": "FAST, corrected: samples spaced by a controller, a Kalman filter",
        "pegasus": "PeGaSus, corrected: every slot, smoothed over slots that look alike",
        "adapub": "AdaPub, corrected: as PeGaSus, with a limit that follows the noisy counts",
    }
)
"""Baselines with a line about each: mechanisms that `wevent compare` simulates (`wevent.experiments.baselines`).

No publisher takes them: they are held by an accountant of their own, not by the ledger. The names are here to say so.
"""

_registered: dict[str, Mechanism] = {}


def register(mechanism: Mechanism) -> None:
    """Make an own mechanism available everywhere by its name.

    A package can do the same without a call: an entry point in the group ``wevent.mechanisms`` naming a `Mechanism`.

    Raises:
        InvalidOption: if a built-in mechanism or a baseline has the name.
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidOption(
            f"A mechanism must be a wevent.extend.Mechanism, not {type(mechanism).__name__}.",
            "Build one as in the how-to on own mechanisms.",
            option="mechanism",
        )
    if mechanism.name in (*BUILT_IN, *SIMULATED_ONLY):
        raise InvalidOption(
            f"Mechanism name {mechanism.name!r} is built in.",
            "Choose another name.",
            option="name",
            value=mechanism.name,
        )
    _registered[mechanism.name] = mechanism


def mechanisms() -> dict[str, str]:
    """Return every mechanism's name and one line about it."""
    return {name: mechanism.summary for name, mechanism in _all().items()}


def find_mechanism(name: str) -> Mechanism:
    """Return the mechanism of that name.

    Raises:
        UnknownMechanism: with the nearest name as a suggestion; for a baseline, that it can be compared with only.
    """
    if isinstance(name, str) and name in BUILT_IN:
        return BUILT_IN[name]
    known = _all()
    if isinstance(name, str) and name in known:
        return known[name]
    if isinstance(name, str) and name.partition(":")[0] in SIMULATED_ONLY:
        raise UnknownMechanism(
            f"Mechanism {name!r} is a baseline and cannot publish.",
            "Use it with `wevent compare` only, or publish with pft.",
            name=name,
            suggestion="pft",
            known=tuple(known),
        )
    near, _ = find_nearest(str(name), known)
    raise UnknownMechanism(
        f"Unknown mechanism {name!r}.",
        f"Did you mean {near!r}?",
        name=name,
        suggestion=near,
        known=tuple(known),
    )


def _all() -> dict[str, Mechanism]:
    from importlib.metadata import entry_points  # slow to import, seldom needed

    installed = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            installed[point.name] = point.load()
        except (ImportError, AttributeError) as error:  # someone else's package is broken: say so, carry on
            warnings.warn(f"mechanism {point.name!r} of {point.value!r} cannot be loaded: {error}", stacklevel=3)
    taken = (*BUILT_IN, *SIMULATED_ONLY)
    return {**BUILT_IN, **{name: row for name, row in installed.items() if name not in taken}, **_registered}
