"""Two deployments that a life runs in: the parts of the publisher in memory, and a journal in a file.

Both run the code of the product: rows of users, rosters, classes, publisher, and the settling of a restored backup.
"""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from tests.support.synthetic import QuietSource
from tests.support.transitions.accountant import Key, RecordingNoise
from wevent.core.arrays import IntArray
from wevent.counting.roster import Counts, Roster
from wevent.counting.string_column import StringColumn
from wevent.journal import SqliteJournal, Terms, back_up
from wevent.journal.rebuild import new_publisher
from wevent.journal.record import Head, Loaded, Record, Revision
from wevent.journal.terms import Epoch, hash_versions
from wevent.journal.witness import WitnessRecord
from wevent.people.classes import ClassHistory, Restore
from wevent.people.membership import (
    Boundary,
    Change,
    KeyColumn,
    MemberColumns,
    Membership,
    TailColumns,
    drop_expired,
    find_current,
)
from wevent.publisher.publisher import Publisher
from wevent.publishing.loop import MemberView, Publication, Running
from wevent.publishing.staleness import plan_settling, settle_stale
from wevent.settings import RestoreOptions
from wevent.streams.source import SlotCounts
from wevent.verification import verify_journal

CELLS = 2
_SALT = bytes(32)
_NOTHING = WitnessRecord()
_FIRST = Revision(0, "")
_NAME = "run.journal"
_WITNESS = "run.journal.witness"


class Released(NamedTuple):
    """A slot that was released.

    Attributes:
        slot: the slot.
        roster: the roster that it was counted with.
        losses: exact loss of every class, by requirement.
    """

    slot: int
    roster: Roster
    losses: dict[Key, Any]


class System(Protocol):
    """A deployment."""

    def begin(self, terms: Terms) -> None:
        """Start a configuration version with the next slot."""

    def ask(self, changes: list[Change]) -> None:
        """Ask for changes at the next slot boundary."""

    def step(self, policy: object | None) -> Released:
        """Release a slot; a policy takes the place of the mechanism's own."""

    def backup(self) -> Any:
        """Return a backup."""

    def restore(self, backup: Any, stated: RestoreOptions, *, has_witness: bool) -> None:
        """Replace the journal by a backup and settle it; the witness record survives or is lost."""


def make_counts(slot: int, sizes: IntArray) -> IntArray:
    """Return counts that jump from slot to slot, so that mechanisms publish."""
    chance = random.Random(slot)
    share = chance.random()
    return np.array([[int(size * share), int(size * (1 - share))] for size in sizes.tolist()], dtype=np.int64)


def _put_policy(publisher: Publisher, policy: object | None) -> None:
    if policy is not None:
        pieces: Any = publisher._pieces
        publisher._pieces = replace(pieces, policy=policy, planner=None, rule=None)


def _to_losses(publisher: Publisher, noise: RecordingNoise) -> dict[Key, Any]:
    classes = publisher.population.classes
    return dict(zip([one.key for one in classes], noise.take_losses(len(classes)), strict=True))


# --- in memory --------------------------------------------------------------------------------------------------------


@dataclass
class PlainRegistry:
    """Rows of users in a dictionary: what `MemberView` reads of a registry."""

    salt: bytes = _SALT
    by_user: dict[str, list[Membership]] = field(default_factory=dict)
    queue: list[Change] = field(default_factory=list)
    settled: tuple[Restore, ...] = ()
    state: Revision = _FIRST
    states: Iterator[int] = field(default_factory=itertools.count)

    def copied(self) -> PlainRegistry:
        rows = {user: list(rows) for user, rows in self.by_user.items()}
        return replace(self, by_user=rows, queue=list(self.queue))

    def check(self) -> None: ...

    def revision(self) -> Revision:
        return self.state

    def restores(self) -> tuple[Restore, ...]:
        return self.settled

    def pending(self) -> int:
        return len(self.queue)

    def apply(self, slot: int, classes: ClassHistory, most: int | None = None) -> int:
        kept = {user: drop_expired(rows, classes, slot) for user, rows in self.by_user.items()}
        boundary, number, changed = Boundary(classes, slot, self.salt), len(self.queue), False
        for change in self.queue:
            before = kept.get(change.user, [])
            kept[change.user] = boundary.apply(before, change)
            changed |= kept[change.user] != before
        self.queue = []
        self.by_user = {user: rows for user, rows in kept.items() if rows}
        if changed:
            self.state = Revision(self.state.number + 1, f"{next(self.states)}")
        return number

    def next_expiry(self, classes: ClassHistory) -> int | None:
        ends = (classes.kept_through(row.window, row.last) + 1 for row in self._rows() if row.last is not None)
        return min(ends, default=None)

    def members(self) -> list[Membership]:
        return [row for row in self._rows() if row.last is None]

    def former_ids(self) -> list[str]:
        return sorted({rows[0].user for rows in self.by_user.values() if find_current(rows) is None})

    def rows(self) -> MemberColumns:
        held = self.members()
        return MemberColumns(StringColumn.from_texts([one.user for one in held]), KeyColumn.of(one.key for one in held))

    def tails(self, slot: int) -> TailColumns:
        ended = [(row, row.last) for row in self._rows() if row.last is not None and slot < row.last + row.window]
        lasts = np.array([last for _, last in ended], dtype=np.int64)
        return TailColumns(
            StringColumn.from_texts([row.user for row, _ in ended]), KeyColumn.of(row.key for row, _ in ended), lasts
        )

    def turnover(self, slot: int) -> int:
        joined = {row.user for row in self._rows() if row.first == slot}
        left = {row.user for row in self._rows() if row.last == slot - 1 and row.first}
        return len(joined ^ left)

    def _rows(self) -> Iterator[Membership]:
        return itertools.chain.from_iterable(self.by_user.values())


@dataclass(frozen=True)
class PlainBackup:
    """A backup of a deployment in memory, read as `plan_settling` reads a journal."""

    registry: PlainRegistry
    versions: tuple[Epoch, ...]
    publisher: bytes
    slot: int
    witness: WitnessRecord = _NOTHING
    identity: str = "memory"
    name: str = "memory"
    witness_name: str = "memory"

    def load(self) -> Loaded:
        return Loaded(self.head(), self.publisher, [], None)

    def head(self) -> Head:
        committed = self.slot - 1
        return Head(committed, committed, None, b"", self.versions[-1], True, 1, ())

    def epochs(self) -> list[Epoch]:
        return list(self.versions)

    def witnessed(self) -> WitnessRecord:
        return self.witness

    def chain_at(self, slot: int) -> bytes | None:
        return None

    def is_elsewhere(self, slot: int) -> bool:
        return False


class MemorySystem:
    """A deployment in memory.

    Args:
        noise: draws and records.
    """

    def __init__(self, noise: RecordingNoise) -> None:
        self._noise = noise
        self._registry = PlainRegistry()
        self._versions: tuple[Epoch, ...] = ()
        self._publisher: Publisher | None = None
        self._view: MemberView | None = None
        self._roster: Roster | None = None

    def begin(self, terms: Terms) -> None:
        before = self._publisher
        first = 1 if before is None else before.slot
        self._versions += (Epoch(len(self._versions) + 1, first, terms),)
        self._publisher = new_publisher(self._versions, self._noise, before)
        self._view = self._roster = None

    def ask(self, changes: list[Change]) -> None:
        self._registry.queue += changes

    def step(self, policy: object | None) -> Released:
        publisher, view = self._publisher, self._view or MemberView(self._as_any(), list(self._versions))
        assert publisher is not None
        self._view = view
        slot = publisher.slot
        roster, _, turnover, _ = view.at(slot)
        if roster is not self._roster:  # as `Publication` does it
            turnover += 0 if self._roster is None else abs(roster.unknown_limit - self._roster.unknown_limit)
            if turnover or roster.population != publisher.population:
                publisher.update(roster.population, turnover=turnover)
            self._roster = roster
        _put_policy(publisher, policy)
        publisher.step(make_counts(slot, publisher.population.sizes))
        return Released(slot, roster, _to_losses(publisher, self._noise))

    def backup(self) -> PlainBackup:
        assert self._publisher is not None
        return PlainBackup(self._registry.copied(), self._versions, self._publisher.state(), self._publisher.slot)

    def restore(self, backup: PlainBackup, stated: RestoreOptions, *, has_witness: bool) -> None:
        if has_witness:
            assert stated.released_through is not None
            versions = hash_versions(self._versions, self._registry.restores())
            witness = WitnessRecord(
                journal="memory",
                committed=stated.released_through,
                revision=self._registry.revision(),
                versions=versions,
            )
            backup = replace(backup, witness=witness)
        plan = plan_settling(backup, stated)  # type: ignore[arg-type]
        assert plan is not None
        self._registry, self._versions = backup.registry.copied(), backup.versions
        if plan.restore is not None:
            self._registry.settled += (plan.restore,)
        self._publisher = Publisher.restore(plan.batch.state or backup.publisher, self._noise)
        self._view = self._roster = None

    def _as_any(self) -> Any:
        return self._registry


# --- a journal in a file ----------------------------------------------------------------------------------------------


class _Source(QuietSource):
    """Counts of `make_counts`; keeps the roster it was asked with."""

    roster: Roster

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        self.roster = roster
        yield SlotCounts(first, Counts(make_counts(first, roster.population.sizes)), {"slot": first})


class _Output:
    """Nobody reads the releases."""

    def check(self, journal: Any, committed: int) -> None: ...

    def repair(self, journal: Any, committed: int, emitted: int) -> int:
        return 0

    def emit(self, records: Iterable[Record]) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...


class FileSystem:
    """A deployment with a journal in a file.

    Args:
        noise: draws and records.
        folder: for the journal and its backups.

    Attributes:
        reported: what the verifier reported first, in whichever slot; not that the noise is seeded.
    """

    def __init__(self, noise: RecordingNoise, folder: Path) -> None:
        self._noise, self._folder = noise, folder
        self._source = _Source()
        self._backups = itertools.count()
        self._journal = SqliteJournal(folder / _NAME, write=True)
        self._publication: Publication | None = None
        self.reported: list[dict[str, Any]] = []

    def begin(self, terms: Terms) -> None:
        self._journal.begin(terms)
        self._publication = None

    def ask(self, changes: list[Change]) -> None:
        self._journal.registry.ask(changes)

    def step(self, policy: object | None) -> Released:
        if self._publication is None:
            self._publication = Publication(self._journal, self._source, _Output(), noise=self._noise)
        publication = self._publication
        slot = publication.publisher.slot
        publication._running = Running(last=slot)
        _put_policy(publication.publisher, policy)
        publication.run()
        self._verify()
        return Released(slot, self._source.roster, _to_losses(publication.publisher, self._noise))

    def backup(self) -> Path:
        target = self._folder / f"backup{next(self._backups)}"
        back_up(self._journal.path, target)
        return target

    def restore(self, backup: Path, stated: RestoreOptions, *, has_witness: bool) -> None:
        self.close()
        for ending in ("", "-wal", "-shm"):
            (self._folder / (_NAME + ending)).unlink(missing_ok=True)
        if not has_witness:
            (self._folder / _WITNESS).unlink()
        shutil.copy(backup, self._folder / _NAME)
        self._journal = SqliteJournal(self._folder / _NAME, write=True)
        settle_stale(self._journal, stated)

    def close(self) -> None:
        self._publication = None
        self._journal.close()

    def _verify(self) -> None:
        """Collect what the verifier reports. Rows are dropped when they are no longer in force, so every slot counts."""
        if not self.reported:
            found = verify_journal(self._folder / _NAME).violations
            self.reported = [one for one in found if not one["problem"].startswith("noise was seeded")]


MakeSystem = Callable[[RecordingNoise], System]
