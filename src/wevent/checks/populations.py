"""Checks of population changes: charges stay with their requirement, whoever comes and goes."""

from __future__ import annotations

import numpy as np

from wevent.checks.adversaries import Adversary
from wevent.checks.spending import expect_windows_hold
from wevent.checks.subject import (
    EVERYONE,
    LONG,
    MIDDLE,
    SHORT,
    Subject,
    expect,
    expect_same,
    expect_same_releases,
    expect_same_state,
    plain,
)
from wevent.core.requirements import Population, Requirement

_AWAY = (0, 1, 3, 5, 6, 7, 20)


def charges_outlive_members(subject: Subject) -> None:
    """The charges of a class outlive its last member by a window less a slot, and are there when members return."""
    for slots in _AWAY:
        _leave(subject, slots)


def _leave(subject: Subject, away: int) -> None:
    """LONG leaves for some slots; the books of what it was charged are kept here.

    Every declared class of a shared budget is charged the same, members or not; others are charged nothing.
    """
    publisher = subject.publisher(Adversary(subject.seed, 0.6))
    book = [int(release.charges[2]) for release in publisher.run(subject.stream(11))]

    def expect_owed() -> int:
        owed = sum(book[-(LONG.window - 1) :])
        expect_same(owed, int(publisher.ledger.spent()[2]), f"{LONG} to owe", publisher.slot)
        expect_same(LONG.nano - owed, int(publisher.ledger.remaining()[2]), f"{LONG} to have left", publisher.slot)
        return owed

    expect_owed()
    expect(sum(book) > 0, "something to be charged in eleven slots", "nothing")
    rest = Population({SHORT: 300, MIDDLE: 200})
    publisher.update(rest, turnover=1)
    shared = subject.row.shared_budget
    book += [int(release.charges[0]) if shared else 0 for release in publisher.run(subject.stream(away, rest))]
    publisher.update(EVERYONE, turnover=1)
    owed = expect_owed()
    if away >= LONG.window - 1 and not shared:
        expect_same(0, owed, f"nothing to be owed after {away} slots", publisher.slot)
    book += [int(release.charges[2]) for release in publisher.run(subject.stream(15))]
    expect_windows_hold(LONG, book)


def any_population(subject: Subject) -> None:
    """Windows hold while classes come, go, empty and come back; a shared budget charges every class the same."""
    random = np.random.default_rng(subject.seed)
    publisher = subject.publisher(Adversary(subject.seed, 0.8))
    books: dict[Requirement, list[int]] = {requirement: [] for requirement in EVERYONE.classes}
    for _ in range(40):
        members = [requirement for requirement in EVERYONE.classes if random.random() < 0.6] or [LONG]
        population = Population({requirement: int(random.integers(0, 300)) for requirement in members})
        publisher.update(population, turnover=1)
        for release in publisher.run(subject.stream(int(random.integers(1, 5)), population)):
            charges = release.charges.tolist()
            shared = not subject.row.shared_budget or len(set(charges)) == 1
            expect(shared, "a shared budget to charge all the same", charges, release.slot)
            charged = dict(zip(members, charges, strict=True))
            for requirement, book in books.items():
                book.append(charged.get(requirement, charges[0] if subject.row.shared_budget else 0))
    for requirement, book in books.items():
        expect_windows_hold(requirement, book)
        expect(sum(book) > 0, f"{requirement} to be charged at all", "no charge")
    publisher.update(Population({LONG: 0}), turnover=1)  # nobody is left
    expect(publisher.step([[0, 0, 0]]).slot > 40, "a slot of nobody to go by", "none")


def same_population(subject: Subject) -> None:
    """An update to the population in force changes nothing."""
    quiet, updated = subject.publisher(), subject.publisher()
    for counts in subject.stream(25):
        updated.update(Population(dict(EVERYONE.items())), turnover=0)
        first, second = plain([quiet.step(counts)]), plain([updated.step(counts)])
        expect_same_releases(first, second, "the same after an update to the same population")
    expect_same_state(quiet, updated, "an update to the same population")
