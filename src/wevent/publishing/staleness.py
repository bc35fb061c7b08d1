"""Is this the journal, or an old copy of it? A stale journal must never draw a slot twice (spec 10).

A copy made by `wevent backup` is marked inside; the side file of the lock remembers the last slot committed here and the
hash chain at it; and an output file may hold slots that the journal does not know. A journal with slots and without its
side file may be a copy of another place: then only the operator knows, and it stays closed until they say. What cannot be
noticed: journal and side file copied, or rolled back, together.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from wevent.core.requirements import Population, Requirement
from wevent.errors import InvalidPopulation, StaleJournal
from wevent.journal.contents import Batch
from wevent.journal.contract import Journal
from wevent.journal.place import is_address
from wevent.journal.rebuild import rebuild_publisher
from wevent.journal.record import Group, Record
from wevent.people.holdout import Restore
from wevent.publisher.publisher import Publisher

_log = logging.getLogger("wevent.publishing.staleness")


class Settled(NamedTuple):
    """What settling came to: slots charged that were released elsewhere, and members who have to wait."""

    slots: int
    held_out: int


class Settlement(NamedTuple):
    """What settling would store: the slots released elsewhere, charged, and what is known of memberships there."""

    batch: Batch
    restore: Restore | None


def settle_stale(journal: Journal, released_through: int | None, widest_window: int | None = None) -> Settled:
    """Refuse a stale journal, or settle it as the operator says.

    Args:
        journal: opened for writing.
        released_through: the last slot that ever went out, as the operator states it.
        widest_window: the widest window that was ever declared, epochs after the backup included; needed where the side
            file does not reach that slot.

    Raises:
        StaleJournal: if the journal is, or may be, behind what was released and nothing (or too little) is stated.
    """
    plan = plan_or_refuse(journal, released_through, widest_window)
    return Settled(0, 0) if plan is None else store_settlement(journal, plan)


def plan_or_refuse(journal: Journal, released_through: int | None, widest_window: int | None) -> Settlement | None:
    """What is to be stored before a journal may go on, None if nothing is; stores nothing.

    Raises:
        StaleJournal: as of `settle_stale`.
    """
    if released_through is not None:
        return plan_settling(journal, released_through, widest_window)
    head = journal.load().head  # a damaged journal is said to be damaged, not stale
    known = known_released(journal, head.committed, stated=head.copied)
    refuse_stale(journal, head.committed, known, copied=head.copied)
    return None


def store_settlement(journal: Journal, plan: Settlement) -> Settled:
    """Store what was planned."""
    batch, restore = plan
    held = 0
    if journal.head().copied or batch.records:
        held = journal.take_over(batch, restore)
    journal.mark(forced=True)
    if batch.records:
        first, last = batch.records[0].slot, batch.records[-1].slot
        _log.warning(
            "slots %d to %d were released elsewhere: charged, not drawn; %d members wait for that", first, last, held
        )
    return Settled(len(batch.records), held)


def plan_settling(journal: Journal, released_through: int, widest_window: int | None = None) -> Settlement:
    """What `settle_stale` would store; stores nothing.

    Raises:
        StaleJournal: if too little is stated.
    """
    head = journal.load().head
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
    batch = _charge_elsewhere(journal, released_through)
    return Settlement(batch, _restore(journal, batch, widest_window) if batch.records else None)


def refuse_stale(journal: Journal, committed: int, known: int, *, copied: bool) -> None:
    """Refuse a backup, and a journal that knows fewer slots than were released.

    Raises:
        StaleJournal: if it is one.
    """
    if copied:
        raise _stale(journal, "a journal", f"a backup that ends with slot {committed}", committed, None)
    if known > committed:
        raise _stale(journal, f"a journal that knows slot {known}", f"one that ends with {committed}", committed, known)


def _restore(journal: Journal, batch: Batch, widest_window: int | None) -> Restore:
    """What is known of memberships in slots released elsewhere, and which classes are charged for them.

    Raises:
        StaleJournal: if nobody says how wide windows were there.
    """
    through, widest = batch.records[-1].slot, max(epoch.terms.widest for epoch in journal.epochs())
    classes = batch.records[-1].group.population.classes
    charged = frozenset(held.key for held in classes)
    proof = journal.proof(through)
    if proof is not None:
        return replace(proof, widest=max(proof.widest, widest, widest_window or 0), charged=charged)
    if widest_window is None:
        raise StaleJournal(
            f"a side file of this journal that reaches slot {through}, or --widest-window",
            "neither",
            "Memberships decided after the backup are lost, so everybody waits the widest window that was ever declared: "
            "state it in slots (--widest-window SLOTS), epochs after the backup included.",
            committed=journal.head().committed,
            released=through,
        )
    return Restore(through, max(widest, widest_window), 0, False, None, charged)


def known_released(journal: Journal, committed: int, *, stated: bool = False) -> int:
    """The last slot that the mark saw committed, 0 if it knows nothing of this journal.

    Args:
        journal: opened for reading or writing.
        committed: its last slot.
        stated: whether the operator says through which slot releases went out.

    Raises:
        StaleJournal: if it saw another release for a slot than the journal has: two copies went on separately. Or if
            nobody can tell whether this is the journal or a copy, and nothing is stated: the side file is not there,
            or the journal no longer keeps the slot that it knows.
    """
    mark = journal.marked()
    if mark.journal != journal.identity:
        if committed and not stated:
            raise _stale(
                journal, f"the side file of this journal beside it ({journal.mark_name})", "none", committed, None
            )
        return 0
    link = journal.link_at(mark.committed)
    if link is None and 0 < mark.committed < committed and not stated:
        raise _stale(
            journal, f"a journal that keeps slot {mark.committed}", "one that dropped it", committed, mark.committed
        )
    if link is not None and link.hex() != mark.link and not journal.is_elsewhere(mark.committed):
        raise StaleJournal(
            f"the journal that committed slot {mark.committed} here",
            "a copy that went on by itself",
            "Two copies drew the same slots, so their epsilons add up: go on with the journal that was used here.",
            committed=committed,
            released=mark.committed,
        )
    return mark.committed


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
    held = (Requirement.from_nano(*member.key) for member in journal.registry.members())
    publisher.update(Population({**dict.fromkeys(_charged_rows(publisher, held), 0), **sizes}), turnover=0)
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


def _charged_rows(publisher: Publisher, held: Iterable[Requirement]) -> list[Requirement]:
    """Classes that may have had members elsewhere: all the ledger knows and all that people hold or wait for.

    As far as the mechanism can take them: a class that it cannot waits a window (`Restore.charged`).
    """
    known = []
    for row in sorted({*publisher.ledger.rows, *held}):
        try:
            publisher.check_population(Population({row: 0}))
        except InvalidPopulation:
            continue
        known.append(row)
    return known
