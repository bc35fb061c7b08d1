"""Stale journals: detect an old copy, and charge the slots that another copy released (spec 10 and 15.1).

The witness shows the last slot and the registry that were committed here; a copy made by `wevent backup` is marked inside.
A journal and a witness that were rolled back together are not detected.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from wevent.core.limits import MAX_WINDOW
from wevent.core.requirements import Population, Requirement
from wevent.errors import InvalidOption, InvalidPopulation, StaleJournal
from wevent.journal import Journal
from wevent.journal.place import is_address
from wevent.journal.rebuild import rebuild_publisher
from wevent.journal.record import Batch, Group, Record, Revision
from wevent.journal.terms import class_history, hash_versions
from wevent.journal.witness import WitnessRecord
from wevent.people.classes import Restore, to_requirements
from wevent.publisher.publisher import Publisher
from wevent.settings import RestoreOptions as Stated

_log = logging.getLogger("wevent.publishing.staleness")
_MAX_LOST = 1_000_000  # slots that one settlement charges: each is stored


class Settlement(NamedTuple):
    """Effect of slots that were released elsewhere.

    Attributes:
        batch: these slots, charged.
        restore: what they leave in doubt, None: nothing.
        changes_lost: whether changes of the registry may be lost.
    """

    batch: Batch
    restore: Restore | None = None
    changes_lost: bool = False


def settle_stale(journal: Journal, stated: Stated) -> int:
    """Refuse a stale journal, or settle it as the operator states.

    Args:
        journal: opened for writing.
        stated: statements of the operator.

    Returns:
        The number of slots that were charged because they were released elsewhere.

    Raises:
        StaleJournal: if the journal is, or may be, behind what was released and nothing (or too little) is stated.
    """
    plan = plan_or_refuse(journal, stated)
    slots = 0 if plan is None else store_settlement(journal, plan)
    if stated.accept_lost_changes:
        journal.accept_lost_changes()
    return slots


def plan_or_refuse(journal: Journal, stated: Stated) -> Settlement | None:
    """Return what is to be stored before a journal may go on, None if nothing is. Store nothing.

    Raises:
        StaleJournal: as of `settle_stale`.
    """
    if stated.released_through is not None:
        return plan_settling(journal, stated.released_through, stated)
    head = journal.load().head  # a damaged journal is said to be damaged, not stale
    known = known_released(journal, head.committed, stated=head.copied)
    refuse_stale(journal, head.committed, known, copied=head.copied)
    return None


def refuse_lost_changes(journal: Journal) -> None:
    """Refuse to publish while changes of the registry may be lost (spec 15.1, table).

    Raises:
        StaleJournal: with both ways out.
    """
    if journal.changes_lost:
        raise StaleJournal(
            "the registry as it was after the last release",
            "a backup that may lack changes of it",
            "Users who left, were erased or chose a stricter level after the backup would be counted as before. Import the "
            "registry again (wevent users JOURNAL import FILE), or go on without these changes (--accept-lost-changes).",
            committed=journal.head().committed,
            released=None,
        )


def store_settlement(journal: Journal, plan: Settlement) -> int:
    """Store what was planned; return the number of slots charged."""
    batch = plan.batch
    if journal.head().copied or batch.records or plan.changes_lost:
        journal.take_over(batch, plan.restore, changes_lost=plan.changes_lost)
    journal.update_witness()
    if batch.records:
        first, last = batch.records[0].slot, batch.records[-1].slot
        _log.warning("slots %d to %d were released elsewhere: charged, not drawn", first, last)
    return len(batch.records)


def plan_settling(journal: Journal, released_through: int, stated: Stated) -> Settlement:
    """Return what `settle_stale` would store. Store nothing.

    Raises:
        StaleJournal: if too little is stated.
    """
    head = journal.load().head
    _check_numbers(stated, head.committed)
    known = known_released(journal, head.committed, stated=True)
    if released_through < known <= head.committed and not head.copied:
        raise StaleJournal(
            "a journal that is behind what was released, for --released-through",
            f"one that knows every slot up to {head.committed}",
            "Nothing is to be settled: leave --released-through out.",
            committed=head.committed,
            released=known,
        )
    if released_through < known:
        raise _stale(journal, f"--released-through {known} or later", f"{released_through}", head.committed, known)
    return _find_doubts(journal, _charge_elsewhere(journal, released_through), stated)


def _check_numbers(stated: Stated, committed: int) -> None:
    """Refuse statements that contradict each other or cannot be true.

    Raises:
        InvalidOption: naming the option.
    """
    window, through = stated.widest_window, stated.released_through or 0
    if window is not None and stated.same_settings:
        raise InvalidOption(
            "--same-settings or --widest-window",
            "both",
            "If settings changed after the backup, state only the widest window ever declared.",
            option="same_settings",
        )
    if window is not None and window > MAX_WINDOW:
        raise InvalidOption(
            f"a widest window of at most {MAX_WINDOW} slots",
            f"{window}",
            "State the widest window ever declared, in slots.",
            option="widest_window",
        )
    if through - committed > _MAX_LOST:
        raise InvalidOption(
            f"at most {_MAX_LOST} slots after the journal's last one ({committed})",
            f"--released-through {through}",
            "State the number of the last slot that was released, not a time.",
            option="released_through",
        )


def refuse_stale(journal: Journal, committed: int, known: int, *, copied: bool) -> None:
    """Refuse a backup, and a journal that knows fewer slots than were released.

    Raises:
        StaleJournal: if it is one.
    """
    if copied:
        raise _stale(journal, "a journal", f"a backup that ends with slot {committed}", committed, None)
    if known > committed:
        raise _stale(journal, f"a journal that knows slot {known}", f"one that ends with {committed}", committed, known)


def _find_doubts(journal: Journal, batch: Batch, stated: Stated) -> Settlement:
    """Return a settlement with what the slots of a batch leave in doubt (spec 15.1, table).

    If the witness has the last of these slots with the versions and the registry of the backup, nothing is in doubt.
    Otherwise every class that users could hold may have been held by any id. If versions may be lost too, nobody is counted
    for the widest window.

    Raises:
        StaleJournal: if the witness does not show the versions, and the operator states nothing about them.
    """
    record, versions, committed = journal.witnessed(), journal.epochs(), journal.head().committed
    through = batch.records[-1].slot if batch.records else committed
    is_ours = record.journal == journal.identity
    is_witnessed = is_ours and record.committed == through and record.revision.number >= 0  # not only announced
    known = hash_versions(versions, journal.registry.restores())
    same_versions = is_witnessed and record.versions == known
    if same_versions and record.revision == journal.registry.revision():
        return Settlement(batch)
    if not batch.records:  # every slot is known, and with it every class; changes after the last slot may be lost
        is_lacking = is_ours and _lacks_changes(record, journal.registry.revision())
        return Settlement(batch, changes_lost=journal.head().copied or is_lacking)
    classes = class_history(versions, journal.registry.restores())
    silent_through = 0
    has_others = is_ours and record.versions not in ("", known)
    if not same_versions and (has_others or not stated.same_settings):  # the witness is believed, not the statement
        if stated.widest_window is None:
            if_same = (
                "" if has_others else "If settings did not change after the backup, say --same-settings. Otherwise "
            )
            raise StaleJournal(
                f"a witness of this journal that reaches slot {through} and has the settings of the backup",
                "one with other settings" if has_others else "none",
                f"{if_same}nobody is counted for the widest window ever declared: state it (--widest-window SLOTS), "
                "epochs after the backup included.",
                committed=committed,
                released=through,
            )
        silent_through = through + max(classes.max_window, stated.widest_window)
    doubted = tuple(sorted(classes.version_at(through).classes))
    return Settlement(batch, Restore(through, silent_through, doubted), changes_lost=True)


def known_released(
    journal: Journal, committed: int, *, stated: bool = False, record: WitnessRecord | None = None
) -> int:
    """Return the last slot that the witness shows, 0 if it shows nothing of this journal.

    Args:
        journal: opened for reading or writing.
        committed: its last slot.
        stated: whether the operator states through which slot releases went out.
        record: what the witness showed before `committed` was read, for a journal that a publisher may write meanwhile.

    Raises:
        StaleJournal: if two copies drew the same slots. Unless the slot is stated, also if the witness is missing, shows
            later changes of the registry, or shows a slot that the journal dropped.
    """
    record = record or journal.witnessed()
    if record.journal != journal.identity:
        if not stated and (committed or not record.is_readable):
            raise _stale(
                journal, f"the witness of this journal beside it ({journal.witness_name})", "none", committed, None
            )
        return max((slot for identity, slot in record.earlier if identity == journal.identity), default=0)
    chain = journal.chain_at(record.committed)
    if chain is None and 0 < record.committed < committed and not stated:
        raise _stale(
            journal, f"a journal that keeps slot {record.committed}", "one that dropped it", committed, record.committed
        )
    if chain is not None and chain.hex() != record.chain and not journal.is_elsewhere(record.committed):
        raise StaleJournal(
            f"the journal that committed slot {record.committed} here",
            "a copy that went on by itself",
            "Two copies drew the same slots, so their epsilons add up: go on with the journal that was used here.",
            committed=committed,
            released=record.committed,
        )
    if record.committed <= committed and _lacks_changes(record, journal.registry.revision()) and not stated:
        shown = f"the changes of the registry that {journal.witness_name} shows"
        raise _stale(journal, shown, "a copy without them", committed, record.committed)
    return record.committed


def _lacks_changes(record: WitnessRecord, revision: Revision) -> bool:
    """Return whether a registry is not the one, nor a later one, that the witness shows."""
    is_other = record.revision.number == revision.number and record.revision.chain != revision.chain
    return record.revision.number > revision.number or is_other


def _stale(journal: Journal, expected: str, received: str, committed: int, released: int | None) -> StaleJournal:
    """What is said of an old copy, with what can be done: a database is restored with its own tools."""
    to = "to publish or serve" if is_address(journal.name) else "to `wevent restore BACKUP JOURNAL` or to publish"
    return StaleJournal(
        expected,
        received,
        f"Say through which slot releases ever went out (--released-through SLOT, {to}). Those slots are charged with the "
        "most they could have cost and never drawn again.",
        committed=committed,
        released=released,
    )


def _charge_elsewhere(journal: Journal, through: int) -> Batch:
    """Charges for the slots that another copy of the journal released, which are never drawn (spec 10).

    ▲ What they cost is unknown, but the gate held there too: whatever the slots up to M charged a class, a window that
    ends in M held at most ε. So no suffix of them cost more than what M's window has left when only the known charges
    are counted. All of that is charged in slot M itself, the last to leave any later window: every later window that
    holds some of the unknown slots holds M. The earlier ones are marked and charged nothing, so no window exceeds ε.

    Args:
        journal: opened for writing.
        through: M, the last slot that ever went out.

    Returns:
        What `Journal.take_over` stores; without records if the journal knows every slot up to M.
    """
    loaded = journal.load()
    publisher = rebuild_publisher(loaded, journal.epochs(), None)
    first = publisher.slot
    if through < first:
        return Batch((), None, None, through)
    sizes = dict(publisher.population.items())
    live = to_requirements(class_history(journal.epochs(), journal.registry.restores()).live(through))
    publisher.update(Population({**dict.fromkeys(_charged_rows(publisher, live), 0), **sizes}), turnover=0)
    group = Group.of(publisher.population, publisher.turnover)
    nothing = np.zeros(len(publisher.population), dtype=np.int64)
    epoch, last = loaded.head.epoch, loaded.last
    measured = last.measured if last is not None and last.epoch.number == epoch.number else None
    records = []
    for slot in range(first, through + 1):
        most = publisher.ledger.remaining() if slot == through else nothing
        records.append(Record(slot, "elsewhere", epoch, group, nothing, most, None, None, None, measured))
        publisher.replay(nothing, most, None)
    return Batch(records, None, publisher.state(), through)


def _charged_rows(publisher: Publisher, live: Iterable[Requirement]) -> list[Requirement]:
    """Return the classes that may have had members elsewhere: the live ones, and all rows of the ledger.

    A row of an earlier version that a shared budget does not cover is left out: it is no longer live.
    """
    known = []
    for row in sorted({*publisher.ledger.rows, *live}):
        try:
            publisher.check_population(Population({row: 0}))
        except InvalidPopulation:
            continue
        known.append(row)
    return known
