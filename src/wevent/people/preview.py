"""Effect of changes before they are stored: users in transition, returning users, classes of one. Pure.

Everything here is public: the number of users that hold a requirement, and when users join, leave or change (spec 1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from wevent.people.classes import ClassHistory, Key, find_counting_class
from wevent.people.membership import Change
from wevent.people.membership_history import Boundary, History, drop_expired, find_current, find_in_force


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


class _Effect(NamedTuple):
    before: Key | None
    after: Key | None
    counted: Key | None  # class that counts the user, None if it is the one they chose
    until: int
    returning: bool


def preview_changes(
    classes: ClassHistory,
    slot: int,
    salt: bytes,
    sizes: Mapping[Key, int],
    requests: Iterable[tuple[History, Sequence[Change]]],
) -> Preview:
    """Return the effect of changes.

    Args:
        classes: classes of the journal.
        slot: first slot in which the changes are active.
        salt: key of the digests of ids.
        sizes: number of users that hold each requirement before.
        requests: rows of every user who changes, and the changes in order.
    """
    boundary, doubted, live = Boundary(classes, slot, salt), classes.doubted(slot), classes.live(slot)
    doubt_ends = max((restore.slot + key[0] for restore in classes.restores for key in restore.doubted), default=0)
    known: dict[Any, _Effect] = {}
    held, moved, touched = Counter(sizes), Counter[Key](), set[Key]()
    in_transition = until = returning = 0

    def find_effect(history: History, changes: Sequence[Change]) -> _Effect:
        rows: History = drop_expired(history, classes, slot)
        before, was_known = find_current(rows), any(row.first for row in rows)
        for change in changes:
            rows = boundary.apply(rows, change)
        after = find_current(rows)
        if after is None:
            return _Effect(before and before.key, None, None, 0, returning=False)
        begin = max(slot, after.first)  # a publisher may have applied a queued change for a later slot meanwhile
        counted = find_counting_class([*find_in_force(rows, begin), *doubted], live)
        ends = [row.last + row.window for row in rows if row.last is not None]
        ends += [doubt_ends] if doubted else []
        moved_to, end = (None, 0) if counted == after.key else (counted, max(ends))
        return _Effect(before and before.key, after.key, moved_to, end, returning=before is None and was_known)

    for history, changes in requests:
        alike = tuple(row[1:] for row in history), tuple((change.action, change.key) for change in changes)
        if alike not in known:
            known[alike] = find_effect(history, changes)
        effect = known[alike]
        if effect.before == effect.after:
            continue
        for key, sign in ((effect.before, -1), (effect.after, 1)):
            if key is not None:
                touched.add(key)
                held[key] += sign
        returning += effect.returning
        if effect.counted is not None:
            in_transition += 1
            moved[effect.counted] += 1
        until = max(until, effect.until)
    moved.pop(classes.version_at(slot).unregistered or (0, 0), None)  # more than one user is counted there
    alone = {key for key in touched if held[key] == 1} | {key for key in moved if held[key] + moved[key] == 1}
    return Preview(held.total(), in_transition, until if in_transition else None, returning, tuple(sorted(alone)))
