"""What changes will mean before they are made: who waits until when, who comes back, who is alone in a class; pure.

The rule is asked (`wevent.people.histories`, `wevent.people.holdout`), nothing is stored. All of it is public: how many
people hold a requirement, and when they join, leave or change (spec 1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from wevent.people.histories import Boundary, History, current_of
from wevent.people.holdout import HoldOut, Key
from wevent.people.membership import Change


class Foreseen(NamedTuple):
    """What changes mean.

    Attributes:
        registered: how many are registered after them, those who wait included.
        waits: first slot in which they count → how many of those who change wait until it.
        returning: how many join whom the registry still knows from before: they had left or were erased.
        alone: the requirements that change hands and are then held by one person.
    """

    registered: int
    waits: Mapping[int, int]
    returning: int
    alone: tuple[Key, ...]


class Foresight:
    """Changes that take effect at one slot boundary, person after person.

    Args:
        holdout: the rule.
        slot: the slot from which on they are in force.
        salt: the key of the digests of ids.
        sizes: how many hold each requirement before.
    """

    def __init__(self, holdout: HoldOut, slot: int, salt: bytes, sizes: Mapping[Key, int]) -> None:
        self._boundary, self._slot = Boundary(holdout, slot, salt), slot
        self._forgotten = holdout.forgotten_through(slot)
        self._personal = bool(holdout.restores)  # after a restore it matters who somebody is
        self._alike: dict[Any, tuple[Key | None, Key | None, int]] = {}
        self._sizes = Counter(sizes)
        self._touched: set[Key] = set()
        self._waits: Counter[int] = Counter()
        self._returning = 0

    def add(self, histories: Iterable[History], wishes: Iterable[Sequence[Change]]) -> None:
        """What these people ask for, each in order, given everything that they held."""
        for held, asked in zip(histories, wishes, strict=True):  # what holds nobody out is forgotten at the boundary
            history = [row for row in held if row.last is None or row.last > self._forgotten]
            before, after, first = self._outcome(history, asked)
            if before == after:
                continue
            if before is not None:
                self._touched.add(before)
                self._sizes[before] -= 1
            if after is not None:
                self._touched.add(after)
                self._sizes[after] += 1
                self._returning += before is None and any(row.first < self._slot for row in history)
                self._waits[first] += first > self._slot

    def seen(self) -> Foreseen:
        """All of it."""
        waits = {first: people for first, people in sorted(self._waits.items()) if people}
        alone = tuple(sorted(key for key in self._touched if self._sizes[key] == 1))
        return Foreseen(self._sizes.total(), waits, self._returning, alone)

    def _outcome(self, history: History, asked: Sequence[Change]) -> tuple[Key | None, Key | None, int]:
        """The requirement before and after, and the first slot under it."""
        if self._personal:
            return self._worked_out(history, asked)
        alike = (
            tuple([(row.window, row.nano, row.first, row.last) for row in history]),
            tuple([(change.action, change.key) for change in asked]),
        )
        if alike not in self._alike:
            self._alike[alike] = self._worked_out(history, asked)
        return self._alike[alike]

    def _worked_out(self, history: History, asked: Sequence[Change]) -> tuple[Key | None, Key | None, int]:
        before, rows = current_of(history), history
        for change in asked:
            rows = self._boundary.after(rows, change)
        after = current_of(rows)
        return before and before.key, after and after.key, 0 if after is None else after.first
