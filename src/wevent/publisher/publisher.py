"""The publisher: core and noise put together; one call is one slot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from wevent.core.arrays import IntArray, any_true
from wevent.core.budget import NANO
from wevent.core.builtin_mechanisms import check_options, check_reach, complete
from wevent.core.ledger import Ledger, PublicLedger
from wevent.core.mechanism import Measurement, NoiseSource, Planner
from wevent.core.options import (
    ClassWeights,
    EstimatorName,
    Neighbours,
    Options,
    SmoothingName,
    ThresholdName,
    option_kinds,
    option_values,
)
from wevent.core.postprocess import PostProcessor
from wevent.core.requirements import Population
from wevent.core.step import Assembled, Outcome, advance, compared, first_history, step
from wevent.counting.labels import Cells
from wevent.counting.roster import checked_matrix
from wevent.errors import InvalidCounts, InvalidOption, InvalidPopulation, InvalidState, UnknownMechanism
from wevent.noise import SecureNoise, SeededNoise
from wevent.publisher import state as state_format
from wevent.publisher.catalogue import find_mechanism
from wevent.publisher.confidence import counts_everyone, is_whole_error, outcome_word, traits_of
from wevent.publisher.release import Release


class Publisher:
    """Publishes one histogram per slot, without end, and keeps every user's promise (spec 1).

    Two publishers over the same people compose: their epsilons add up.

    Args:
        population: the requirement classes and how many registered users hold each (`roster.population`).
        cells: the declared cell domain: a number, or a list of labels.
        mechanism: a name from `wevent.mechanisms()`.
        noise: `SecureNoise()` unless told otherwise; `SeededNoise(seed)` is for simulation only.
        neighbours, …, round: see `wevent.Options`.

    Attributes:
        cells: the cell domain.
        population: the population in force.

    >>> from wevent import Population, Requirement, SeededNoise
    >>> population = Population({Requirement(window=4, epsilon=1): 100})
    >>> publisher = Publisher(population, cells=2, mechanism="uniform", noise=SeededNoise(1))
    >>> publisher.step([[60, 30]]).slot
    1
    """

    def __init__(
        self,
        population: Population,
        cells: int | Sequence[Any],
        mechanism: str = "pft",
        *,
        noise: NoiseSource | None = None,
        neighbours: Neighbours = "add_remove",
        max_cells_per_user: int = 1,
        refund: bool = False,
        threshold: ThresholdName | None = None,
        estimator: EstimatorName | None = None,
        smoothing: SmoothingName | None = None,
        class_weights: ClassWeights | None = None,
        seasonality: float | Sequence[float] = (),
        special_days: Sequence[int] = (),
        nonnegative: bool = False,
        known_total: int | None = None,
        round: bool = False,  # noqa: A002  the name of the option everywhere
    ) -> None:
        options = {name: value for name, value in locals().items() if name in option_kinds()}
        _check_population(population)
        row = find_mechanism(mechanism)
        chosen = Options.checked({**options, "mechanism": row.name})
        check_options(row, chosen)
        chosen = complete(row, chosen)
        self._polish = PostProcessor.of(chosen)
        self._polishes = self._polish != PostProcessor()
        self._row = row
        self._options = chosen
        self._traits = traits_of(chosen)
        self._declared = population.classes
        _check_noise(noise)
        self._noise: NoiseSource = SecureNoise() if noise is None else noise
        self.cells = Cells.of(cells)
        self.population = population
        policy, measures = row.policy(population.classes, chosen), row.estimator(chosen)
        check_reach(row, chosen, len(self.cells), population.classes, measures)
        self._pieces = Assembled(
            policy,
            measures,
            row.smoother(chosen),
            chosen.threshold or row.threshold,
            chosen.refund,
            policy if isinstance(policy, Planner) else None,
        )
        self._ledger = Ledger(
            population,
            sensitivity=chosen.sensitivity,
            cells_per_user=chosen.max_cells_per_user,
            pinned=population.classes if row.shared_budget else (),
        )
        self._history = first_history(len(self._ledger.rows), len(self.cells), self._pieces.smoother)
        self._measured: Measurement | None = None
        self._turnover = 0
        self._torn = False  # whether the last slot may be stored in part

    @property
    def ledger(self) -> PublicLedger:
        """Charges per class, read-only: `ledger.remaining()` and `ledger.spent()`."""
        return PublicLedger(self._ledger)

    @property
    def mechanism(self) -> str:
        return self._row.name

    @property
    def slot(self) -> int:
        """The number of the next slot."""
        return self._ledger.slot

    @property
    def seeded(self) -> bool:
        """Whether the noise is reproducible and therefore protects nobody."""
        return bool(getattr(self._noise, "seeded", True))

    @property
    def turnover(self) -> int:
        """Users who joined plus users who left since slot 1, as told to `update`."""
        return self._turnover

    @property
    def measured(self) -> Measurement | None:
        """The measurement behind the last step's release, None if it repeats; public, what a journal replays."""
        return self._measured

    def step(self, counts: Any) -> Release:
        """Publish one slot.

        A slot gets one draw. If anything fails after noise was drawn, the draw is charged in full, and stepping the slot
        again repeats the last release (spec 4).

        Args:
            counts: `roster.count(…)`, or a whole-number array (classes, cells) in the order of `population.classes`.

        Raises:
            InvalidCounts: if they cannot be true; nothing has changed and the slot can be stepped again.
            InvalidState: if an interrupt (Ctrl-C) came while an earlier slot stored its charges.
        """
        self._refuse_torn()
        matrix = checked_matrix(counts, self.population.sizes, len(self.cells), self._options.max_cells_per_user)
        try:
            return self._step(matrix)
        except BaseException:
            if not self._torn:
                self._torn = True
                self._ledger.abandon()
                self._torn = False
            raise

    def _step(self, matrix: IntArray) -> Release:
        outcome = step(self._pieces, self._ledger, self._history, matrix, self._noise)
        history, estimate = advance(self._history, outcome, self._pieces, self._ledger)
        probe_charges, publication_charges = self._class_charges(outcome)
        threshold = None if outcome.plan is None else outcome.plan.threshold
        fresh = outcome.measurement is not None
        release = Release(
            self._history.slot,
            self._polish(estimate.values) if self._polishes else estimate.values,
            self.cells,
            self._row.name,
            outcome_word(outcome.kind, estimate=estimate.error is not None and estimate.error.law == "estimate"),
            probe_charges,
            publication_charges,
            estimate.std_error,
            threshold,
            outcome.dissimilarity,
            estimate.error,
            history.last_fresh or None,
            is_whole_error(
                estimate.error,
                self._traits,
                self._options,
                fresh=fresh,
                everyone=fresh and counts_everyone(publication_charges, self.population.sizes, threshold),
            ),
        )
        self._torn = True
        self._ledger.commit(outcome.reservation, outcome.charges)
        self._history = history
        self._measured = outcome.measurement
        self._torn = False
        return release

    def _refuse_torn(self) -> None:
        """Refuse to go on after an interrupt while charges were being stored: nobody knows which of them are (spec 4)."""
        if self._torn:
            raise InvalidState(
                "The publisher was interrupted while it stored its charges.",
                "Restore it from its last state, or resume the journal.",
            )

    def replay(self, probe_charges: IntArray, publication_charges: IntArray, measured: Measurement | None) -> None:
        """Take over a committed slot from a journal: its charges and measurement, without counts or noise (spec 10).

        After replaying every slot since `state()` was taken the publisher continues as if it had stepped them itself.

        Args:
            probe_charges: per class of the population, nano-epsilons.
            publication_charges: the same for the publication.
            measured: the measurement of a published slot, None for any other.

        Raises:
            InvalidState: if they cannot be a committed slot's charges; nothing has changed.
        """
        self._ledger.check_charges(probe_charges, publication_charges)
        rows = None if measured is None else self._ledger.with_classes(self._ledger.nothing, publication_charges)
        outcome = Outcome("repeated" if measured is None else "published", None, rows, None, measured)
        self._history, _ = advance(self._history, outcome, self._pieces, self._ledger)
        self._ledger.replay(probe_charges, publication_charges)

    def inherit(self, earlier: Publisher) -> None:
        """Begin where an earlier publisher over the same people stands: its slot and every charge (spec 10, epochs).

        What was measured before stays behind: cells and mechanism may have changed. Call it before the first step.
        """
        population = self.population
        self._ledger.load(earlier.population, earlier.slot, earlier._ledger.export())
        self.population = earlier.population
        self._history.slot = earlier.slot
        self._history.smoothed = self._pieces.smoother.start(len(self.cells), earlier.slot)
        self._history.last_charges = np.full(len(self._ledger.rows), -1, dtype=np.int64)
        self._turnover = earlier.turnover
        self.update(population, turnover=0)

    def run(self, slots: Iterable[Any]) -> Iterator[Release]:
        """Publish slot after slot, lazily.

        Raises:
            InvalidCounts: as of `step`, and for what is no series of slots.
        """
        if not isinstance(slots, Iterable):
            raise InvalidCounts(
                f"slots must be an iterable of counts, not {type(slots).__name__}.", "Pass a list or a generator."
            )
        return map(self.step, slots)

    def update(self, population: Population, *, turnover: int) -> None:
        """Put a new population in force from the next slot on; old charges stay with their classes (spec 4).

        A class whose last members left keeps its charges for w − 1 slots; a joiner inherits those of the class. The caller
        counts each user in a class that is at least as strict as every requirement in force for the user (spec 15.1), as
        `wevent.people` does. The publisher does not see users.

        Args:
            population: the new classes and sizes.
            turnover: users who joined plus users who left (`Roster.turnover`). Sizes do not show it: where 900 of 1,000
                users are replaced by others, it is 1,800. Intervals and the filter rely on it.

        Raises:
            InvalidPopulation: if a shared-budget mechanism was not built for one of the classes.
            InvalidOption: if the turnover is no whole number from 0 on.
        """
        self.check_population(population)
        if type(turnover) is not int or turnover < 0:
            raise InvalidOption(
                f"turnover must be a whole number from 0 on, not {turnover!r}.",
                "Pass the number of users who joined plus the number who left.",
                option="turnover",
                value=turnover,
            )
        self._turnover += turnover
        self._history.turnover += turnover
        last_charges = self._history.last_charges
        carried = self._ledger.update(population, keep=last_charges >= 0)
        self._history.last_charges = np.where(carried >= 0, last_charges[carried], -1)
        self.population = population

    def state(self) -> bytes:
        """Return everything needed to continue identically; of secure noise nothing, of seeded noise its position."""
        self._refuse_torn()
        return state_format.dump(
            state_format.State(
                **option_values(self._options),
                cells=self.cells.declaration(),
                declared=[requirement.key for requirement in self._declared],
                population=[
                    (*requirement.key, size, own)
                    for (requirement, size), own in zip(
                        self.population.items(), self.population.own.tolist(), strict=True
                    )
                ],
                slot=self._ledger.slot,
                ledger=self._ledger.export(),
                last_fresh=self._history.last_fresh,
                last_charges=self._history.last_charges.tolist(),
                measurement=self._history.measurement.tolist(),
                smoothed=self._pieces.smoother.dump(self._history.smoothed),
                seeded=self.seeded,
                noise=self._noise.position() if isinstance(self._noise, SeededNoise) else None,
                memory=self._history.memory,
                turnover=self._turnover,
                new_users=self._history.turnover,
            )
        )

    @classmethod
    def restore(cls, state: bytes, noise: NoiseSource | None = None) -> Publisher:
        """Return a publisher that continues from `state()`.

        Args:
            state: the bytes of `state()`.
            noise: None continues with the kind of noise it had, a seeded source from where it stood.

        Raises:
            InvalidState: if the bytes are no state, or of a newer format.
            InvalidOption: for noise that is none.
        """
        _check_noise(noise)
        saved = state_format.load(state)
        try:
            return cls._from_saved(saved, noise)
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
            if isinstance(error, UnknownMechanism):
                raise
            raise InvalidState(
                "The parts of the publisher's state contradict each other.",
                "Use the bytes of Publisher.state() unchanged.",
            ) from error

    @classmethod
    def _from_saved(cls, saved: state_format.State, noise: NoiseSource | None) -> Publisher:
        if noise is None and saved.noise is not None:
            noise = SeededNoise.at(saved.noise)
        publisher = cls(
            state_format.population_of([(*key, 0, 0) for key in saved.declared]),
            saved.cells,
            noise=noise,
            **option_values(saved),
        )
        publisher.population = state_format.population_of(saved.population)
        publisher.check_population(publisher.population)
        if publisher._row.shared_budget and not {*saved.declared} <= {*saved.ledger[0]}:
            raise ValueError("a declared class that was never charged")
        publisher._ledger.load(publisher.population, saved.slot, saved.ledger)
        rows, cells = len(publisher._ledger.rows), len(publisher.cells)
        if len(saved.last_charges) != rows or len(saved.measurement) != cells or saved.last_fresh >= saved.slot:
            raise ValueError("contradictory fields")
        history = publisher._history
        history.slot = saved.slot
        history.last_fresh = saved.last_fresh
        history.last_charges = np.array(saved.last_charges, dtype=np.int64)
        measurement = np.array(saved.measurement)
        if not np.isfinite(measurement).all():
            raise ValueError("a measurement that is not finite")
        if any_true(history.last_charges > publisher._ledger.epsilons):
            raise ValueError("a charge that no publication had")
        history.measurement = measurement if publisher._pieces.rule is None else compared(measurement)
        history.memory = saved.memory
        publisher._turnover = saved.turnover
        history.turnover = saved.new_users
        history.smoothed = publisher._pieces.smoother.load(saved.smoothed)
        return publisher

    def _class_charges(self, outcome: Outcome) -> tuple[IntArray, IntArray]:
        """Return what the slot charges each class of the population, as read-only arrays."""
        if outcome.reservation is None:  # refused
            probe, publication = self._ledger.forfeited
        else:
            probe = outcome.reservation.probe_budgets
            publication = self._ledger.nothing if outcome.charges is None else outcome.charges
        charges = self._ledger.of_classes(probe), self._ledger.of_classes(publication)
        for row in charges:
            row.setflags(write=False)
        return charges

    def check_population(self, population: Population) -> None:
        """Check that `update` would take a population: a shared budget is for the classes it was declared for.

        Raises:
            InvalidPopulation: naming the first class it was not declared for.
        """
        _check_population(population)
        if not self._row.shared_budget:
            return
        widest = max(requirement.window for requirement in self._declared)
        smallest = min(requirement.nano for requirement in self._declared)
        for requirement in population.classes:
            if requirement.window > widest or requirement.nano < smallest:
                raise InvalidPopulation(
                    f"{requirement!r} is outside the declared window {widest} and epsilon {smallest / NANO:g}.",
                    "Declare the class at the start (size 0 is allowed), or use a personalised mechanism.",
                    requirement=requirement,
                )

    def __repr__(self) -> str:
        size = f"{len(self.population)} classes × {len(self.cells)} cells"
        return f"<Publisher {self.mechanism}, {size}, next slot {self.slot}>"


def _check_noise(noise: object) -> None:
    """Refuse what cannot draw, above all a seed: noise that repeats has to be asked for by its name."""
    methods = (getattr(noise, name, None) for name in ("laplace", "binomial", "respond"))
    if noise is not None and (isinstance(noise, type) or not all(map(callable, methods))):
        raise InvalidOption(
            f"noise must be a noise source, not {type(noise).__name__}.",
            "Leave it out for secure noise; SeededNoise(7) is for simulation only.",
            option="noise",
            value=noise,
        )


def _check_population(population: object) -> None:
    if not isinstance(population, Population):
        raise InvalidPopulation(
            f"A population must be a Population, not {type(population).__name__}.",
            "Pass roster.population or Population({…}).",
        )
