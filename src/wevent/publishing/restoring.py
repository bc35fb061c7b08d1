"""Put a backup in place of a journal that is damaged, missing or older, and settle it (spec 10).

After a crash at any step `publish` refuses what is there, and the same command completes the restore.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from wevent.errors import InvalidJournal, StaleJournal, StorageFailed
from wevent.journal.backup import copy_backup, move_in, put_aside, remove_partial, to_one_file
from wevent.journal.place import JournalPlace, journal_file
from wevent.journal.record import NO_REVISION, Hook, no_hook
from wevent.journal.sqlite_journal import SqliteJournal
from wevent.journal.witness import WitnessFile, read_witness, release_witness, take_witness, witness_path
from wevent.publishing.event_stores import open_sweeper
from wevent.publishing.staleness import plan_settling, settle_stale
from wevent.settings import RestoreOptions as Stated


class Restored(NamedTuple):
    """What a restore came to; public numbers and names of files.

    Attributes:
        backup_through: the last slot of the backup.
        released_through: the last slot that is known or charged now.
        members: number of registered users.
        in_doubt_through: last slot in which users are counted in stricter classes because of the restore. None: no such slot.
        silent_through: last slot in which nobody is counted, because settings may be lost. None: no such slot.
        changes_lost: whether changes of the registry may be lost, and the loss was not accepted.
        put_aside: where the old files are.
    """

    backup_through: int
    released_through: int
    members: int
    in_doubt_through: int | None
    silent_through: int | None
    changes_lost: bool
    put_aside: list[Path]


def restore(backup: Path, journal: JournalPlace, stated: Stated, at: Hook = no_hook) -> Restored:
    """Put a backup in place of a journal and settle it.

    Args:
        backup: only read.
        journal: where the journal is, or was.
        stated: what the operator says.
        at: called at each labelled step.

    Raises:
        JournalLocked: if somebody publishes into the journal.
        StaleJournal: if too little is stated, the backup is of another journal, or there is nothing to restore.
        InvalidInput, InvalidJournal: if the backup is none, damaged or newer.
        StorageFailed: if files cannot be copied or renamed.
    """
    journal = Path(os.path.realpath(journal_file(journal, "wevent restore")))
    if not journal.parent.is_dir():
        raise StorageFailed(
            f"a folder for {journal}", "none", "Make the folder first, or check the path.", path=str(journal)
        )
    witness = take_witness(journal)  # 1. the only writer
    try:
        _refuse_swapped(backup, journal, witness)
        through = _stated_slot(witness, stated, journal)
        stated = replace(stated, released_through=through)
        copy = copy_backup(backup, journal)  # 2. a copy of the backup, which is whole and of this journal
        at("copied")
        identity, end, link = _check_copy(copy, backup, witness)
        _refuse_sound(journal, identity, end)  # 3. what is there is worse than the backup
        _check_stated(copy, witness, stated, end)
        to_one_file(copy)
        at("checked")
        # 4. from here on a missing journal is noticed
        _announce(witness, identity, through, link if through == end else "")
        at("announced")
        moved = put_aside(journal)  # 5. the old one and its write-ahead log are out of the way
        at("put aside")
        move_in(copy, journal)  # 6. the backup is in its place, and knows that it is a copy
        at("moved in")
        return _settle(journal, witness, stated, end, moved, at)  # 7. charged, and open again
    finally:
        remove_partial(journal)
        release_witness(witness)


def _refuse_swapped(backup: Path, journal: Path, witness: WitnessFile) -> None:
    """Refuse a journal in use as the backup, and its backup as the place: both would be journals then, and go on."""
    if witness.before.committed or not read_witness(witness_path(backup)).committed or not journal.exists():
        return
    try:
        with SqliteJournal(journal) as there:
            copied, committed = there.head().copied, there.head().committed
    except InvalidJournal:
        return
    if copied:
        raise StaleJournal(
            "a backup, and then the place of its journal",
            f"a journal with its witness ({backup}), and then a backup ({journal.name})",
            "Swap them; nothing was changed.",
            committed=committed,
            released=None,
        )


def _stated_slot(witness: WitnessFile, stated: Stated, journal: Path) -> int:
    """The last slot that went out, as the operator says it."""
    if stated.released_through is not None:
        return stated.released_through
    known = witness.before.committed
    hint = f"; {witness.path.name} knows of slot {known}, so it is that one or later" if known else ""
    raise StaleJournal(
        "--released-through SLOT, the last slot that ever went out",
        "none",
        "It is the last one in your output, or what whoever received the releases has" + hint + ". A later one costs "
        "accuracy, never privacy.",
        committed=0,
        released=known or None,
    )


def _check_copy(copy: Path, backup: Path, witness: WitnessFile) -> tuple[str, int, str]:
    """Pages, hash chain and registry of the backup; its id, its last slot and the link there."""
    try:
        with SqliteJournal(copy) as source:
            identity = source.identity
        record = witness.before
        if record.committed and record.journal != identity:
            raise StaleJournal(
                f"a backup of the journal whose witness is {witness.path.name}",
                f"one of another journal ({backup})",
                "Nothing was changed. Take a backup of that journal, or restore to another place.",
                committed=0,
                released=record.committed,
            )
        with SqliteJournal(copy, held=witness) as source:
            source.check()
            head = source.head()
            return identity, head.committed, head.digest.hex()
    except InvalidJournal:
        raise InvalidJournal(
            "a whole backup",
            f"a damaged one ({backup})",
            "Take an older backup; nothing was changed.",
            path=str(backup),
        ) from None


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
        raise StaleJournal(
            "a backup of the journal that is there", "one of another journal", "Check both paths; nothing was changed.",
            committed=head.committed, released=None,
        )  # fmt: skip
    if head.committed > end or (head.committed == end and not head.copied):
        raise StaleJournal(
            f"a journal at {journal} that is damaged, missing or behind the backup (slot {end})",
            f"a whole one that knows slot {head.committed}",
            "There is nothing to restore: publish from it (with --released-through SLOT if it is behind what went out).",
            committed=head.committed,
            released=None,
        )


def _check_stated(copy: Path, witness: WitnessFile, stated: Stated, end: int) -> None:
    """Whether what is stated suffices to settle the copy, before anything is moved."""
    through = stated.released_through or 0
    if through < end:
        raise StaleJournal(
            f"--released-through {end} or later, the last slot that the backup knows",
            f"{through}",
            "Say the last slot that ever went out.",
            committed=end,
            released=None,
        )
    with SqliteJournal(copy, held=witness) as source:
        plan_settling(source, through, stated)


def _announce(witness: WitnessFile, identity: str, through: int, chain: str) -> None:
    """Write the stated slot into the witness, unless it is there already; the witness shows no registry then."""
    before = witness.before
    if before.committed == through and before.journal == identity:
        witness.update()
        return
    versions = before.versions if before.journal == identity else ""
    witness.update(journal=identity, committed=through, chain=chain, before="", revision=NO_REVISION, versions=versions)


def _settle(journal: Path, witness: WitnessFile, stated: Stated, end: int, moved: list[Path], at: Hook) -> Restored:
    through = stated.released_through or 0
    with SqliteJournal(journal, held=witness) as restored:
        settle_stale(restored, stated)
        at("settled")
        with ExitStack() as stack:
            open_sweeper(journal, stack, is_live=False, is_service=False)(through)
        doubts = [restore for restore in restored.registry.restores() if restore.slot == through]
        in_doubt = max((through + key[0] - 1 for restore in doubts for key in restore.doubted), default=None)
        silent = max((restore.silent_through for restore in doubts), default=0) or None
        members = sum(restored.registry.sizes().values())
        return Restored(end, through, members, in_doubt, silent, restored.changes_lost, moved)
