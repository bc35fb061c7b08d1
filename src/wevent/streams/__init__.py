"""From events to counted slots: the clock, and files."""

from __future__ import annotations

from collections.abc import Callable

from wevent.errors import InvalidInput, InvalidSettings
from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock, wall_clock_us
from wevent.streams.file_source import FileSource, span_of
from wevent.streams.requirements_file import Requirements, read_requirements
from wevent.streams.source import SlotCounts, Source

__all__ = [
    "FileSource",
    "Requirements",
    "SlotClock",
    "SlotCounts",
    "Source",
    "StreamSettings",
    "declared_clock",
    "open_source",
    "read_requirements",
]


def declared_clock(
    settings: StreamSettings, pinned: SlotClock | None = None, *, now_us: Callable[[], int] = wall_clock_us
) -> tuple[SlotClock, int | None]:
    """Return the slot clock and the number of the last slot (None: no end).

    Args:
        settings: start, end and slot length, as declared.
        pinned: the clock of the journal that is resumed; it decides if none is declared.
        now_us: the wall clock.

    Raises:
        InvalidSettings: if files come without a declared start or end, or the end lies before the start.
    """
    span = span_of(settings) if settings.start_auto and not settings.is_live else None
    if settings.start_auto and span is None and not settings.is_live:
        problem = "There are no events to read the clock from (start = auto)."
        raise InvalidInput(problem, "Declare start and end.", path=settings.inputs[0])
    origin = 0 if settings.slot_column and not settings.is_live else settings.start_us
    if origin is None and pinned is not None:
        origin = pinned.origin_us
    if origin is None:
        if span is None and not settings.is_live:
            raise _undeclared("start")
        origin = (now_us() if span is None else span[0]) // settings.slot_us * settings.slot_us
    clock = SlotClock(origin, settings.slot_us)
    if settings.end_us is not None:
        last = clock.slot_of(settings.end_us) - 1  # a slot that is cut short is not published
        if last < 1:
            raise InvalidSettings("The end comes before the first slot is over.", "Declare a later end.", key="end")
        return clock, last
    if settings.is_live:
        return clock, None
    if span is None:
        raise _undeclared("end")
    return clock, max(1, clock.slot_of(span[1]))


def open_source(settings: StreamSettings, clock: SlotClock, last: int) -> FileSource:
    """Open files or a frame.

    Raises:
        InvalidInput: for missing files, unknown formats, missing columns.
        InvalidEvents: for times without an offset if none is declared.
        InvalidSettings: for the engine spark.
    """
    if settings.engine == "spark":
        fix = "Use the command, `wevent publish --engine spark`, or wevent.spark with DataFrames."
        raise InvalidSettings("This function has no engine spark.", fix, key="engine")
    return FileSource(settings, clock, last)


def _undeclared(key: str) -> InvalidSettings:
    fix = f"Give {key}, such as 2026-01-01T00:00:00Z (start = 'auto' reads the clock from the events: not private)."
    return InvalidSettings(f"Files need a declared {key}.", fix, key=key)
