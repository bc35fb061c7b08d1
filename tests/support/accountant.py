"""What every single person lost, added up by hand: shares nothing with the ledger, the registry or the audit.

It knows three things of every released slot: under which requirement each id counted (or would have counted, present or
not), what each requirement was charged, and nothing else. The promise (spec 10): every span of w slots that holds a slot
of membership under (w, ε) loses at most ε.
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

    counted: dict[int, dict[str, Key]] = field(default_factory=dict)
    charges: dict[int, dict[Key, int]] = field(default_factory=dict)

    def write(self, slot: int, counted: dict[str, Key], charges: dict[Key, int]) -> None:
        assert slot not in self.counted, f"slot {slot} was released twice"
        assert not self.counted or slot == max(self.counted) + 1, f"slot {slot} is not the next"
        self.counted[slot] = counted
        self.charges[slot] = charges

    def overspent(self) -> list[Overspent]:
        """Every broken promise: user, requirement, the first slot of the span, what it cost."""
        last = max(self.counted, default=0)
        users = {user for slot in self.counted.values() for user in slot}
        found = []
        for user in sorted(users):
            held = [self.counted[slot].get(user) for slot in range(1, last + 1)]
            losses = [0 if key is None else self.charges[slot + 1][key] for slot, key in enumerate(held)]
            for key in sorted({key for key in held if key is not None}):
                window, epsilon = key
                for first in range(1 - window, last):
                    span = range(max(first, 0), min(first + window, last))
                    if any(held[slot] == key for slot in span):
                        spent = sum(losses[slot] for slot in span)
                        if spent > epsilon:
                            found.append(Overspent(user, key, span.start + 1, spent))
                            break
        return found
