"""A source of noise whose draws are decided by the audit: what was drawn before is said again, what comes next is chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from wevent.auditing.exact.laws import BinomialCall, Call, LaplaceCall, ResponseCall
from wevent.core.arrays import IntArray
from wevent.core.permit import NoisePermit, ResponsePermit, SamplingPermit, redeem

Chooser = Callable[[int, Call], IntArray]
"""What is drawn in the call of this number, counted from 0 within the slot."""


_MOST_CALLS = 64
"""Draws of one slot, more than any mechanism takes: one that draws again until something comes out would never end."""


class NotFollowed(Exception):
    """The output depends on noise in a way that the audit cannot solve."""


class UnseenRandomness(Exception):
    """The output does not follow from counts, past and draws: other randomness is in it."""


def as_it_is(number: int, call: Call) -> IntArray:
    """Return the draw without noise."""
    return call.default()


class ScriptedNoise:
    """A source of noise that redeems permits, returns scripted and then chosen draws, and keeps every call and draw.

    Args:
        script: the first draws.
        choose: the draws after them.
    """

    seeded = True

    def __init__(self, script: Sequence[IntArray] = (), choose: Chooser = as_it_is) -> None:
        self.calls: list[Call] = []
        self.draws: list[IntArray] = []
        self.trouble: NotFollowed | UnseenRandomness | None = None  # kept: a publisher may catch what is raised
        self._script = script
        self._choose = choose

    def laplace(self, permit: NoisePermit, size: int) -> IntArray:
        """Return the scripted or chosen vector for this permit's scale (spec 6)."""
        redeem(permit, NoisePermit)
        return self._draw(LaplaceCall(permit.scale, size))

    def binomial(self, counts: IntArray, permit: SamplingPermit) -> IntArray:
        """Return kept records, with the probabilities of the secure source (spec 6)."""
        redeem(permit, SamplingPermit)
        fractions = tuple(permit.exact_probabilities().tolist())
        return self._draw(BinomialCall(np.array(counts), fractions, tuple(permit.certain.tolist())))

    def respond(self, counts: IntArray, permit: ResponsePermit) -> IntArray:
        """Return reports, with the truth probabilities of the secure source (spec 9)."""
        redeem(permit, ResponsePermit)
        return self._draw(ResponseCall(np.array(counts), tuple(permit.truths.tolist())))

    def _draw(self, call: Call) -> IntArray:
        number = len(self.calls)
        if number >= _MOST_CALLS:
            self.trouble = NotFollowed(f"a slot that takes more than {_MOST_CALLS} draws")
            raise self.trouble
        self.calls.append(call)
        draw = self._script[number] if number < len(self._script) else self._choose(number, call)
        if not call.fits(draw):
            self.trouble = UnseenRandomness("the same slot asked for other draws when it was computed again")
            raise self.trouble
        self.draws.append(draw)
        return draw.copy()
