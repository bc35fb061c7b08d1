"""An independent checker of the promise: no class's window may hold more than its epsilon (spec 1 and 3).

It shares no code with wevent: plain Python integers, a list with one entry per slot, no ledger, no classes, no numpy.
It knows nothing of mechanisms either; it only adds up what was charged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

RequirementKey = tuple[int, int]  # (window in slots, epsilon in nano-epsilons)
SlotCharges = Mapping[RequirementKey, tuple[int, int]]  # requirement → (probe, publication) in nano-epsilons


class Violation(NamedTuple):
    """One window that spent too much.

    Attributes:
        requirement: (window, nano-epsilons) of the class.
        last_slot: the window's last slot, counted from 1; its first is last_slot − window + 1.
        spend: what the window holds, nano-epsilons.
        limit: what it may hold.
    """

    requirement: RequirementKey
    last_slot: int
    spend: int
    limit: int


def violated_windows(slots: Sequence[SlotCharges]) -> list[Violation]:
    """Every window of every class that holds more than its epsilon, exactly: there is no tolerance.

    Args:
        slots: the charges of slots 1, 2, 3, …; a class that is missing in a slot was charged nothing.
    """
    requirements = sorted({requirement for charges in slots for requirement in charges})
    violations = []
    for requirement in requirements:
        window, limit = requirement
        totals = [sum(charges.get(requirement, (0, 0))) for charges in slots]
        if any(type(total) is not int for total in totals):
            raise TypeError("charges are plain integers: anything else may round")
        spend = 0
        for index, total in enumerate(totals):
            spend += total
            if index >= window:
                spend -= totals[index - window]
            if spend > limit:
                violations.append(Violation(requirement, index + 1, spend, limit))
    return violations
