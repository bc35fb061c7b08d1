"""Checks of spending: windows, offers, and what decides them. Books are kept here in plain integers, without a ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wevent.checks.adversaries import HUGE, Adversary, ScriptedDraws
from wevent.checks.subject import EVERYONE, LONG, MIDDLE, SHORT, Subject, expect, expect_same
from wevent.checks.watching import AskedBudgets, Key, watched_policy
from wevent.core.mechanism import Idle
from wevent.core.requirements import Population, Requirement
from wevent.publisher.publisher import Publisher
from wevent.publisher.release import Release

# One user with shares of 0.1 beside many with a share of 0.19: offered 2 shares or more the one is charged 1.9 of them,
# and the rest comes back with a refund. And two windows of which one is over while the other still pays back.
REFUNDED = Population({Requirement(3, "0.6"): 1, Requirement(1, "0.38"): 1000})
UNEVEN = Population({Requirement(2, "0.8"): 50, Requirement(4, "0.8"): 50, Requirement(9, "0.5"): 0})


def expect_windows_hold(requirement: Requirement, charges: Sequence[int]) -> None:
    """Every w consecutive slots hold at most ε, in integers: there is no tolerance, and no ledger in here."""
    window, spent = requirement.window, 0
    for index, charge in enumerate(charges):
        expect(type(charge) is int and charge >= 0, "charges of whole numbers, none below 0", repr(charge), index + 1)
        spent += charge - (charges[index - window] if index >= window else 0)
        limit = f"at most {requirement.nano} nano-epsilons in any {window} slots of {requirement}"
        expect(spent <= requirement.nano, limit, f"{spent} up to slot {index + 1}", index + 1)


def windows(subject: Subject) -> None:
    """No window of any class is overspent, whatever pattern of publishing and skipping an adversary forces."""
    for publish in (0.0, 0.5, 1.0):
        _spend(subject, publish)
    _spend(subject, 0.7, neighbours="replace")
    if not subject.row.local:
        _spend(subject, 0.7, refund=True, max_cells_per_user=2)


def _spend(subject: Subject, publish: float, **options: Any) -> None:
    publisher = subject.publisher(Adversary(subject.seed, publish), **options)
    books: list[list[int]] = [[] for _ in EVERYONE.classes]
    for counts in subject.stream():
        for row, (requirement, book) in enumerate(zip(EVERYONE.classes, books, strict=True)):
            recent = sum(book[max(0, len(book) - requirement.window + 1) :])
            expect_same(recent, int(publisher.ledger.spent()[row]), f"{requirement} to have spent", publisher.slot)
            left = int(publisher.ledger.remaining()[row])
            expect_same(requirement.nano - recent, left, f"{requirement} to have left", publisher.slot)
        for book, charge in zip(books, publisher.step(counts).charges.tolist(), strict=True):
            book.append(charge)
    for requirement, book in zip(EVERYONE.classes, books, strict=True):
        expect_windows_hold(requirement, book)
    expect(any(map(sum, books)), "something to be spent: who never spends proves nothing", "no charge in any slot")


def within_its_means(subject: Subject) -> None:
    """It asks for no more than its windows have left, so the gate never refuses, and is charged what it asked for.

    A stricter class is charged at most what is asked of a looser one (spec 15.1 rule 3).

    A mechanism that says it looks first reserves a probe in every slot; one that does not, never. A policy keeps nothing
    to itself: made anew in any slot it asks for the same.
    """
    seen: list[AskedBudgets] = []
    with subject.as_row(policy=watched_policy(subject.row, seen)) as watched:
        for population in (EVERYONE, UNEVEN, REFUNDED):
            for refund in (False,) if subject.row.local else (False, True):
                for publish in (0.2, 0.5, 0.8, 1.0) if subject.row.probes else (1.0,):
                    publisher = watched.publisher(Adversary(subject.seed, publish), population, refund=refund)
                    _ask(watched, publisher, seen, refund=refund)
        publisher = watched.publisher(Adversary(subject.seed, 0.6))
        _ask(watched, publisher, seen, refund=False, moving=True)


def _ask(
    subject: Subject, publisher: Publisher, seen: list[AskedBudgets], *, refund: bool, moving: bool = False
) -> None:
    """Step a publisher, with classes that come and go if they are `moving`, and keep books of what every row is due."""
    random = np.random.default_rng(subject.seed)
    books: dict[Key, list[int]] = {}
    for index in range(subject.slots):
        if moving and index % 3 == 2:
            members = [requirement for requirement in (SHORT, MIDDLE, LONG) if random.random() < 0.6] or [LONG]
            publisher.update(
                Population({requirement: int(random.integers(0, 300)) for requirement in members}), turnover=10
            )
        seen.clear()
        release = publisher.step(next(subject.stream(1, publisher.population)))
        (asked,) = seen
        _expect_affordable(asked, books)
        _expect_looked(subject.row.probes, asked)
        charged = _charged(release, asked, publisher.population, refund=refund)
        for key in books.keys() | charged.keys():
            books.setdefault(key, [0] * index).append(charged.get(key, 0))


def _expect_affordable(asked: AskedBudgets, books: dict[Key, list[int]]) -> None:
    for key, most in asked.most().items():
        window, nano = key
        book = books.get(key, [])
        left = nano - sum(book[max(0, len(book) - window + 1) :])
        expect(most <= left, f"to ask {Requirement.from_nano(*key)} for at most the {left} left", most, asked.slot)


def _expect_looked(probes: bool, asked: AskedBudgets) -> None:
    if not probes:
        expect(asked.probe is None, "no probe from a mechanism without a threshold", asked.probe, asked.slot)
    else:
        budgets = asked.probe or {}
        unseen = [key for key, members in asked.members.items() if members and not budgets.get(key)]
        expect(not unseen, "a probe for every class of a mechanism with a threshold", f"none for {unseen}", asked.slot)


def _charged(release: Release, asked: AskedBudgets, population: Population, *, refund: bool) -> dict[Key, int]:
    """Return the charge of each row: what was asked for, in the order of rule 3; less if a publication was refunded."""
    offer = asked.offer if release.fresh and not isinstance(asked.offer, Idle) else {}
    parts = [_lowered(part) for part in (asked.probe or {}, offer)]
    due = {key: sum(part.get(key, 0) for part in parts) for key in asked.members}
    for requirement, charge in zip(population.classes, release.charges.tolist(), strict=True):
        key = requirement.key
        fits = charge <= due[key] if refund else charge == due[key]
        expect(fits, f"{requirement} to be charged the {due[key]} that was asked for", charge, release.slot)
        due[key] = charge
    return due


def _lowered(budgets: dict[Key, int]) -> dict[Key, int]:
    """Return for each row the smallest budget of the rows that it is at least as strict as."""
    return {
        (window, nano): min(budget for (w, e), budget in budgets.items() if w <= window and e >= nano)
        for window, nano in budgets
    }


def counts_unseen(subject: Subject) -> None:
    """What is asked for, planned and charged depends on past outputs only: with other counts it is the same.

    A second publisher takes over every slot's charges and measurement, as from a journal, and then sees an empty slot
    where the first saw people; the decision is forced on both. A slot that is not published shows the same in both.
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
            expect_same(seen[-1], seen[-2], "the same to be asked for where nobody is there", release.slot)
            first, second = release.to_dict(), empty.to_dict()
            parts = ("outcome", "charges", "threshold") + (() if release.fresh else ("histogram", "std_error"))
            for part in parts:
                expect_same(first[part], second[part], f"the same {part} where nobody is there", release.slot)
            rebuilt.replay(release.probe_charges, release.publication_charges, live.measured)
