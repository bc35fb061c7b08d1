"""Checks of going on: the same seed, a stored state, a journal's replay, and after errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from wevent.checks.adversaries import Failing
from wevent.checks.spending import expect_windows_hold
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
from wevent.core.requirements import Population, Requirement
from wevent.errors import InvalidCounts, InvalidPopulation, WeventError
from wevent.journal.record import Shown, decode_shown, encode_shown
from wevent.noise.secure import SecureNoise
from wevent.noise.seeded import SeededNoise
from wevent.publisher.publisher import Publisher
from wevent.publisher.state import load


def same_seed(subject: Subject) -> None:
    """The same seed gives the same stream, another seed another one."""
    seeds = subject.seed, subject.seed, subject.seed + 1
    first, same, other = (plain(subject.publisher(SeededNoise(seed)).run(subject.stream())) for seed in seeds)
    expect_same_releases(first, same, "the same from the same seed")
    expect(first != other, "another stream from another seed", "the same: nothing in it is drawn")


def restored(subject: Subject) -> None:
    """A publisher restored from its state continues to the last bit, wherever it is cut."""
    counts = list(subject.stream())
    whole = subject.publisher()
    expected = plain(whole.run(counts))
    for cut in (0, 1, 13):
        halves = subject.publisher()
        seen = plain(halves.run(counts[:cut]))
        continued = Publisher.restore(halves.state())
        expect_same_state(halves, continued, "restoring")
        seen += plain(continued.run(counts[cut:]))
        expect_same_releases(expected, seen, f"the same after a restart in slot {cut + 1}")
        expect_same_state(whole, continued, f"a restart in slot {cut + 1}")


def restored_after_an_update(subject: Subject) -> None:
    """The same after classes have left and others joined."""
    fewer = Population({MIDDLE: 150, LONG: 90})
    more = Population({SHORT: 10, MIDDLE: 150, Requirement(6, 3): 7, LONG: 90})
    for after in (0, 1, 4):
        whole = subject.publisher()
        list(whole.run(subject.stream(9)))
        whole.update(fewer, turnover=1)
        list(whole.run(subject.stream(after, fewer)))
        continued = Publisher.restore(whole.state())
        expect_same_state(whole, continued, "restoring after an update")
        expect(continued.population == fewer, "the population in force to be stored", continued.population)
        for population in (fewer, more, fewer):
            for publisher in (whole, continued):
                publisher.update(population, turnover=1)
            first, second = (plain(publisher.run(subject.stream(15, population))) for publisher in (whole, continued))
            expect_same_releases(first, second, "the same after an update and a restart")
            spent = whole.ledger.spent().tolist(), continued.ledger.spent().tolist()
            expect_same(*spent, "the same to be spent after an update and a restart", whole.slot)
        expect_same_state(whole, continued, "an update and a restart")


def replayed(subject: Subject) -> None:
    """What a journal stores of a slot, through its own encoding, rebuilds the publisher: same state, same continuation."""
    noise = SeededNoise(subject.seed)
    whole, rebuilt = subject.publisher(noise), subject.publisher()
    for release in whole.run(subject.stream()):
        measured = whole.measured
        if measured is not None:
            stored = encode_shown(Shown(release.slot, release.histogram + 0.0, release.std_error, measured))
            measured = decode_shown(release.slot, stored).measured
        rebuilt.replay(release.probe_charges, release.publication_charges, measured)
    spent = whole.ledger.spent().tolist(), rebuilt.ledger.spent().tolist()
    expect_same(*spent, "the same to be spent after a replay", whole.slot)
    rebuilt = Publisher.restore(rebuilt.state(), noise=SeededNoise.at(noise.position()))  # replaying draws nothing
    expect_same_state(whole, rebuilt, "a replay")
    first, second = (plain(publisher.run(subject.stream(20))) for publisher in (whole, rebuilt))
    expect_same_releases(first, second, "the same after a replay")


def secure_noise(subject: Subject) -> None:
    """With the noise that protects people windows hold too, and nothing of it is stored but what was published."""
    made, same = (subject.publisher(SecureNoise()) for _ in range(2))
    expect_same_state(made, same, "two fresh publishers")
    releases = list(made.run(subject.stream(30)))
    for row, requirement in enumerate(EVERYONE.classes):
        expect_windows_hold(requirement, [int(release.charges[row]) for release in releases])
    saved = load(made.state())
    expect(saved.noise is None and saved.seeded is False, "nothing of secure noise in a state", "its position")
    law = releases[-1].noise
    if law is not None and law.law != "estimate":  # a filter publishes something else than its last measurement
        expect_same(
            releases[-1].histogram.tolist(), saved.measurement, "the stored measurement to be the published one"
        )
    continued = Publisher.restore(made.state())
    expect(not continued.seeded, "secure noise after a restart", "seeded noise")
    expect_same_state(made, continued, "restoring")


def errors_change_nothing(subject: Subject) -> None:
    """Impossible counts and an empty population change nothing; a draw that fails is charged and not repeated."""
    disturbed, quiet = subject.publisher(), subject.publisher()
    for slot, counts in enumerate(subject.stream(12), start=1):
        before = disturbed.state()
        _expect_refused(InvalidCounts, partial(disturbed.step, -1 - counts), slot)
        _expect_refused(InvalidPopulation, lambda: disturbed.update(Population({}), turnover=0), slot)
        expect(disturbed.state() == before, "an error to change nothing", "another state", slot)
        first, second = quiet.step(counts), disturbed.step(counts)
        expect_same_releases(plain([first]), plain([second]), "the same after an error")
    expect_same_state(quiet, disturbed, "errors")
    _expect_failed_draws_are_charged(subject)


def _expect_failed_draws_are_charged(subject: Subject) -> None:
    """In every slot the first draw fails: the slot charges what it reserved for the draw and is not drawn again (spec 4)."""
    noise = Failing()
    publisher = subject.publisher(noise)
    counts = np.full((len(EVERYONE), len(CELLS)), 20)
    spent: list[list[int]] = [[] for _ in EVERYONE.classes]
    for slot in range(1, 2 * LONG.window + 1):
        failed = False
        noise.broken = True
        before = publisher.ledger.remaining()
        try:
            release = publisher.step(counts)
        except OSError:
            failed = True
            drawn = before - publisher.ledger.remaining()
            expect(bool((drawn > 0).any()), "a failed draw to be charged", "a free one", slot)
            noise.broken = False
            release = publisher.step(counts)
            expect(not release.fresh, "no second draw in a slot whose draw failed", "a fresh release", slot)
            expect_same(drawn.tolist(), release.charges.tolist(), "the release to state the charges", slot)
        expect(failed or not release.fresh, "a release without a draw to repeat", "a fresh release", slot)
        for row, charge in enumerate(release.charges.tolist()):
            spent[row].append(charge)
    for row, requirement in enumerate(EVERYONE.classes):
        expect_windows_hold(requirement, spent[row])


def _expect_refused(kind: type[WeventError], call: Callable[[], object], slot: int) -> None:
    try:
        call()
    except kind:
        return
    raise Broken(f"{kind.__name__}", "no error", slot)
