"""Levels that a stream offers, with the number of users who chose each. These numbers are for operators (spec 15.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from wevent.core.requirements import Levels
from wevent.journal.contract import Journal
from wevent.people.classes import Key
from wevent.publishing.configuration import Settings
from wevent.publishing.importing import AskingFile
from wevent.streams.windows import span_text


class Offered(NamedTuple):
    """One row of what is offered.

    Attributes:
        level: the words; None for a requirement that people hold in numbers only.
        requirement: window in slots and nano-epsilons.
        span: the window as a length of time, None where slots have no length.
        size: how many hold the requirement, in these words, others or numbers; None: nobody was counted.
    """

    level: str | None
    requirement: Key
    span: str | None
    size: int | None


@dataclass(frozen=True)
class Offer:
    """What a stream offers.

    Attributes:
        rows: every pair of words, the strictest privacy and the shortest window first, then combined names, then what
            is held in numbers only.
        slot_us: how long a slot is, None where slots have no length.
        declared: whether the words are the stream's own; the default ones otherwise.
        notes: what was made of the settings and is not obvious.
    """

    rows: tuple[Offered, ...]
    slot_us: int | None
    declared: bool
    notes: tuple[str, ...] = ()


def offer_of_journal(journal: Journal, *, checked: bool = True) -> Offer:
    """What a journal offers now, and how many hold it.

    Args:
        journal: the journal.
        checked: whether every membership is looked at first; a service does not, whose publisher did so at its start.

    Raises:
        InvalidJournal: if memberships are not what was stored.
    """
    if checked:
        journal.registry.check()
    head = journal.head()
    terms, sizes = head.epoch.terms, journal.registry.sizes()
    return _offer(terms.level_table, terms.slot_length_us, sizes)


def offer_of_settings(settings: Settings) -> Offer:
    """What a configuration offers, and how many ask for it in its requirements file.

    Raises:
        WeventError: as of `read_requirements`.
    """
    sizes: Mapping[Key, int] | None = None
    notes = settings.notes
    file = AskingFile.of(settings)
    if file is not None:
        asked = file.read()
        sizes = asked.keys.sizes()
        notes = (*notes, *asked.notes)
    return _offer(settings.levels, settings.slot_length_us, sizes, notes)


def _offer(
    levels: Levels | None, slot_us: int | None, sizes: Mapping[Key, int] | None, notes: tuple[str, ...] = ()
) -> Offer:
    table = levels or Levels.default()
    offered = sorted(table.offered().items(), key=lambda row: (row[0] in table.combined, row[1].nano, row[1].window))
    words: list[tuple[str | None, Key]] = [(level, requirement.key) for level, requirement in offered]
    in_words = {key for _, key in words}
    words += [(None, key) for key in sorted(sizes or {}) if key not in in_words]
    rows = [
        Offered(
            level,
            key,
            None if slot_us is None else span_text(key[0] * slot_us),
            None if sizes is None else sizes.get(key, 0),
        )
        for level, key in words
    ]
    return Offer(tuple(rows), slot_us, levels is not None, notes)
