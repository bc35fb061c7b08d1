"""Who is a member of which class, and from which slot on: the hold-out rule, pure (spec 10).

A user may be counted in class B in slot t only if t − t_A ≥ max(w_A, w_B) for every other requirement A they held,
t_A being the last slot of that membership, present or not. Until then their events are dropped and they are in no
n_g. Then every span of w_R slots in which a user was a member under R loses at most ε_R. The promise is per id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from wevent.core.requirements import Population, Requirement
from wevent.errors import InvalidMembership
from wevent.roster import Roster

Key = tuple[int, int]  # (window, nano-epsilons): a requirement as it is stored


class Past(NamedTuple):
    """A requirement held earlier, and the last slot of membership in it."""

    key: Key
    last: int


class Change(NamedTuple):
    """One wish of the operator; it takes effect at the next slot boundary.

    Attributes:
        action: "set" (join or change), "remove" (leave) or "erase" (leave and forget the id).
        user: the id.
        key: the requirement, for "set".
        level: the words it came from ("High/Small"), None for numbers.
    """

    action: Literal["set", "remove", "erase"]
    user: str
    key: Key | None = None
    level: str | None = None


class Unknown(NamedTuple):
    """Where unregistered users are counted: the class, and the declared public number of them."""

    requirement: Requirement
    number: int


def first_slot(key: Key, asked: int, past: Iterable[Past]) -> int:
    """The first slot, from `asked` on, in which a user may be counted under a requirement (spec 10).

    Args:
        key: the requirement B.
        asked: the slot boundary the wish takes effect at.
        past: every requirement the user held, with the last slot of membership. B itself needs no wait.
    """
    waits = (one.last + max(one.key[0], key[0]) for one in past if one.key != key)
    return max(asked, *waits, asked)


def is_forgotten(last: int, now: int, widest: int) -> bool:
    """Whether a membership that ended in slot `last` can no longer hold anyone out in slot `now`."""
    return now - last >= widest


def unknown_class(declared: Iterable[Requirement], number: int, neighbours: str) -> Unknown | None:
    """The class in which unregistered users are counted: the strictest declared window and epsilon.

    ▲ Of more than `number` unknown users in a slot some are rejected, so one more arrival may push another user's
    record out: two records change, not one. `replace` pays for two already (Δ = 2k). Under `add_remove` their class has
    half the strictest epsilon, so that the loss of two stays within the strictest requirement.

    Raises:
        InvalidRequirement: if half of the strictest epsilon no longer splits over the window.
    """
    if number == 0:
        return None
    declared = tuple(declared)
    nano = min(one.nano for one in declared)
    widest = max(one.window for one in declared)
    return Unknown(Requirement.from_nano(widest, nano if neighbours == "replace" else nano // 2), number)


def check_allowed(key: Key, declared: Iterable[Requirement]) -> None:
    """Refuse a requirement that history was not kept for: past memberships live for the largest declared window.

    Raises:
        InvalidMembership: if its window is larger than every declared one.
    """
    widest = max(one.window for one in declared)
    if key[0] > widest:
        raise InvalidMembership(
            f"a window of at most {widest} slots, the largest declared at the start",
            f"{key[0]}",
            "Start a new epoch that declares it (publish --new-epoch --declare WINDOW,EPSILON).",
            requirement=key,
        )


def make_roster(
    users: list[str], keys: Iterable[Key], declared: Iterable[Requirement], unknown: Unknown | None = None
) -> Roster:
    """The roster of one slot: its members, and a population in which every declared class stays, empty or not.

    Args:
        users: ids of the members.
        keys: the requirement of each.
        declared: classes that stay with size 0.
        unknown: where unregistered users are counted.
    """
    codes: dict[Key, int] = {}
    rows = np.fromiter((codes.setdefault(key, len(codes)) for key in keys), dtype=np.int64, count=len(users))
    requirements = [Requirement.from_nano(*key) for key in codes]
    sizes = np.bincount(rows, minlength=len(codes)).tolist() if codes else []
    population = dict.fromkeys(declared, 0)
    for requirement, size in zip(requirements, sizes, strict=True):
        population[requirement] = size
    if unknown is not None:
        population[unknown.requirement] = population.get(unknown.requirement, 0) + unknown.number
    whole = Population(population)
    order = np.array([whole.index(requirement) for requirement in requirements], dtype=np.int64)
    classes = order[rows] if len(rows) else np.zeros(0, dtype=np.int64)
    row = None if unknown is None else whole.index(unknown.requirement)
    return Roster(id_column(users), classes, whole, unknown_row=row, unknown_limit=unknown.number if unknown else 0)


def id_column(users: list[str]) -> npt.NDArray[np.int64] | npt.NDArray[np.str_]:
    """Ids as int64 if every one is a canonical whole number, else as text: numbers are found ten times faster."""
    text = np.array(users, dtype=np.str_) if users else np.zeros(0, dtype="U1")
    if not users:
        return text
    try:
        numbers = text.astype(np.int64)
    except (ValueError, OverflowError):
        return text
    return numbers if bool((numbers.astype(text.dtype) == text).all()) else text


def erased_id(user: str, salt: bytes) -> str:
    """What stays of an erased id for as long as the hold-out needs it: a keyed digest."""
    return "erased:" + hashlib.blake2b(user.encode(), key=salt[:64], digest_size=20).hexdigest()


def differences(
    current: Mapping[str, tuple[Key, str | None]], wanted: Mapping[str, tuple[Key, str | None]]
) -> list[Change]:
    """The changes that turn the current registry into the wanted one: what importing a file means."""
    changes = [
        Change("set", user, key, level) for user, (key, level) in wanted.items() if current.get(user) != (key, level)
    ]
    changes += [Change("remove", user) for user in current if user not in wanted]
    return changes
