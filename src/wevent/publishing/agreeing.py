"""What a run works under: settings, what the operator says and the journal's terms, brought together. Nothing is stored."""

from __future__ import annotations

from typing import NamedTuple

from wevent.core.requirements import Requirement
from wevent.errors import InvalidMembership, InvalidSettings
from wevent.journal import Journal, Terms
from wevent.publishing.configuration import Settings
from wevent.publishing.importing import (
    AskingFile,
    WantedRegistry,
    is_imported,
    registered,
    requirements_digest,
    wanted_people,
    wanted_users,
)
from wevent.publishing.intent import Intent
from wevent.publishing.opening import keep_pinned, make_terms, must_begin, pinned_terms, with_levels
from wevent.streams import SlotClock, declared_clock


class Agreed(NamedTuple):
    """What a run works under.

    Attributes:
        settings: what was not said is as the journal has it.
        clock: of the slots.
        last: the last slot; None: no end.
        wanted: who the requirements file wants; None without one.
        terms: that the settings ask for.
    """

    settings: Settings
    clock: SlotClock
    last: int | None
    wanted: WantedRegistry | None
    terms: Terms


def agree(journal: Journal, settings: Settings, intent: Intent, *, enrolling: bool) -> Agreed:
    """What settings come to with a journal's terms, or for a new one; stores nothing.

    Args:
        journal: the journal.
        settings: what was asked for.
        intent: what the operator says for this run alone.
        enrolling: whether people may choose a level while it runs.

    Raises:
        SettingsDiffer: naming what differs from the terms in force.
        WeventError: as of `asked_terms` and `must_begin`.
    """
    pinned = pinned_terms(journal)
    settings = keep_pinned(settings, pinned)
    if enrolling:
        settings = with_levels(settings, pinned)
    begun = _begun_clock(journal, settings.slot_us) if enrolling else pinned_clock(journal)
    clock, last = declared_clock(settings, begun)
    wanted, terms = asked_terms(journal, settings, clock, intent)
    must_begin(journal, terms, new_epoch=intent.new_epoch)  # `begin` asks again: people may ask meanwhile
    return Agreed(settings, clock, last, wanted, terms)


def pinned_clock(journal: Journal) -> SlotClock | None:
    """The clock that binds a journal, None before its first slot."""
    pinned = pinned_terms(journal)
    return None if pinned is None else SlotClock(pinned.origin_us, pinned.length_us)


def _begun_clock(journal: Journal, length_us: int) -> SlotClock | None:
    """The clock that a service goes on with: also before the first slot is committed, whose events it may have taken.

    Whether it has taken any does not matter: the clock would tell (spec 1).
    """
    if journal.is_new:
        return None
    terms = journal.head().epoch.terms
    return SlotClock(terms.origin_us, terms.length_us) if terms.length_us == length_us else pinned_clock(journal)


def asked_terms(
    journal: Journal | None, settings: Settings, clock: SlotClock, intent: Intent
) -> tuple[WantedRegistry | None, Terms]:
    """Who the requirements file wants, and the terms that the settings ask for; stores nothing.

    Args:
        journal: None before there is one.
        settings: of the stream.
        clock: of its slots.
        intent: what the operator says for this run alone.

    Raises:
        InvalidSettings: if nobody is registered and there is no requirements file.
        WeventError: as of `wanted_users`.
    """
    pinned = None if journal is None else pinned_terms(journal)
    wanted = _wanted(settings, None if journal is None or pinned is None else journal.imported())
    keys = {_declared(text) for text in intent.declare}
    if pinned is None:
        people = set() if wanted is None else set(wanted.keys)
        if journal is not None and (wanted is None or is_imported(journal, wanted, clock.length_us)):
            people |= {key for key, _ in registered(journal).values()}  # acknowledged before the first slot: they stay
        if not people and not (settings.is_live and settings.levels is not None):  # whoever comes can choose a level
            raise InvalidSettings(
                "requirements for a new journal",
                "none",
                "Give --requirements with one row per user.",
                key="requirements",
            )
        keys |= people
    return wanted, make_terms(settings, (clock.origin_us, clock.length_us), keys, pinned)


def _wanted(settings: Settings, imported: bytes | None) -> WantedRegistry | None:
    """Who the requirements file wants, None without one; a file that was imported already is not read again."""
    if settings.people is not None:
        wanted = wanted_people(settings.people, settings.levels)
        return None if wanted.digest == imported else wanted
    file = AskingFile.of(settings)
    if file is None:
        return None
    if imported is not None and requirements_digest(file) == imported:
        return None
    return wanted_users(file)


def _declared(text: str) -> tuple[int, int]:
    window, _, epsilon = text.partition(",")
    if not window.strip().isdecimal() or not epsilon:
        raise InvalidMembership("WINDOW,EPSILON to declare", repr(text), "Write for example 40,0.5.")
    return Requirement(int(window), epsilon.strip()).key
