"""The audits of deployments: journals, whole lives, pairs of runs, files that are left, the moments of releases."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count, islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tests.support.adversary import CELLS, ForcedNoise
from tests.support.delayed_source import CLOCK, SECOND, DelayedSource
from tests.support.delayed_source import Wall as WorkedClock
from tests.support.live_events import pipe_source
from tests.support.lives import Life
from tests.support.neighbours import scripted
from tests.support.neighbours.checking import compare, main_difference
from tests.support.neighbours.pairs import make_pair, pairs_of
from tests.support.streams import DAY, ScriptedInbox, Wall, settings
from tests.support.synthetic import QuietSource, make_journal, make_terms
from tests.zoo.bug import Persistence, Subject, replaced
from wevent.core.requirements import Population, Requirement
from wevent.counting.roster import Counts, Roster
from wevent.events.segment_log import SegmentLog
from wevent.journal import SqliteJournal
from wevent.outputs import KeptOutput
from wevent.people.classes import find_corner
from wevent.people.membership import Change
from wevent.publishing import loop
from wevent.publishing.loop import DueMoments, Publication, Running
from wevent.streams import SlotClock
from wevent.streams.source import SlotCounts
from wevent.verification import verify_journal

Seen = str | None


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as place:
        yield Path(place)


# --- journal ----------------------------------------------------------------------------------------------------------


class _Decided(ForcedNoise):
    """Decisions come from a script; what the audit says of seeds is not asked here."""

    seeded = False

    def __init__(self, script: str) -> None:
        super().__init__()
        self._script = iter(script)

    def next_slot(self) -> None:
        self.publish = next(self._script) == "p"


class _Everybody(QuietSource):
    """Everybody is in the first cell."""

    def __init__(self, end: int, noise: _Decided | None) -> None:
        self._end, self._noise = end, noise

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        for slot in range(first, min(first + most, self._end + 1)):
            if self._noise is not None:
                self._noise.next_slot()
            matrix = np.zeros((len(roster.population), CELLS), dtype=np.int64)
            matrix[:, 0] = roster.population.sizes
            yield SlotCounts(slot, Counts(matrix), {"slot": slot, "time_unit": "s"})


UNAIDED = 60  # slots with decisions by chance


def journal(subject: Subject, looking: Persistence, seed: int) -> Seen:
    """`wevent verify` over the journal of a run with forced decisions, or of whole lives."""
    if subject.mechanism is None:
        return next((found for found in map(_of_audit, _lives(subject, looking, seed)) if found), None)
    assert subject.population is not None
    script = subject.script if subject.aided else "".join(Random(seed).choices("ps", k=UNAIDED * bool(subject.script)))
    noise = _Decided(script) if script else None
    keys = [one.key for one in subject.population.classes]
    corner = Requirement.from_nano(*find_corner(keys))
    live = Population({corner: 0, **dict(subject.population.items())})
    publisher = subject.mechanism.make(live, CELLS, noise)
    with _folder() as folder:
        path = folder / "run.journal"
        with SqliteJournal(path, write=True) as written:
            written.begin(make_terms(mechanism="pbd", cells=CELLS, declared=keys))
            for one, size in subject.population.items():
                written.registry.ask(Change("set", f"{one}{user}", (one.window, one.nano)) for user in range(size))
            source = _Everybody(len(script) or 4, noise)
            with replaced(loop, "rebuild_publisher", lambda loaded, epochs, noise: publisher):
                Publication(written, source, KeptOutput()).run()
        problems = verify_journal(path).violations
    return problems[0]["problem"] if problems else None


def _of_audit(life: Life) -> Seen:
    return life.findings[0]["problem"] if life.findings else None


# --- lives ------------------------------------------------------------------------------------------------------------


def lives(subject: Subject, looking: Persistence, seed: int) -> Seen:
    """Whole lives with crashes, backups, restores and registrations, added up by an accountant of its own."""
    return next((found for found in map(_of_accountant, _lives(subject, looking, seed)) if found), None)


SHORT, LONG = 60, 150  # slots of a life: as many as it takes, if there is time


def _lives(subject: Subject, looking: Persistence, seed: int) -> Iterator[Life]:
    """Lives that begin with those in which something happens, one after the other until the time is over."""
    until, number, first = time.monotonic() + looking.seconds, 0, subject.lives if subject.aided else ()
    while number < max(1, len(first), looking.rounds) or time.monotonic() < until:
        chosen = first[number] if number < len(first) else 1_000 * seed + number
        with _folder() as folder:
            life = Life(folder, chosen)
            life.broken = ""  # type: ignore[attr-defined]
            try:
                life.live(SHORT)
                if not life.accountant.overspent() and (number < looking.rounds or time.monotonic() < until):
                    life.live(LONG)
            except AssertionError as found:  # the world outside: a slot went out twice, with other numbers
                life.broken = str(found).splitlines()[0]  # type: ignore[attr-defined]
            yield life
        number += 1


def _of_accountant(life: Any) -> Seen:
    lost = life.accountant.overspent()
    return life.broken or ("a window of somebody lost more than its ε" if lost else None)


# --- pairs of runs ----------------------------------------------------------------------------------------------------


OF_A_KIND = 2  # pairs of the kind of record that a subject is about, before any other


def pairs(subject: Subject, looking: Persistence, seed: int) -> Seen:
    """Runs with one person's records and without: everything that can be seen must be the same."""
    until = time.monotonic() + looking.seconds
    scripted.register()
    try:
        with _folder() as folder:
            chosen = [islice(pairs_of(*records), OF_A_KIND) for records in subject.records * subject.aided]
            least = max(OF_A_KIND * len(chosen), looking.rounds)
            for number, pair in enumerate(chain(*chosen, map(make_pair, count(1_000 * seed)))):
                if number >= least and time.monotonic() >= until:
                    break
                if found := compare(pair, folder)[1]:
                    return f"{main_difference(found)} differs"
    finally:
        scripted.unregister()
    return None


# --- files ------------------------------------------------------------------------------------------------------------

VICTIM = "victim-of-slot-two"


def files(subject: Subject, looking: Persistence, seed: int) -> Seen:
    """Every byte of every file is searched for somebody's id when the slot is over; later slots have events too."""
    wall, script = Wall(), list[bytes | float]()
    for second, user in ((70, VICTIM), (150, "user-3"), (210, "user-4"), (270, "user-5")):
        event = b'{"time": %d, "user": "%s", "cell": 1}\n' % (DAY // 1_000_000 + second, user.encode())
        script += [float(second), event]
    script.append(320.0)
    clock = SlotClock(DAY, 60_000_000)
    with _folder() as folder:
        opened = settings(cells=3, grace_us=60_000_000)
        inbox, store = ScriptedInbox(script, wall, leave_open=True), SegmentLog(folder / "run.journal.events")
        source = pipe_source(opened, clock, 5, inbox=inbox, now_us=wall, store=store)
        with make_journal(folder / "run.journal", origin_us=DAY, cells=3) as written:
            Publication(written, source, KeptOutput(), running=Running(last=4)).run()
            assert list(folder.rglob("*.events")), "events of open slots are kept"
            for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                data = path.read_bytes()
                if VICTIM.encode() in data or VICTIM.encode() in data.replace(b"\0\0\0", b""):
                    return f"an id is in {path.name} two slots later"
    return None


# --- clock ------------------------------------------------------------------------------------------------------------


def clock(subject: Subject, looking: Persistence, seed: int) -> Seen:
    """When releases go out, by an injected clock on which counting a person takes a second, with somebody and without."""
    present = {slot: int(number) for slot, number in enumerate(np.random.default_rng(seed).integers(0, 4, 6), start=1)}
    alone = {**present, 3: present[3] + 1}
    moments = [_moments(one) for one in (present, alone)]
    for (slot, here), (_, there) in zip(*moments, strict=True):
        if here != there:
            return f"the release of slot {slot} goes out {abs(here - there)} s later when one more is counted"
    return None


def _moments(seconds_of: dict[int, int]) -> list[tuple[int, int]]:
    wall, told = WorkedClock(), []
    with _folder() as folder, make_journal(folder / "run.journal") as written:
        running = Running(
            last=len(seconds_of),
            due=DueMoments(CLOCK, 5 * SECOND, wall),
            progress=lambda slot, last: told.append((slot, wall.us // SECOND)),
        )
        source = DelayedSource(len(seconds_of), wall, seconds_of)
        Publication(written, source, KeptOutput(), running=running).run()
    return told
