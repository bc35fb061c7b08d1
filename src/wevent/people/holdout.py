"""From which slot on someone may be counted: the hold-out rule, all of it, pure (spec 10).

A user may be counted in class B in slot t only if t − t_A ≥ max(w_A, w_B) for every other requirement A they held, t_A
being the last slot of that membership, present or not. Then every span of w_R slots in which a user was a member under
R loses at most ε_R. The promise is per id. Three things are requirements "held" in this sense too:

- **Strangers.** Where unregistered users are counted, everybody whom the registry did not know may have been counted in
  the unknown class until the slot before they joined: who was counted is never recorded. And strangers as a whole change
  their requirement when an epoch changes that class.
- **Slots released elsewhere.** A backup forgets every membership decided after it. After slots up to M that another copy
  of the journal released, a membership counts only if it is proven to be the one in force there (`Restore`); anyone
  else may have held anything, so they wait the widest window from M.
- **Wider windows.** Past memberships are kept for the widest window of their time; a wider one, declared later, waits
  until nothing that was forgotten could matter to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

Key = tuple[int, int]  # (window, nano-epsilons): a requirement as it is stored

BUCKETS = 1 << 16
"""Evidence of change is kept per bucket of ids: one change casts doubt on one id in 65,536, not on everyone."""

ERASED = "erased:"
"""What the id of an erased user begins with; nobody may register such an id."""


class Past(NamedTuple):
    """A requirement held earlier, and the last slot of membership in it; whether it was as a stranger, perhaps."""

    key: Key
    last: int
    as_stranger: bool = False


class Reign(NamedTuple):
    """What the rule needs of an epoch.

    Attributes:
        first: its first slot.
        widest: its widest declared window.
        unknown: the class of strangers, None if they are not counted.
        halved: whether that class has half of what strangers are promised, because one more of them changes two records.
    """

    first: int
    widest: int
    unknown: Key | None
    halved: bool = False


@dataclass(frozen=True)
class Restore:
    """Slots that another copy of the journal released, and what is known of memberships there.

    Attributes:
        slot: M, the last of them.
        widest: the widest window of any epoch there.
        proven: the slot through which the mark beside the journal reached; it proves something only if that is M.
        same_epoch: whether no epoch was lost, so strangers were counted as here.
        changed: a bit per bucket of ids, set if a membership in it changed after the backup; None: nothing is proven.
        charged: the classes that were charged for these slots. Any other may have had members there, and was charged
            for them in the lost journal only: it waits a window of its own (the class floor).
    """

    slot: int
    widest: int
    proven: int
    same_epoch: bool
    changed: bytes | None
    charged: frozenset[Key] = frozenset()

    @property
    def proves(self) -> bool:
        """Whether anything is proven: a mark older than M may have been rolled back together with the journal."""
        return self.changed is not None and self.proven == self.slot

    def doubts(self, bucket: int) -> bool:
        """Whether an id of this bucket may have held another requirement there than the registry says."""
        if self.changed is None or not self.proves:
            return True
        return bool(self.changed[bucket >> 3] >> (bucket & 7) & 1)

    def wait(self, key: Key, bucket: int, since: int) -> int:
        """The first slot in which somebody may be counted under a requirement, as far as these slots go; 0: any.

        Args:
            key: the requirement.
            bucket: the bucket of the id.
            since: the slot boundary since which the registry knows the id.
        """
        if self.doubts(bucket) or (self.slot < since and not self.same_epoch):
            return self.until(key[0])
        return 0 if key in self.charged else self.slot + key[0]

    def until(self, window: int) -> int:
        """The first slot in which someone in doubt may be counted under a requirement with this window."""
        return self.slot + max(self.widest, window)


@dataclass(frozen=True)
class HoldOut:
    """The rule for one journal.

    Args:
        reigns: every epoch, the first one first; the last is in force.
        restores: every restore, in slot order.
    """

    reigns: tuple[Reign, ...]
    restores: tuple[Restore, ...] = ()

    @property
    def widest(self) -> int:
        """The widest window ever declared: for so many slots a past membership may hold someone out."""
        return max(reign.widest for reign in self.reigns)

    def forgotten_through(self, slot: int) -> int:
        """A membership that ended in this slot or earlier holds nobody out any more from `slot` on."""
        return slot - self.widest

    def forgotten_from(self, last: int) -> int:
        """The first slot in which a membership that ended in `last` holds nobody out any more."""
        return last + self.widest

    def is_settled(self, slot: int) -> bool:
        """Whether no restore holds anybody out any more, whoever it is and whatever window they ask for."""
        return all(restore.until(self.widest) <= slot for restore in self.restores)

    def first_slot(self, key: Key, asked: int, past: Iterable[Past], bucket: int, since: int) -> int:
        """The first slot, from `asked` on, in which a user may be counted under a requirement.

        Args:
            key: the requirement B.
            asked: the slot boundary the wish takes effect at.
            past: every requirement the user held, with the last slot of membership. B itself needs no wait, unless it was
                held as a stranger: ▲ who lost up to twice the charge of a class that is halved lost more than it promises.
            bucket: the bucket of the id (`bucket_of`).
            since: the slot boundary since which the registry knows the id: earlier it may have been a stranger, in a
                lost epoch too.
        """
        halved = any(reign.halved for reign in self.reigns)
        others = (held for held in past if held.key != key or (held.as_stranger and halved))
        waits = [held.last + max(held.key[0], key[0]) for held in others]
        waits += [restore.wait(key, bucket, since) for restore in self.restores if restore.slot < asked]
        return max(asked, self._opening(key[0]), *waits, asked)

    def as_stranger(self, slot: int) -> list[Past]:
        """Where someone whom the registry does not know before `slot` may have been counted as a stranger."""
        last: dict[Key, int] = {}
        for reign, end in self._reigns_with_ends(slot):
            if reign.unknown is not None and end >= reign.first:
                last[reign.unknown] = end
        return [Past(key, end, as_stranger=True) for key, end in last.items() if slot - end < self.widest]

    def strangers_from(self) -> int | None:
        """From which slot on strangers may be counted in the class of the epoch in force; None if they never are."""
        unknown = self.reigns[-1].unknown
        if unknown is None:
            return None
        window, first = unknown[0], self.reigns[-1].first
        past = [held for held in self.as_stranger(first) if held.key != unknown]
        waits = [held.last + max(held.key[0], window) for held in past]
        for restore in self.restores:
            if not (restore.proves and restore.same_epoch):
                waits.append(restore.until(window))
            elif unknown not in restore.charged:
                waits.append(restore.slot + window)
        return max(1, self._opening(window), *waits, 1)

    def doubts_about_strangers(self, slot: int) -> dict[Restore, int]:
        """Restores after which an unknown id may have been a member, and for each the first slot it no longer matters in."""
        unknown = self.reigns[-1].unknown
        if unknown is None:
            return {}
        ends = {restore: restore.until(unknown[0]) for restore in self.restores}
        return {restore: end for restore, end in ends.items() if end > slot}

    def _opening(self, window: int) -> int:
        """From which slot on a window may be used that is wider than any declared before its epoch.

        Past memberships were kept for the widest window of that time, W, only: one that was forgotten ended W slots
        before the epoch at the latest, so `window` − W slots after its start nobody can be held out by it.
        """
        opening, widest = 0, 0
        for reign in self.reigns:
            if 0 < widest < window:
                opening = max(opening, reign.first + window - widest)
            widest = max(widest, reign.widest)
        return opening

    def _reigns_with_ends(self, before: int) -> list[tuple[Reign, int]]:
        """Every epoch that began before a slot, with its last slot before it."""
        nexts = [reign.first for reign in self.reigns[1:]]
        return [
            (reign, min(following, before) - 1) for reign, following in zip(self.reigns, [*nexts, before], strict=True)
        ]


def erased_id(user: str, salt: bytes) -> str:
    """What stays of an erased id for as long as the hold-out needs it: a keyed digest."""
    return ERASED + hashlib.blake2b(user.encode(), key=salt[:64], digest_size=20).hexdigest()


def bucket_of(user: str, salt: bytes) -> int:
    """The bucket of an id, erased or not: the first two bytes of its keyed digest."""
    digest = user if user.startswith(ERASED) else erased_id(user, salt)
    return int(digest[len(ERASED) : len(ERASED) + 4], 16)
