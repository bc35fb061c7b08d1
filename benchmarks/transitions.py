"""`python -m benchmarks.transitions [cost|boundary|utility|error|restore]`: change of requirement without a waiting period.

Compares with a waiting period in the same run: a user who changes from A to B is left out until max(w_A, w_B) slots after the
last slot under A. Ratios are of the same streams and seeds.
"""

from __future__ import annotations

import functools
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from wevent import Population, Publisher, Requirement, SeededNoise
from wevent.core.order import StrictnessOrder
from wevent.counting.string_column import StringColumn
from wevent.journal import SqliteJournal, Terms
from wevent.journal.terms import Epoch
from wevent.people.classes import ClassHistory, Key, Restore, VersionClasses, find_counting_class
from wevent.people.membership import NO_TAILS, Change, Enrolment, KeyColumn, MemberColumns, Rosters, TailColumns
from wevent.publishing.loop import MemberView

LEVELS: list[Key] = sorted((window, nano * 10**8) for window in (40, 80, 120) for nano in (1, 5, 9))
REQUIREMENTS = [Requirement.from_nano(*key) for key in LEVELS]
CELLS, USERS, WIDEST = 8, 9_000, 120
SEEDS = range(8)


def make_classes(*restores: Restore) -> ClassHistory:
    """Return the classes of a journal with the default levels."""
    return ClassHistory([VersionClasses(1, frozenset(LEVELS), None)], restores)


def shares(slot: int) -> Any:
    """Return the share of users in each cell, and the share in none."""
    cells = 0.1 * (1 + 0.5 * np.sin(2 * np.pi * slot / 96 + np.arange(CELLS)))
    return np.append(cells, 1 - cells.sum())


class Stream:
    """Users who change at random, and the counts of each slot.

    Args:
        mechanism: name of the mechanism.
        rate: share of the users who change per 120 slots.
        seed: of everything random.
        waiting: whether users who change are left out.
    """

    def __init__(self, mechanism: str, rate: float, seed: int, *, waiting: bool) -> None:
        self.publisher = Publisher(
            Population(dict.fromkeys(REQUIREMENTS, 0)), CELLS, mechanism, noise=SeededNoise(seed)
        )
        self.random = np.random.default_rng(seed)
        self.rate, self.waiting = rate, waiting
        self.held = np.arange(USERS) % len(LEVELS)
        self.strictest = np.array(LEVELS)[self.held]  # window and epsilon of all that is in force, without what is held
        self.until = np.zeros(USERS, dtype=np.int64)  # first slot in which no earlier choice matters
        self.left_out = np.zeros(USERS, dtype=np.bool_)

    def change(self, slot: int) -> None:
        """Let some users change at the boundary before a slot."""
        moving = np.flatnonzero(self.random.random(USERS) < self.rate / WIDEST)
        targets = (self.held[moving] + self.random.integers(1, len(LEVELS), len(moving))) % len(LEVELS)
        keys = np.array(LEVELS)
        before, after = keys[self.held[moving]], keys[targets]
        fresh = self.until[moving] <= slot
        self.strictest[moving] = np.where(
            fresh[:, None],
            before,
            np.stack(
                [
                    np.maximum(self.strictest[moving, 0], before[:, 0]),
                    np.minimum(self.strictest[moving, 1], before[:, 1]),
                ],
                axis=1,
            ),
        )
        window = np.maximum(before[:, 0], after[:, 0]) if self.waiting else before[:, 0]
        self.until[moving] = np.maximum(self.until[moving], slot - 1 + window)
        self.held[moving] = targets

    def place(self, slot: int) -> tuple[Any, Any]:
        """Return for each user the class that counts them, −1 for none, and whether it is their own."""
        earlier = self.until > slot
        if self.waiting:
            return np.where(earlier, -1, self.held), ~earlier
        keys = np.array(LEVELS)[self.held]
        corners = np.where(
            earlier[:, None],
            np.stack(
                [np.maximum(keys[:, 0], self.strictest[:, 0]), np.minimum(keys[:, 1], self.strictest[:, 1])], axis=1
            ),
            keys,
        )
        column = KeyColumn.of_columns(corners[:, 0], corners[:, 1])
        classes = np.array([LEVELS.index(find_counting_class([key], LEVELS)) for key in column.distinct])
        counted = classes[column.codes]
        return counted, counted == self.held

    def errors(self, slots: int, warm_up: int) -> float:
        """Return the mean squared error against all registered users after a warm-up."""
        errors = []
        for slot in range(1, slots + 1):
            self.change(slot)
            counted, own = self.place(slot)
            sizes = np.bincount(counted[counted >= 0], minlength=len(LEVELS))
            owns = np.bincount(counted[own & (counted >= 0)], minlength=len(LEVELS))
            out = counted < 0
            turnover = int(np.count_nonzero(out != self.left_out)) if self.waiting else 0
            self.left_out = out
            population = Population(
                dict(zip(REQUIREMENTS, sizes.tolist(), strict=True)),
                dict(zip(REQUIREMENTS, owns.tolist(), strict=True)),
            )
            if population != self.publisher.population:
                self.publisher.update(population, turnover=USERS if slot == 1 else turnover)
            probabilities = shares(slot)
            counts = np.stack([self.random.multinomial(size, probabilities)[:CELLS] for size in sizes])
            missed = self.random.multinomial(int(out.sum()), probabilities)[:CELLS]
            released = self.publisher.step(counts).histogram
            if slot > warm_up:
                errors.append(float(((released - counts.sum(axis=0) - missed) ** 2).mean()))
        return float(np.mean(errors))


def error() -> None:
    """Print the error with users who change, against that with a waiting period."""
    print("| mechanism | change per window | error, waiting | error, now | ratio (standard error over seeds) |")
    print("|---|---|---|---|---|")
    for mechanism in ("pft", "pba", "pbd"):
        for rate in (0.0, 0.01, 0.1, 0.5):
            pairs = np.array([_errors(mechanism, rate, seed) for seed in SEEDS])
            ratios = pairs[:, 1] / pairs[:, 0]
            before, now = pairs.mean(axis=0)
            print(
                f"| {mechanism} | {rate:.0%} | {before:,.0f} | {now:,.0f} | {now / before:.2f} "
                f"(± {ratios.std(ddof=1) / len(ratios) ** 0.5:.2f}) |",
                flush=True,
            )


def _errors(mechanism: str, rate: float, seed: int) -> tuple[float, float]:
    """Return the error with a waiting period, where no order of offers is needed, and without one."""
    with unordered():
        waiting = Stream(mechanism, rate, seed, waiting=True).errors(480, 240)
    return waiting, Stream(mechanism, rate, seed, waiting=False).errors(480, 240)


def utility() -> None:
    """Print how often users who changed once are counted, and with which share of the budget of the class they chose."""
    publisher = Publisher(Population(dict.fromkeys(REQUIREMENTS, 1000)), CELLS, "pft", noise=SeededNoise(7))
    random = np.random.default_rng(1)
    charges = np.zeros((761, len(LEVELS)))
    for slot in range(1, 761):
        release = publisher.step(np.stack([random.multinomial(1000, shares(slot))[:CELLS] for _ in LEVELS]))
        charges[slot] = release.probe_charges + release.publication_charges
    print("| change | slots counted in 240, waiting | now | budget of the chosen class, waiting | now |")
    print("|---|---|---|---|---|")
    for name, chosen in _kinds().items():
        results = []
        for before, after in chosen:
            for change in range(400, 520, 5):
                slots = np.arange(change, change + 240)
                due = charges[slots, after] > 0
                first = change - 1 + max(LEVELS[before][0], LEVELS[after][0])
                counting = LEVELS.index(find_counting_class([LEVELS[before], LEVELS[after]], LEVELS))
                earlier = slots < change - 1 + LEVELS[before][0]
                granted = np.where(earlier, charges[slots, counting], charges[slots, after])
                waited = np.where(slots < first, 0, charges[slots, after])
                shares_of = [(grant[due] / charges[slots, after][due]).mean() for grant in (waited, granted)]
                results.append((np.count_nonzero(slots >= first), 240, *shares_of))
        waiting, now, budget_waiting, budget_now = np.mean(results, axis=0)
        print(f"| {name} | {waiting:.0f} | {now:.0f} | {budget_waiting:.2f} | {budget_now:.2f} |")


def _kinds() -> dict[str, list[tuple[int, int]]]:
    kinds: dict[str, list[tuple[int, int]]] = {"looser": [], "stricter": [], "mixed": []}
    for before, (window, nano) in enumerate(LEVELS):
        for after, (other_window, other_nano) in enumerate(LEVELS):
            if before != after:
                looser = other_window <= window and other_nano >= nano
                stricter = other_window >= window and other_nano <= nano
                kinds["looser" if looser else "stricter" if stricter else "mixed"].append((before, after))
    return {**kinds, "all": [pair for pairs in kinds.values() for pair in pairs]}


def restore() -> None:
    """Print the error of the 119 slots after a restore that lost 3 slots."""
    print("| after the restore | mean squared error | ratio |")
    print("|---|---|---|")
    found: dict[str, float] = {}
    for name in ("nobody in doubt", "everybody in doubt", "everybody waits"):
        found[name] = float(np.mean([_restored_error(name, seed) for seed in range(4)]))
        print(f"| {name} | {found[name]:,.0f} | {found[name] / found['nobody in doubt']:.1f} |", flush=True)


def _restored_error(name: str, seed: int) -> float:
    random = np.random.default_rng(seed)
    sizes = dict.fromkeys(REQUIREMENTS, 1000)
    publisher = Publisher(Population(sizes), CELLS, "pft", noise=SeededNoise(seed))
    classes = make_classes(Restore(303, 0, tuple(LEVELS)))
    members = MemberColumns(
        StringColumn.from_texts([f"u{user}" for user in range(USERS)]), KeyColumn(LEVELS, np.arange(USERS) % 9)
    )
    rosters = Rosters(members, NO_TAILS, classes=classes)
    errors = []
    nothing = np.zeros(len(LEVELS), dtype=np.int64)
    for slot in range(1, 423):
        if 300 < slot < 304:
            publisher.replay(nothing, publisher.ledger.remaining() if slot == 303 else nothing, None)
            continue
        counts = np.stack([random.multinomial(1000, shares(slot))[:CELLS] for _ in LEVELS])
        truth = counts.sum(axis=0)
        if slot > 303 and name != "nobody in doubt":
            roster = rosters.at(slot)
            population = Population(dict.fromkeys(REQUIREMENTS, 0)) if name == "everybody waits" else roster.population
            if population != publisher.population:
                publisher.update(population, turnover=0)
            counts = _move(counts, roster) if name == "everybody in doubt" else np.zeros_like(counts)
        released = publisher.step(counts).histogram
        if slot > 303:
            errors.append(float(((released - truth) ** 2).mean()))
    return float(np.mean(errors))


def _move(counts: Any, roster: Any) -> Any:
    """Return counts per requirement as counts per counting class."""
    moved = np.zeros_like(counts)
    for level in range(len(LEVELS)):
        moved[roster.classes[level]] += counts[level]  # user n holds level n mod 9
    return moved


@contextmanager
def unordered() -> Iterator[None]:
    """Switch the order rule of the gate off."""
    before = StrictnessOrder.lower, StrictnessOrder.raise_charges
    StrictnessOrder.lower = StrictnessOrder.raise_charges = lambda self, values: values  # type: ignore[method-assign]
    try:
        yield
    finally:
        StrictnessOrder.lower, StrictnessOrder.raise_charges = before  # type: ignore[method-assign]


def cost() -> None:
    """Print the time of a slot with and without the order rule, interleaved."""
    print("| mechanism | classes | without, µs | with, µs | ratio | more, µs |")
    print("|---|---|---|---|---|---|")
    for classes in (9, 100):
        side = round(classes**0.5)
        chosen = [
            Requirement(20 + 10 * row, f"{0.1 + 0.05 * column:.2f}") for row in range(side) for column in range(side)
        ]
        for mechanism in ("pft", "pba", "pbd", "pbu", "uniform", "sample"):
            counts = np.random.default_rng(1).integers(0, 30, (len(chosen), CELLS))
            pairs = []
            for _ in range(5):
                with unordered():
                    without = _time_slots(chosen, mechanism, counts)
                pairs.append((without, _time_slots(chosen, mechanism, counts)))
            without, together = np.median(pairs, axis=0)
            print(
                f"| {mechanism} | {classes} | {without:.0f} | {together:.0f} | {together / without:.2f} "
                f"| {together - without:.0f} |",
                flush=True,
            )


def _time_slots(chosen: list[Requirement], mechanism: str, counts: Any) -> float:
    publisher = Publisher(Population(dict.fromkeys(chosen, 1000)), CELLS, mechanism, noise=SeededNoise(1))
    for _ in range(50):
        publisher.step(counts)
    begun = time.process_time()
    for _ in range(300):
        publisher.step(counts)
    return 1e6 * (time.process_time() - begun) / 300


def boundary() -> None:
    """Print the time of slot boundaries with 5 million users."""
    users = 5_000_000
    random = np.random.default_rng(1)
    ids = StringColumn.from_texts([f"user-{number}" for number in range(users)])
    keys = KeyColumn(LEVELS, random.integers(0, len(LEVELS), users))
    tails = TailColumns(ids, KeyColumn(LEVELS, random.integers(0, len(LEVELS), users)), np.full(users, 99))
    print("| boundary | processor s |")
    print("|---|---|")
    changed = _timed(
        "all change (registry read before)", lambda: Rosters(MemberColumns(ids, keys), tails, classes=make_classes())
    )
    _timed("first slot after it", lambda: changed.at(100))
    _timed("a tail of 1.7 M users ends", lambda: changed.at(139))
    _timed("the last tail of 1.7 M users ends", lambda: changed.at(219))
    restored = Rosters(MemberColumns(ids, keys), NO_TAILS, classes=make_classes(Restore(99, 0, tuple(LEVELS))))
    _timed("first slot after a restore", lambda: restored.at(100))
    _timed("last doubt ends", lambda: restored.at(219))
    with tempfile.TemporaryDirectory() as folder, SqliteJournal(Path(folder) / "run.journal", write=True) as journal:
        _time_journal(journal, ids, keys)


def _time_journal(journal: SqliteJournal, ids: StringColumn, keys: KeyColumn) -> None:
    """Print the time of boundaries of a journal after a version moved every user to the next level.

    Rows that are no longer kept are dropped in portions, as for live slots of a minute.
    """
    terms = Terms(stream="s", origin_us=0, length_us=60_000_000, cells=CELLS, declared=LEVELS)
    journal.begin(terms)
    view = MemberView(journal.registry, [Epoch(1, 1, terms)])
    moved = KeyColumn(LEVELS, (keys.codes + 1) % len(LEVELS))
    for slot, chosen in ((1, keys), (100, moved)):
        journal.registry.ask(Enrolment(ids, chosen))
        _timed(f"journal: slot {slot}, every user changes", functools.partial(view.at, slot))
    for slot in (139, 140, 179, 219, 220, 221):
        _timed(f"journal: slot {slot}, tails end or rows are dropped", functools.partial(view.at, slot, 1 << 13))


def written() -> None:
    """Print the bytes that changes of one user write, in a journal file with a million users: `wchar` of /proc/self/io.

    These are the bytes of all write calls: to the database, its write-ahead log and the witness. The limit is 8 kB.
    """
    users, random = 1_000_000, np.random.default_rng(1)
    ids = StringColumn.from_texts([f"user-{number:07}" for number in range(users)])
    keys = KeyColumn(LEVELS, random.integers(0, len(LEVELS), users))
    terms = Terms(stream="s", origin_us=0, length_us=60_000_000, cells=CELLS, declared=LEVELS)
    print("| change | request: bytes | boundary: bytes |")
    print("|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.journal"
        with SqliteJournal(path, write=True) as journal:
            journal.begin(terms, changes=Enrolment(ids, keys))
            journal.update_witness()
        with SqliteJournal(path, write=True) as journal:  # opened again: the first change has the costs of a start
            view = MemberView(journal.registry, journal.epochs())
            view.at(1)
            for number in range(10):
                user = int(random.integers(users))
                change = Change("set", f"user-{user:07}", LEVELS[(keys.codes[user] + 1) % len(LEVELS)])
                sizes = []
                for work in (functools.partial(journal.registry.ask, [change]), functools.partial(view.at, number + 2)):
                    before = _bytes_written()
                    work()
                    sizes.append(_bytes_written() - before)
                print(f"| {number + 1} | {sizes[0]:,} | {sizes[1]:,} |", flush=True)


def _bytes_written() -> int:
    (line,) = (line for line in Path("/proc/self/io").read_text().splitlines() if line.startswith("wchar"))
    return int(line.split()[1])


def _timed(name: str, work: Callable[[], Any]) -> Any:
    begun = time.process_time()
    done = work()
    print(f"| {name} | {time.process_time() - begun:.2f} |", flush=True)
    return done


def main() -> None:
    """Run the parts named on the command line, or all."""
    parts = {
        "cost": cost,
        "boundary": boundary,
        "written": written,
        "utility": utility,
        "error": error,
        "restore": restore,
    }
    chosen = [name for name in sys.argv[1:] if name in parts] or list(parts)
    for name in chosen:
        parts[name]()
        print()


if __name__ == "__main__":
    main()
