"""Dry run of a publication: same readers, look-ups and configuration; nothing is charged, drawn or stored.

A journal is only read. Results depend on events and are for the operator: they must not be published. Values show as masks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import get_args

from wevent.core.requirements import Population
from wevent.counting.string_column import StringColumn
from wevent.errors import InvalidJournal
from wevent.journal import Journal, Terms, is_begun, open_journal
from wevent.journal.terms import class_history
from wevent.people.membership import KeyColumn, KnownIds, MemberColumns, Rosters
from wevent.publishing.importing import Difference, registered, strictest_sentences
from wevent.publishing.resolve import ResolvedRun, begin, check_journal, pinned_terms, resolve, with_version
from wevent.settings import RunOptions, Settings, TimeUnit
from wevent.settings.values import format_time, utc_time
from wevent.streams import FileSource, SlotClock
from wevent.streams.file_source import span_of
from wevent.streams.inputs import outline
from wevent.streams.inspection import Inspection, inspect_files

_FEW = 0.5  # of the events; fewer that match look like a mistake
_Span = tuple[int, int]


@dataclass(frozen=True)
class DryRun:
    """Result of a dry run. Private except for configuration, clock and population."""

    settings: Settings  # with the pinned values where none is explicit
    terms: Terms  # configuration that would be pinned, or is
    clock: SlotClock
    first: int  # first slot that would be published
    last: int | None  # None: no end
    population: Population  # the classes of slot `first` and their sizes
    imported: Difference | None  # changes of the registry in a journal with slots
    inspection: Inspection | None  # facts about the events; None for live lines
    totals: dict[str, int]  # events that would not count, by reason, as `publish` shows them at its end
    malformed: list[str]  # locations of the first malformed records
    hints: list[str]  # sentences about likely mistakes


def dry_run(settings: Settings, options: RunOptions) -> DryRun:
    """Read everything as publishing would. Charge, draw and store nothing.

    Settings that publishing would refuse are refused; a journal need not be named. No event can cause an error.
    """
    with ExitStack() as stack:
        journal = _open(settings, options)
        if journal is not None:
            stack.enter_context(journal)
            check_journal(journal, options)
        run = resolve(journal, settings, options)
        settings, clock, last, wanted, terms = run
        first = 1 if journal is None else journal.head().next_slot
        imported = None
        if journal is not None and pinned_terms(journal) is not None:
            reconfigure, allow_removals = options.reconfigure, options.allow_removals
            difference = begin(
                journal, terms, reconfigure=reconfigure, wanted=wanted, allow_removals=allow_removals, dry_run=True
            )
            imported = difference if wanted is not None or difference.relevelled else None
        rosters = _make_rosters(journal, run, first)
        roster = rosters.at(first)
        inspection, totals, malformed, hints = None, dict[str, int](), list[str](), list[str]()
        if settings.inputs != ("-",) and last is not None:
            source = _count(run, rosters, first, last)
            inspection, totals, malformed = inspect_files(settings, roster), source.totals(), source.first_malformed()
            mask = outline(str(roster.users[0])) if len(roster) else ""
            hints += _find_mistakes(settings, clock, last, inspection, totals, mask)
    hints += strictest_sentences(terms, {requirement.key: size for requirement, size in roster.population.items()})
    if settings.days is not None and settings.seasonality and not terms.special_days:
        hints.append("No special day lies after the start: every day counts as an ordinary one.")
    return DryRun(
        settings, terms, clock, first, last, roster.population, imported, inspection, totals, malformed, hints
    )


def _open(settings: Settings, options: RunOptions) -> Journal | None:
    """Open the journal for reading; return None if publishing would make a new one. A lost journal is refused."""
    if settings.journal is None:
        return None
    if is_begun(settings.journal):
        return open_journal(settings.journal)
    if not options.start_over:
        with suppress(InvalidJournal):  # that there is none; StaleJournal, for a lost one, is another error
            open_journal(settings.journal)
    return None


def _make_rosters(journal: Journal | None, run: ResolvedRun, slot: int) -> Rosters:
    """Return the rosters once the file is imported, or if no user changes."""
    if run.wanted is not None:
        users, keys = run.wanted.users, run.wanted.keys
        users = users if isinstance(users, StringColumn) else StringColumn.from_texts([str(user) for user in users])
    else:
        assert journal is not None, "a new journal without requirements is refused"
        held = registered(journal)
        users, keys = StringColumn.from_texts(list(held)), KeyColumn.of(key for key, _ in held.values())
    members, limit, versions = MemberColumns(users, keys), run.terms.unknown_users, with_version(journal, run.terms)
    if journal is None or journal.is_new:
        return Rosters(members, classes=class_history(versions), limit=limit)
    registry = journal.registry
    classes, known = class_history(versions, registry.restores()), KnownIds(registry.former_ids(), registry.salt)
    return Rosters(members, registry.tails(slot), classes=classes, limit=limit, known=known)


def _count(run: ResolvedRun, rosters: Rosters, first: int, last: int) -> FileSource:
    """Count slot after slot as publishing would, and forget the counts at once; return the source with its totals."""
    source = FileSource(replace(run.settings, strict=False), run.clock, last)
    slot = first
    while slot <= last:
        following = min(rosters.next_change(slot) or last + 1, last + 1)
        for _ in source.count(rosters.at(slot), slot, following - slot):
            pass
        slot = following
    if first > last:
        source.survey()
    return source


def _find_mistakes(
    settings: Settings,
    clock: SlotClock,
    last: int,
    found: Inspection,
    totals: dict[str, int],
    requirements_outline: str,
) -> Iterator[str]:
    """Yield sentences about likely mistakes: ids of another kind (given the mask of one), another year, unit or spelling."""
    if not found.events and not totals["malformed"]:
        yield "The inputs hold no events: every slot would be published as empty."
    if settings.start_auto:
        yield (
            "start = auto reads start and end from the events: one user's event can decide when the stream begins or "
            "ends, which no epsilon covers. Declare both."
        )
    over = clock.start_of(last + 1)
    if settings.end_us is not None and not settings.slot_column and settings.end_us > over:
        yield (
            f"The end lies within a slot, which is not published: the last one that is ends at {format_time(over)}. "
            "Declare an end where a slot ends."
        )
    if found.events and found.users_found < _FEW * found.events:
        theirs = found.outlines.get("unknown_user", "")
        alike = "" if theirs != requirements_outline else " They look alike: are these the same users?"
        yield (
            f"{'Few' if found.users_found else 'No'} events are of registered users. Ids look like {theirs!r} in the events "
            f"and like {requirements_outline!r} in the requirements (user_column = {settings.user_column!r}).{alike}"
        )
    if found.nearly_cells:
        yield (
            f"{found.nearly_cells:,} events have a cell that differs from a declared one by case or spaces alone: "
            "labels are compared letter by letter. Correct them in the events, or declare them as they are there."
        )
    if found.cells_from_one:
        cells = len(settings.cells)
        yield (
            f"Cells are declared as 0 to {cells - 1}, events have {cells} and never 0: are they numbered from 1 on? "
            "Declare the labels in a file."
        )
    if found.events and not found.cells_found and not found.nearly_cells:
        yield (
            f"No event has a declared cell. Labels look like {found.outlines.get('unknown_cell', '')!r} in the events "
            f"(cell_column = {settings.cell_column!r})."
        )
    most = _FEW * (found.events + totals["malformed"])
    if totals["before"] + totals["after"] + totals["no_time"] > most:
        yield _explain_times(settings, found, (clock.start_of(1), over), last)
    if totals["no_offset"]:
        yield "Times without an offset are malformed: give --timezone UTC if they are UTC, or their offset (+02:00)."
    if totals["no_record"] > most:
        yield "Most lines are no records: does the delimiter match the file's ending (.csv, .tsv)?"


def _explain_times(settings: Settings, found: Inspection, declared: _Span, last: int) -> str:
    """Return why most events lie outside the clock, or have times that cannot be read."""
    span = found.span
    if settings.slot_column:
        seen = "none" if span is None else f"{span[0] + 1} to {span[1] + 1}"
        return f"Most events lie outside the slots 1 to {last}: slot numbers in the events are {seen}."
    for unit in get_args(TimeUnit):
        other = span_of(replace(settings, time_unit=unit)) if unit != settings.time_unit else None  # reads the files
        if other is None or other == span:  # texts are the same in any unit
            continue
        if other[0] < declared[1] and other[1] >= declared[0]:
            return f"Times would lie within start and end if numbers counted {unit}: use --time-unit {unit}."
    if span is None:
        return "No event has a time that can be read."
    theirs, ours = ((_year(first), _year(last)) for first, last in (span, declared))
    if theirs[1] < ours[0] or ours[1] < theirs[0]:
        of_theirs, of_ours = (f"{first}" if first == last else f"{first} to {last}" for first, last in (theirs, ours))
        return (
            f"Most events lie outside start and end, and in another year: events are of {of_theirs}, start and end of "
            f"{of_ours}."
        )
    return "Most events lie outside start and end: compare the two spans."


def _year(time_us: int) -> int:
    try:
        return utc_time(time_us).year
    except OverflowError:
        return 0 if time_us < 0 else 10_000
