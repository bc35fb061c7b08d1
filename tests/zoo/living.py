"""Bugs of deployments that live for long: crashes, backups, memberships (spec 10)."""

from __future__ import annotations

from typing import Any

from tests.support.broken_lives import BROKEN
from tests.zoo.bug import Bug, Subject, Undone, together
from wevent.journal.contents import Batch
from wevent.people.histories import Boundary
from wevent.publishing import staleness
from wevent.publishing.loop import Publication


def _emitted_first() -> Undone:
    """Releases go out before they are stored: a crash in between, and the slot is drawn again."""
    commit = Publication._commit

    def emit_and_commit(self: Publication, batch: Batch) -> bool:
        self._output.emit(batch.records)
        return commit(self, batch)

    return together((Publication, "_commit", emit_and_commit))


def _left_and_forgotten() -> Undone:
    """Who leaves is forgotten, and comes back as somebody new."""
    after = Boundary.after

    def forgetting(self: Boundary, history: Any, change: Any) -> Any:
        return [] if change.action == "remove" else after(self, history, change)

    return together((Boundary, "after", forgetting))


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
        (19,),
        "lives",
    ),
    _bug(
        "stale backup resumed, memberships forgotten",
        "What was released after the backup is charged, but who joined or changed after it goes on as before it.",
        "▲ of section 10 of the specification; a repair (`tests/mutants`: restore)",
        together(BROKEN["a restore holds nobody out"]),
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
        "hold-out skipped by leave-and-rejoin",
        "Who leaves is deleted; who comes back with another requirement counts at once.",
        "▲ of section 10 of the specification: memberships are kept after leaving",
        _left_and_forgotten(),
        (3,),
        "lives",
        "journal",
    ),
    _bug(
        "strangers who were members",
        "A member who left, or waits, is counted as a stranger meanwhile.",
        "▲ of section 10 of the specification; a repair (`tests/mutants`: strangers)",
        together(BROKEN["whom the registry knows is a stranger"]),
        (13,),
        "lives",
        "journal",
    ),
)
