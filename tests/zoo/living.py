"""Bugs of deployments that live for long: crashes, backups, memberships (spec 10)."""

from __future__ import annotations

from typing import Any

from tests.support.broken_lives import BROKEN
from tests.zoo.bug import Bug, Subject, Undone, together
from wevent.journal.record import Batch
from wevent.people.membership import Boundary
from wevent.publishing import staleness
from wevent.publishing.loop import Publication


def _emitted_first() -> Undone:
    """Releases go out before they are stored: a crash in between, and the slot is drawn again."""
    commit = Publication._commit

    def emit_and_commit(self: Publication, batch: Batch) -> bool:
        self._output.emit(batch.records)
        self._running.at("emitted")  # a crash here: nothing is written ahead
        return commit(self, batch)

    return together((Publication, "_commit", emit_and_commit))


def _left_and_forgotten() -> Undone:
    """The rows of a user who leaves are deleted."""
    apply = Boundary.apply

    def forget(self: Boundary, history: Any, change: Any) -> Any:
        return [] if change.action == "remove" else apply(self, history, change)

    return together((Boundary, "apply", forget))


def _nothing_elsewhere(journal: Any, through: int) -> Batch:
    """A backup goes on where it ends, whatever the operator says was released since."""
    return Batch((), None, None, through)


def _bug(name: str, sentence: str, origin: str, undone: Undone, lives: tuple[int, ...], *audits: str) -> Bug:
    return Bug(
        name=name,
        sentence=sentence,
        origin=origin,
        broken=Subject(undone=undone, lives=lives),
        healthy=Subject(lives=lives),
        audits=audits,
    )


LIVING = (
    _bug(
        "redraw after a crash",
        "A release goes out before it is stored; after a crash in between its slot is drawn again.",
        "emit, then commit: the usual order of things",
        _emitted_first(),
        (8,),
        "lives",
    ),
    _bug(
        "stale backup resumed, memberships forgotten",
        "Slots released after the backup are charged, but users who changed after it are counted as before it.",
        "section 15 of the specification: a restore leaves every class in doubt",
        together(BROKEN["a restore leaves nothing in doubt"]),
        (0, 8),
        "journal",
        "lives",
    ),
    _bug(
        "stale backup resumed, slots drawn again",
        "A backup goes on with the slot after its own last one, although that slot went out long ago.",
        "a restore like that of any other database",
        together((staleness, "_charge_elsewhere", _nothing_elsewhere)),
        (),
        "lives",
    ),
    _bug(
        "earlier choice dropped by leave-and-rejoin",
        "The rows of a user who leaves are deleted. The user rejoins with a looser requirement and is counted in its class.",
        "section 15 of the specification: a requirement stays in force for one window after leaving",
        _left_and_forgotten(),
        (0,),
        "journal",
        "lives",
    ),
    _bug(
        "unregistered users who were members",
        "A user who left is counted as an unregistered user while the earlier requirement is in force.",
        "section 15 of the specification; a repair: unregistered users",
        together(BROKEN["a known id is unregistered"]),
        (6, 0),
        "journal",
        "lives",
    ),
)
