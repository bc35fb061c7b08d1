"""What publishing would meet: the same readers, look-ups and terms, and nothing spent, drawn or stored.

A journal is only read. What comes of it is for the operator: it depends on events, and must not be published.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from wevent.core.requirements import Population
from wevent.counting.roster import Roster
from wevent.counting.spelling import Spelled
from wevent.errors import InvalidJournal
from wevent.journal import Journal, Terms, is_begun, open_journal
from wevent.journal.rebuild import new_publisher
from wevent.journal.terms import Epoch, class_history
from wevent.people.membership import KeyColumn, KnownIds
from wevent.people.rosters import MemberColumns, Rosters
from wevent.publishing.agreeing import asked_terms, pinned_clock
from wevent.publishing.configuration import Settings
from wevent.publishing.hints import Met, hints_for
from wevent.publishing.importing import Difference, WantedRegistry, import_users, registered
from wevent.publishing.intent import Intent
from wevent.publishing.opening import coming_changes, keep_pinned, must_begin, pinned_terms, refuse_seeded, with_version
from wevent.publishing.preview import strictest_sentences
from wevent.publishing.session import plan_settlement
from wevent.streams import FileSource, SlotClock, declared_clock
from wevent.streams.files.file_source import span_of
from wevent.streams.files.inspection import Inspection, inspect_files
from wevent.streams.records.outlines import outline
from wevent.streams.records.times import UNITS


@dataclass(frozen=True)
class Rehearsal:
    """What publishing under these settings would meet. Private but for terms, clock and population.

    Attributes:
        settings: as they would hold: what was not said is as the journal has it.
        terms: what would be pinned, or is.
        clock: when slots begin.
        first, last: the slots that would be published; last is None without an end.
        population: the classes of slot `first`, and how many hold each.
        imported: what the requirements file, or an edited level table, would change in a journal with slots; None otherwise.
        inspection: what is in the files; None of live lines, which cannot be looked at before they come.
        totals: why events would not count, by reason, as `publish` says at its end; None of live lines.
        malformed: where the first malformed records are.
        hints: sentences about what looks like a mistake.
    """

    settings: Settings
    terms: Terms
    clock: SlotClock
    first: int
    last: int | None
    population: Population
    imported: Difference | None
    inspection: Inspection | None
    totals: dict[str, int] | None
    malformed: list[str]
    hints: list[str]


def rehearse(settings: Settings, intent: Intent | None = None) -> Rehearsal:
    """Read everything as publishing would; spend, draw and store nothing.

    Args:
        settings: of the stream; a journal need not be named, and need not exist.
        intent: what would be said for this run alone.

    Raises:
        WeventError: for settings that publishing would refuse; never because of what an event says.
    """
    intent = intent or Intent()
    with ExitStack() as stack:
        journal = _opened(settings, intent)
        if journal is not None:
            stack.enter_context(journal)
            refuse_seeded(journal)
            plan_settlement(journal, intent)
            settings = keep_pinned(settings, pinned_terms(journal))
        clock, last = declared_clock(settings, None if journal is None else pinned_clock(journal))
        wanted, terms = asked_terms(journal, settings, clock, intent)
        if journal is None:
            new_publisher([Epoch(1, 1, terms)], None)  # refuses options that do not fit
        first = 1 if journal is None else journal.head().next_slot
        difference = None if journal is None else _difference(journal, wanted, terms, intent)
        versions = [Epoch(1, 1, terms)] if journal is None else with_version(journal, terms)
        rosters = _rosters(journal, wanted, versions, first)
        roster = rosters.at(first)
        inspection, totals, malformed, hints = None, None, [], []
        if settings.inputs != ("-",) and last is not None:
            source = FileSource(replace(settings, strict=False), clock, last)
            _count(rosters, source, first, last)
            totals, malformed = source.totals(), source.first_malformed()
            inspection = inspect_files(settings, clock, roster)
            met = Met(settings, clock, last, inspection, totals, _requirements_outline(roster))
            hints = hints_for(met, lambda unit: span_of(replace(settings, time_unit=unit)), tuple(UNITS))
        sizes = {requirement.key: size for requirement, size in roster.population.items()}
        hints += strictest_sentences(terms, sizes)
        if settings.days is not None and settings.cycle and not terms.calendar:
            hints.append("No day of the calendar lies after the start: every day counts as an ordinary one.")
    return Rehearsal(
        settings,
        terms,
        clock,
        first,
        last,
        roster.population,
        difference,
        inspection,
        totals,
        malformed,
        hints,
    )


def _opened(settings: Settings, intent: Intent) -> Journal | None:
    """The journal for reading; None if publishing would make a new one.

    Raises:
        StaleJournal: if it is lost, and nobody says to start over.
    """
    place = settings.journal
    if place is None:
        return None
    if is_begun(place):
        return open_journal(place)
    if not intent.start_over:
        with suppress(InvalidJournal):  # there is none; or there was one, which is no such error
            open_journal(place)
    return None


def _difference(journal: Journal, wanted: WantedRegistry | None, terms: Terms, intent: Intent) -> Difference | None:
    begins = must_begin(journal, terms, new_epoch=intent.new_epoch)
    if pinned_terms(journal) is None:
        return None
    if begins:
        _, difference = coming_changes(journal, terms, wanted, allow_removals=intent.allow_removals)
        return difference if wanted is not None or difference.relevelled else None
    if wanted is None:
        return None
    return import_users(journal, wanted, allow_removals=intent.allow_removals, dry_run=True)


def _rosters(journal: Journal | None, wanted: WantedRegistry | None, versions: Sequence[Epoch], slot: int) -> Rosters:
    """Return the rosters if the file is imported, or if no user changes."""
    limit = versions[-1].terms.unknown_users
    if wanted is not None:
        users = wanted.users if isinstance(wanted.users, Spelled) else Spelled.of([str(user) for user in wanted.users])
        members = MemberColumns(users, wanted.keys)
    else:
        assert journal is not None, "asked_terms refuses a new journal without requirements"
        held = registered(journal)
        members = MemberColumns(Spelled.of(list(held)), KeyColumn.of(key for key, _ in held.values()))
    if journal is None or journal.is_new:
        return Rosters(members, classes=class_history(versions), limit=limit)
    registry = journal.registry
    classes, known = class_history(versions, registry.restores()), KnownIds(registry.former_ids(), registry.salt)
    return Rosters(members, registry.tails(slot), classes=classes, limit=limit, known=known)


def _count(rosters: Rosters, source: FileSource, first: int, last: int) -> None:
    """Count slot after slot as publishing would; what is counted is forgotten at once."""
    slot = first
    while slot <= last:
        following = min(rosters.next_change(slot) or last + 1, last + 1)
        for _ in source.count(rosters.at(slot), slot, following - slot):
            pass
        slot = following
    if first > last:
        source.look()


def _requirements_outline(roster: Roster) -> str:
    return outline(str(roster.users[0])) if len(roster) else ""
