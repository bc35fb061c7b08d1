"""The ledger: charges per class over sliding windows, and the gate that all spending goes through (spec 4).

For each class it keeps the charges of the last w − 1 slots, dissimilarity and publication apart, and their sums. Before
counts are touched the mechanism reserves the most the slot may charge; a reservation that would take any class's window
above its epsilon is refused. What is charged is stored at commit and never exceeds the reservation. So a wrong policy
can waste accuracy, never privacy.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wevent.core.arrays import BoolArray, IntArray, any_true, frozen_ints
from wevent.core.permit import _GATE, Permit, PermitMisused, Reservation
from wevent.core.requirements import Population, Requirement
from wevent.errors import InsufficientBudget

Exported = tuple[list[tuple[int, int]], bytes]


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
        nothing: a charge of 0 per row.
    """

    windows: IntArray
    epsilons: IntArray
    halves: IntArray
    shares: IntArray
    publication_spent: IntArray
    charged: BoolArray
    sizes: IntArray
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
        self._lay_out(population, sorted({*population.classes, *self._pinned}))

    @property
    def rows(self) -> tuple[Requirement, ...]:
        """The requirement of each row."""
        return self._rows

    def spent(self) -> IntArray:
        """Nano-epsilons per class of the population, charged in the last w_g − 1 slots."""
        return self.of_classes(self._probe_spent + self.publication_spent)

    def remaining(self) -> IntArray:
        """Nano-epsilons per class of the population that the open slot may still charge."""
        return self.of_classes(self._remaining).copy()

    def of_classes(self, values: IntArray) -> IntArray:
        """The entries of a per-row array that belong to the population's classes, in class order."""
        return values if self._members is None else values[self._members]

    def forecast(self, delays: IntArray) -> IntArray:
        """What each row may charge `delays` slots from now if nothing is charged until then; rows × delays.

        Accuracy only: what is really charged goes through `reserve`.
        """
        rows, widest = len(self._rows), int(self.windows.max())
        ages = np.arange(widest)  # entry i of a row is the charge of slot − w + i; the first is the open slot's place
        places = self._offsets[:rows, None] + (self.slot + ages) % self.windows[:, None]
        within = ages < self.windows[:, None]
        half = int(self._offsets[rows])  # publication charges follow the probe charges
        kept = np.where(within, self._charges[places] + self._charges[half + places], 0)
        after = np.zeros((rows, widest + 1), dtype=np.int64)
        after[:, :-1] = kept[:, ::-1].cumsum(axis=1)[:, ::-1]
        remaining: IntArray = self.epsilons[:, None] - after[:, np.minimum(delays + 1, widest)]
        return remaining

    def with_classes(self, values: IntArray, class_values: IntArray) -> IntArray:
        """A copy of a per-row array in which the population's classes have these values instead."""
        replaced = values.copy()
        replaced[slice(None) if self._members is None else self._members] = class_values
        return replaced

    def reserve(self, probe: IntArray | None, publication: IntArray | None) -> Reservation:
        """Set aside the most the open slot may charge (spec 4): the gate.

        Args:
            probe: e¹ per row, nano-epsilons; None without a probe.
            publication: e² per row; None if no publication is offered.

        Returns:
            The reservation with a permit for each part. Rows without members that are not pinned are reserved nothing.

        Raises:
            InsufficientBudget: naming the first row whose window would be overspent; nothing changes.
        """
        probe_budgets = self._checked(probe)
        publication_budgets = self._checked(publication)
        requested = probe_budgets + publication_budgets
        exceeding = requested > self._remaining
        if any_true(exceeding):
            row = int(exceeding.argmax())
            raise InsufficientBudget(self._rows[row], int(requested[row]), int(self._remaining[row]))
        return Reservation(
            self.slot,
            probe_budgets,
            publication_budgets,
            None if probe is None else self._permit(probe_budgets),
            None if publication is None else self._permit(publication_budgets),
        )

    def commit(self, reservation: Reservation | None, publication_charges: IntArray | None) -> None:
        """Store the open slot's charges and open the next slot.

        The probe is charged in full whenever it was reserved. The publication charges are given per row, None without a
        publication. Without a reservation (refused) the slot charges nothing.

        Raises:
            PermitMisused: if the reservation is of another slot or is exceeded.
        """
        if reservation is not None and reservation.slot != self.slot:
            raise PermitMisused(f"a reservation for slot {reservation.slot} cannot be charged in slot {self.slot}")
        if publication_charges is not None and (
            reservation is None
            or any_true(publication_charges > reservation.publication_budgets)
            or any_true(publication_charges < 0)
        ):
            raise PermitMisused("a charge exceeds its reservation")
        if reservation is not None:
            charged = self.nothing if publication_charges is None else publication_charges
            slot_charges = np.concatenate((reservation.probe_budgets, charged))
            self._charges[self._places] = slot_charges
            self._sums += slot_charges
        self.slot += 1
        self._retire()

    def replay(self, probe_charges: IntArray, publication_charges: IntArray) -> None:
        """Store the charges of a slot that a journal has already committed, and open the next slot (spec 10).

        Hands out nothing: no permit comes of it, so nothing can be measured. Charges are per class of the population;
        what was charged is charged again, whatever the window holds by then.
        """
        slot_charges = np.concatenate(
            (self.with_classes(self.nothing, probe_charges), self.with_classes(self.nothing, publication_charges))
        )
        self._charges[self._places] = slot_charges
        self._sums += slot_charges
        self.slot += 1
        self._retire()

    def update(self, population: Population, keep: BoolArray | None = None) -> IntArray:
        """Put a new population in force from the open slot on; every charge stays with its requirement (spec 4).

        Args:
            population: the new classes and sizes.
            keep: rows to keep even if they owe nothing, because the caller remembers something of them.

        Returns:
            For each new row the old row of the same requirement, or -1.
        """
        old_rows, old_offsets, old_charges = self._rows, self._offsets, self._charges
        owing = self._probe_spent + self.publication_spent > 0
        lasting = (owing if keep is None else owing | keep).tolist()
        lingering = (requirement for requirement, lasts in zip(old_rows, lasting, strict=True) if lasts)
        self._lay_out(population, sorted({*population.classes, *self._pinned, *lingering}))

        position = {requirement: row for row, requirement in enumerate(old_rows)}
        carried = np.array([position.get(requirement, -1) for requirement in self._rows], dtype=np.int64)
        for row, old in enumerate(carried.tolist()):
            if old >= 0:
                for kind in (0, 1):  # probe, then publication
                    source = int(old_offsets[kind * len(old_rows) + old])
                    target = int(self._offsets[kind * len(self._rows) + row])
                    width = self._rows[row].window
                    self._charges[target : target + width] = old_charges[source : source + width]
        self._resum()
        return carried

    def export(self) -> Exported:
        """The rows as (window, nano), and the kept charges, for `Publisher.state`."""
        return [(row.window, row.nano) for row in self._rows], self._charges.tobytes()

    def load(self, population: Population, slot: int, exported: Exported) -> None:
        """Take over exported charges, with the population in force; the counterpart of `export`."""
        rows, charges = exported
        self.slot = slot
        self._lay_out(population, [Requirement.from_nano(window, nano) for window, nano in rows])
        self._charges[:] = np.frombuffer(charges, dtype=np.int64)
        self._resum()

    def _permit(self, budgets: IntArray) -> Permit:
        budgets.setflags(write=False)
        members = self.of_classes(budgets)
        members.setflags(write=False)
        return Permit(
            _GATE,
            members,
            self._population.sizes,
            sensitivity=self._sensitivity,
            cells_per_user=self._cells_per_user,
        )

    def _checked(self, budgets: IntArray | None) -> IntArray:
        if budgets is None:
            return self.nothing
        if budgets is self.shares and self._members is None:  # the ledger's own: what nearly every probe asks for
            return budgets
        if budgets.dtype != np.int64 or budgets.shape != self.windows.shape or any_true(budgets < 0):
            raise PermitMisused(f"budgets are {len(self._rows)} non-negative int64 nano-epsilons, one per row")
        if self._members is not None:
            return budgets * self.charged
        return budgets.copy()  # what is reserved can't change any more

    def _retire(self) -> None:
        """Drop the charges that have left the open slot's window: those of slot − w_g."""
        self._places = self._offsets + self.slot % self._twice_windows
        self._sums -= self._charges[self._places]
        self._charges[self._places] = 0
        np.subtract(self.epsilons, self._probe_spent, out=self._remaining)
        np.subtract(self._remaining, self.publication_spent, out=self._remaining)

    def _resum(self) -> None:
        self._sums[:] = np.add.reduceat(self._charges, self._offsets)
        self._retire()

    def _lay_out(self, population: Population, rows: list[Requirement]) -> None:
        """Allocate empty places for these rows.

        Charges are flat: for each row w_g places of probe charges, then for each row w_g places of publication charges;
        slot t is kept in place t mod w_g. Sums are probe per row, then publication per row. One index array then serves
        both kinds, which halves the work of a slot.
        """
        self._population = population
        self._rows = tuple(rows)
        self.windows = frozen_ints([row.window for row in rows])
        self.epsilons = frozen_ints([row.nano for row in rows])
        self.halves = frozen_ints([row.nano // 2 for row in rows])
        self.shares = frozen_ints([row.share for row in rows])
        self.nothing = frozen_ints([0] * len(rows))
        held = dict(population.items())
        self.sizes = frozen_ints([held.get(row, 0) for row in rows])
        self._twice_windows = np.concatenate((self.windows, self.windows))
        ends = np.cumsum(self._twice_windows)
        self._offsets = ends - self._twice_windows
        self._places = self._offsets + self.slot % self._twice_windows
        self._charges = np.zeros(int(ends[-1]), dtype=np.int64)
        self._sums = np.zeros(2 * len(rows), dtype=np.int64)
        self._remaining = self.epsilons.copy()
        self._probe_spent, self.publication_spent = self._sums[: len(rows)], self._sums[len(rows) :]
        self.publication_spent.setflags(write=False)
        if self._rows == population.classes:
            self._members: IntArray | None = None
            self.charged = np.ones(len(rows), dtype=np.bool_)
        else:
            position = {requirement: row for row, requirement in enumerate(rows)}
            self._members = np.array([position[requirement] for requirement in population.classes], dtype=np.int64)
            self.charged = np.array([row in population or row in self._pinned for row in rows])
