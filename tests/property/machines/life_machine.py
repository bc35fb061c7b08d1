"""The life of a stream as a state machine: users, slots, crashes, copies, disasters, versions; every promise after each."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.property.machines.stores import FATES, FileStore, Store
from tests.property.machines.world import CELLS, CROWDS, ChosenNoise, ChosenSource, World
from tests.support.synthetic import want
from wevent.errors import StaleJournal
from wevent.journal import Terms
from wevent.journal.terms import hash_versions
from wevent.outputs.lines import ndjson_line
from wevent.people.membership import Change
from wevent.publishing.importing import import_users
from wevent.publishing.loop import Publication, Running
from wevent.publishing.staleness import refuse_lost_changes, settle_stale
from wevent.settings import RestoreOptions

Key = tuple[int, int]
KEYS: tuple[Key, ...] = ((2, 2 * 10**9), (3, 10**9), (6, 4 * 10**8))
OTHERS: tuple[Key, ...] = ((4, 8 * 10**8), (5, 5 * 10**9), (9, 10**9))
"""Requirements that a later version may declare; the last one has the widest window."""
USERS = ("ann", "bob", "7", "eve")
MECHANISMS = ("pbd", "pba", "pbu", "uniform", "sample", "pft")
STEPS = (
    "stepped", "written ahead", "began", "slots stored", "version stored", "position stored", "committed", "emitted",
)  # fmt: skip

mechanisms = st.sampled_from(MECHANISMS)
limits = st.sampled_from((0, 2))
keys = st.sampled_from((*KEYS, *OTHERS))
fates = st.sampled_from(FATES)
spans, places = st.integers(1, 8), st.integers(0, 5)
Plan = list[tuple[str, bool]]
plans = st.lists(st.tuples(st.sampled_from(CROWDS), st.booleans()), min_size=1, max_size=3)


class Crash(Exception):
    """The process is gone."""


class LifeMachine(RuleBasedStateMachine):
    """One stream. What is broken on purpose replaces `make_store` or `publication`."""

    make_store: ClassVar[Any] = FileStore
    publication: ClassVar[type[Publication]] = Publication

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="wevent-machine"))
        self.store: Store = type(self).make_store(self.folder)
        self.noise = ChosenNoise()
        self.source = ChosenSource((*USERS, "mallory"), self.noise)
        self.world = World(self.source)
        self.wishes: dict[str, Key] = {}
        self.copies: list[tuple[Any, bool]] = []
        self.widest = 0
        self.imports = 0

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @initialize(mechanism=mechanisms, unknown=limits)
    def begin(self, mechanism: str, unknown: int) -> None:
        self.terms = Terms(
            stream="machine",
            origin_us=0,
            length_us=60_000_000,
            cells=CELLS,
            declared=sorted(KEYS),
            unknown_users=unknown,
            mechanism=mechanism,
        )
        self.widest = self.terms.widest
        with self.store.open(write=True) as journal:
            journal.begin(self.terms)

    # People

    @rule(user=st.sampled_from(USERS), key=keys)
    def join_or_change(self, user: str, key: Key) -> None:
        if key in self.terms.declared:
            self._ask(Change("set", user, key))
            self.wishes[user] = key

    @rule(user=st.sampled_from(USERS), action=st.sampled_from(("remove", "erase")))
    def leave(self, user: str, action: Any) -> None:
        if self.wishes.pop(user, None) is not None:
            self._ask(Change(action, user, None))

    @rule(user=st.sampled_from(USERS), action=st.sampled_from(("remove", "erase")), key=st.sampled_from(KEYS))
    def leave_and_come_back(self, user: str, action: Any, key: Key) -> None:
        """At one boundary: nobody sees that they were gone."""
        if user in self.wishes and key in self.terms.declared:
            self._ask(Change(action, user, None), Change("set", user, key))
            self.wishes[user] = key

    @rule(
        user=st.sampled_from(USERS),
        action=st.sampled_from(("remove", "erase")),
        key=keys,
        gap=spans,
        after=spans,
        plan=plans,
    )
    def be_away_for_a_while(self, user: str, action: Any, key: Key, gap: int, after: int, plan: Plan) -> None:
        """Somebody is there, leaves for some slots, and is back with another wish."""
        if user not in self.wishes:
            self.join_or_change(user, self.terms.declared[0])
            self._publish(1, plan)
        self.leave(user, action)
        self._publish(gap, plan)
        self.join_or_change(user, key)
        self._publish(after, plan)

    def _ask(self, *changes: Change) -> None:
        with self.store.open() as journal:
            journal.registry.ask(changes)

    # Slots

    @rule(slots=st.integers(1, 4), plan=plans, batch=st.integers(1, 3))
    def publish(self, slots: int, plan: Plan, batch: int) -> None:
        self._publish(slots, plan, batch)

    @rule(step=st.sampled_from(STEPS), after=st.integers(1, 3), plan=plans, batch=st.integers(1, 3))
    def crash(self, step: str, after: int, plan: Plan, batch: int) -> None:
        """The process is lost before, in or after a transaction; the next one begins with what the journal has."""
        left = [after]

        def at(reached: str) -> None:
            left[0] -= reached == step
            if not left[0]:
                raise Crash

        with pytest.raises(Crash):
            self._publish(12, plan, batch, at)

    def _publish(self, slots: int, plan: Plan, batch: int = 2, at: Any = lambda step: None) -> None:
        self.source.plan = plan
        with self.store.open(write=True) as journal:
            settle_stale(journal, RestoreOptions())
            refuse_lost_changes(journal)
            self.source.journal = journal
            if (
                journal.head().epoch.terms != self.terms
            ):  # stored with its first slot; asked for again if that does not come
                journal.begin(self.terms, changes=self._moves(journal))
            running = Running(last=journal.head().committed + slots, batch=batch, at=at)
            type(self).publication(journal, self.source, self.world, running=running, noise=self.noise).run()

    def _moves(self, journal: Any) -> list[Change]:
        """Whoever holds what a version no longer declares holds something else with it."""
        held = {one.user: one.key for one in journal.registry.members()}
        held |= {change.user: change.key for change in journal.registry.queued()}
        moved = {user: key for user, key in held.items() if key is not None and key not in self.terms.declared}
        self.wishes |= dict.fromkeys(moved, self.terms.declared[0])
        return [Change("set", user, self.terms.declared[0]) for user in moved]

    @rule(mechanism=mechanisms, unknown=limits, declared=st.sets(st.sampled_from((*KEYS, *OTHERS)), min_size=1))
    def change_the_version(self, mechanism: str, unknown: int, declared: set[Key]) -> None:
        self.terms = replace(self.terms, mechanism=mechanism, unknown_users=unknown, declared=sorted(declared))
        self.widest = max(self.widest, self.terms.widest)

    # Disasters

    @rule(backup=st.booleans())
    def copy(self, backup: bool) -> None:
        with self.store.open() as journal:
            if journal.head().committed:
                self.copies.append((self.store.copy(backup=backup), backup))

    @precondition(lambda self: self.copies)
    @rule(age=st.integers(0, 2), fate=fates, reimport=st.booleans(), sure=st.booleans())
    def lose_the_journal(self, age: int, fate: str, reimport: bool, sure: bool) -> None:
        """An older copy takes its place, with or without its witness; the operator says what went out, and goes on."""
        made, is_backup = self.copies[-1 - min(age, len(self.copies) - 1)]
        if not is_backup and fate == "rolled back":
            return  # bare files of the journal and its witness together cannot be told from the journal (docs: backups)
        before, versions = self.store.copy(backup=False), self._versions()
        self.store.put_back(made, fate)
        same = sure and self._versions() == versions  # the operator states what is true, or nothing
        if is_backup:
            with self.store.open() as journal, pytest.raises(StaleJournal):
                journal.registry.ask([Change("set", "ann", KEYS[0])])
        if self._differs() or not self._settle(RestoreOptions(None, None if same else self.widest, same, not reimport)):
            self.store.put_back(before, "rolled back")
            return
        with self.store.open() as journal:
            self.terms = journal.head().epoch.terms
        lines = self.world.lines
        self.source.committed = {slot: lines[slot] for slot in self.source.committed if slot in lines}
        self._import() if reimport else self._read_wishes()

    def _versions(self) -> str:
        with self.store.open() as journal:
            return hash_versions(journal.epochs())

    def _differs(self) -> bool:
        """Whether the world saw another release for a slot: an output that is compared with the journal says so."""
        lines = self.world.lines
        return any(lines.get(slot, line) != line for slot, line in self._stored().items())

    def _stored(self) -> dict[int, bytes]:
        with self.store.open() as journal:
            return {record.slot: ndjson_line(record) for record in journal.releases() if record.kind != "elsewhere"}

    def _settle(self, stated: RestoreOptions) -> bool:
        """Say what went out; whether the copy may be used. One that went on by itself may not, whatever is said."""
        through = self.world.witness.last
        with self.store.open(write=True) as journal:
            try:
                settle_stale(journal, replace(stated, released_through=through))
            except StaleJournal as error:
                known = error.facts["released"]
                if known is None or known < through or (known == through and not stated.same_settings):
                    return self._is_current(journal)
                through = known  # the witness has a slot that was drawn and never went out, or other settings
                stated = replace(stated, widest_window=self.widest, same_settings=False)
                settle_stale(journal, replace(stated, released_through=through))
        for slot in range(self.world.witness.last + 1, through + 1):
            self.world.closed(slot)
        return True

    def _is_current(self, journal: Any) -> bool:
        """Whether there is nothing to settle: the copy knows every slot."""
        try:
            settle_stale(journal, RestoreOptions())
        except StaleJournal:
            return False
        return True

    def _import(self) -> None:
        """The requirements file as it is now."""
        self.wishes = {user: key for user, key in self.wishes.items() if key in self.terms.declared}
        self.imports += 1
        with self.store.open(write=True) as journal:
            wanted = want(list(self.wishes), list(self.wishes.values()), b"%16d" % self.imports)
            import_users(journal, wanted, allow_removals=True)

    def _read_wishes(self) -> None:
        with self.store.open() as journal:
            self.wishes = {one.user: one.key for one in journal.registry.members()}
            for change in journal.registry.queued():
                self.wishes.pop(change.user, None)
                if change.key is not None:
                    self.wishes[change.user] = change.key

    @rule(
        user=st.sampled_from(USERS),
        held=places,
        wanted=places,
        slots=spans,
        backup=st.booleans(),
        fate=fates,
        plan=plans,
        after=spans,
    )
    def lose_what_somebody_changed(
        self, user: str, held: int, wanted: int, slots: int, backup: bool, fate: str, plan: Plan, after: int
    ) -> None:
        """A copy is made, a user changes, slots go out, and the copy has nothing of it."""
        declared = self.terms.declared
        self.join_or_change(user, declared[held % len(declared)])
        self._publish(1, plan)
        self.copy(backup)
        self.join_or_change(user, declared[wanted % len(declared)])
        self._publish(slots, plan)
        self.lose_the_journal(0, fate, reimport=False, sure=False)
        self._publish(after, plan)

    # Promises

    @invariant()
    def nobody_lost_too_much(self) -> None:
        assert list(self.world.witness.complaints()) == []

    @invariant()
    def what_is_stored_stays(self) -> None:
        """Byte for byte, and what went out is what is stored."""
        if not hasattr(self, "terms"):
            return
        stored = self._stored()
        for slot, line in self.source.committed.items():
            assert stored.get(slot, line) == line, f"slot {slot} was stored with other numbers"
        for slot, line in stored.items():
            assert self.world.lines.get(slot, line) == line, f"slot {slot} went out otherwise than it is stored"
        self.source.committed.update(stored)

    @invariant()
    def the_audit_finds_nothing(self) -> None:
        if hasattr(self, "terms"):
            assert self.store.violations() == []
