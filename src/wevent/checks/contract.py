"""The ten checks. They keep books of charges in plain integers, without a ledger."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from wevent.checks.doubles import (
    ENDS,
    HUGE,
    Adversary,
    AskedBudgets,
    Key,
    ScriptedDraws,
    WatchedSmoother,
    watched_policy,
)
from wevent.checks.subject import (
    CELLS,
    EVERYONE,
    LONG,
    MIDDLE,
    SHORT,
    Broken,
    Subject,
    expect,
    expect_same,
    expect_same_releases,
    expect_same_state,
    plain,
)
from wevent.core.limits import MAX_USERS
from wevent.core.mechanism import NoOffer
from wevent.core.requirements import Population, Requirement
from wevent.errors import InvalidCounts, InvalidPopulation, WeventError
from wevent.journal.record import Shown, decode_shown, encode_shown
from wevent.noise.secure import SecureNoise
from wevent.noise.seeded import SeededNoise
from wevent.publisher.publisher import Publisher
from wevent.publisher.release import Release
from wevent.publisher.state import load

# One user with shares of 0.1 beside many with a share of 0.19: offered 2 shares or more the one is charged 1.9 of them,
# and the rest comes back with a refund. And two windows of which one is over while the other still pays back.
_REFUNDED = Population({Requirement(3, "0.6"): 1, Requirement(1, "0.38"): 1000})
_UNEVEN = Population({Requirement(2, "0.8"): 50, Requirement(4, "0.8"): 50, Requirement(9, "0.5"): 0})
_CROWDS = (
    Population({Requirement(1, "18e-9"): 3, Requirement(9, 50): 0}),
    Population({Requirement(3, "0.000001"): 10**9, Requirement(9, 2): 1}),
    Population({Requirement(2, 50): MAX_USERS // 3, Requirement(60, 1): 1000, Requirement(7, 1): 0}),
)


def expect_windows_hold(requirement: Requirement, charges: Sequence[int]) -> None:
    """Expect at most ε in every w consecutive slots, in integers, without tolerance."""
    window, spent = requirement.window, 0
    for slot, charge in enumerate(charges, start=1):
        expect(type(charge) is int and charge >= 0, f"a charge of {charge!r} nano-epsilons", slot)
        spent += charge - (charges[slot - window - 1] if slot > window else 0)
        expect(spent <= requirement.nano, f"{window} slots charge {requirement} {spent} nano-epsilons", slot)


def within_its_means(subject: Subject) -> None:
    """It asks for no more than its windows have left, so the gate never refuses, and is charged what it asked for.

    A stricter class is charged at most what is asked of a looser one (spec 15.1 rule 3). A mechanism with a threshold
    reserves a probe in every slot; one without never does. A policy has no memory of its own.
    """
    seen: list[AskedBudgets] = []
    with subject.as_row(policy=watched_policy(subject.row, seen)) as watched:
        for population in (EVERYONE, _UNEVEN, _REFUNDED):
            for refund in (False,) if subject.row.local else (False, True):
                for publish in (0.2, 0.5, 0.8, 1.0) if subject.row.probes else (1.0,):
                    made = watched.publisher(Adversary(subject.seed, publish), population, refund=refund)
                    _follow(watched, made, seen, refund=refund)
        _follow(watched, watched.publisher(Adversary(subject.seed, 0.6)), seen, refund=False, moving=True)


def _follow(
    subject: Subject, publisher: Publisher, seen: list[AskedBudgets], *, refund: bool, moving: bool = False
) -> None:
    """Step a publisher, with classes that come and go if they are `moving`, and keep a book of every requirement."""
    random = np.random.default_rng(subject.seed)
    books: dict[Key, list[int]] = {}
    for index in range(subject.slots):
        if moving and index % 3 == 2:
            members = [one for one in (SHORT, MIDDLE, LONG) if random.random() < 0.6] or [LONG]
            publisher.update(Population({one: int(random.integers(0, 300)) for one in members}), turnover=10)
        seen.clear()
        release = publisher.step(next(subject.stream(1, publisher.population)))
        (asked,) = seen
        _expect_affordable(asked, books, probes=subject.row.probes)
        charged = _charged(release, asked, publisher.population, refund=refund)
        for key in books.keys() | charged.keys():
            books.setdefault(key, [0] * index).append(charged.get(key, 0))


def _expect_affordable(asked: AskedBudgets, books: dict[Key, list[int]], *, probes: bool) -> None:
    probe, offer = asked.probe or {}, {} if isinstance(asked.offer, NoOffer) else asked.offer
    for key, members in asked.members.items():
        requirement, book = Requirement.from_nano(*key), books.get(key, [])
        left = requirement.nano - sum(book[max(0, len(book) - requirement.window + 1) :])
        most = probe.get(key, 0) + offer.get(key, 0)
        expect(most <= left, f"it asks {requirement} for {most} nano-epsilons, and {left} are left", asked.slot)
        if probes and members:
            expect(probe.get(key, 0) > 0, f"a threshold, and no probe of {requirement}", asked.slot)
    expect(probes or asked.probe is None, "a probe, and no threshold", asked.slot)


def _charged(release: Release, asked: AskedBudgets, population: Population, *, refund: bool) -> dict[Key, int]:
    """Return the charge of each row: what was asked for, in the order of rule 3; less if a publication was refunded."""
    offer = asked.offer if release.fresh and not isinstance(asked.offer, NoOffer) else {}
    parts = [_lowered(part) for part in (asked.probe or {}, offer)]
    due = {key: sum(part.get(key, 0) for part in parts) for key in asked.members}
    for requirement, charge in zip(population.classes, release.charges.tolist(), strict=True):
        key = requirement.key
        fits = charge <= due[key] if refund else charge == due[key]
        expect(fits, f"{requirement} is charged {charge}, and {due[key]} was asked for", release.slot)
        due[key] = charge
    return due


def _lowered(budgets: dict[Key, int]) -> dict[Key, int]:
    """Return for each row the smallest budget of the rows that it is at least as strict as."""
    return {
        (window, nano): min(budget for (w, e), budget in budgets.items() if w <= window and e >= nano)
        for window, nano in budgets
    }


def windows(subject: Subject) -> None:
    """No window of any class is overspent under any option, whatever pattern of publishing and skipping is forced."""
    for publish in (0.0, 0.5, 1.0):
        _spend(subject, subject.publisher(Adversary(subject.seed, publish)))
    options: list[dict[str, Any]] = [
        {"neighbours": "replace", "known_total": EVERYONE.users},
        {"nonnegative": True, "round": True},
    ]
    if not subject.row.local:
        options.append({"refund": True, "max_cells_per_user": 2})
    for chosen in options:
        _spend(subject, subject.publisher(Adversary(subject.seed, 0.7), **chosen))
    _spend(subject, subject.publisher(SecureNoise()))


def _spend(subject: Subject, publisher: Publisher) -> None:
    books: list[list[int]] = [[] for _ in EVERYONE.classes]
    for counts in subject.stream():
        spent, left = publisher.ledger.spent().tolist(), publisher.ledger.remaining().tolist()
        for row, (requirement, book) in enumerate(zip(EVERYONE.classes, books, strict=True)):
            recent = sum(book[max(0, len(book) - requirement.window + 1) :])
            expect_same((recent, requirement.nano - recent), (spent[row], left[row]), "spent and left", publisher.slot)
        for book, charge in zip(books, publisher.step(counts).charges.tolist(), strict=True):
            book.append(charge)
    for requirement, book in zip(EVERYONE.classes, books, strict=True):
        expect_windows_hold(requirement, book)
    expect(any(map(sum, books)), "no slot is charged, which shows nothing")


def populations(subject: Subject) -> None:
    """Windows hold while classes come, go, empty and return; charges outlive the last member by a window less a slot.

    A shared budget charges every declared class the same, members or not; otherwise absent classes are charged nothing.
    """
    for away in (0, 1, 3, 5, 6, 7, 20):
        _leave(subject, away)
    random = np.random.default_rng(subject.seed)
    publisher, shared = subject.publisher(Adversary(subject.seed, 0.8)), subject.row.shared_budget
    books: dict[Requirement, list[int]] = {requirement: [] for requirement in EVERYONE.classes}
    for _ in range(40):
        members = [requirement for requirement in EVERYONE.classes if random.random() < 0.6] or [LONG]
        population = Population({requirement: int(random.integers(0, 300)) for requirement in members})
        publisher.update(population, turnover=1)
        for release in publisher.run(subject.stream(int(random.integers(1, 5)), population)):
            charges = release.charges.tolist()
            expect(not shared or len(set(charges)) == 1, f"a shared budget charges {charges}", release.slot)
            charged = dict(zip(members, charges, strict=True))
            for requirement, book in books.items():
                book.append(charged.get(requirement, charges[0] if shared else 0))
    for requirement, book in books.items():
        expect_windows_hold(requirement, book)
        expect(sum(book) > 0, f"{requirement} is never charged")
    publisher.update(Population({LONG: 0}), turnover=1)  # no user is left
    publisher.step([[0, 0, 0]])


def _leave(subject: Subject, away: int) -> None:
    """Let LONG leave for some slots and return, with a book of its charges."""
    publisher, shared = subject.publisher(Adversary(subject.seed, 0.6)), subject.row.shared_budget
    book = [int(release.charges[2]) for release in publisher.run(subject.stream(11))]
    expect(sum(book) > 0, "eleven slots are charged nothing")
    rest = Population({SHORT: 300, MIDDLE: 200})
    publisher.update(rest, turnover=1)
    book += [int(release.charges[0]) if shared else 0 for release in publisher.run(subject.stream(away, rest))]
    publisher.update(EVERYONE, turnover=1)
    owed = sum(book[-(LONG.window - 1) :])
    expect_same(owed, int(publisher.ledger.spent()[2]), f"{LONG} after {away} slots owes", publisher.slot)
    book += [int(release.charges[2]) for release in publisher.run(subject.stream(15))]
    expect_windows_hold(LONG, book)


def counts_unseen(subject: Subject) -> None:
    """What is asked for, planned and charged depends on past outputs only: with other counts it is the same.

    A second publisher takes over every slot's charges and measurement, as from a journal, and then sees an empty slot
    where the first saw users; the decision is forced on both. A slot that is not published shows the same in both.
    """
    random = np.random.default_rng(subject.seed)
    seen: list[AskedBudgets] = []
    with subject.as_row(policy=watched_policy(subject.row, seen)) as watched:
        noise = ScriptedDraws([0])
        live, rebuilt = watched.publisher(noise), watched.publisher(ScriptedDraws([0]))
        for counts in subject.stream():
            probe = HUGE if random.random() < 0.5 else -HUGE
            noise.force(probe)
            empty = Publisher.restore(rebuilt.state(), noise=ScriptedDraws([7], [probe])).step(np.zeros_like(counts))
            release = live.step(counts)
            expect_same(seen[-1], seen[-2], "without users it asks for", release.slot)
            first, second = release.to_dict(), empty.to_dict()
            parts = ("outcome", "charges", "threshold") + (() if release.fresh else ("histogram", "std_error"))
            for part in parts:
                expect_same(first[part], second[part], f"{part} without users", release.slot)
            rebuilt.replay(release.probe_charges, release.publication_charges, live.measured)


def noise(subject: Subject) -> None:
    """Every measured cell moves with what is drawn, everything else repeats with the seed, and no secure bit is stored."""
    seeds = subject.seed, subject.seed, subject.seed + 1
    first, same, other = (subject.publisher(SeededNoise(seed)).run(subject.stream()) for seed in seeds)
    expected = plain(first)
    expect_same_releases(expected, plain(list(same)), "with the same seed")  # read at the end: releases never change
    expect(expected != plain(other), "another seed gives the same stream: nothing is drawn")

    quiet, moved = subject.publisher(ScriptedDraws([0])), subject.publisher(ScriptedDraws([HUGE], mirrored=True))
    random = np.random.default_rng(subject.seed)
    published = 0
    for slot in range(1, subject.slots + 1):
        counts = np.tile(random.permuted(np.arange(6) * 5 + 1)[: len(CELLS)], (len(EVERYONE), 1))
        release = quiet.step(counts)
        moved.step(counts)
        one, two = quiet.measured, moved.measured
        if one is None or two is None:
            continue
        published += 1
        _expect_stated(release, one.values, slot)
        still = np.asarray(one.values) == two.values
        # in the local model a mirrored answer stays in the middle if there is one
        leaks = still.all() if subject.row.local else still.any()
        expect(not leaks, f"cells do not move with the noise: {np.flatnonzero(still).tolist()}", slot)
    expect(published > 0, f"no publication within {subject.slots} slots")

    secure = subject.publisher(SecureNoise())
    secure.step(next(subject.stream()))
    saved = load(secure.state())
    expect(saved.noise is None and saved.seeded is False, "the state stores secure noise")
    expect(not Publisher.restore(secure.state()).seeded, "a restart turns secure noise into seeded noise")


def _expect_stated(release: Release, measured: Any, slot: int) -> None:
    """Expect an error above 0, and the measurement as published unless a filter estimates."""
    expect(release.std_error is not None and bool((release.std_error > 0).all()), "no error is stated", slot)
    if release.noise is not None and release.noise.law != "estimate":
        expect_same(measured.tolist(), release.histogram.tolist(), "published instead of the measurement", slot)


def restored(subject: Subject) -> None:
    """A publisher restored from its state continues to the last bit, wherever it is cut, also after classes changed."""
    counts = list(subject.stream())
    whole = subject.publisher()
    expected = plain(whole.run(counts))
    for cut in (0, 1, 13):
        halves = subject.publisher()
        seen = plain(halves.run(counts[:cut]))
        continued = Publisher.restore(halves.state())
        expect_same_state(halves, continued, "after a restart")
        seen += plain(continued.run(counts[cut:]))
        expect_same_releases(expected, seen, f"after a restart in slot {cut + 1}")
        expect_same_state(whole, continued, f"after a restart in slot {cut + 1}")
    fewer = Population({MIDDLE: 150, LONG: 90})
    more = Population({SHORT: 10, MIDDLE: 150, Requirement(6, 3): 7, LONG: 90})
    for after in (0, 1, 4):
        whole = subject.publisher()
        list(whole.run(subject.stream(9)))
        whole.update(fewer, turnover=1)
        list(whole.run(subject.stream(after, fewer)))
        continued = Publisher.restore(whole.state())
        expect(continued.population == fewer, f"another population after a restart: {continued.population}")
        for population in (fewer, more, fewer):
            both = []
            for publisher in (whole, continued):
                publisher.update(population, turnover=1)
                both.append(plain(publisher.run(subject.stream(15, population))))
            expect_same_releases(both[0], both[1], "after an update and a restart")
        expect_same_state(whole, continued, "after an update and a restart")


def replayed(subject: Subject) -> None:
    """What a journal stores of a slot, through its own encoding, rebuilds the publisher: same state, same continuation."""
    source = SeededNoise(subject.seed)
    whole, rebuilt = subject.publisher(source), subject.publisher()
    for release in whole.run(subject.stream()):
        measured = whole.measured
        if measured is not None:
            stored = encode_shown(Shown(release.slot, release.histogram + 0.0, release.std_error, measured))
            measured = decode_shown(release.slot, stored).measured
        rebuilt.replay(release.probe_charges, release.publication_charges, measured)
    rebuilt = Publisher.restore(rebuilt.state(), noise=SeededNoise.at(source.position()))  # replaying draws nothing
    expect_same_state(whole, rebuilt, "after a replay")
    first, second = (plain(publisher.run(subject.stream(20))) for publisher in (whole, rebuilt))
    expect_same_releases(first, second, "after a replay")


def failed_draws(subject: Subject) -> None:
    """Impossible counts and an empty population change nothing; a draw that fails is charged and not repeated (spec 4)."""
    publisher = subject.publisher()
    for slot, counts in enumerate(subject.stream(12), start=1):
        state = publisher.state()
        _expect_refused(InvalidCounts, partial(publisher.step, -1 - counts), slot)
        _expect_refused(InvalidPopulation, lambda: publisher.update(Population({}), turnover=0), slot)
        expect(publisher.state() == state, "an error changes the state", slot)
        publisher.step(counts)

    broken = ScriptedDraws([0])
    publisher = subject.publisher(broken)
    counts = np.full((len(EVERYONE), len(CELLS)), 20)
    spent: list[list[int]] = [[] for _ in EVERYONE.classes]
    for slot in range(1, 2 * LONG.window + 1):
        failed, broken.fails = False, True
        before = publisher.ledger.remaining()
        try:
            release = publisher.step(counts)
        except OSError:
            failed, broken.fails = True, False
            drawn = before - publisher.ledger.remaining()
            expect(bool((drawn > 0).any()), "a failed draw is free", slot)
            release = publisher.step(counts)
            expect_same(drawn.tolist(), release.charges.tolist(), "charges of a failed draw", slot)
        expect(not release.fresh, "a second draw" if failed else "a release without a draw", slot)
        for row, charge in enumerate(release.charges.tolist()):
            spent[row].append(charge)
    for row, requirement in enumerate(EVERYONE.classes):
        expect_windows_hold(requirement, spent[row])


def _expect_refused(kind: type[WeventError], call: Callable[[], object], slot: int) -> None:
    try:
        call()
    except kind:
        return
    raise Broken(f"no {kind.__name__}", slot)


def finite(subject: Subject) -> None:
    """Releases are finite for every draw and every crowd, and a replay results in the same state.

    The step replaces the estimate of a smoother that fails; here that is a failed check.
    """
    failures: list[str] = []
    watch = lambda options: WatchedSmoother(subject.row.smoother(options), failures)  # noqa: E731
    with subject.as_row(smoother=watch) as watched, np.errstate(all="ignore"):
        for population in _CROWDS:
            for turn in range(len(ENDS)):
                draws = (*ENDS[turn:], *ENDS[:turn])
                live, again = (watched.publisher(ScriptedDraws(draws, draws), population) for _ in range(2))
                for slot in range(1, 21):
                    counts = np.zeros((len(population), len(CELLS)), dtype=np.int64)
                    counts[:, slot % 3] = population.sizes if slot % 4 else 0
                    release = live.step(counts)
                    expect(not failures, f"the smoother fails: {'; '.join(failures)}", slot)
                    interval = release.noise_interval(0.95) or ()
                    shown = [release.histogram, release.std_error, release.dissimilarity, *interval]
                    numbers = [part for part in shown if part is not None]
                    expect(all(np.isfinite(part).all() for part in numbers), f"not finite: {numbers}", slot)
                    again.replay(release.probe_charges, release.publication_charges, live.measured)
                expect_same_state(live, again, "after a replay of extreme draws")


def memory(subject: Subject) -> None:
    """Over thousands of slots the number of live memory blocks stays, and so does the size of the state.

    Memory is counted for the whole process. A publisher that keeps something per slot grows in every quarter of the
    stream; other threads do not.
    """
    population = Population({Requirement(5, 1): 50})
    publisher = subject.publisher(ScriptedDraws([0], (HUGE, -HUGE, -HUGE)), population, 2)
    counts = np.array([[20, 10]])
    quarter = 50 * subject.slots

    def run(slots: int) -> tuple[int, int]:
        for _ in range(slots):
            publisher.step(counts)
        gc.collect()
        return sys.getallocatedblocks(), len(publisher.state())

    looks = [run(1_000), *(run(quarter) for _ in range(4))]  # first until caches are full
    more = min(late - early for (early, _), (late, _) in pairwise(looks))
    expect(more < quarter // 33, f"{more} blocks more in every {quarter} slots")
    longer = looks[-1][1] - looks[0][1]  # numbers that became longer
    expect(longer <= 32, f"the state is {longer} bytes longer")
