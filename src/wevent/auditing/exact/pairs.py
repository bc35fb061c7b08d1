"""Pairs of neighbouring streams, slot by slot, with one outcome for both (spec 1)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from itertools import combinations

import numpy as np

from wevent.auditing.audit_subject import AuditSubject, Stepping
from wevent.auditing.exact.laws import EXACT, TooManyDraws
from wevent.auditing.exact.lives import Life, Living
from wevent.auditing.exact.scripted_noise import Chooser, NotFollowed, ScriptedNoise, UnseenRandomness, as_it_is
from wevent.auditing.exact.slot_law import SlotLaw
from wevent.auditing.exact.slot_run import SlotRun, run_slot
from wevent.auditing.exact.state_copy import fingerprint
from wevent.core.arrays import IntArray
from wevent.core.budget import NANO
from wevent.core.requirements import Population, Requirement

_REPEATS = 24  # other randomness shows the same outcome by chance, but not so often
MARGIN = Decimal("1e-40")
"""What rounding in 60 digits can add to a log ratio, and more: a loss is called broken only beyond it."""

_MOST_STATES = 48
Record = frozenset[int]
"""The cells that the victim is in within a slot; empty: absent."""


@dataclass(frozen=True)
class Case:
    """A subject in a small world, and whose promise is tried.

    Attributes:
        subject: what is audited.
        population: who is registered.
        cells: d.
        victim: the class of the user whose records differ.
        life: changes of the population, and restores.
    """

    subject: AuditSubject
    population: Population
    cells: int
    victim: int
    life: Life = ()

    def start(self) -> Stepping:
        """Return a publisher before slot 1."""
        noise = ScriptedNoise()
        publisher = self.subject.make(self.population, self.cells, noise)
        return Living(publisher, self.life, noise) if self.life else publisher

    @property
    def requirement(self) -> Requirement:
        """The victim's requirement."""
        return self.population.classes[self.victim]

    @property
    def most_cells(self) -> int:
        """k: the number of cells that a user may be in."""
        return min(int(self.subject.options.get("max_cells_per_user") or 1), self.cells)

    def records(self) -> list[Record]:
        """Return every record that the victim can have in a slot."""
        sizes = range(self.most_cells + 1)
        return [frozenset(chosen) for size in sizes for chosen in combinations(range(self.cells), size)]

    def differences(self) -> list[tuple[Record, Record]]:
        """Return every two records of a slot that neighbours may have, in both orders (spec 1)."""
        absent: Record = frozenset()
        replaces = self.subject.options.get("neighbours") == "replace"
        records = self.records()
        return [
            (first, second)
            for first in records
            for second in records
            if first != second and (replaces or absent in (first, second))
        ]

    def counts(self, others: IntArray, record: Record) -> IntArray:
        """Return the counts of the others and the victim."""
        counts = others.copy()
        for cell in record:
            counts[self.victim, cell] += 1
        return counts


@dataclass(frozen=True, eq=False)
class Side:
    """The states that one stream may have led to, each with the probability of the transcript and the state.

    The state of a right publisher follows from its outputs, so there is one. A publisher with hidden state (a sample that
    outlives its slot) has several, and the law of the next slot is that of their mixture.
    """

    states: tuple[tuple[Decimal, Stepping], ...]

    @property
    def probability(self) -> Decimal:
        """The probability of the transcript so far."""
        with localcontext(EXACT):
            return sum((weight for weight, _ in self.states), start=Decimal(0))

    @property
    def likeliest(self) -> Stepping:
        """The most probable state."""
        return max(self.states, key=lambda held: held[0])[1]

    def after(self, law: SlotLaw, counts: IntArray, wanted: SlotRun) -> Side:
        """Return the side after one more slot with this outcome; without any state if it is impossible.

        Raises:
            TooManyDraws: if there is too much to enumerate.
        """
        found: dict[bytes | int, tuple[Decimal, Stepping]] = {}
        for weight, state in self.states:
            for branch in law.branches(state, counts, wanted):
                mark = fingerprint(branch.state)
                key = len(found) if mark is None else mark
                with localcontext(EXACT):
                    sofar = found[key][0] if key in found else Decimal(0)
                    found[key] = (sofar + weight * branch.probability, branch.state)
        if len(found) > _MOST_STATES:
            raise TooManyDraws
        return Side(tuple(found.values()))


def log_ratio(first: Side, second: Side) -> Decimal:
    """Return ln P(first) − ln P(second) of the transcript; infinite if the second never shows it."""
    ours, theirs = first.probability, second.probability
    with localcontext(EXACT):
        if not theirs:
            return Decimal("Infinity") if ours else Decimal(0)
        return (ours / theirs).ln() if ours else Decimal("-Infinity")


@dataclass(frozen=True, eq=False)
class PairMove:
    """One slot of both streams: the others, the victim's record in each, and how the outcome is drawn on the first."""

    others: IntArray
    first: Record
    second: Record
    choose: Chooser = as_it_is


@dataclass(frozen=True, eq=False)
class Moment:
    """Both streams after some slots with the same outcomes.

    Attributes:
        first, second: the two sides.
        ratio: ln P(first) − ln P(second) of what was seen.
        story: per slot, what happened, in words.
        last: the run that showed the last outcome.
        before: the moment before it, and the move.
        confirmed: whether its ratio was computed with care.
    """

    first: Side
    second: Side
    ratio: Decimal = Decimal(0)
    story: tuple[str, ...] = ()
    last: SlotRun | None = None
    before: tuple[Moment, PairMove] | None = None
    confirmed: bool = False

    @property
    def slot(self) -> int:
        """The number of the next slot."""
        return len(self.story) + 1


@dataclass
class Playing:
    """Plays moves of one case; the law of its slots is learnt once."""

    case: Case
    law: SlotLaw = field(default_factory=SlotLaw)
    played: int = 0

    def start(self) -> Moment:
        """Before slot 1: a publisher that knows nothing, on both sides."""
        side = Side(((Decimal(1), self.case.start()),))
        return Moment(side, side)

    def play(self, moment: Moment, move: PairMove) -> Moment:
        """Play one more slot: draw an outcome on the first stream, and compute its probability on both.

        A ratio above the promise is computed a second time, with care: what is called broken rests on no assumption that
        was learnt in another slot.

        Raises:
            UnseenRandomness: if the first stream itself cannot show its outcome again.
            NotFollowed: if it can, but not in a way that the audit computes.
            TooManyDraws: if there is too much to enumerate; play another move.
        """
        self.played += 1
        after = self._after(self.law, moment, move, self._drawn(moment, move))
        return after if not is_broken(after.ratio.copy_abs(), self.case.requirement) else self._confirmed(after)

    def _drawn(self, moment: Moment, move: PairMove) -> SlotRun:
        run = run_slot(moment.first.likeliest, self.case.counts(move.others, move.first), (), move.choose)
        if not _is_enumerable(run):
            raise TooManyDraws
        return run

    def _after(self, law: SlotLaw, moment: Moment, move: PairMove, run: SlotRun) -> Moment:
        """Return both sides after a slot with this outcome."""
        counts = self.case.counts(move.others, move.first)
        try:
            first = moment.first.after(law, counts, run)
        except NotFollowed:
            self._check_repeats(moment, counts, run)
            raise
        if not first.states:
            self._check_repeats(moment, counts, run)
            raise NotFollowed("an outcome that its draws lead to, but not in proportion to them")
        if move.first == move.second and moment.first is moment.second:
            second = first
        else:
            second = moment.second.after(law, self.case.counts(move.others, move.second), run)
        text = (
            f"slot {moment.slot}: others {move.others.tolist()}, victim {_told(move.first)} / {_told(move.second)}: "
            f"{run.words}"
        )
        return Moment(first, second, log_ratio(first, second), (*moment.story, text), run, (moment, move))

    @staticmethod
    def _check_repeats(moment: Moment, counts: IntArray, run: SlotRun) -> None:
        """Check that an outcome that was not solved for follows from its draws, and not by chance once."""
        for _ in range(_REPEATS):
            if all(run_slot(state, counts, run.draws).outcome != run.outcome for _, state in moment.first.states):
                raise UnseenRandomness("an outcome that its own counts and draws do not lead to again")

    def _confirmed(self, moment: Moment) -> Moment:
        """Compute the ratio again from where the streams part, with everything learnt anew and every draw checked."""
        moves: list[tuple[PairMove, SlotRun]] = []
        start = moment
        while start.before is not None and start.first is not start.second and not start.confirmed:
            assert start.last is not None
            moves.append((start.before[1], start.last))
            start = start.before[0]
        law = SlotLaw(careful=True)
        for move, run in reversed(moves):
            start = replace(self._after(law, start, move, run), confirmed=True)
        return start


def is_broken(ratio: Decimal, requirement: Requirement) -> bool:
    """Return whether the logarithm of a ratio exceeds the guarantee."""
    with localcontext(EXACT):
        return ratio > Decimal(requirement.nano) / NANO + MARGIN


def _is_enumerable(run: SlotRun) -> bool:
    return all(np.abs(draw).max(initial=0) < 2**62 for draw in run.draws)


def _told(record: Record) -> str:
    return "in " + ", ".join(map(str, sorted(record))) if record else "absent"
