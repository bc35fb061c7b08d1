"""What may stand in one event: ordinary and hostile times, ids and cells, as values that any format can spell."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from wevent.settings.values import format_time

SECOND = 1_000_000
SLOT_S = 60
START_US = 1_767_225_600 * SECOND  # 2026-01-01T00:00:00Z
HUGE = 200_000  # characters


class Event(NamedTuple):
    """The three values of an event, as a sender would have them."""

    time: Any
    user: Any
    cell: Any


@dataclass(frozen=True)
class World:
    """The declared part of a stream.

    Attributes:
        users: who is registered, numbers or names.
        requirements: (window, epsilon) of each.
        cells: the number of cells, or their labels.
        slots: how many slots there are.
        target: whose records make the difference; may be a stranger.
        times: how times are written: iso, offset, number, or slot (numbers of slots).
    """

    users: tuple[Any, ...]
    requirements: tuple[tuple[int, float], ...]
    cells: int | tuple[str, ...]
    slots: int
    target: Any
    times: str

    @property
    def others(self) -> tuple[Any, ...]:
        """Everybody who is registered but the target."""
        return tuple(user for user in self.users if user != self.target)

    def moment(self, second: float) -> Any:
        """A time so many seconds after the start."""
        time_us = START_US + round(second * SECOND)
        if self.times == "slot":
            return int(second // SLOT_S) + 1
        if self.times == "number":
            return time_us / SECOND if time_us % SECOND else time_us // SECOND
        text = format_time(time_us)
        return text if self.times == "iso" else text.replace("Z", "+00:00")

    def some_moment(self, chance: Random) -> Any:
        """Any time in the stream."""
        return self.moment(chance.randrange(self.slots * SLOT_S * 10) / 10)

    def some_cell(self, chance: Random) -> Any:
        """A declared cell."""
        return chance.randrange(self.cells) if isinstance(self.cells, int) else chance.choice(self.cells)

    def event(self, chance: Random, user: Any) -> Event:
        """An ordinary event."""
        return Event(self.some_moment(chance), user, self.some_cell(chance))


_FAR_FUTURE = (
    "9999-12-31T23:59:59Z",
    "294247-01-10T04:00:54Z",
    "2026-12-31T23:59:59+18:00",
    1e300,
    10**18,
    10**30,
    "infinity",
)
_FAR_PAST = (
    "0001-01-01T00:00:00Z",
    "1969-12-31T23:59:59Z",
    "-4713-01-01T00:00:00Z",
    -1e300,
    -(10**18),
    0,
    "-infinity",
    "epoch",
)
_NAIVE = ("2026-01-01T00:00:30", "2026-01-01 00:01:30", "2026-01-01")
_NONSENSE = (
    *("yesterday", "", " ", "2026-02-30T00:00:00Z", "2026-01-01T23:59:60Z", "2026-01-01T24:00:00Z", "24:00", "nan"),
    *("2026-01-01T00:00:30Z ", "2026-01-01T00:00:30 Europe/Berlin", "1e400", "0x10", "١٧٦٧٢٢٥٦٠٠", math.nan, math.inf),
    *(True, None, [1767225600], {"s": 1}, "now", "today", "1.5", "1,767,225,600"),
)
_ODD_SLOTS = (
    0,
    -1,
    10**6,
    10**18,
    10**30,
    1.5,
    "x",
    "",
    "1e2",
    "٣",
    "1 ",
    True,
    None,
    [1],
    math.nan,
    "0x2",
    "1_0",
    -(2**63),
)


def _odd_time(chance: Random, world: World, usual: tuple[Any, ...]) -> list[Event]:
    time = chance.choice(_ODD_SLOTS if world.times == "slot" else usual)
    return [world.event(chance, world.target)._replace(time=time)]


def _edge(chance: Random, world: World) -> list[Event]:
    """The first and last microseconds of slots, just outside the stream included."""
    second = chance.randint(0, world.slots) * SLOT_S + chance.choice((-0.000001, 0, 0.000001))
    return [world.event(chance, world.target)._replace(time=world.moment(second))]


def _late(chance: Random, world: World) -> list[Event]:
    return [world.event(chance, world.target)._replace(time=world.moment(-chance.randint(1, 7200)))]


def _odd_user(chance: Random, world: World) -> list[Event]:
    name = str(world.target)
    spelt = (
        f" {name} ",
        f"0{name}",
        f"+{name}",
        f"{name}.0",
        f"{name}\0",
        f"\ufeff{name}",
        f"'{name}'",
        name.upper() + "́",
    )
    number = float(world.target) if isinstance(world.target, int) else 7.0
    odd = (
        *spelt,
        number,
        number + 0.5,
        True,
        False,
        None,
        "",
        " ",
        -1,
        2**63,
        2**64,
        10**400,
        1e300,
        math.nan,
        "\ud800",
        "🙂",
        "NULL",
        "[]",
    )
    return [world.event(chance, world.target)._replace(user=chance.choice((*odd, [world.target], {"id": 1})))]


def _odd_cell(chance: Random, world: World) -> list[Event]:
    odd = (
        1.0,
        1.5,
        "01",
        "+1",
        True,
        None,
        "",
        -1,
        2**63,
        10**400,
        math.nan,
        "\0",
        "\ud800",
        [0],
        {"x": 0},
        "0\0",
        " 0",
    )
    return [world.event(chance, world.target)._replace(cell=chance.choice(odd))]


def _huge(chance: Random, world: World) -> list[Event]:
    """Longer than a field of Python's csv reader may be; of ids, cells and times."""
    field = chance.choice(Event._fields)
    return [world.event(chance, world.target)._replace(**{field: chance.choice("7x") * chance.choice((5_000, HUGE))})]


VALUES: dict[str, Callable[[Random, World], list[Event]]] = {
    "normal": lambda chance, world: [world.event(chance, world.target)],
    "duplicate": lambda chance, world: [world.event(chance, world.target)] * chance.randint(2, 4),
    "many events": lambda chance, world: [world.event(chance, world.target) for _ in range(chance.randint(50, 300))],
    "edge of a slot": _edge,
    "late": _late,
    "far future": lambda chance, world: _odd_time(chance, world, _FAR_FUTURE),
    "far past": lambda chance, world: _odd_time(chance, world, _FAR_PAST),
    "no offset": lambda chance, world: _odd_time(chance, world, _NAIVE),
    "nonsense time": lambda chance, world: _odd_time(chance, world, _NONSENSE),
    "unknown user": lambda chance, world: [world.event(chance, chance.choice(("stranger", 999_999, "~", "!")))],
    "unknown cell": lambda chance, world: [
        world.event(chance, world.target)._replace(cell=chance.choice(("nowhere", 10**6, -1)))
    ],
    "odd user": _odd_user,
    "odd cell": _odd_cell,
    "huge field": _huge,
}
"""Kinds of records by what is in them; each may be more than one event."""
