"""One stream of a pair, carried through a transcript: in which states its publisher can be, and how likely each is.

A right publisher's state follows from what it published, so there is one. One that keeps something hidden (a sample that
outlives its slot) has several, and the law of what comes next is that of their mixture.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext

from wevent.auditing.audit_subject import Stepping
from wevent.auditing.exact.laws import EXACT, TooManyDraws
from wevent.auditing.exact.slot_law import SlotLaw
from wevent.auditing.exact.slot_run import SlotRun
from wevent.auditing.exact.state_copy import fingerprint
from wevent.core.arrays import IntArray

_MOST_STATES = 48


@dataclass(frozen=True, eq=False)
class Side:
    """The states that one stream may have led to, each with the probability of the transcript and the state."""

    states: tuple[tuple[Decimal, Stepping], ...]

    @property
    def probability(self) -> Decimal:
        """Of the transcript so far."""
        with localcontext(EXACT):
            return sum((weight for weight, _ in self.states), start=Decimal(0))

    @property
    def likeliest(self) -> Stepping:
        """The state that it most probably led to."""
        return max(self.states, key=lambda held: held[0])[1]

    def after(self, law: SlotLaw, counts: IntArray, wanted: SlotRun) -> Side:
        """After one more slot with this outcome; without any state if it is impossible.

        Raises:
            TooManyDraws: if there is too much to enumerate.
        """
        found: dict[bytes | int, tuple[Decimal, Stepping]] = {}
        for weight, state in self.states:
            for branch in law.branches(state, counts, wanted):
                mark = fingerprint(branch.state)
                key = len(found) if mark is None else mark
                with localcontext(EXACT):
                    sofar = found[key][0] if key in found else Decimal(0)
                    found[key] = (sofar + weight * branch.probability, branch.state)
        if len(found) > _MOST_STATES:
            raise TooManyDraws
        return Side(tuple(found.values()))


def log_ratio(first: Side, second: Side) -> Decimal:
    """ln of how much likelier the transcript is on the first side; infinite if the second never shows it."""
    ours, theirs = first.probability, second.probability
    with localcontext(EXACT):
        if not theirs:
            return Decimal("Infinity") if ours else Decimal(0)
        return (ours / theirs).ln() if ours else Decimal("-Infinity")
