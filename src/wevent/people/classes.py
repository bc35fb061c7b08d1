"""Classes of a slot, and the class that a user is counted in (spec 15.1). Pure.

A user who changes their requirement is counted at once. While several requirements are in force for a user, the user is
counted in a class that is at least as strict as each of them. The ledger never offers a stricter class more than a looser
one. So every requirement in force bounds the user's loss.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from wevent.core.requirements import Requirement

Key = tuple[int, int]
"""A requirement as it is stored: window and nano-epsilons."""


def is_at_least_as_strict(one: Key, other: Key) -> bool:
    """Return whether a requirement has no shorter window and no larger epsilon than another."""
    return one[0] >= other[0] and one[1] <= other[1]


def find_corner(classes: Iterable[Key]) -> Key:
    """Return the class that is at least as strict as all of these: the widest window with the smallest epsilon."""
    windows, nanos = zip(*classes, strict=True)
    return max(windows), min(nanos)


def find_counting_class(in_force: Iterable[Key], live: Iterable[Key]) -> Key:
    """Return the loosest live class that is at least as strict as every requirement in force (spec 15.1, rule 2).

    The loosest class has the largest ε/w, compared in integers; then the larger ε, then the smaller window. The live classes
    include their corner, which always qualifies.
    """
    corner = find_corner(in_force)
    fitting = (key for key in live if is_at_least_as_strict(key, corner))
    return max(fitting, key=lambda key: (Fraction(key[1], key[0]), key[1], -key[0]))


def find_unregistered_class(declared: Iterable[Key], unknown_users: int, neighbours: str) -> Key | None:
    """Return the class U of unregistered users: the corner of the declared classes. None if they are not counted.

    Of more than `unknown_users` unregistered users in a slot some are rejected, so one more arrival may displace another
    user's record: two records change, not one. `replace` pays for two already (Δ = 2k). Under `add_remove` their class has
    half the smallest epsilon, so that the loss of two stays within the strictest requirement.
    """
    if not unknown_users:
        return None
    window, nano = find_corner(declared)
    return window, nano if neighbours == "replace" else nano // 2


class Restore(NamedTuple):
    """Slots that another copy of the journal released (spec 15.1, table).

    Attributes:
        slot: M, the last of these slots.
        silent_through: last slot in which nobody is counted, because a version may be lost. 0: no such slot.
        doubted: requirements that may have been held in these slots. For every id, each is in force through M + w − 1.
    """

    slot: int
    silent_through: int
    doubted: tuple[Key, ...]


@dataclass(frozen=True)
class VersionClasses:
    """Classes of a configuration version.

    Attributes:
        first: first slot.
        declared: requirements that users may choose.
        unregistered: class of unregistered users, None if they are not counted.
    """

    first: int
    declared: frozenset[Key]
    unregistered: Key | None

    @property
    def classes(self) -> frozenset[Key]:
        """Requirements that a user may hold."""
        return self.declared if self.unregistered is None else self.declared | {self.unregistered}


class ClassHistory:
    """Classes of a journal over time.

    Args:
        versions: every configuration version, the first one first.
        restores: every restore.
    """

    def __init__(self, versions: Iterable[VersionClasses], restores: Iterable[Restore] = ()) -> None:
        self.versions = tuple(versions)
        self.restores = tuple(restores)
        # Users are moved at the boundary after the first slot f of a version. So a class that it drops may be held through f.
        self._dropped = [
            (key, after.first, after.first + key[0] - 1)
            for before, after in pairwise(self.versions)
            for key in before.classes - after.classes
        ]  # each with the first and the last slot in which it is retained

    @property
    def max_window(self) -> int:
        """Widest window of any version."""
        return max(window for version in self.versions for window, _ in version.classes)

    def live(self, slot: int) -> frozenset[Key]:
        """Return the classes that a slot offers to and charges, with or without members (spec 15.1, rule 1)."""
        kept = self.version_at(slot).classes | self.doubted(slot)
        kept |= {key for key, first, through in self._dropped if first <= slot <= through}
        return kept | {find_corner(kept)}

    def last_held(self, key: Key, slot: int) -> int:
        """Return the last slot before `slot` in which users may have held a requirement.

        A class that a version drops is held through the first slot of the version. Slots that another copy released may
        follow before the users are moved here.
        """
        firsts = [first for dropped, first, _ in self._dropped if dropped == key and first < slot]
        return max(firsts) if firsts and key not in self.version_at(slot - 1).classes else slot - 1

    def doubted(self, slot: int) -> frozenset[Key]:
        """Return the requirements that restores put in force for every id."""
        return frozenset(key for restore in self.restores for key in restore.doubted if slot < restore.slot + key[0])

    def is_silent(self, slot: int) -> bool:
        """Return whether nobody is counted in a slot: a version may have been lost."""
        return any(slot <= restore.silent_through for restore in self.restores)

    def unregistered_class(self, slot: int) -> Key | None:
        """Return the class that unregistered users are counted in, None if they are not counted.

        After a restore with doubts they are not counted for the widest live window: under `add_remove` they lose twice the
        charge of their class, and no class covers that.
        """
        unregistered = self.version_at(slot).unregistered
        live = self.live(slot)
        if unregistered is None or self.is_silent(slot) or slot < self._doubted_until(live):
            return None
        earlier = [key for key, _ in self.unregistered_before(slot)]
        return find_counting_class([unregistered, *earlier], live)

    def unregistered_before(self, slot: int) -> list[tuple[Key, int]]:
        """Return the classes in which an id that was unknown before a slot may have been counted, each with its last slot.

        Only classes that are still in force in the slot.
        """
        ends = [version.first - 1 for version in self.versions[1:]] + [slot - 1]
        last: dict[Key, int] = {}
        for version, end in zip(self.versions, ends, strict=True):
            if version.unregistered is not None and version.first <= min(end, slot - 1):
                last[version.unregistered] = min(end, slot - 1)
        return [(key, end) for key, end in last.items() if slot < end + key[0]]

    def kept_through(self, window: int, last: int) -> int:
        """Return the last slot through which a row that ended in `last` is kept.

        Its requirement is in force through last + w − 1. Where unregistered users are counted, an id that left is kept for
        the widest window, so that it is not counted as unregistered.
        """
        return last + max(window, self.min_kept_slots) - 1

    @property
    def min_kept_slots(self) -> int:
        """Number of slots for which every row is kept, at least."""
        return self.max_window if any(version.unregistered for version in self.versions) else 1

    def next_change(self, slot: int) -> int | None:
        """Return the next slot whose classes may differ for reasons other than a change of users, None if there is none."""
        changes = [through + 1 for _, _, through in self._dropped]
        unregistered = self.version_at(slot).unregistered
        changes += [end + key[0] for key, end in self.unregistered_before(slot) if key != unregistered]
        for restore in self.restores:
            changes += [restore.silent_through + 1, *(restore.slot + window for window, _ in restore.doubted)]
        if any(restore.doubted for restore in self.restores):
            changes.append(self._doubted_until(self.live(slot)))
        return min((change for change in changes if change > slot), default=None)

    def version_at(self, slot: int) -> VersionClasses:
        """Return the version that is active in a slot."""
        return next((version for version in reversed(self.versions) if version.first <= slot), self.versions[0])

    def _doubted_until(self, live: Iterable[Key]) -> int:
        """Return the first slot in which unregistered users are no longer in doubt."""
        window = max(window for window, _ in live)
        return max((restore.slot + window for restore in self.restores if restore.doubted), default=0)


def to_requirements(keys: Iterable[Key]) -> tuple[Requirement, ...]:
    """Return stored requirements as objects, ascending."""
    return tuple(Requirement.from_nano(*key) for key in sorted(keys))
