"""The exact audit: the largest likelihood ratio of neighbouring streams that is found, against what was promised (spec 1).

Every probability is computed from the law of the draws, in 60 digits; nothing is sampled, so what is found is a fact. What is
not found may still be there: the streams and transcripts that are tried are few among all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from wevent.auditing.audit_subject import AuditSubject, Finding, Unclear
from wevent.auditing.exact.cases import SEARCHED, SEARCHED_LOCAL, TABULATED, TINY, TINY_LOCAL, World, cases_of, responds
from wevent.auditing.exact.enumeration import SLOTS, Enumeration
from wevent.auditing.exact.pairs import Case, is_broken
from wevent.auditing.exact.scripted_noise import NotFollowed, ScriptedNoise, UnseenRandomness
from wevent.auditing.exact.search import Search
from wevent.auditing.exact.tabulation import largest_loss
from wevent.core.arrays import IntArray
from wevent.core.requirements import Requirement

_TINY_PART = 0.25  # of the time
_LATE_PART = 0.5  # of what is left after every case was tried
_TABLE_S = 6.0  # for tables, at least, where they are the last resort


def audit_exactly(
    subject: AuditSubject,
    *,
    seconds: float,
    seed: int,
    tiny: bool = True,
    rounds: int = 1,
    until_broken: bool = False,
    worlds: Sequence[World] | None = None,
) -> list[Finding]:
    """Compute likelihood ratios of transcripts under neighbouring streams, and compare the largest with the promise.

    Args:
        subject: its random numbers must come from the source of noise that it is given.
        seconds: approximate duration, if `rounds` do not take longer.
        seed: seed of the choices of the search.
        tiny: whether tiny cases are enumerated, too.
        rounds: how often every case is searched, however long that takes.
        until_broken: whether the first broken finding ends the audit.
        worlds: worlds to search in, instead of the audit's own.

    Returns:
        A finding for every requirement that was tried, by "exact: enumerated" and by "exact: searched"; where something
        could not be followed by "exact: tabulated", too.

    Raises:
        WeventError: from the subject if it refuses every population and number of cells.
    """
    began = time.monotonic()
    local = responds(subject)
    log = _Log(until_broken)
    chosen = (SEARCHED_LOCAL if local else SEARCHED) if worlds is None else worlds
    tiny_cases = cases_of(subject, TINY_LOCAL if local else TINY) if tiny else []
    cases = cases_of(subject, chosen)
    if not (tiny_cases or cases):
        population, cells, _ = chosen[0]  # refused everywhere: a mistake in its options, perhaps; it says which
        subject.make(population, cells, ScriptedNoise())
    _enumerate(log, tiny_cases, began + seconds * _TINY_PART)
    _search(log, cases, began + seconds, seed, rounds)
    if log.is_unclear and not log.ends:
        _tabulate(log, cases_of(subject, TABULATED), max(_TABLE_S, began + seconds - time.monotonic()))
    return list(log.findings.values())


@dataclass
class _Log:
    """Findings by audit and requirement."""

    until_broken: bool
    findings: dict[tuple[str, Requirement], Finding] = field(default_factory=dict)

    @property
    def ends(self) -> bool:
        """True if enough was found."""
        return self.until_broken and any(finding.broken for finding in self.findings.values())

    @property
    def is_unclear(self) -> bool:
        """True if something could not be computed that tables may show; other randomness has no table."""
        return any(finding.unclear == "cannot say" for finding in self.findings.values())

    def is_done(self, audit: str, case: Case) -> bool:
        """Return whether this guarantee was found broken, or cannot be followed."""
        finding = self.findings.get((audit, case.requirement))
        return finding is not None and finding.verdict != "nothing found"

    def record(self, audit: str, case: Case, attempt: Callable[[], object], result: Callable[[], _Result]) -> None:
        """Run an attempt, and keep the largest ratio of a requirement with the obstacle, if any."""
        began = time.monotonic()
        unclear: Unclear | None = None
        obstacle = ""
        try:
            attempt()
        except UnseenRandomness as error:
            unclear, obstacle = "own randomness", f"randomness that the audit cannot see: {error}"
        except NotFollowed as error:
            unclear, obstacle = "cannot say", f"noise that the audit cannot follow: {error}"
        seconds = time.monotonic() - began
        ratio, words, trials = result()
        key, broken = (audit, case.requirement), is_broken(ratio, case.requirement)
        made = Finding(*key, float(ratio), broken, None, words, trials, seconds, unclear, obstacle)
        before = self.findings.get(key)
        if before is not None:
            made = replace(
                max(before, made, key=lambda one: (one.broken, one.shown)),
                trials=trials + before.trials,
                seconds=seconds + before.seconds,
                unclear=before.unclear or unclear,
                obstacle=before.obstacle or obstacle,
            )
        self.findings[key] = made


_Result = tuple[Decimal, str, int]  # log ratio, streams and outcomes in words, number of transcripts


def _enumerate(log: _Log, cases: list[Case], until: float) -> None:
    """Enumerate tiny cases, all of them one slot deeper in each round."""
    audit = "exact: enumerated"
    running = [(case, Enumeration(case, _others(case))) for case in cases]
    for depth in range(1, SLOTS + 1):
        for case, tree in running:
            if log.is_done(audit, case) or tree.complete != depth - 1:
                continue
            limit = time.monotonic() + max(0.05, (until - time.monotonic()) / 3)

            def result(case: Case = case, tree: Enumeration = tree, trials: int = tree.found.trials) -> _Result:
                words = _words(case, f"all {tree.complete} slots or less in the box", tree.found.story)
                return tree.found.ratio, words, tree.found.trials - trials

            log.record(audit, case, partial(tree.deepen, limit), result)
            if log.ends:
                return


def _search(log: _Log, cases: list[Case], until: float, seed: int, rounds: int) -> None:
    """Try each case in turns, until time is up."""
    audit = "exact: searched"
    running = [(case, Search(case, seed)) for case in cases]
    for done in count() if running else ():
        for case, search in running:
            if done >= rounds and time.monotonic() > until:
                return
            if log.is_done(audit, case):
                continue
            attempt: Callable[[], None] = search.trial
            if done == rounds + 1 and search is running[0][1]:  # there is time for more than was asked for
                attempt = partial(search.late, time.monotonic() + (until - time.monotonic()) * _LATE_PART)

            def result(case: Case = case, search: Search = search) -> _Result:
                return search.found.ratio, _words(case, "", search.found.story), 1

            log.record(audit, case, attempt, result)
            if log.ends:
                return
        if all(log.is_done(audit, case) for case in cases):
            return


def _tabulate(log: _Log, cases: list[Case], seconds: float) -> None:
    """Tabulate one slot where it could not be solved for."""
    for case in cases:
        best: list[tuple[Decimal, tuple[str, ...], int]] = [(Decimal(0), (), 0)]
        until = time.monotonic() + seconds / len(cases)

        def attempt(case: Case = case, until: float = until, best: list[Any] = best) -> None:
            best[0] = largest_loss(case, until)

        def result(case: Case = case, best: list[Any] = best) -> _Result:
            ratio, story, tables = best[0]
            return ratio, _words(case, "", story), tables

        log.record("exact: tabulated", case, attempt, result)
        if log.ends:
            return


def _others(case: Case) -> IntArray:
    return np.zeros((len(case.population.classes), case.cells), dtype=np.int64)


def _words(case: Case, tried: str, story: tuple[str, ...]) -> str:
    if not story:
        return "no difference"
    people = ", ".join(f"{size} × {requirement!r}" for requirement, size in case.population.items())
    start = f"{case.cells} cells, registered {people}"
    return "; ".join([start, *([tried] if tried else []), *story])
