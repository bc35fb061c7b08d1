"""What looks like one of the classic mistakes: ids of another kind, another year, another unit, labels in other letters.

Everything here depends on events and is for the operator only; a value shows as its outline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from wevent.streams.clock import SECOND_US, SlotClock, format_time
from wevent.streams.files.inspection import Inspection
from wevent.streams.stream_settings import StreamSettings

_FEW = 0.5  # of the events; fewer that match look like a mistake
Span = tuple[int, int]


class Met(NamedTuple):
    """What a check found.

    Attributes:
        settings: of the stream.
        clock: when slots begin.
        last: the last slot.
        inspection: what is in the files.
        totals: why events would not count.
        requirements_outline: what an id of the requirements looks like.
    """

    settings: StreamSettings
    clock: SlotClock
    last: int
    inspection: Inspection
    totals: dict[str, int]
    requirements_outline: str


def hints_for(met: Met, span_in: Callable[[str], Span | None], units: Sequence[str]) -> list[str]:
    """Sentences about what looks like a mistake.

    Args:
        met: what was found.
        span_in: the span of the events if numbers counted this unit; it may read the files again.
        units: the units that numbers may count.
    """
    found = met.inspection
    sentences = []
    if not found.events and not met.totals["malformed"]:
        sentences.append("The inputs hold no events: every slot would be published as empty.")
    if met.settings.start_auto:
        sentences.append(
            "start = auto reads start and end from the events: one person's event can decide when the stream begins or "
            "ends, which no epsilon covers. Declare both."
        )
    over = met.clock.start_of(met.last + 1)
    if met.settings.end_us is not None and not met.settings.slot_column and met.settings.end_us > over:
        sentences.append(
            f"The end lies within a slot, which is not published: the last one that is ends at {format_time(over)}. "
            "Declare an end where a slot ends."
        )
    if found.events and found.users_found < _FEW * found.events:
        sentences.append(_ids(met))
    sentences += _cells(met)
    outside = met.totals["before"] + met.totals["after"]
    if outside + met.totals["no_time"] > _FEW * (found.events + met.totals["malformed"]):
        sentences.append(_times(met, span_in, units))
    if met.totals["no_offset"]:
        sentences.append(
            "Times without an offset are malformed: if they are UTC say --timezone UTC, or give their offset (+02:00)."
        )
    if met.totals["no_record"] > _FEW * (found.events + met.totals["malformed"]):
        sentences.append(
            "Most lines are no records: is the delimiter the one that the file's ending says (.csv, .tsv)?"
        )
    return sentences


def _ids(met: Met) -> str:
    found = met.inspection
    theirs = found.outlines.get("unknown_user", "")
    few = "No" if not found.users_found else "Few"
    alike = "" if theirs != met.requirements_outline else " They look alike: are these the same people?"
    return (
        f"{few} events are of registered users. Ids look like {theirs!r} in the events and like "
        f"{met.requirements_outline!r} in the requirements (user_column = {met.settings.columns['user']!r}).{alike}"
    )


def _cells(met: Met) -> list[str]:
    found = met.inspection
    sentences = []
    if found.nearly_cells:
        sentences.append(
            f"{found.nearly_cells:,} events have a cell that differs from a declared one by case or spaces alone: "
            "labels are compared letter by letter. Correct them in the events, or declare them as they are there."
        )
    if found.cells_from_one:
        most = len(met.settings.cells)
        sentences.append(
            f"Cells are declared as 0 to {most - 1}, events have {most} and never 0: are they numbered from 1 on? "
            "Declare the labels in a file."
        )
    if found.events and not found.cells_found and not found.nearly_cells:
        sentences.append(
            f"No event has a declared cell. Labels look like {found.outlines.get('unknown_cell', '')!r} in the events "
            f"(cell_column = {met.settings.columns['cell']!r})."
        )
    return sentences


def _times(met: Met, span_in: Callable[[str], Span | None], units: Sequence[str]) -> str:
    """Most events lie outside the clock, or have numbers that are beyond any."""
    declared = met.clock.start_of(1), met.clock.start_of(met.last + 1)
    if met.settings.slot_column:
        span = met.inspection.span
        seen = "none" if span is None else f"{span[0] + 1} to {span[1] + 1}"
        return f"Most events lie outside the slots 1 to {met.last}: slot numbers in the events are {seen}."
    for unit in units:
        span = span_in(unit) if unit != met.settings.time_unit else None
        if span not in (None, met.inspection.span) and _overlap(span, declared):  # texts are the same in any unit
            return f"Times would lie within start and end if numbers counted {unit}: say --time-unit {unit}."
    span = met.inspection.span
    if span is None:
        return "No event has a time that can be read."
    years = _years(span), _years(declared)
    if not set(years[0]) & set(years[1]):
        return (
            f"Most events lie outside start and end, and in another year: events are of {_text(years[0])}, start and end "
            f"of {_text(years[1])}."
        )
    return "Most events lie outside start and end: compare the two spans."


def _overlap(span: Span, declared: Span) -> bool:
    return span[0] < declared[1] and span[1] >= declared[0]


def _years(span: Span) -> range:
    return range(_year(span[0]), _year(span[1]) + 1)


def _year(time_us: int) -> int:
    try:
        return datetime.fromtimestamp(time_us / SECOND_US, UTC).year
    except (ValueError, OverflowError, OSError):
        return 0 if time_us < 0 else 10_000


def _text(years: range) -> str:
    return str(years[0]) if len(years) == 1 else f"{years[0]} to {years[-1]}"
