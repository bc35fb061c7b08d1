"""Which mechanisms there are: the built-in ones, installed ones (entry points) and registered ones."""

from __future__ import annotations

import warnings

from wevent.core.mechanism import Mechanism
from wevent.core.nearest import nearest
from wevent.core.registry import BUILT_IN
from wevent.errors import InvalidOption, UnknownMechanism

ENTRY_POINT_GROUP = "wevent.mechanisms"

_registered: dict[str, Mechanism] = {}


def register(mechanism: Mechanism) -> None:
    """Make an own mechanism available everywhere by its name.

    A package can do the same without a call: an entry point in the group ``wevent.mechanisms`` naming a `Mechanism`.

    Raises:
        InvalidOption: if a built-in mechanism has the name.
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidOption(
            "a wevent.Mechanism",
            type(mechanism).__name__,
            "Build one: see the how-to on own mechanisms.",
            option="mechanism",
        )
    if mechanism.name in BUILT_IN:
        raise InvalidOption(
            "a name of its own for the mechanism",
            f"{mechanism.name!r}, which is built in",
            "Choose another name.",
            option="name",
            value=mechanism.name,
        )
    _registered[mechanism.name] = mechanism


def mechanisms() -> dict[str, str]:
    """Every mechanism's name and one line about it."""
    return {name: mechanism.summary for name, mechanism in _all().items()}


def find_mechanism(name: str) -> Mechanism:
    """The mechanism of that name.

    Raises:
        UnknownMechanism: with the nearest name as a suggestion.
    """
    if isinstance(name, str) and name in BUILT_IN:
        return BUILT_IN[name]
    known = _all()
    if isinstance(name, str) and name in known:
        return known[name]
    near = nearest(str(name), known, always=True)
    raise UnknownMechanism(
        f"a mechanism out of {', '.join(known)}",
        f"{name!r}",
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
    return {**BUILT_IN, **{name: row for name, row in installed.items() if name not in BUILT_IN}, **_registered}
