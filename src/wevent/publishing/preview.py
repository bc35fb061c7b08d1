"""Effect of registry changes before they are stored: users in transition, returning users, classes of one.

Everything here is public: the number of users that hold a requirement, and when users join, leave or change (spec 1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wevent.core.budget import NANO
from wevent.core.ledger import count_typical
from wevent.core.settings import Options
from wevent.journal import Journal
from wevent.journal.terms import Epoch, class_history
from wevent.people.classes import ClassHistory, Key, find_counting_class
from wevent.people.membership import (
    Boundary,
    Change,
    Changes,
    Enrolment,
    History,
    drop_expired,
    find_current,
    find_in_force,
)
from wevent.publisher.catalogue import find_mechanism

_SHOWN = 3  # classes of one in a sentence


class Preview(NamedTuple):
    """Effect of changes that take effect at one slot boundary.

    Attributes:
        registered: number of users who are registered afterwards.
        in_transition: number of changed users who are counted in a stricter class than the one they chose.
        until: first slot in which all of these are counted in their own class, None without such users.
        returning: number of users who join and are still known: they left, or were erased.
        alone: requirements that are then held by one user, or classes that count one: sizes of both are public.
        until_time: start of slot `until`, None if it is not known.
    """

    registered: int = 0
    in_transition: int = 0
    until: int | None = None
    returning: int = 0
    alone: tuple[Key, ...] = ()
    until_time: str | None = None

    def sentences(self) -> list[str]:
        """Return the effect in words."""
        sentences = []
        if self.returning:
            sentences.append(f"{_users(self.returning, 'returns', 'return')} after leaving.")
        if self.in_transition:
            until = f"slot {self.until}" + ("" if self.until_time is None else f" ({self.until_time})")
            sentences.append(
                f"{_users(self.in_transition, 'is', 'are')} counted in a stricter class until {until} at the latest."
            )
        return [*sentences, *self.warnings()]

    def warnings(self) -> list[str]:
        """Return a warning of classes of one, if there are any."""
        if not self.alone:
            return []
        shown = "; ".join(f"window {window}, epsilon {nano / NANO:g}" for window, nano in self.alone[:_SHOWN])
        more = f"; and {len(self.alone) - _SHOWN} more" if len(self.alone) > _SHOWN else ""
        return [
            f"Warning: only one person holds {'each of ' if len(self.alone) > 1 else ''}{shown}{more}. How many hold a "
            "requirement is public, so whoever knows who asked for it knows when this person joins, leaves or changes."
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the effect in plain types."""
        return {**self._asdict(), "alone": [{"window": key[0], "epsilon": key[1] / NANO} for key in self.alone]}


def _users(count: int, one: str, many: str) -> str:
    return f"1 user {one}" if count == 1 else f"{count:,} users {many}"


def preview(
    journal: Journal, changes: Changes, versions: Iterable[Epoch] | None = None, slot: int | None = None
) -> Preview:
    """Return the effect of these changes together with the queued ones. Store nothing.

    Args:
        journal: the journal; it may be new.
        changes: in order.
        versions: every configuration version, that of the changes included; None: as the journal has them.
        slot: first slot in which the changes are active; None: the next one.
    """
    following = 1 if journal.is_new else journal.head().next_slot
    if following == 1 and isinstance(changes, Enrolment):  # nobody was counted yet
        alone = [key for key, size in changes.keys.sizes().items() if size == 1]
        return Preview(len(changes), alone=tuple(sorted(alone)))
    registry, slot = journal.registry, slot or following
    known = journal.epochs() if versions is None else list(versions)
    requested: dict[str, list[Change]] = {}
    for change in (*registry.queued(), *changes):
        requested.setdefault(change.user, []).append(change)
    requests = zip(registry.histories(requested), requested.values(), strict=True)
    found = preview_changes(class_history(known, registry.restores()), slot, registry.salt, registry.sizes(), requests)
    return found if found.until is None else found._replace(until_time=known[-1].terms.slot_span(found.until)[0])


def preview_changes(
    classes: ClassHistory,
    slot: int,
    salt: bytes,
    sizes: Mapping[Key, int],
    requests: Iterable[tuple[History, Sequence[Change]]],
) -> Preview:
    """Return the effect of changes that are active from a slot on.

    Args:
        classes: classes of the journal.
        slot: the slot.
        salt: key of the digests of ids.
        sizes: number of users that hold each requirement before.
        requests: rows of every user who changes, and the changes in order.
    """
    boundary, doubted, live = Boundary(classes, slot, salt), classes.doubted(slot), classes.live(slot)
    doubt_ends = max((restore.slot + key[0] for restore in classes.restores for key in restore.doubted), default=0)
    alike: dict[Any, tuple[History, Sequence[Change]]] = {}  # one user of all whose rows and changes are the same
    users = Counter[Any]()
    for history, changes in requests:
        kind = tuple(row[1:] for row in history), tuple((change.action, change.key) for change in changes)
        alike.setdefault(kind, (history, changes))
        users[kind] += 1
    held, moved, touched = Counter(sizes), Counter[Key](), set[Key]()
    in_transition = until = returning = 0
    for kind, (history, changes) in alike.items():
        rows: History = drop_expired(history, classes, slot)
        before, was_known = find_current(rows), any(row.first for row in rows)
        for change in changes:
            rows = boundary.apply(rows, change)
        after = find_current(rows)
        if (before and before.key) == (after and after.key):
            continue
        for row, sign in ((before, -1), (after, 1)):
            if row is not None:
                touched.add(row.key)
                held[row.key] += sign * users[kind]
        if after is None:
            continue
        returning += users[kind] * (before is None and was_known)
        begin = max(slot, after.first)  # a publisher may have applied a queued change for a later slot meanwhile
        counted = find_counting_class([*find_in_force(rows, begin), *doubted], live)
        if counted != after.key:
            in_transition += users[kind]
            moved[counted] += users[kind]
            until = max(until, doubt_ends, *(row.last + row.window for row in rows if row.last is not None))
    moved.pop(classes.version_at(slot).unregistered or (0, 0), None)  # more than one user is counted there
    alone = {key for key in touched if held[key] == 1} | {key for key in moved if held[key] + moved[key] == 1}
    return Preview(held.total(), in_transition, until if in_transition else None, returning, tuple(sorted(alone)))


def strictest_sentences(options: Options, sizes: Mapping[Key, int]) -> list[str]:
    """Return a warning if a few users set the noise for all: mechanisms with one budget or equal weights (spec 8, 11).

    Args:
        options: of the stream.
        sizes: number of users that hold each declared requirement.
    """
    shared = find_mechanism(options.mechanism).shared_budget
    if not sizes or not (shared or options.unbiased):
        return []
    windows, epsilons = np.array(list(sizes), dtype=np.int64).T
    users = np.array(list(sizes.values()), dtype=np.int64)
    typical = count_typical(windows, epsilons, users) > 0
    if not typical.any():
        return []
    budget, usual = (
        epsilons[rows].min() / windows[rows].max() if shared else (epsilons[rows] / windows[rows]).min()
        for rows in (slice(None), typical)
    )
    if usual <= 1.05 * budget:  # an error of 10 %
        return []
    few = int(users[~typical].sum())
    cause = "one budget for all" if shared else "equal weights"
    return [
        f"Warning: with {cause} the strictest requirement sets the noise for all users. {few:,} of {int(users.sum()):,} "
        f"users make it {usual / budget:.3g} times as large. Use mechanism pft with its default weights, or do not "
        "offer that requirement."
    ]
