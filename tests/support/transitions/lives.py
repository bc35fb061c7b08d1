"""Random lives of users: joins, leaves, changes, changes back, erasures, unregistered phases, versions and restores.

The life keeps what every user really held in every slot, lost journals included, and what every slot really cost; the
`Accountant` compares. Lives of one seed are the same in every deployment.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.support.transitions.accountant import Accountant, Key, RecordingNoise, Span, watched_permits
from tests.support.transitions.systems import CELLS, MakeSystem, MemorySystem, Released
from wevent.core.arrays import IntArray
from wevent.core.builtin_mechanisms import complete
from wevent.core.mechanism import NoOffer, Policy
from wevent.core.options import Options, option_values
from wevent.journal import Terms
from wevent.people.membership import Change
from wevent.publisher.catalogue import find_mechanism
from wevent.settings import RestoreOptions

POOL: tuple[Key, ...] = (
    (1, 700_000_000),
    (3, 1_000_000_000),
    (5, 500_000_000),
    (8, 200_000_000),
    (8, 2_000_000_000),
    (12, 300_000_000),
    (12, 1_000_000_000),
)
USERS = tuple(f"p{number}" for number in range(10))
LIMIT = 3  # unregistered users that a slot counts
MECHANISMS = ("pbd", "pba", "bd", "ba", "uniform", "pbu", "sample", "lbu", "plbu", "pft", "random", "greedy")


class Hostile:
    """A policy that offers anything, often more than is left; greedy: all or nothing."""

    def __init__(self, seed: int, *, is_greedy: bool) -> None:
        self._chance, self._is_greedy = random.Random(seed), is_greedy

    def probe(self, ledger: Any) -> IntArray | None:
        return None

    def offer(self, ledger: Any, history: Any) -> IntArray | NoOffer:
        left = np.maximum(ledger.forecast(np.zeros(1, dtype=np.int64))[:, 0], 0).tolist()
        chance = self._chance
        if self._is_greedy:
            return np.array([int(rest * chance.choice([0, 1, 1, 1, 0.5])) for rest in left], dtype=np.int64)
        if chance.random() < 0.1:
            return NoOffer.NOT_DUE
        offers = [
            int(rest * chance.random()) if chance.random() < 0.97 else rest + chance.randrange(3) for rest in left
        ]
        return np.array(offers, dtype=np.int64)


def make_terms(declared: Iterable[Key], unknown_users: int, **options: Any) -> Terms:
    """Return the settings of a configuration version."""
    return Terms(
        stream="life",
        origin_us=0,
        length_us=60_000_000,
        cells=CELLS,
        declared=sorted(declared),
        unknown_users=unknown_users,
        **option_values(complete(find_mechanism(options["mechanism"]), Options(**options))),
    )


@dataclass(frozen=True)
class Chances:
    """How often things happen, per slot."""

    version: float = 0.03
    backup: float = 0.03
    restore: float = 0.25
    import_again: float = 0.3
    quiet: float = 0.3  # no user changes between a backup and its restore
    slots: int = 70


RESTORES = Chances(version=0.01, backup=0.2)
VERSIONS = Chances(version=0.12, backup=0.0)
LOST_VERSIONS = Chances(version=0.15, backup=0.2)
ALL_CHANCES = (Chances(), RESTORES, VERSIONS, LOST_VERSIONS)


@dataclass
class _Backup:
    stored: Any
    terms: Terms
    versions: int
    slot: int
    held: dict[str, Key]
    policy: Policy | None
    is_quiet: bool


class Life:
    """One life.

    Args:
        seed: of everything.
        make_system: the deployment.
        chances: how often things happen.
        doubles: whether unregistered users lose twice the charge of their class (`add_remove`); None: at random.

    Attributes:
        accountant: losses and requirements of every user.
        class_losses: loss of every class, by slot.
        did: how often what happened.
    """

    def __init__(
        self,
        seed: int,
        make_system: MakeSystem = MemorySystem,
        chances: Chances | None = None,
        *,
        doubles: bool | None = None,
    ) -> None:
        self._chance = random.Random(seed)
        self._chances = chances or Chances()
        self._doubles = self._chance.random() < 0.5 if doubles is None else doubles
        self.accountant = Accountant(USERS)
        self.class_losses: dict[int, dict[Key, Any]] = {}
        self.did: Counter[str] = Counter()
        self._held: dict[str, Key] = {}
        self._policy: Policy | None = None
        self._widest = 1
        self._versions = 0
        self._backup: _Backup | None = None
        self.slot = 1
        self.system = make_system(RecordingNoise(seed, 1 if self._doubles else 2))

    def live(self) -> Span:
        """Run the life; return the worst span of any user."""
        with watched_permits():
            self._begin()
            while self.slot <= self._chances.slots:
                self._live_slot()
        return self.accountant.find_worst()

    def _live_slot(self) -> None:
        self._back_up_or_restore()
        if self._backup is None or not self._backup.is_quiet:
            self._ask(self._choose_changes())
        moved = []
        if self.slot > 1 and self._chance.random() < self._chances.version:
            self._begin()
            moved = [
                Change("set", user, self._chance.choice(self._terms.declared))
                for user, key in self._held.items()
                if key not in self._terms.declared
            ]
        self._release()
        self._ask(moved)  # what comes with a version takes effect after its first slot

    def _release(self) -> None:
        released = self.system.step(self._policy)
        assert released.slot == self.slot
        self.class_losses[self.slot] = released.losses
        losses, held = {}, dict(self._held)
        for user, (key, factor) in self._find_counted(released).items():
            losses[user] = released.losses[key] * factor
            if user not in held:
                held[user] = self._find_unregistered_promise()
                self.did["unregistered"] += 1
        self.did["published"] += any(released.losses.values())
        self.did["counted"] += len(losses)
        self.accountant.add(self.slot, losses, held)
        self.slot += 1

    def _find_counted(self, released: Released) -> dict[str, tuple[Key, int]]:
        """Return the class that each user is or would be counted in, and how often the user loses its charge."""
        roster, counted = released.roster, {}
        classes = [one.key for one in roster.population.classes]
        for user, row in zip(USERS, roster.find(list(USERS)).tolist(), strict=True):
            if row >= 0:
                counted[user] = classes[int(roster.classes[row])], 1
            elif roster.unknown_row is not None and roster.strangers([user]):
                counted[user] = classes[roster.unknown_row], 2 if self._doubles else 1
        return counted

    def _find_unregistered_promise(self) -> Key:
        """Return the strictest declared window and epsilon: 2·ε_U under add_remove, ε_U under replace."""
        smallest = min(nano for _, nano in self._terms.declared)
        return max(window for window, _ in self._terms.declared), smallest // 2 * 2 if self._doubles else smallest

    def _begin(self) -> None:
        self._terms, self._policy = self._choose_version()
        self._widest = max(self._widest, self._terms.widest)
        self._versions += 1
        self.did["version"] += 1
        self.system.begin(self._terms)

    def _choose_version(self) -> tuple[Terms, Policy | None]:
        chance = self._chance
        name = chance.choice(MECHANISMS)
        self.did[name] += 1
        policy: Policy | None = None
        options: dict[str, Any] = {"mechanism": name, "neighbours": "add_remove" if self._doubles else "replace"}
        if name in ("random", "greedy"):
            policy, options["mechanism"] = Hostile(chance.randrange(1 << 30), is_greedy=name == "greedy"), "pbu"
        if name not in ("lbu", "plbu"):
            options["refund"] = chance.random() < 0.4
        if options["mechanism"] == "pbu" and chance.random() < 0.3:
            options["estimator"] = "weighting"
        declared = chance.sample(POOL, chance.randint(2, len(POOL)))
        return make_terms(declared, chance.choice([0, LIMIT]), **options), policy

    def _choose_changes(self) -> list[Change]:
        chance, changes = self._chance, []
        for user in USERS:
            dice, declared = chance.random(), self._terms.declared
            if user not in self._held:
                if dice < (0.7 if self.slot == 1 else 0.06):
                    changes.append(Change("set", user, chance.choice(declared)))
            elif dice < 0.08:  # also several at one boundary
                changes += [Change("set", user, chance.choice(declared)) for _ in range(chance.choice([1, 1, 1, 2]))]
            elif dice < 0.09:  # leaves and returns at one boundary
                changes += [Change("remove", user), Change("set", user, chance.choice(declared))]
            elif dice < 0.11:
                changes.append(Change("remove", user))
            elif dice < 0.13:
                changes.append(Change("erase", user))
        return changes

    def _ask(self, changes: list[Change]) -> None:
        for change in changes:
            self.did["change" if change.action == "set" and change.user in self._held else change.action] += 1
            self._held.pop(change.user, None)
            if change.key is not None:
                self._held[change.user] = change.key
        if changes:
            self.system.ask(changes)

    def _back_up_or_restore(self) -> None:
        backup = self._backup
        if backup is None:
            if self.slot > 1 and self._is_backup_due():
                is_quiet = self._chance.random() < self._chances.quiet
                stored, held = self.system.backup(), dict(self._held)
                self._backup = _Backup(stored, self._terms, self._versions, self.slot, held, self._policy, is_quiet)
        elif self.slot > backup.slot and self._is_restore_due():
            self._backup = None
            self._restore(backup)

    def _is_backup_due(self) -> bool:
        return self._chance.random() < self._chances.backup

    def _is_restore_due(self) -> bool:
        return self._chance.random() < self._chances.restore

    def _restore(self, backup: _Backup) -> None:
        """Replace the journal by a backup. The operator imports the registry again, or accepts the loss."""
        is_version_lost = backup.versions != self._versions
        has_witness = self._chance.random() < 0.4
        stated = RestoreOptions(
            released_through=self.slot - 1,
            widest_window=self._widest if is_version_lost else None,
            same_settings=not is_version_lost,
            accept_lost_changes=True,
        )
        self.did["version lost" if is_version_lost else "restore"] += 1
        self.did["nothing lost"] += backup.is_quiet and has_witness and not is_version_lost
        self.system.restore(backup.stored, stated, has_witness=has_witness)
        self._terms, self._versions, self._policy = backup.terms, backup.versions, backup.policy
        wanted, self._held = self._held, backup.held
        if self._chance.random() < self._chances.import_again:
            allowed = {user: key for user, key in wanted.items() if key in self._terms.declared}
            changes = [Change("remove", user) for user in sorted(self._held.keys() - wanted.keys())]
            self._ask([*changes, *(Change("set", user, key) for user, key in sorted(allowed.items()))])
