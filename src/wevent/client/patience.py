"""When a request is made again: what failed, how often, and how long to wait. Pure: no clock of its own, no sleeping."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from wevent.client.failures import unreachable
from wevent.errors import ServiceUnreachable, WeventError

UNTOUCHED = frozenset({429, 503, 507})
"""The service did nothing, and says to come back; 507: its disk is full."""

LATER = UNTOUCHED | {502, 504}
"""Or a proxy had no answer of it: what it did is not known."""

_FIRST_S, _LONGEST_S = 0.25, 15.0


class Patience:
    """What is left of the patience of one call.

    Args:
        total_s: how long all attempts together may take; None: for ever.
        now: a clock that never goes back.
        chance: a number from 0 to 1, so that many clients do not come back together.
    """

    def __init__(
        self, total_s: float | None, now: Callable[[], float], chance: Callable[[], float] = random.random
    ) -> None:
        self._total_s, self._now, self._chance = total_s, now, chance
        self._begun = now()
        self._failures = 0
        self._least_s = _FIRST_S

    def succeeded(self) -> None:
        """Begin anew: a stream that had been connected has all patience again."""
        self._begun, self._failures = self._now(), 0

    def wish(self, least_s: float) -> None:
        """The server says how long to wait at least before connecting again."""
        self._least_s = min(max(least_s, 0.0), _LONGEST_S)

    def pause(self, reason: str, headers: Mapping[str, str] | None = None, failure: WeventError | None = None) -> float:
        """How long to wait before the next attempt, in seconds.

        Raises:
            WeventError: `failure`, or that nothing answered, if that would be longer than there is patience for.
        """
        grown = min(_LONGEST_S, max(self._least_s, _FIRST_S) * 2.0**self._failures)
        self._failures = min(self._failures + 1, 16)
        wait = max(grown * (0.5 + 0.5 * self._chance()), _asked_for(headers or {}))
        if self._total_s is not None and self._now() - self._begun + wait > self._total_s:
            raise failure or self.over(reason)
        return wait

    def over(self, reason: str) -> ServiceUnreachable:
        """The error at the end of it."""
        return unreachable(reason)


def _asked_for(headers: Mapping[str, str]) -> float:
    """Seconds of a Retry-After header; a date in it is left alone, since clocks differ."""
    text = headers.get("retry-after", "").strip()
    return float(text) if text.isdecimal() and len(text) < 6 else 0.0
