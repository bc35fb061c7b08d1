"""How often a query looks at its stream, and when releases go out then: Spark closes a slot up to two triggers late."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from wevent.errors import InvalidSettings
from wevent.publishing.configuration import Settings
from wevent.publishing.due import DueMoments
from wevent.streams.clock import SECOND_US, SlotClock, parse_length

AVAILABLE_NOW = "available now"
"""The trigger that takes what is there, publishes the slots that are over, and ends."""

_SHARE = 8  # of a slot, unless told
_LEAST_US, _MOST_US = SECOND_US // 2, 10 * SECOND_US
_LATE = 2  # triggers: one until a batch knows that the slot is over, one until the next brings it
_STEPS = 4  # moments per slot for releases that missed their own: Spark waits for them, and must not miss the next


@dataclass(frozen=True)
class Pace:
    """When batches begin, and when releases go out.

    Attributes:
        every_us: the time between two batches; None: what is there now is taken, and no more.
    """

    every_us: int | None

    @classmethod
    def of(cls, trigger: str | timedelta | None, settings: Settings) -> Pace:
        """The pace that is asked for: a duration, or `AVAILABLE_NOW`; None: an eighth of a slot, within bounds.

        Raises:
            InvalidSettings: for something else, or if releases are due before Spark can have closed their slot.
        """
        if trigger == AVAILABLE_NOW:
            return cls(None)
        every_us = min(_MOST_US, max(_LEAST_US, settings.slot_us // _SHARE))
        if trigger is not None:
            every_us = parse_length(trigger, "trigger")
        if every_us <= 0:
            raise InvalidSettings(
                "a trigger of some time: every batch has a heartbeat, and without a pause there would be no end of them",
                f"{trigger!r}",
                "Write for example 5s.",
                key="trigger",
            )
        least = settings.grace_us + _LATE * every_us
        if settings.due_us is not None and settings.due_us < least:
            raise InvalidSettings(
                f"due to be at least the grace and {_LATE} triggers, {least / SECOND_US:g} s: so late may Spark close a slot",
                f"{settings.due_us / SECOND_US:g} s",
                "Make due longer, or the trigger shorter.",
                key="due",
            )
        return cls(every_us)

    @property
    def spark(self) -> dict[str, Any]:
        """As Spark's `trigger` takes it."""
        if self.every_us is None:
            return {"availableNow": True}
        return {"processingTime": f"{max(1, self.every_us // 1_000)} milliseconds"}

    def settled(self, settings: Settings) -> Settings:
        """Settings in which releases are due when Spark has had the time: a trigger more than it may be late."""
        if self.every_us is None or settings.due_us is not None:
            return settings
        return replace(settings, due_us=settings.grace_us + (_LATE + 1) * self.every_us)

    def due_moments(self, settings: Settings, clock: SlotClock) -> DueMoments | None:
        """When releases go out; None where the operator says when, by starting the query."""
        if self.every_us is None or settings.due_us is None:
            return None
        return DueMoments(clock, settings.due_us, step_us=-(-clock.length_us // _STEPS))
