"""What comes with an epoch, and what people asked for since it was begun: the later wish stands (spec 10)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from wevent.core.requirements import Levels
from wevent.errors import InvalidMembership, InvalidRequirement
from wevent.journal.terms import Terms
from wevent.people.classes import Key
from wevent.people.membership import Change, Changes, check_declared

_log = logging.getLogger("wevent.journal.coming")


class Coming(NamedTuple):
    """Terms that are to be put in force, and what comes with them; see `wevent.journal.contract.Epochs.begin`."""

    terms: Terms
    unsafe: tuple[str, ...]
    changes: Changes
    imported: bytes | None


def changes_to_queue(coming: Coming, since: Iterable[Change], words: Mapping[str, str | None] | None) -> list[Change]:
    """What is queued when an epoch is stored: what was asked for since it was begun, then the changes that come with it.

    The rule: whoever asked for something since gets that, and none of the epoch's changes. A wish in words has the numbers
    of the epoch's table; words that it lacks leave the numbers they had. After another requirements file was imported, of
    the epoch's changes only new numbers for words that people hold are left: that file is the later one.

    ▲ A wish that the epoch's terms do not allow (it was checked against those before) becomes "remove": nobody counts under
    a weaker requirement than the one they asked for, and no publisher ends because of it. The log warns of it; nothing else
    happens here.

    Args:
        coming: the epoch.
        since: what was asked for since it was begun, in order.
        words: the words that every member holds, if another file was imported since; None otherwise.
    """
    table = coming.terms.level_table
    wishes = [_in_numbers(table, change) for change in since]
    refused = {
        key for key in {change.key for change in wishes if change.key is not None} if _is_refused(coming.terms, key)
    }
    wishes = [Change("remove", change.user) if change.key in refused else change for change in wishes]
    asked = {change.user for change in wishes}
    kept = (change for change in coming.changes if change.user not in asked)
    if words is None:
        return [*wishes, *kept]
    return [
        *wishes,
        *(change for change in kept if change.level is not None and words.get(change.user) == change.level),
    ]


def _in_numbers(table: Levels | None, change: Change) -> Change:
    """A wish with the numbers that its words have in a level table."""
    if change.level is None or table is None:
        return change
    try:
        return change._replace(key=table.choose(change.level).key)
    except InvalidRequirement:
        return change._replace(level=None)


def _is_refused(terms: Terms, key: Key) -> bool:
    try:
        check_declared(key, terms.declared)
    except InvalidMembership as error:
        _log.warning(
            "while an epoch began, a requirement was asked for that its terms do not allow: whoever asked is not counted "
            "until they ask again, for one that is declared. %s (private: do not publish this line)",
            error,
        )
        return True
    return False
