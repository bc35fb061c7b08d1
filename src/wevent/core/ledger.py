"""The ledger: charges per class over sliding windows, and the gate that all spending goes through (spec 4).

For each class it keeps the charges of the last w − 1 slots, dissimilarity and publication apart, and their sums. Before
counts are touched the mechanism reserves the most the slot may charge; a reservation that would take any class's window
above its epsilon is refused. What is charged is stored at commit and never exceeds the reservation. So a wrong policy
can waste accuracy, never privacy.

In every slot a stricter class is reserved and charged at most what a looser one is (spec 15.1 rule 3). So the charges of a
class also cover the users of that requirement who are counted in a stricter class.

A slot has at most one live reservation. A new one ends the one before, and if noise was drawn from that one, the draw is
charged at once and the slot gets no further draw: it repeats the last release.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wevent.core.arrays import BoolArray, IntArray, any_true, frozen_copy, frozen_ints
from wevent.core.limits import MAX_SLOT
from wevent.core.mechanism import PolicyInput
from wevent.core.order import find_order
from wevent.core.permit import Permit, PermitMisused, Reservation, _Gate
from wevent.core.requirements import Population, Requirement
from wevent.errors import InsufficientBudget, InvalidState

Exported = tuple[list[tuple[int, int]], bytes]
_INT64 = np.dtype(np.int64)
_NO_SLOTS: IntArray = np.zeros(0, dtype=np.int64)
_SHORT = 1024  # slots of a window that are not worth examining
_EXAMINED = 1 << 18  # slots × rows at once, which bounds memory


class PublicLedger:
    """Read-only view of a publisher's ledger, always current."""

    __slots__ = ("_ledger",)

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    @property
    def rows(self) -> tuple[Requirement, ...]:
        """Requirements with a history of charges, ascending."""
        return self._ledger.rows

    def spent(self) -> IntArray:
        """Return the nano-epsilons that each class of the population was charged in the last w − 1 slots."""
        return self._ledger.spent().copy()

    def remaining(self) -> IntArray:
        """Return the nano-epsilons that each class of the population may still be charged in the next slot."""
        return self._ledger.remaining()


class Ledger:
    """Windowed charges of one stream of people.

    Rows are requirements, ascending: the classes of the population, the `pinned` ones (declared at the start and
    charged even without members) and those whose last members left less than a window ago. Without population changes
    the rows are the classes.

    Args:
        population: classes and sizes in force.
        sensitivity: Δ, handed on to every permit.
        cells_per_user: k, handed on to every permit.
        pinned: requirements that are charged in every slot, whether the population has them or not.

    Attributes:
        slot: the open slot, the next to be charged; the first is 1.
        windows, epsilons: w_g and ε_g (nano-epsilons) per row.
        halves: ε_g // 2.
        shares: ε_g // (2·w_g).
        publication_spent: publication charges of the last w_g − 1 slots per row.
        charged: whether the row is charged at all: it has a class in the population, or is pinned.
        sizes: registered users per row, 0 for a row without a class in the population.
        typical_sizes: the same without the rarest requirements, see `count_typical`.
        nothing: a charge of 0 per row.
    """

    windows: IntArray
    epsilons: IntArray
    halves: IntArray
    shares: IntArray
    publication_spent: IntArray
    charged: BoolArray
    sizes: IntArray
    typical_sizes: IntArray
    nothing: IntArray

    def __init__(
        self,
        population: Population,
        *,
        sensitivity: int = 1,
        cells_per_user: int = 1,
        pinned: Iterable[Requirement] = (),
    ) -> None:
        self.slot = 1
        self._sensitivity = sensitivity
        self._cells_per_user = cells_per_user
        self._pinned = frozenset(pinned)
        self._live: Reservation | None = None
        self._forfeits = False  # whether a draw of the open slot failed and was charged
        self._charged_slots = _NO_SLOTS, 1  # of those before the second number; kept by `forecast`
        self._lay_out(population, sorted({*population.classes, *self._pinned}))

    @property
    def rows(self) -> tuple[Requirement, ...]:
        return self._rows

    def spent(self) -> IntArray:
        """Return nano-epsilons per class of the population, charged in the last w_g − 1 slots."""
        return self.of_classes(self._probe_spent + self.publication_spent)

    def remaining(self) -> IntArray:
        """Return nano-epsilons per class of the population that the open slot may still charge."""
        return self.of_classes(self._remaining).copy()

    def of_classes(self, values: IntArray) -> IntArray:
        """Return the entries of a per-row array that belong to the population's classes, in class order."""
        return values if self._members is None else values[self._members]

    def forecast(self, delays: IntArray) -> IntArray:
        """Return what each row may charge `delays` slots from now if nothing is charged until then; rows × delays.

        Accuracy only: what is really charged goes through `reserve`.
        """
        now = (self.epsilons - self._probe_spent - self.publication_spent)[:, None]
        if not delays.any():
            return np.repeat(now, len(delays), axis=1)
        charged = self._find_charged_slots()
        first, starts, _, charges = self._held(charged)
        before = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(charges)))
        over = np.searchsorted(charged, self.slot - self.windows[:, None] + delays, side="right")  # by then
        regained = before[starts[:, None] + over - first[:, None]] - before[starts[:, None]]
        remaining: IntArray = now + regained
        return remaining

    def _find_charged_slots(self) -> IntArray:
        """Return the slots within the longest window that charged any row, ascending; each slot is examined once.

        Slots without charges may be among them; where windows are short, all are.
        """
        oldest = self.slot - int(self.windows[-1])  # has left every window: rows ascend by theirs
        if self.slot - oldest <= _SHORT:
            return np.arange(max(oldest + 1, 1), self.slot)
        known, examined = self._charged_slots
        found = [known[known > oldest]]
        at_once = max(1, _EXAMINED // len(self._rows))
        for begin in range(max(examined, oldest + 1, 1), self.slot, at_once):
            slots = np.arange(begin, min(begin + at_once, self.slot))
            _, _, places, charges = self._held(slots)
            found.append(slots[np.unique(places[charges > 0])])
        self._charged_slots = np.concatenate(found), self.slot
        return self._charged_slots[0]

    def _held(self, slots: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Return the charges of some slots before the open one, ascending, as far as windows hold them: row after row.

        Returns:
            The first slot that each row holds, as a place in `slots`; where each row starts; the place in `slots` and the
            charge of every entry.
        """
        first = np.searchsorted(slots, self.slot - self.windows, side="right")
        numbers = len(slots) - first
        starts = np.cumsum(numbers) - numbers
        rows = np.repeat(np.arange(len(numbers)), numbers)
        places = np.arange(len(rows)) + (first - starts)[rows]
        kept = self._offsets[rows] + slots[places] % self.windows[rows]
        return first, starts, places, self._charges[:, kept].sum(axis=0)

    def with_classes(self, values: IntArray, class_values: IntArray) -> IntArray:
        """Return a copy of a per-row array in which the population's classes have these values instead."""
        replaced = values.copy()
        replaced[slice(None) if self._members is None else self._members] = class_values
        return replaced

    def view(self) -> PolicyInput:
        """Return what a policy may read in the open slot."""
        return PolicyInput(
            self.windows,
            self.epsilons,
            self.halves,
            self.shares,
            self.sizes,
            self.typical_sizes,
            self.charged,
            np.frombuffer(self.publication_spent.tobytes(), dtype=np.int64),
            lambda delays: self.forecast(delays),
        )

    def reserve(self, probe: IntArray | None, publication: IntArray | None, level: int = 0) -> Reservation:
        """Set aside the most the open slot may charge (spec 4): the gate.

        Rule 3 of spec 15.1 comes first, for each part: if charged row A is at least as strict as charged row B, A is
        reserved and charged at most the offer of B.

        Args:
            probe: e¹ per row, nano-epsilons; None without a probe.
            publication: e² per row; None if no publication is offered.
            level: how much of each e² an anchor may take (spec 11.8): part of e², not on top of it.

        Returns:
            The reservation with the lowered offers and a permit for each part. Rows without members that are not pinned
            are reserved nothing. It is the only live one: permits of an earlier reservation of the slot have ended.

        Raises:
            InsufficientBudget: naming the first row whose window would be overspent, or if noise was drawn in this slot
                for an earlier reservation: the draw is charged in full and not repeated.
        """
        self.abandon()
        if type(level) is not int or level < 0:
            raise PermitMisused("a level is a whole number of nano-epsilons, 0 or more")
        probe_budgets = self._checked(probe)
        publication_budgets = self._checked(publication)
        # each part against what remains, before anything is added: a sum of two huge offers would wrap
        exceeding = (probe_budgets > self._remaining) | self._forfeits
        if publication is not None:
            exceeding |= publication_budgets > self._remaining - probe_budgets
        if any_true(exceeding):
            row = int(exceeding.argmax())
            requested = int(probe_budgets[row]) + int(publication_budgets[row])
            raise InsufficientBudget(self._rows[row], requested, int(self._remaining[row]))
        permits = (
            None if probe is None else self._permit(probe_budgets),
            None if publication is None else self._permit(publication_budgets, level),
        )
        self._live = Reservation(self.slot, (probe_budgets, publication_budgets), permits)
        return self._live

    def abandon(self) -> None:
        """End the live reservation, if there is one, and charge what was drawn from it (spec 4).

        Charges e¹ to every row if the probe was drawn and e² if the publication was. The slot then gets no further draw.
        """
        live, self._live = self._live, None
        if live is None:
            return
        probe_drawn, publication_drawn = live.end()
        if probe_drawn or publication_drawn:
            self._store(
                live.probe_budgets if probe_drawn else self.nothing,
                live.publication_budgets if publication_drawn else self.nothing,
            )
            self._forfeits = True
            self._update_remaining()

    @property
    def forfeited(self) -> tuple[IntArray, IntArray]:
        """Probe and publication charges per row of a draw that failed in the open slot; zeros if none did."""
        probe, publication = self._charges[:, self._places]
        return probe, publication

    def commit(self, reservation: Reservation | None, publication_charges: IntArray | None) -> None:
        """Store the open slot's charges and open the next slot.

        The probe is charged in full whenever it was reserved. The publication charges are given per row, None without a
        publication; `raise_charges` is applied to them. Without a reservation (refused) the slot charges only what was
        forfeited.

        Raises:
            PermitMisused: if the reservation is not the live one or is exceeded, or a charge is malformed.
        """
        if reservation is None:
            if publication_charges is not None:
                raise PermitMisused("a charge exceeds its reservation")
            self.abandon()
        elif reservation is not self._live:
            raise PermitMisused("a charge belongs to the live reservation of the slot")
        else:
            _, drawn = reservation.end()
            if publication_charges is None:
                charges = reservation.publication_budgets if drawn else self.nothing
            else:
                charges = self._charged(reservation, publication_charges)
            self._store(reservation.probe_budgets, charges)
            self._live = None
        self._open_next()

    def raise_charges(self, charges: IntArray) -> IntArray:
        """Return publication charges in which a looser row pays at least what stricter rows pay (spec 15.1 rule 3).

        A refund may leave row B with less than row A, which is at least as strict. B is then charged as much as A: never
        above what is reserved for B, because offers are ordered.
        """
        return self._order.raise_charges(charges)

    def replay(self, probe_charges: IntArray, publication_charges: IntArray) -> None:
        """Store the charges of a slot that a journal has already committed, and open the next slot (spec 10).

        Hands out nothing: no permit comes of it, so nothing can be measured. Charges are per class of the population;
        what was charged is charged again, whatever the window holds by then and in whatever order.

        Raises:
            InvalidState: if they are no charges that this ledger's gate could have let through in one slot.
        """
        probe, publication = self.check_charges(probe_charges, publication_charges)
        self.abandon()
        charges = self._with_pinned(probe), self._with_pinned(publication)
        self._store(*(np.maximum(one - known, 0) for one, known in zip(charges, self.forfeited, strict=True)))
        self._open_next()

    def _with_pinned(self, class_charges: IntArray) -> IntArray:
        """Return charges per row: a pinned row without a class is charged what the shared budget charged the others."""
        shared = min(int(class_charges.max(initial=0)), int(self._remaining.min()))
        return self.with_classes(np.where(self.charged, shared, 0), class_charges)

    def check_charges(self, probe_charges: IntArray, publication_charges: IntArray) -> tuple[IntArray, IntArray]:
        """Check that charges per class of the population, as a journal has them, could be those of one slot; return copies.

        Raises:
            InvalidState: if they have another form, or any is below 0, or the two of a class exceed its ε.
        """
        most = self.of_classes(self.epsilons)
        probe, publication = (self._copied(charges, most.shape) for charges in (probe_charges, publication_charges))
        if probe is None or publication is None:
            raise _impossible("they are not one int64 per class")
        if any_true((probe < 0) | (probe > most) | (publication < 0) | (publication > most - probe)):
            raise _impossible("a charge is below 0 or above epsilon")
        return probe, publication

    def update(self, population: Population, keep: BoolArray | None = None) -> IntArray:
        """Put a new population in force from the open slot on; every charge stays with its requirement (spec 4).

        Args:
            population: the new classes and sizes.
            keep: rows to keep even if they owe nothing, because the caller remembers something of them.

        Returns:
            For each new row the old row of the same requirement, or -1.
        """
        self.abandon()
        old_rows, old_offsets, old_charges = self._rows, self._offsets, self._charges
        owing = self._probe_spent + self.publication_spent > 0
        lasting = (owing if keep is None else owing | keep).tolist()
        lingering = (requirement for requirement, lasts in zip(old_rows, lasting, strict=True) if lasts)
        self._lay_out(population, sorted({*population.classes, *self._pinned, *lingering}))

        position = {requirement: row for row, requirement in enumerate(old_rows)}
        carried = np.array([position.get(requirement, -1) for requirement in self._rows], dtype=np.int64)
        for row, old in enumerate(carried.tolist()):
            if old >= 0:
                source, target, width = int(old_offsets[old]), int(self._offsets[row]), self._rows[row].window
                self._charges[:, target : target + width] = old_charges[:, source : source + width]
        self._resum()
        return carried

    def export(self) -> Exported:
        """Return the rows as (window, nano), and the kept charges, for `Publisher.state`."""
        return [(row.window, row.nano) for row in self._rows], self._charges.tobytes()

    def load(self, population: Population, slot: int, exported: Exported) -> None:
        """Take over exported charges, with the population in force; the counterpart of `export`.

        Raises:
            InvalidState: if they are not what `export` could have given; nothing has changed.
        """
        rows, charges = exported
        requirements = [Requirement.from_nano(window, nano) for window, nano in rows]
        if requirements != sorted(set(requirements)) or not set(population.classes) <= set(requirements):
            raise _impossible("their rows are not those of the population")
        if not 1 <= slot <= MAX_SLOT:
            raise _impossible("the slot is out of range")
        if len(charges) != 16 * sum(requirement.window for requirement in requirements):
            raise _impossible(f"{len(charges)} bytes do not fit the rows")
        kept = np.frombuffer(charges, dtype=np.int64).reshape(2, -1)
        probe, publication = kept
        limits = np.repeat(
            [requirement.nano for requirement in requirements], [requirement.window for requirement in requirements]
        )
        if any_true(kept < 0) or any_true(probe > limits) or any_true(publication > limits - probe):
            raise _impossible("a charge is below 0 or above epsilon")
        self.abandon()
        self.slot = slot
        self._charged_slots = _NO_SLOTS, 1
        self._lay_out(population, requirements)
        self._charges[:] = kept
        self._resum()

    def _permit(self, budgets: IntArray, level: int = 0) -> Permit:
        members = budgets if self._members is None else frozen_copy(self.of_classes(budgets))
        return Permit(
            _Gate(),
            members,
            self._population.sizes,
            threshold_sizes=self._threshold_sizes,
            sensitivity=self._sensitivity,
            cells_per_user=self._cells_per_user,
            level=level,
        )

    def _checked(self, budgets: IntArray | None) -> IntArray:
        """Return what a policy proposes, as a copy that can't change any more, lowered by rule 3 of spec 15.1.

        The ledger's own shares need no check: ε_A ≤ ε_B and w_A ≥ w_B imply ε_A // (2·w_A) ≤ ε_B // (2·w_B).
        """
        if budgets is None:
            return self.nothing
        if budgets is self.shares and self._members is None:  # the ledger's own: what nearly every probe asks for
            return budgets
        own = self._copied(budgets, self.windows.shape)
        if own is None or any_true(own < 0):
            raise PermitMisused(f"budgets are {len(self._rows)} non-negative int64 nano-epsilons, one per row")
        return self._order.lower(own if self._members is None else frozen_copy(own * self.charged))

    def _charged(self, reservation: Reservation, charges: IntArray) -> IntArray:
        """Return what a publication is charged, as a copy: per row from 0 to what was reserved, raised by `raise_charges`."""
        if charges is reservation.publication_budgets:
            return charges
        own = self._copied(charges, self.windows.shape)
        if own is None or any_true((own < 0) | (own > reservation.publication_budgets)):
            raise PermitMisused("a charge exceeds its reservation")
        return self.raise_charges(own)

    @staticmethod
    def _copied(values: object, shape: tuple[int, ...]) -> IntArray | None:
        """Return an int64 array of this shape, copied before anything of it is read; None for anything else."""
        if type(values) is not np.ndarray or (values.dtype is not _INT64 and values.dtype != _INT64):
            return None
        return frozen_copy(values) if values.shape == shape else None

    def _store(self, probe: IntArray, publication: IntArray) -> None:
        for line, charges in zip(self._charges, (probe, publication), strict=True):
            line[self._places] += charges
        self._sums += (probe, publication)

    def _open_next(self) -> None:
        """Open the next slot and drop the charges that leave its window: those of slot − w_g."""
        self.slot += 1
        self._forfeits = False
        self._places = self._offsets + self.slot % self.windows
        self._sums -= self._charges.take(self._places, axis=1)
        for line in self._charges:
            line[self._places] = 0
        self._update_remaining()

    def _resum(self) -> None:
        """Compute sums from charges that were put in place; what the open slot has was forfeited."""
        self._sums[:] = np.add.reduceat(self._charges, self._offsets, axis=1)
        self._forfeits = any_true(self._charges[:, self._places] != 0)
        self._update_remaining()

    def _update_remaining(self) -> None:
        np.subtract(self.epsilons, self._probe_spent, out=self._remaining)
        np.subtract(self._remaining, self.publication_spent, out=self._remaining)

    def _lay_out(self, population: Population, rows: list[Requirement]) -> None:
        """Allocate empty places for these rows.

        `_charges` has two lines, probe and publication. In each, row g owns the w_g places from `_offsets[g]` on, a ring:
        slot t is at place t mod w_g. `_places` are those of the open slot, and `_sums` the sums of the rings.
        """
        self._population = population
        self._threshold_sizes = population.threshold_sizes
        self._rows = tuple(rows)
        self.windows = frozen_ints([row.window for row in rows])
        self.epsilons = frozen_ints([row.nano for row in rows])
        self.halves = frozen_ints([row.nano // 2 for row in rows])
        self.shares = frozen_ints([row.share for row in rows])
        self.nothing = frozen_ints([0] * len(rows))
        held = dict(population.items())
        self.sizes = frozen_ints([held.get(row, 0) for row in rows])
        self.typical_sizes = frozen_copy(count_typical(self.windows, self.epsilons, self.sizes))
        self._offsets = np.cumsum(self.windows) - self.windows
        self._places = self._offsets + self.slot % self.windows
        self._charges = np.zeros((2, int(self.windows.sum())), dtype=np.int64)
        self._sums = np.zeros((2, len(rows)), dtype=np.int64)
        self._remaining = self.epsilons.copy()
        self._probe_spent, self.publication_spent = self._sums
        self.publication_spent.setflags(write=False)
        if self._rows == population.classes:
            self._members: IntArray | None = None
            self.charged = np.ones(len(rows), dtype=np.bool_)
        else:
            position = {requirement: row for row, requirement in enumerate(rows)}
            self._members = np.array([position[requirement] for requirement in population.classes], dtype=np.int64)
            self.charged = np.array([row in population or row in self._pinned for row in rows])
        self.charged.setflags(write=False)
        self._order = find_order(self.windows.tobytes(), self.epsilons.tobytes(), self.charged.tobytes())


def count_typical(windows: IntArray, epsilons: IntArray, sizes: IntArray) -> IntArray:
    """Return the sizes of the classes, with 0 for those at the edges of what users ask for.

    A class is at an edge if fewer than 1 % of the users ask for as little ε as it does or less, or for as much or more; the
    same for ε/w. A policy that plans with these sizes is not ruled by a few users with odd requirements.
    """
    typical = sizes.copy()
    for asked in (epsilons.astype(np.float64), epsilons / windows):
        for values in (asked, -asked):
            order = values.argsort(kind="stable")
            reached = 100 * sizes[order].cumsum() >= sizes.sum()
            typical[values < values[order[reached.argmax()]]] = 0
    return typical


def _impossible(problem: str) -> InvalidState:
    return InvalidState(
        f"Invalid charges: {problem}.",
        "Use the state or journal unchanged, or restore a backup.",
    )
