"""One slot's whole law where noise cannot be solved for: every draw tried, the likeliest first, and the rest accounted for.

A mechanism that draws again, or in which many draws show the same, shows its law in a table: how likely each outcome is, at
least, and what was not tried, which may be anything. An event's loss is then at least ln P(event) − ln (P'(event) + rest').
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from itertools import count, product

import numpy as np

from wevent.auditing.audit_subject import Stepping
from wevent.auditing.exact.laws import EXACT, Call, LaplaceCall, TooManyDraws
from wevent.auditing.exact.pairs import Case, Record
from wevent.auditing.exact.scripted_noise import NotFollowed, UnseenRandomness
from wevent.auditing.exact.slot_run import Outcome, run_slot
from wevent.core.arrays import IntArray

_WIDTH = 15.0  # of the box of draws, in scales: outside are some ten-millionths
_MOST_RUNS = 6000
_REST = Decimal("1e-6")  # of what was not tried: less changes no loss that matters


class _Asked(BaseException):
    """The publisher asks for one draw more than it was given; no `except Exception` of its own keeps it."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call


def _ask(number: int, call: Call) -> IntArray:
    raise _Asked(call)


@dataclass
class LawTable:
    """The outcomes of a slot with some counts.

    Attributes:
        shown: outcomes, how likely they are at least, and in words.
        rest: the probability of what was not tried.
    """

    shown: dict[Outcome, Decimal] = field(default_factory=dict)
    words: dict[Outcome, str] = field(default_factory=dict)
    rest: Decimal = Decimal(1)


def tabulated(state: Stepping, counts: IntArray, until: float) -> LawTable:
    """Return the law of one slot, as far as time and a number of runs allow.

    Raises:
        UnseenRandomness: if the same draws show something else the second time.
        NotFollowed: if the publisher cannot be copied.
    """
    table = LawTable()
    order = count()
    waiting: list[tuple[Decimal, int, tuple[IntArray, ...]]] = [(Decimal(-1), next(order), ())]
    with localcontext(EXACT):
        for _ in range(_MOST_RUNS):
            if not waiting or table.rest < _REST or time.monotonic() > until:
                break
            minus, _, script = heapq.heappop(waiting)
            try:
                run = run_slot(state, counts, script, _ask)
            except _Asked as asked:
                for draw, chance in _possible(asked.call):
                    heapq.heappush(waiting, (minus * chance, next(order), (*script, draw)))
                continue
            except NotFollowed:
                if not script:
                    raise
                continue  # too many draws in a row: part of the rest
            if run_slot(state, counts, script, _ask).outcome != run.outcome:
                raise UnseenRandomness("the same draws show something else the second time")
            table.shown[run.outcome] = table.shown.get(run.outcome, Decimal(0)) - minus
            table.words[run.outcome] = run.words
            table.rest += minus
    return table


def _possible(call: Call) -> Iterator[tuple[IntArray, Decimal]]:
    """Yield the draws of a call that are tried, with their probabilities."""
    if not isinstance(call, LaplaceCall):
        try:
            yield from ((draw, chance) for draw, chance in call.options() if chance)
        except TooManyDraws:
            return
        return
    reach = max(1, min(round(_WIDTH * call.scale), round(_MOST_RUNS ** (1 / call.size) / 2)))
    for steps in product(range(-reach, reach + 1), repeat=call.size):
        draw = np.array(steps, dtype=np.int64)
        yield draw, call.probability(draw)


def largest_loss(case: Case, until: float) -> tuple[Decimal, tuple[str, ...], int]:
    """Return the largest loss of one slot that tables show, with nobody but the victim.

    Returns:
        The loss, where, in words, and how many tables were made.
    """
    state = case.start()
    others = np.zeros((len(case.population.classes), case.cells), dtype=np.int64)
    tables: dict[Record, LawTable] = {}
    best = Decimal(0)
    story: tuple[str, ...] = ()
    records = case.records()
    for number, record in enumerate(records):
        now = time.monotonic()
        limit = now + (until - now) / (len(records) - number)
        tables[record] = tabulated(state, case.counts(others, record), limit)
    for first, second in case.differences():
        loss, seen = _loss(tables[first], tables[second])
        if loss > best:
            best = loss
            story = (f"slot 1: nobody else, victim in {sorted(first)} / {sorted(second)}: {seen}",)
    return best, story, len(tables)


def _loss(here: LawTable, there: LawTable) -> tuple[Decimal, str]:
    """Return the most informative event: all outcomes that are likelier here by some factor or more."""
    with localcontext(EXACT):
        least = there.rest if there.rest > 0 else Decimal(0)
        ranked = sorted(here.shown, key=lambda seen: here.shown[seen] / (there.shown.get(seen, Decimal(0)) + _REST))
        mine, theirs = Decimal(0), least
        best, members = Decimal(0), 0
        for number, seen in enumerate(reversed(ranked), 1):
            mine, theirs = mine + here.shown[seen], theirs + there.shown.get(seen, Decimal(0))
            if theirs > 0 and (mine / theirs).ln() > best:
                best, members = (mine / theirs).ln(), number
        words = " or ".join(here.words[seen] for seen in list(reversed(ranked))[: min(members, 3)])
    return best, words + (f" or {members - 3} more" if members > 3 else "")
