"""What every user lost, from what the world saw: written from spec 4 and 15 alone, in integers, with nothing of wevent.

The witness is told of every slot that goes out which requirement each id holds, the class that each id would have counted in,
present or not, and what each class was charged. It is told once, whatever becomes of the journal afterwards: a copy that was
lost has spent what it spent. It has nothing of ledgers, rows, restores or versions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.support.window_checker import violated_windows

Class = tuple[int, int]  # window, nano-epsilons


class Held(NamedTuple):
    """Guarantee and loss of an id in a slot.

    Attributes:
        guarantee: window and nano-epsilons that hold for every span that begins in the slot.
        counted: the class whose charges are the losses, None if the id is not counted.
        times: how many records of that class one user can change: an unregistered user may push another one out.
    """

    guarantee: Class
    counted: Class | None
    times: int = 1


def member(key: Class, counted: Class | None) -> Held:
    """A registered user."""
    return Held(key, counted)


def unregistered(key: Class, counted: Class) -> Held:
    """An unregistered user: what is promised is twice the budget of their class."""
    return Held((key[0], 2 * key[1]), counted, 2)


@dataclass
class Witness:
    """Slots as they went out, the first one first; nothing is ever taken back."""

    users: list[Mapping[str, Held]] = field(default_factory=list)
    charges: list[Mapping[Class, int]] = field(default_factory=list)

    @property
    def last(self) -> int:
        """The last slot that went out."""
        return len(self.users)

    def saw(self, slot: int, users: Mapping[str, Held], charges: Mapping[Class, int]) -> None:
        """A slot went out, for the first time."""
        assert slot == self.last + 1, f"slot {slot} went out after slot {self.last}"
        assert all(type(charge) is int and charge >= 0 for charge in charges.values())
        self.users.append(dict(users))
        self.charges.append(dict(charges))

    def complaints(self) -> Iterator[str]:
        """Every promise that is broken, in words."""
        for window in violated_windows([{key: (charge, 0) for key, charge in slot.items()} for slot in self.charges]):
            yield f"class {window.requirement} spent {window.spend} in the window that ends in slot {window.last_slot}"
        yield from self._unordered()
        for user in sorted({user for slot in self.users for user in slot}):
            yield from self._overspent(user, [slot.get(user) for slot in self.users])

    def _unordered(self) -> Iterator[str]:
        """A class was never charged more than a looser one."""
        for slot, charges in enumerate(self.charges, start=1):
            for strict, loose in itertools.permutations(charges, 2):
                if strict[0] >= loose[0] and strict[1] <= loose[1] and charges[strict] > charges[loose]:
                    yield f"class {strict} spent more than {loose} in slot {slot}"

    def _overspent(self, user: str, held: list[Held | None]) -> Iterator[str]:
        """Every span of w slots that begins in a slot in which a user holds (w, ε) loses at most ε."""
        losses = [
            0 if one is None or one.counted is None else one.times * self.charges[place].get(one.counted, 0)
            for place, one in enumerate(held)
        ]
        for first, one in enumerate(held):
            if one is not None and sum(losses[first : first + one.guarantee[0]]) > one.guarantee[1]:
                yield f"{user} lost too much of {one.guarantee} in the span that begins in slot {first + 1}"
                return
