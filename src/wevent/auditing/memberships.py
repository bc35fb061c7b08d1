"""Who was counted when: every membership history of a journal against the hold-out rule, by code of its own (spec 10).

Independent on purpose: it reads the tables as documented and shares nothing with the registry or its rules. Histories
are forgotten after the widest window, so an audit sees those of that many slots; run it at least that often.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from wevent.auditing.window_sums import NANO

Key = tuple[int, int]
Add = Callable[..., None]

_EVER = 1 << 62


class EpochRow(NamedTuple):
    """Terms in force from a slot on, as far as memberships go.

    Attributes:
        first: the slot.
        widest: the widest declared window.
        unknown: the class of strangers, None if they do not count.
        strangers: how many of them may.
        halved: whether that class has half of what strangers are promised.
    """

    first: int
    widest: int
    unknown: Key | None
    strangers: int
    halved: bool


class Run(NamedTuple):
    """Consecutive slots with one population: [window, nano-epsilons, size] each, with a fourth number for strangers."""

    first: int
    last: int
    population: list[list[int]]
    elsewhere: bool


class RestoreRow(NamedTuple):
    """Slots up to `slot` were released elsewhere; `changed` has a bit per bucket of ids, None: nothing is proven."""

    slot: int
    widest: int
    proven: int
    same_epoch: int
    charged: str
    changed: bytes | None

    def doubts(self, bucket: int) -> bool:
        """Whether a membership there is not proven."""
        if self.changed is None or self.proven != self.slot:
            return True
        return bool(self.changed[bucket // 8] >> bucket % 8 & 1)


class Row(NamedTuple):
    """A stored membership."""

    user: str
    window: int
    nano: int
    level: str | None
    since: int
    first: int
    last: int | None

    @property
    def key(self) -> Key:
        """The requirement."""
        return self.window, self.nano

    @property
    def end(self) -> int:
        """The last slot it counts in."""
        return _EVER if self.last is None else self.last

    @property
    def is_membership(self) -> bool:
        """Not only a note that the id may have been a stranger until the registry learnt of it."""
        return self.last is None or self.since <= self.last


class JournalRows(NamedTuple):
    """What a journal says about people, as its tables have it."""

    rows: list[Row]
    restores: list[RestoreRow]
    epochs: list[EpochRow]
    runs: list[Run]
    salt: bytes
    stored: bytes
    committed: int
    ruled_from: int

    @property
    def widest(self) -> int:
        """The widest window ever declared."""
        return max(epoch.widest for epoch in self.epochs)


def check_memberships(journal: JournalRows, add: Add) -> None:
    """Report every membership that the rules forbid: `add(slot, problem, **facts)`."""
    if _sum_of(journal) != journal.stored:
        add(journal.committed, "the registry does not add up: a membership is not what was stored")
    restores, people = list(_restores(journal)), list(_people(journal))
    for person in people:
        _check_person(journal, person, restores, add)
    _check_sizes(journal, add)
    _check_strangers(journal, restores, add)
    if any(len(row) > 3 for run in journal.runs for row in run.population):
        _check_barred(journal, people, add)


def unknown_key(declared: Iterable[Key], number: int, neighbours: str) -> Key | None:
    """The class of strangers: widest window, smallest epsilon, under add_remove half of it."""
    keys = list(declared)
    nano = min(nano for _, nano in keys)
    return (max(window for window, _ in keys), nano if neighbours == "replace" else nano // 2) if number else None


def _sum_of(journal: JournalRows) -> bytes:
    """What the rows add up to: keyed digests, summed in four lanes of 64 bits that wrap."""
    texts = []
    for user, window, nano, level, since, first, last in journal.rows:
        words = "-1," if level is None else f"{len(level)},{level}"
        texts.append(f"{window},{nano},{since},{first},{-1 if last is None else last},{words}{user}".encode())
    for slot, widest, proven, same_epoch, charged, changed in journal.restores:
        text = f"restore,{slot},{widest},{proven},{same_epoch},{charged}".encode()
        texts.append(text + (b"-" if changed is None else b"+" + changed))
    digests = b"".join(_keyed(text, journal.salt, 32) for text in texts)
    return bytes(np.frombuffer(digests, dtype="<u8").reshape(-1, 4).sum(axis=0, dtype=np.uint64).tobytes())


def _keyed(text: bytes, salt: bytes, size: int) -> bytes:
    return hashlib.blake2b(text, key=salt[:64], digest_size=size).digest()


def _restores(journal: JournalRows) -> Iterator[tuple[RestoreRow, frozenset[Key]]]:
    """Every stretch of slots released elsewhere: what is known of it, and the classes that were charged for it."""
    known = {restore.slot: restore for restore in journal.restores}
    for place, run in enumerate(journal.runs):
        following = journal.runs[place + 1 : place + 2]
        if run.elsewhere and not any(later.elsewhere for later in following) and run.last >= journal.ruled_from:
            charged = frozenset((row[0], row[1]) for row in run.population)
            yield known.pop(run.last, RestoreRow(run.last, journal.widest, 0, 0, "[]", None)), charged
    for restore in known.values():
        yield restore, frozenset()


def _people(journal: JournalRows) -> Iterator[tuple[int, list[Row]]]:
    """The rows of every id with its bucket; an erased id and the same one registered again are one person."""
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in journal.rows:
        name = row.user if row.user.startswith("erased:") else _digest_name(row.user, journal.salt)
        rows[name].append(row)
    for name, own in rows.items():
        yield int(name[7:11], 16), sorted(own, key=lambda row: (row.first, row.end))


def _digest_name(user: str, salt: bytes) -> str:
    return "erased:" + _keyed(user.encode(), salt, 20).hex()


def _check_person(
    journal: JournalRows, person: tuple[int, list[Row]], restores: Sequence[tuple[RestoreRow, frozenset[Key]]], add: Add
) -> None:
    bucket, rows = person
    held = [row for row in rows if row.is_membership]
    for place, later in enumerate(held):
        for earlier in held[:place]:
            least = 1 if earlier.key == later.key else max(earlier.window, later.window)
            if later.first - earlier.end < least:
                _report(add, later, "someone was counted too soon after holding another requirement")
        if later.since >= journal.ruled_from:
            _check_join(journal, later, add)
        for event in restores:
            _check_restore(later, held, bucket, event, add)


def _check_join(journal: JournalRows, row: Row, add: Add) -> None:
    """Before the registry knew the id it may have been a stranger."""
    for unknown, last in _as_stranger(journal.epochs, row.since):
        same = unknown == row.key and not any(epoch.halved for epoch in journal.epochs)
        if not same and row.first - last < max(unknown[0], row.window):
            _report(add, row, "someone who may have been a stranger was counted too soon after joining")
            break
    if row.first < _opening(journal.epochs, row.window):
        _report(add, row, "a window wider than histories were kept for was used too soon")


def _check_restore(row: Row, held: list[Row], bucket: int, event: tuple[RestoreRow, frozenset[Key]], add: Add) -> None:
    restore, charged = event
    doubtful = restore.doubts(bucket) or (row.since > restore.slot and not restore.same_epoch)
    until = restore.slot + max(restore.widest, row.window)
    if doubtful and row.end > restore.slot and row.first < until:
        _report(
            add, row, "a membership that is not proven for slots released elsewhere was counted too soon after them"
        )
        return
    uncharged = bool(charged) and row.key not in charged
    soon = row.end > restore.slot and row.first < restore.slot + row.window
    if (
        uncharged
        and soon
        and any(earlier.key == row.key and earlier.first <= restore.slot <= earlier.end for earlier in held)
    ):
        _report(add, row, "a class that was not charged for slots released elsewhere was used too soon after them")


def _report(add: Add, row: Row, problem: str) -> None:
    add(row.first, problem, window=row.window, epsilon=row.nano / NANO)


def _as_stranger(epochs: list[EpochRow], since: int) -> Iterator[tuple[Key, int]]:
    """The classes in which an id unknown before a slot may have been counted, with the last slot of each."""
    ends = [epoch.first - 1 for epoch in epochs[1:]] + [_EVER]
    for epoch, end in zip(epochs, ends, strict=True):
        last = min(end, since - 1)
        if epoch.unknown is not None and last >= epoch.first:
            yield epoch.unknown, last


def _opening(epochs: list[EpochRow], window: int) -> int:
    """From which slot on nothing that was forgotten can matter to a window."""
    opening, kept = 0, 0
    for epoch in epochs:
        if 0 < kept < window:
            opening = max(opening, epoch.first + window - kept)
        kept = max(kept, epoch.widest)
    return opening


def _check_sizes(journal: JournalRows, add: Add) -> None:
    """The class sizes that were used are those of the histories, for as long as these are complete."""
    begin, length = _complete(journal)
    sizes: dict[Key, Any] = defaultdict(lambda: np.zeros(length + 1, dtype=np.int64))
    for row in journal.rows:
        if row.is_membership and row.end >= begin and row.first <= journal.committed:
            sizes[row.key][max(row.first - begin, 0)] += 1
            sizes[row.key][min(row.end - begin + 1, length)] -= 1
    members = {key: changes[:-1].cumsum() for key, changes in sizes.items()}
    for run in journal.runs:
        low, high = max(run.first, begin) - begin, run.last - begin + 1
        if run.elsewhere or high <= low:
            continue
        used = {(row[0], row[1]): row[2] for row in run.population}
        for window, nano, *_ in (row for row in run.population if len(row) > 3):
            used[window, nano] -= _strangers_at(journal.epochs, run.first)
        for key in used.keys() | members.keys():
            wrong = np.flatnonzero(members.get(key, np.zeros(length, dtype=np.int64))[low:high] != used.get(key, 0))
            if len(wrong):
                slot = begin + low + int(wrong[0])
                add(slot, "a class was not as large as its members say", window=key[0], epsilon=key[1] / NANO)


def _strangers_at(epochs: list[EpochRow], slot: int) -> int:
    return next(epoch.strangers for epoch in reversed(epochs) if epoch.first <= slot)


def _check_strangers(journal: JournalRows, restores: Sequence[tuple[RestoreRow, frozenset[Key]]], add: Add) -> None:
    """Strangers hold a requirement too: across epochs and restores; and whom the registry knows is no stranger."""
    counted: dict[Key, int] = {}
    for run in journal.runs:
        key = _strangers_of(journal, run)
        if key is None:
            continue
        waits = [last + max(key[0], other[0]) for other, last in counted.items() if other != key]
        waits += [
            restore.slot + max(restore.widest, key[0])
            for restore, _ in restores
            if restore.slot < run.first
            and (restore.changed is None or restore.proven != restore.slot or not restore.same_epoch)
        ]
        if run.first >= journal.ruled_from and run.first < max([_opening(journal.epochs, key[0]), *waits]):
            add(run.first, "strangers were counted too soon in another class", window=key[0], epsilon=key[1] / NANO)
        counted[key] = run.last


def _strangers_of(journal: JournalRows, run: Run) -> Key | None:
    """The class that strangers were counted in; the first format always counted them where the terms said so."""
    if run.elsewhere:
        return None
    marked = [(row[0], row[1]) for row in run.population if len(row) > 3]
    if marked:
        return marked[0]
    if run.first >= journal.ruled_from:
        return None
    return next(epoch.unknown for epoch in reversed(journal.epochs) if epoch.first <= run.first)


def _check_barred(journal: JournalRows, people: list[tuple[int, list[Row]]], add: Add) -> None:
    """Whom the registry knew and did not count was kept from counting as a stranger: at least so many ids were."""
    begin, length = _complete(journal)
    apart = np.zeros(length + 1, dtype=np.int64)
    for _, rows in people:
        known = _joined((row.since, row.end + journal.widest - 1) for row in rows)
        counted = _joined((row.first, row.end) for row in rows if row.is_membership)
        for sign, spans in ((1, known), (-1, counted)):
            for first, last in spans:
                if last >= begin and first <= journal.committed:
                    apart[max(first - begin, 0)] += sign
                    apart[min(last - begin + 1, length)] -= sign
    least = apart.cumsum()
    for run in journal.runs:
        barred = [row[3] for row in run.population if len(row) > 3]
        low, high = max(run.first, begin) - begin, run.last - begin + 1
        if barred and high > low and int(least[low:high].max()) > barred[0]:
            add(begin + low, "ids that the registry knows may have been counted as strangers")


def _complete(journal: JournalRows) -> tuple[int, int]:
    """The first slot whose histories are all still there, and how many slots that makes."""
    begin, widest = journal.ruled_from, 0
    ends = [epoch.first for epoch in journal.epochs[1:]] + [journal.committed + 1]  # the last boundary of each
    for epoch, end in zip(journal.epochs, ends, strict=True):
        widest = max(widest, epoch.widest)  # what had ended so long before a slot of this epoch may be forgotten
        begin = max(begin, end - widest + 1)
    return begin, max(journal.committed - begin + 1, 0)


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of slots, those that touch put together."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return joined
