"""The whole life of a journal, at random: joins, leaves, changes, erasures, unregistered users, versions, crashes, restores.

Everything is done to a real journal file through the library; what users lost is added up by `Accountant`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.accountant import Accountant, Key
from tests.support.synthetic import QuietSource, want
from wevent.counting.roster import Counts, Roster
from wevent.errors import StaleJournal
from wevent.journal import SqliteJournal, Terms, back_up
from wevent.journal.record import Record
from wevent.journal.terms import hash_versions
from wevent.outputs.lines import ndjson_line
from wevent.people.membership import Change
from wevent.publishing.importing import import_users
from wevent.publishing.loop import Publication, Running
from wevent.publishing.staleness import refuse_lost_changes, settle_stale
from wevent.settings import RestoreOptions
from wevent.streams.source import SlotCounts
from wevent.verification import verify_journal

KEYS: tuple[Key, ...] = ((3, 2 * 10**9), (5, 10**9), (9, 4 * 10**8), (14, 3 * 10**9), (25, 2 * 10**8))
WIDER: Key = (40, 10**9)
NEW: tuple[Key, ...] = ((25, 10**8), (7, 8 * 10**8), (11, 5 * 10**9), WIDER)
"""Requirements that a later version may declare."""
MECHANISMS = ("pbu", "pft", "uniform", "pba", "sample", "pbd", "pft")
STEPS = (
    "stepped", "written ahead", "began", "slots stored", "version stored", "position stored", "committed", "emitted",
)  # fmt: skip
ENDINGS = ("", "-wal", "-shm", ".witness")


class Crash(Exception):
    pass


class LifeSource(QuietSource):
    """Nobody's events; asks the roster where each id would count, and the registry what each id holds."""

    def __init__(self, users: list[str]) -> None:
        self.users = users
        self.journal: SqliteJournal | None = None
        self.held: dict[int, dict[str, Key]] = {}
        self.counted: dict[
            int, dict[str, tuple[Key, int]]
        ] = {}  # the class, and how many records of it one user changes

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        assert self.journal is not None
        held = {member.user: member.key for member in self.journal.registry.members()}
        unregistered = self.journal.head().epoch.classes.unregistered
        counted = self._where(roster, set(held))
        if unregistered is not None:  # what is promised to a user who is counted so is twice the budget of the class
            window, nano = unregistered
            held |= {user: (window, 2 * nano) for user, (_, times) in counted.items() if times == 2}
        for slot in range(first, first + most):
            self.held[slot], self.counted[slot] = held, counted
            yield SlotCounts(
                slot, Counts(np.zeros((len(roster.population), 2), dtype=np.int64)), {"slot": slot, "time_unit": "s"}
            )

    def _where(self, roster: Roster, members: set[str]) -> dict[str, tuple[Key, int]]:
        where = {}
        for user in self.users:
            rows = np.flatnonzero(roster.count([user], [0], 2).matrix[:, 0])
            if len(rows):
                where[user] = roster.population.classes[int(rows[0])].key, 1 if user in members else 2
        return where


class LifeOutput:
    """The world that sees the releases."""

    def __init__(self, source: LifeSource, accountant: Accountant) -> None:
        self._source, self._accountant = source, accountant
        self.lines: dict[int, bytes] = {}

    def repair(self, journal: Any, committed: int, emitted: int) -> int:
        again = [record for record in journal.releases(emitted + 1) if record.shown is not None]
        self.emit(again)
        return len(again)

    def emit(self, records: Iterable[Record]) -> None:
        for record in records:
            line = ndjson_line(record)
            assert self.lines.setdefault(record.slot, line) == line, f"slot {record.slot} went out with other numbers"
            if record.slot not in self._accountant.held:
                totals = (record.probe + record.publication).tolist()
                charges = dict(zip((one.key for one in record.group.population.classes), totals, strict=True))
                counted = self._source.counted[record.slot]
                losses = {user: times * charges[key] for user, (key, times) in counted.items()}
                self._accountant.write(record.slot, self._source.held[record.slot], losses)

    def close(self) -> None:
        pass

    def abandon(self) -> None:
        pass


class Life:
    """One life. `live(slots)` runs it; `overspent` and `findings` say what the accountant and the audits found."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.path = folder / "run.journal"
        self.chance = np.random.default_rng(seed)
        self.users = [f"p{number}" for number in range(8)] + ["1", "2"]
        self.accountant = Accountant()
        self.source = LifeSource(self.users)
        self.output = LifeOutput(self.source, self.accountant)
        self.wishes: dict[str, Key] = {}
        self.findings: list[dict[str, Any]] = []
        self.did: dict[str, int] = {}
        self.epochs = 1
        self.terms = Terms(
            stream="life",
            origin_us=0,
            length_us=60_000_000,
            cells=2,
            declared=sorted(KEYS),
            unknown_users=int(self.chance.choice([0, 2, 20])),
            **self._mechanism(),
        )
        self.widest = max(window for window, _ in KEYS)
        self.audited = 0
        self.backups: list[Path] = []
        with SqliteJournal(self.path, write=True) as journal:
            journal.begin(self.terms)
            self._ask(journal, int(self.chance.integers(0, 6)))

    @property
    def released(self) -> int:
        return max(self.accountant.held, default=0)

    def live(self, slots: int) -> None:
        while self.released < slots:
            deed = str(self.chance.choice(list(self.DEEDS), p=list(self.DEEDS.values())))
            self.did[deed] = self.did.get(deed, 0) + 1
            getattr(self, f"_{deed}")()
            self._publish(int(self.chance.integers(1, 7)))
            if self.released - self.audited >= self.widest // 2:
                self._audit()
        self._audit()

    def _audit(self) -> None:
        self.audited = self.released
        self.findings += verify_journal(self.path).violations

    def _publish(self, slots: int, at: Any = lambda step: None) -> None:
        with SqliteJournal(self.path, write=True) as journal:
            settle_stale(journal, RestoreOptions())
            refuse_lost_changes(journal)
            self.source.journal = journal
            if (
                journal.head().epoch.terms != self.terms
            ):  # stored with its first slot; asked for again if that does not come
                journal.begin(self.terms, changes=self._moves(journal))
            last = journal.head().committed + slots
            batch = int(self.chance.integers(1, 4))
            keep = [None, 60][int(self.chance.integers(2))]
            running = Running(last=last, batch=batch, keep=keep, at=at)
            Publication(journal, self.source, self.output, running=running).run()
            self.epochs = max(self.epochs, journal.head().epoch.number)

    def _ask(self, journal: SqliteJournal, number: int) -> None:
        changes = []
        for user in self.chance.choice(self.users, number, replace=False).tolist():
            action = str(self.chance.choice(["set", "set", "set", "remove", "erase"]))
            if action != "set" and user not in self.wishes:
                continue
            key = self._key() if action == "set" else None
            changes.append(Change(action, user, key))  # type: ignore[arg-type]
            self.wishes.pop(user, None)
            if key is not None:
                self.wishes[user] = key
        journal.registry.ask(changes)

    def _moves(self, journal: SqliteJournal) -> list[Change]:
        """Whoever holds what a version no longer declares holds something else with it."""
        held: dict[str, Key | None] = {member.user: member.key for member in journal.registry.members()}
        held |= {change.user: change.key for change in journal.registry.queued()}
        moved = {user: self._key() for user, key in held.items() if key is not None and key not in self.terms.declared}
        self.wishes |= moved
        return [Change("set", user, key) for user, key in moved.items()]

    def _key(self) -> Key:
        return self.terms.declared[int(self.chance.integers(len(self.terms.declared)))]

    def _change(self) -> None:
        with SqliteJournal(self.path) as journal:
            self._ask(journal, int(self.chance.integers(1, 4)))

    def _nothing(self) -> None:
        pass

    def _crash(self) -> None:
        crash_at, self._crashing = str(self.chance.choice(STEPS)), int(self.chance.integers(1, 3))

        def at(step: str) -> None:
            self._crashing -= step == crash_at
            if self._crashing <= 0:
                raise Crash

        if self.chance.random() < 0.5:
            self._change()
        with pytest.raises(Crash):
            self._publish(12, at)

    def _mechanism(self) -> dict[str, Any]:
        """A mechanism; of `pft` with what it does by default, or with a cycle."""
        mechanism = str(self.chance.choice(MECHANISMS))
        if mechanism != "pft":
            return {"mechanism": mechanism, "class_weights": None, "seasonality": ()}
        return {"mechanism": "pft", "class_weights": "calibrated", "seasonality": (6.0,) if self.epochs % 2 else ()}

    def _epoch(self) -> None:
        """Other settings; some requirements come, and some go."""
        declared = {*self.terms.declared, *(key for key in NEW if self.chance.random() < 0.2)}
        declared -= {key for key in self.terms.declared if self.chance.random() < 0.15}
        fields = {
            **self._mechanism(),
            "unknown_users": int(self.chance.choice([0, 2, 20])),
            "declared": sorted(declared) or sorted(KEYS),
        }
        self.terms = replace(self.terms, **fields)
        self.widest = max(self.widest, self.terms.widest)

    def _backup(self) -> None:
        folder = self.path.parent / f"backup{len(self.backups)}"
        folder.mkdir()
        back_up(self.path, folder / "run.journal")
        shutil.copy(self.path.with_name("run.journal.witness"), folder / "run.journal.witness")
        self.backups.append(folder)

    def _restore(self) -> None:
        """Disaster: the journal is replaced by a backup; the witness file survives, is lost, or is rolled back with it."""
        if not self.backups:
            return
        folder = self.backups[-1 - min(int(self.chance.geometric(0.6)) - 1, len(self.backups) - 1)]
        side = self.path.with_name("run.journal.witness")
        with SqliteJournal(self.path) as journal:
            versions = hash_versions(journal.epochs())
        for ending in ENDINGS[:3]:
            self.path.with_name("run.journal" + ending).unlink(missing_ok=True)
        shutil.copy(folder / "run.journal", self.path)
        fate = str(self.chance.choice(["kept", "kept", "lost", "rolled back"]))
        self.did[fate] = self.did.get(fate, 0) + 1
        if fate == "lost":
            side.unlink()
        elif fate == "rolled back":
            shutil.copy(folder / "run.journal.witness", side)
        with SqliteJournal(self.path) as journal:  # whatever is tried first, a copy takes no change
            with pytest.raises(StaleJournal):
                journal.registry.ask([Change("set", "p0", KEYS[0])])
            self.terms = journal.head().epoch.terms
            same = hash_versions(journal.epochs()) == versions
        accepted = self.chance.random() < 0.2
        sure = same and self.chance.random() < 0.5
        self._settle(RestoreOptions(None, None if sure else self.widest, sure, accepted))
        if not accepted:
            self._import()
        else:
            with SqliteJournal(self.path) as journal:
                self.wishes = {one.user: one.key for one in journal.registry.members()}

    def _settle(self, stated: RestoreOptions) -> None:
        through = self.released
        with SqliteJournal(self.path, write=True) as journal:
            try:
                settle_stale(journal, replace(stated, released_through=through))
            except (
                StaleJournal
            ) as error:  # the witness file has a slot that was committed and never went out, or settings
                through = error.facts["released"]
                stated = replace(stated, widest_window=self.widest, same_settings=False)
                settle_stale(journal, replace(stated, released_through=through))
        for slot in range(self.released + 1, through + 1):
            self.accountant.write(slot, {}, {})  # closed: nobody ever saw it

    def _import(self) -> None:
        """The requirements file as it is now: everybody's present wish."""
        allowed = {user: key for user, key in self.wishes.items() if key in self.terms.declared}
        self.wishes = allowed
        with SqliteJournal(self.path, write=True) as journal:
            wanted = want(list(allowed), list(allowed.values()), self.chance.bytes(16))
            import_users(journal, wanted, allow_removals=True)

    DEEDS = {  # noqa: RUF012  what happens, and how often
        "change": 0.5,
        "nothing": 0.1,
        "crash": 0.12,
        "epoch": 0.06,
        "backup": 0.12,
        "restore": 0.1,
    }
