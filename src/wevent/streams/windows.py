"""Windows as people write them, a number of slots or a duration, and as they read them: a span of time."""

from __future__ import annotations

from wevent.errors import InvalidRequirement, InvalidSettings
from wevent.streams.clock import parse_length

_UNITS = (("day", 86_400_000_000), ("hour", 3_600_000_000), ("minute", 60_000_000), ("second", 1_000_000))


class WindowReader:
    """Reads windows of one stream; remembers which durations it rounded up.

    Args:
        slot_us: how long a slot is, None for slots that have numbers and no times.
    """

    def __init__(self, slot_us: int | None) -> None:
        self._slot_us = slot_us
        self._rounded: dict[str, str] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each duration that is no whole number of slots."""
        return tuple(self._rounded.values())

    def read(self, written: object) -> int:
        """The slots of a window such as 120, "120" or "24h".

        A duration that is no whole number of slots is rounded up: the promise covers all of it.

        Raises:
            InvalidRequirement: if it is neither, or a duration where slots have no length.
        """
        text = str(written).strip()
        if isinstance(written, int) and not isinstance(written, bool):
            return written
        if text.isascii() and text.isdecimal() and len(text) <= 18:
            return int(text)
        try:
            length_us = parse_length(text, "window")
        except InvalidSettings:
            length_us = 0
        if not length_us:
            raise InvalidRequirement(
                "a window that is a whole number of slots, or a duration such as 24h",
                f"{written!r}",
                "Write the number of consecutive slots that the promise covers, or how long they last.",
                window=written,
            )
        if self._slot_us is None:
            raise InvalidRequirement(
                "a window in slots, for slots that have numbers and no length (slot_column)",
                f"{written!r}",
                "Write the number of slots.",
                window=written,
            )
        slots = -(-length_us // self._slot_us)
        if slots * self._slot_us != length_us:
            whole = span_text(slots * self._slot_us)
            covered = "1 slot" if slots == 1 else f"{slots} slots"
            self._rounded[text] = f"Window {text} is no whole number of slots: it covers {covered} ({whole})."
        return slots


def span_text(length_us: int) -> str:
    """A length of time in words: 2 hours, 1 day 30 minutes."""
    parts, left = [], length_us
    for name, unit in _UNITS:
        number, left = divmod(left, unit)
        if number:
            parts.append(f"{number} {name}{'s' if number != 1 else ''}")
    if left or not parts:
        parts.append(f"{left / 1000:g} ms")
    return " ".join(parts)
