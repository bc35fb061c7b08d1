"""What everybody lost, from what the world saw: written from spec 4 and 10 alone, in integers, with nothing of wevent.

The witness is told of every slot that goes out under which requirement each id would have counted in it, present or not,
and what each class was charged. It is told once, whatever becomes of the journal afterwards: a copy that was lost has spent
what it spent. It knows nothing of ledgers, waiting lists, restores or epochs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.support.window_checker import violated_windows

Class = tuple[int, int]  # window, nano-epsilons


class Held(NamedTuple):
    """A requirement as somebody holds it.

    Attributes:
        window: in slots.
        epsilon: what is promised, nano-epsilons.
        charged: the class whose charges are the holder's losses.
        times: how many records of that class one holder can change: a stranger who comes may push another one out.
    """

    window: int
    epsilon: int
    charged: Class
    times: int = 1


def member(key: Class) -> Held:
    """Somebody who is registered."""
    return Held(*key, key)


def stranger(key: Class) -> Held:
    """Somebody who is not: what is promised is twice the budget of the class."""
    return Held(key[0], 2 * key[1], key, 2)


@dataclass
class Witness:
    """Slots as they went out, the first one first; nothing is ever taken back."""

    counted: list[Mapping[str, Held]] = field(default_factory=list)
    charges: list[Mapping[Class, int]] = field(default_factory=list)

    @property
    def last(self) -> int:
        """The last slot that went out."""
        return len(self.counted)

    def saw(self, slot: int, counted: Mapping[str, Held], charges: Mapping[Class, int]) -> None:
        """A slot went out, for the first time."""
        assert slot == self.last + 1, f"slot {slot} went out after slot {self.last}"
        assert all(type(charge) is int and charge >= 0 for charge in charges.values())
        self.counted.append(dict(counted))
        self.charges.append(dict(charges))

    def complaints(self) -> Iterator[str]:
        """Every promise that is broken, in words."""
        for window in violated_windows([{key: (charge, 0) for key, charge in slot.items()} for slot in self.charges]):
            yield f"class {window.requirement} spent {window.spend} in the window that ends in slot {window.last_slot}"
        for user in sorted({user for slot in self.counted for user in slot}):
            held = [slot.get(user) for slot in self.counted]
            yield from self._overspent(user, held)
            yield from _too_early(user, held)

    def _overspent(self, user: str, held: list[Held | None]) -> Iterator[str]:
        """Every span of w slots in which somebody was a member under (w, ε) loses at most ε."""
        losses = [
            0 if one is None else one.times * self.charges[place].get(one.charged, 0) for place, one in enumerate(held)
        ]
        for requirement in sorted({one for one in held if one is not None}):
            for first in range(1 - requirement.window, self.last):
                span = range(max(0, first), min(self.last, first + requirement.window))
                spent = sum(losses[place] for place in span)
                if spent > requirement.epsilon and any(held[place] == requirement for place in span):
                    yield f"{user} lost {spent} of {requirement} in slots {span.start + 1} to {span.stop}"
                    return


def _too_early(user: str, held: list[Held | None]) -> Iterator[str]:
    """Counted under B in slot t only if t − t_A ≥ max(w_A, w_B) for every other requirement A held last in t_A."""
    last: dict[Held, int] = {}
    for slot, now in enumerate(held, start=1):
        if now is None:
            continue
        for before, ended in last.items():
            if before != now and slot - ended < max(before.window, now.window):
                yield f"{user} is counted under {now} in slot {slot}, and was under {before} in slot {ended}"
                return
        last[now] = slot
