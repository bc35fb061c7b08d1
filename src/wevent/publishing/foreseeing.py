"""What changes of the registry will mean, in public numbers, before they are stored: who waits until when, who is alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wevent.core.budget import NANO
from wevent.core.ledger import count_typical
from wevent.core.settings import Options
from wevent.journal.contract import Journal
from wevent.journal.terms import Epoch
from wevent.people.declaring import holdout_of
from wevent.people.foresight import Foresight
from wevent.people.holdout import Key
from wevent.people.membership import Change, Changes, Enrolment
from wevent.publisher.catalogue import find_mechanism

_SHOWN = 3  # classes of one in a sentence


class Wait(NamedTuple):
    """How many people wait until a slot, the first in which they count, and when it starts (None without a clock)."""

    slot: int
    start: str | None
    people: int

    def __str__(self) -> str:
        return f"slot {self.slot}" + ("" if self.start is None else f" ({self.start})")


@dataclass(frozen=True)
class Consequences:
    """What changes mean; public numbers.

    Attributes:
        registered: how many people are registered after them.
        waits: how many of those who change wait until which slot, in slot order.
        returning: how many join whom the registry knows from before: they had left or were erased.
        alone: the requirements that change hands and are then held by one person.
    """

    registered: int = 0
    waits: tuple[Wait, ...] = ()
    returning: int = 0
    alone: tuple[Key, ...] = ()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return sum(wait.people for wait in self.waits)

    def sentences(self) -> list[str]:
        """The same in words."""
        said = []
        if self.returning:
            said.append(f"{_people(self.returning, 'who had left joins', 'who had left join')} again.")
        if self.waits:
            waits = f"{self.waiting} of {_people(self.registered)} {'waits' if self.waiting == 1 else 'wait'}"
            first, last = self.waits[0], self.waits[-1]
            until = f" until {last}" if first is last else f", the first until {first}, the last until {last}"
            said.append(f"{waits}{until}.")
        return [*said, *alone_sentences(self.alone)]

    def to_dict(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "registered": self.registered,
            "waiting": self.waiting,
            "waits": [wait._asdict() for wait in self.waits],
            "returning": self.returning,
            "alone": [{"window": window, "epsilon": nano / NANO} for window, nano in self.alone],
        }


def foresee(
    journal: Journal, changes: Changes, epochs: Iterable[Epoch] | None = None, slot: int | None = None
) -> Consequences:
    """What these changes and those that are queued mean when they take effect together; nothing is stored.

    Args:
        journal: the journal; it may be new.
        changes: in order.
        epochs: every epoch, that of the changes included; None: as the journal has it.
        slot: the slot from which on they are in force; None: the next one.
    """
    following = 1 if journal.is_new else journal.head().next_slot
    if following == 1 and isinstance(changes, Enrolment):  # nobody was counted yet: nobody waits
        alone = [key for key, size in changes.keys.sizes().items() if size == 1]
        return Consequences(len(changes), alone=tuple(sorted(alone)))
    registry, slot = journal.registry, slot or following
    known = journal.epochs() if epochs is None else list(epochs)
    held = {key: size.registered for key, size in registry.sizes(slot).items()}
    foresight = Foresight(holdout_of(known, registry.restores()), slot, registry.salt, held)
    asked: dict[str, list[Change]] = {}
    for change in (*registry.queued(), *changes):
        asked.setdefault(change.user, []).append(change)
    foresight.add(registry.histories(asked), asked.values())
    seen = foresight.seen()
    waits = tuple(Wait(first, known[-1].terms.slot_span(first)[0], people) for first, people in seen.waits.items())
    return Consequences(seen.registered, waits, seen.returning, seen.alone)


def alone_sentences(alone: tuple[Key, ...]) -> list[str]:
    """A warning of classes of one, if there are any."""
    if not alone:
        return []
    shown = "; ".join(f"window {window}, epsilon {nano / NANO:g}" for window, nano in alone[:_SHOWN])
    more = f"; and {len(alone) - _SHOWN} more" if len(alone) > _SHOWN else ""
    return [
        f"Warning: only one person holds {'each of ' if len(alone) > 1 else ''}{shown}{more}. How many hold a requirement "
        "is public, so whoever knows who asked for it knows when this person joins, leaves or changes."
    ]


def strictest_sentences(options: Options, sizes: Mapping[Key, int]) -> list[str]:
    """Return a warning if a few users set the noise for all: mechanisms with one budget or equal weights (spec 8, 11).

    Args:
        options: of the stream.
        sizes: how many users hold each requirement, 0 for one that is only declared.
    """
    shared = find_mechanism(options.mechanism).shared_budget
    if not sizes or not (shared or options.unbiased):
        return []
    windows, epsilons = np.array(list(sizes), dtype=np.int64).T
    users = np.array(list(sizes.values()), dtype=np.int64)
    typical = count_typical(windows, epsilons, users) > 0
    if not typical.any():
        return []
    budget, usual = (
        epsilons[rows].min() / windows[rows].max() if shared else (epsilons[rows] / windows[rows]).min()
        for rows in (slice(None), typical)
    )
    if usual <= 1.05 * budget:  # an error of 10 %
        return []
    few = int(users[~typical].sum())
    cause = "one budget for all" if shared else "equal weights"
    return [
        f"Warning: with {cause} the strictest requirement sets the noise for all users. {few:,} of {int(users.sum()):,} "
        f"users make it {usual / budget:.3g} times as large. Use mechanism pft with its default weights, or do not "
        "offer that requirement."
    ]


def _people(number: int, one: str = "", many: str = "") -> str:
    text = f"1 person {one}" if number == 1 else f"{number} people {many}"
    return text.rstrip()
