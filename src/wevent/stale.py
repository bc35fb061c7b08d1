"""Is this the journal, or an old copy of it? A stale journal must never draw a slot twice (spec 10).

What can be noticed: a copy made by `wevent backup` is marked inside; the side file of the lock remembers the last slot
committed here and the hash chain at it; and an output file may hold slots that the journal does not know. What cannot:
a plain copy of the file, published from in another place where neither side file nor output is. Then only the operator
knows.
"""

from __future__ import annotations

from wevent.errors import StaleJournal
from wevent.journal.sqlite import SqliteJournal
from wevent.publishing import charge_elsewhere


def settle_stale(journal: SqliteJournal, released_through: int | None) -> int:
    """Refuse a stale journal, or settle it as the operator says; returns how many slots were charged for elsewhere.

    Args:
        journal: opened for writing.
        released_through: the last slot that ever went out, as the operator states it.

    Raises:
        StaleJournal: if the journal is, or may be, behind what was released and nothing (or too little) is stated.
    """
    head = journal.load().head  # a damaged journal is said to be damaged, not stale
    known = _known_released(journal, head.committed)
    if released_through is None:
        if head.copied:
            raise _stale("a journal", f"a backup that ends with slot {head.committed}", head.committed, None)
        if known > head.committed:
            raise _stale(
                f"a journal that knows slot {known}", f"one that ends with {head.committed}", head.committed, known
            )
        return 0
    if released_through < known:
        raise _stale(f"--released-through {known} or later", f"{released_through}", head.committed, known)
    charged = charge_elsewhere(journal, released_through)
    if head.copied or charged:
        journal.settle()
    journal.mark()
    return charged


def _known_released(journal: SqliteJournal, committed: int) -> int:
    """The last slot that the side file of the lock saw committed, 0 if it knows nothing of this journal.

    Raises:
        StaleJournal: if it saw another release for a slot than the journal has: two copies went on separately.
    """
    mark = None if journal.lock is None else journal.lock.before
    if mark is None or mark.journal != journal.identity:
        return 0
    link = journal.link_at(mark.committed)
    if link is not None and link.hex() != mark.link:
        raise StaleJournal(
            f"the journal that committed slot {mark.committed} here",
            "a copy that went on by itself",
            "Two copies drew the same slots, so their epsilons add up: go on with the journal that was used here.",
            committed=committed,
            released=mark.committed,
        )
    return mark.committed


def _stale(expected: str, received: str, committed: int, released: int | None) -> StaleJournal:
    return StaleJournal(
        expected,
        received,
        "Say through which slot releases ever went out: publish --released-through SLOT. Those slots are charged with "
        "the most they could have cost and never drawn again.",
        committed=committed,
        released=released,
    )
