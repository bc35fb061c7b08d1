"""What every single user lost, added up by hand: shares nothing with the ledger, the registry or the audit.

The accountant has two facts of every released slot: the guarantee that each id held in it, and what each id lost or would
have lost, present or not. The guarantee (spec 15.1): every span of w slots that begins in a slot in which the user holds
(w, ε) loses at most ε.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

Key = tuple[int, int]


class Overspent(NamedTuple):
    user: str
    key: Key
    first: int
    spent: int


@dataclass
class Accountant:
    """Slots are written down when they are released, each once."""

    held: dict[int, dict[str, Key]] = field(default_factory=dict)
    losses: dict[int, dict[str, int]] = field(default_factory=dict)

    def write(self, slot: int, held: dict[str, Key], losses: dict[str, int]) -> None:
        assert slot not in self.held, f"slot {slot} was released twice"
        assert not self.held or slot == max(self.held) + 1, f"slot {slot} is not the next"
        self.held[slot] = held
        self.losses[slot] = losses

    def overspent(self) -> list[Overspent]:
        """Every guarantee that was broken: user, requirement, the first slot of the span, what it cost."""
        found: dict[tuple[str, Key], Overspent] = {}
        for first, held in self.held.items():
            for user, (window, epsilon) in held.items():
                span = range(first, first + window)
                spent = sum(self.losses[slot].get(user, 0) for slot in span if slot in self.losses)
                if spent > epsilon:
                    found.setdefault((user, (window, epsilon)), Overspent(user, (window, epsilon), first, spent))
        return list(found.values())
