"""Stale journals: detect an old copy, charge the slots that another copy released, restore a backup (spec 10 and 15.1).

The witness shows the last slot and the registry that were committed here; a copy made by `wevent backup` is marked inside.
A journal and a witness that were rolled back together are not detected.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wevent.core.requirements import Population, Requirement
from wevent.errors import InvalidJournal, InvalidOption, InvalidPopulation, StaleJournal, StorageFailed
from wevent.journal import Journal
from wevent.journal.address import JournalAddress, is_address, journal_file
from wevent.journal.backup import copy_backup, move_in, put_aside, remove_partial, to_one_file
from wevent.journal.rebuild import rebuild_publisher
from wevent.journal.record import NO_REVISION, Batch, Group, Head, Hook, Record, Revision, no_hook
from wevent.journal.sqlite import SqliteJournal
from wevent.journal.terms import class_history, hash_versions
from wevent.journal.witness import WitnessFile, WitnessRecord, lock_witness, read_witness, unlock_witness, witness_path
from wevent.people.classes import Restore, to_requirements
from wevent.publisher.publisher import Publisher
from wevent.publishing.event_stores import open_sweeper
from wevent.settings import RestoreOptions

_log = logging.getLogger("wevent.publishing.staleness")
_MAX_LOST = 1_000_000  # slots that one settlement charges: each is stored


class Settlement(NamedTuple):
    """Effect of slots that were released elsewhere."""

    batch: Batch  # these slots, charged
    restore: Restore | None = None  # what they leave in doubt
    changes_lost: bool = False  # whether changes of the registry may be lost


def settle_stale(journal: Journal, stated: RestoreOptions) -> int:
    """Refuse a stale journal, or settle it as the operator states; return the number of slots charged.

    Raises:
        StaleJournal: if the journal is, or may be, behind what was released and nothing (or too little) is stated.
    """
    plan = plan_settling(journal, stated)
    slots = 0 if plan is None else store_settlement(journal, plan)
    if stated.accept_lost_changes:
        journal.accept_lost_changes()
    return slots


def plan_settling(journal: Journal, stated: RestoreOptions) -> Settlement | None:
    """Return what `settle_stale` would store, None if nothing. Refuse what it refuses, and store nothing."""
    head = journal.load().head  # a damaged journal is said to be damaged, not stale
    through = stated.released_through
    if through is None:
        refuse_stale(journal, head)
        return None
    if through - head.committed > _MAX_LOST:
        problem = f"Slot {through} is more than {_MAX_LOST:,} slots after the journal's last one ({head.committed})."
        fix = "State the number of the last slot that was released (--released-through), not a time."
        raise InvalidOption(problem, fix, option="released_through")
    known = _known_released(journal, head.committed, stated=True)
    if through < known <= head.committed and not head.copied:
        problem = f"The journal has every slot that was released: it ends with slot {head.committed}."
        raise _refusal(journal, problem, known, "Nothing is to be settled: leave --released-through out.")
    if through < known:
        problem = f"Slot {through} is not the last one that was released: state --released-through {known} or later."
        raise _refusal(journal, problem, known)
    return _find_doubts(journal, _charge_elsewhere(journal, through), stated)


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


def refuse_lost_changes(journal: Journal) -> None:
    """Refuse to publish while changes of the registry may be lost (spec 15.1, table)."""
    if journal.changes_lost:
        raise _refusal(
            journal,
            "The journal was restored from a backup that may lack changes of the registry.",
            fix="Users who left, were erased or chose a stricter level after the backup would be counted as before. Import "
            "the registry again (wevent users JOURNAL import FILE), or go on without these changes (--accept-lost-changes).",
        )


def refuse_stale(journal: Journal, head: Head, record: WitnessRecord | None = None) -> None:
    """Refuse a backup, and a journal that knows fewer slots than were released.

    A publisher may write the journal meanwhile: then `record` is what the witness showed before `head` was read.
    """
    known = _known_released(journal, head.committed, stated=head.copied, record=record)
    if head.copied:
        raise _refusal(journal, f"The journal is a backup that ends with slot {head.committed}.")
    if known > head.committed:
        problem = f"The witness of the journal shows slot {known}, but the journal ends with slot {head.committed}."
        raise _refusal(journal, problem, known)


def _find_doubts(journal: Journal, batch: Batch, stated: RestoreOptions) -> Settlement:
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
                "" if has_others else "If settings did not change after the backup, add --same-settings. Otherwise "
            )
            problem = f"No witness shows whether slot {through} had the settings of the backup."
            if has_others:
                problem = "The witness of this journal shows other settings than the backup has."
            fix = (
                f"{if_same}no user is counted for the widest window ever declared: state it (--widest-window SLOTS), "
                "versions after the backup included."
            )
            raise _refusal(journal, problem, through, fix)
        silent_through = through + max(classes.max_window, stated.widest_window)
    doubted = tuple(sorted(classes.version_at(through).classes))
    return Settlement(batch, Restore(through, silent_through, doubted), changes_lost=True)


def _known_released(journal: Journal, committed: int, *, stated: bool, record: WitnessRecord | None = None) -> int:
    """Return the last slot that the witness shows, 0 if it shows nothing of this journal.

    Raises:
        StaleJournal: if two copies drew the same slots. Unless the slot is stated, also if the witness is missing, shows
            later changes of the registry, or shows a slot that the journal dropped.
    """
    record = record or journal.witnessed()
    if record.journal != journal.identity:
        if not stated and (committed or not record.is_readable):
            problem = f"There is no witness of this journal beside it ({journal.witness_name})."
            raise _refusal(journal, problem)
        return max((slot for identity, slot in record.earlier if identity == journal.identity), default=0)
    chain = journal.chain_at(record.committed)
    if chain is None and 0 < record.committed < committed and not stated:
        problem = f"The witness shows slot {record.committed}, which the journal dropped."
        raise _refusal(journal, problem, record.committed)
    if chain is not None and chain.hex() != record.chain and not journal.is_elsewhere(record.committed):
        problem = (
            f"This is not the journal that committed slot {record.committed} here, but a copy that went on by itself."
        )
        fix = "Two copies drew the same slots, so their epsilons add up: go on with the journal that was used here."
        raise _refusal(journal, problem, record.committed, fix)
    if record.committed <= committed and _lacks_changes(record, journal.registry.revision()) and not stated:
        problem = f"The journal lacks changes of the registry that {journal.witness_name} shows."
        raise _refusal(journal, problem, record.committed)
    return record.committed


def _lacks_changes(record: WitnessRecord, revision: Revision) -> bool:
    """Return whether a registry is not the one, nor a later one, that the witness shows."""
    is_other = record.revision.number == revision.number and record.revision.chain != revision.chain
    return record.revision.number > revision.number or is_other


def _refusal(journal: Journal, problem: str, released: int | None = None, fix: str | None = None) -> StaleJournal:
    """Return the error for a stale journal; by default with the fix for old copies, which depends on what restores them."""
    to = "to publish or serve" if is_address(journal.name) else "to `wevent restore BACKUP JOURNAL` or to publish"
    fix = fix or (
        f"State the last slot that was ever released (--released-through SLOT, {to}). Later slots are charged "
        "with the most they could have cost and never drawn again."
    )
    return StaleJournal(problem, fix, committed=journal.head().committed, released=released)


def _charge_elsewhere(journal: Journal, through: int) -> Batch:
    """Return charges for the slots that another copy of the journal released, through M, which are never drawn (spec 10).

    ▲ What they cost is unknown, but the gate held there too: whatever the slots up to M charged a class, a window that
    ends in M held at most ε. So no suffix of them cost more than what M's window has left when only the known charges
    are counted. All of that is charged in slot M itself, the last to leave any later window: every later window that
    holds some of the unknown slots holds M. The earlier ones are marked and charged nothing, so no window exceeds ε.
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


class Restored(NamedTuple):
    """Result of a restore: public numbers, and names of files."""

    backup_through: int  # last slot of the backup
    released_through: int  # last slot that is known or charged now
    members: int  # number of registered users
    in_doubt_through: int | None  # last slot in which users are counted in stricter classes because of the restore
    silent_through: int | None  # last slot in which nobody is counted, because settings may be lost
    changes_lost: bool  # whether changes of the registry may be lost, and the loss was not accepted
    put_aside: list[Path]  # the old files


def restore(backup: Path, journal: JournalAddress, stated: RestoreOptions, at: Hook = no_hook) -> Restored:
    """Put a backup in place of a journal that is damaged, missing or older, and settle it (spec 10).

    After a crash at any step `publish` refuses what is there, and the same command completes the restore. The backup is
    only read. `at` is called at each labelled step.

    Raises:
        JournalLocked: if a process publishes into the journal.
        StaleJournal: if too little is stated, the backup is of another journal, or there is nothing to restore.
        InvalidInput, InvalidJournal: if the backup is none, damaged or newer.
        StorageFailed: if files cannot be copied or renamed.
    """
    journal = Path(os.path.realpath(journal_file(journal, "wevent restore")))
    if not journal.parent.is_dir():
        raise StorageFailed(
            f"There is no folder for {journal}.", "Make the folder first, or check the path.", path=str(journal)
        )
    witness = lock_witness(journal)  # 1. the only writer
    try:
        _refuse_swapped(backup, journal, witness)
        through, shown = stated.released_through, witness.before.committed
        if through is None:
            hint = f"; {witness.path.name} shows slot {shown}, so it is that one or later" if shown else ""
            raise StaleJournal(
                "--released-through SLOT, the last slot that was ever released, is missing.",
                f"It is the last one in your output, or what the receivers of the releases have{hint}. A later one costs "
                "accuracy, never privacy.",
            )
        copy = copy_backup(backup, journal)  # 2. a copy of the backup, which is whole and of this journal
        at("copied")
        identity, end, chain = _check_copy(copy, backup, witness)
        _refuse_sound(journal, identity, end)  # 3. what is there is worse than the backup
        if through < end:
            problem = f"The backup ends with slot {end}: state --released-through {end} or later, not {through}."
            raise StaleJournal(problem, "State the last slot that was ever released.")
        with SqliteJournal(copy, held=witness) as source:
            plan_settling(source, stated)  # enough is stated
        to_one_file(copy)
        at("checked")
        # 4. from here on a missing journal is noticed
        _announce(witness, identity, through, chain if through == end else "")
        at("announced")
        moved = put_aside(journal)  # 5. the old one and its write-ahead log are out of the way
        at("put aside")
        move_in(copy, journal)  # 6. the backup is in its place, and knows that it is a copy
        at("moved in")
        with SqliteJournal(journal, held=witness) as restored:  # 7. charged, and open again
            settle_stale(restored, stated)
            at("settled")
            with ExitStack() as stack:
                open_sweeper(journal, stack, is_live=False, is_service=False)(through)
            doubts = [found for found in restored.registry.restores() if found.slot == through]
            in_doubt = max((through + key[0] - 1 for found in doubts for key in found.doubted), default=None)
            silent = max((found.silent_through for found in doubts), default=0) or None
            members = sum(restored.registry.sizes().values())
            return Restored(end, through, members, in_doubt, silent, restored.changes_lost, moved)
    finally:
        remove_partial(journal)
        unlock_witness(witness)


def _refuse_swapped(backup: Path, journal: Path, witness: WitnessFile) -> None:
    """Refuse a journal in use as the backup, and its backup as the place: both would be journals then, and go on."""
    if witness.before.committed or not read_witness(witness_path(backup)).committed or not journal.exists():
        return
    try:
        with SqliteJournal(journal) as there:
            is_copy = there.head().copied
    except InvalidJournal:
        return
    if is_copy:
        raise StaleJournal(
            f"The first path is a journal with its witness ({backup}), and the second one a backup ({journal.name}).",
            "Swap them; nothing was changed.",
        )


def _check_copy(copy: Path, backup: Path, witness: WitnessFile) -> tuple[str, int, str]:
    """Check pages, hash chain and registry of the backup; return its id, its last slot and the chain hash there."""
    try:
        with SqliteJournal(copy) as source:
            identity = source.identity
        record = witness.before
        if record.committed and record.journal != identity:
            raise StaleJournal(
                f"{backup} is a backup of another journal than the one whose witness is {witness.path.name}.",
                "Nothing was changed. Take a backup of that journal, or restore to another place.",
            )
        with SqliteJournal(copy, held=witness) as source:
            source.check()
            head = source.head()
            return identity, head.committed, head.digest.hex()
    except InvalidJournal:
        problem, fix = f"The backup is damaged ({backup}).", "Take an older backup; nothing was changed."
        raise InvalidJournal(problem, fix, path=str(backup)) from None


def _refuse_sound(journal: Path, identity: str, end: int) -> None:
    """Refuse to replace a journal that is whole and knows as much as the backup, and any other than the backup's."""
    if not journal.exists() or not journal.stat().st_size:
        return
    try:
        with SqliteJournal(journal) as there:
            there.check()
            head, found = there.head(), there.identity
    except InvalidJournal:
        return
    if found != identity:
        problem = "The backup is one of another journal than the one that is there."
        raise StaleJournal(problem, "Check both paths; nothing was changed.")
    if head.committed > end or (head.committed == end and not head.copied):
        raise StaleJournal(
            f"The journal at {journal} is intact and ends with slot {head.committed}; the backup ends with slot {end}.",
            "There is nothing to restore: publish from it (with --released-through SLOT if later slots were released).",
        )


def _announce(witness: WitnessFile, identity: str, through: int, chain: str) -> None:
    """Write the stated slot into the witness, unless it is there already; the witness shows no registry then."""
    before = witness.before
    if before.committed == through and before.journal == identity:
        witness.update()
        return
    versions = before.versions if before.journal == identity else ""
    witness.update(journal=identity, committed=through, chain=chain, before="", revision=NO_REVISION, versions=versions)
