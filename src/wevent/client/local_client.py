"""Reports of the local model for a user whose requirement changes (spec 9 and 15.3). No input or output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from wevent.core.budget import NANO
from wevent.core.requirements import Requirement
from wevent.errors import InvalidReports
from wevent.people.classes import Key, find_corner, find_counting_class, is_at_least_as_strict
from wevent.people.membership import Membership, end_current, find_in_force
from wevent.publisher.local_model import randomize_nano


class LocalReport(msgspec.Struct, frozen=True):
    """Report of one slot: the class it counts in, and the randomized answer."""

    slot: int
    window: int
    nano: int
    answer: int

    @property
    def epsilon(self) -> float:
        """Budget of the report, for `wevent.local.estimate`."""
        return self.nano // self.window / NANO


class _State(msgspec.Struct):
    path: list[Membership] = []
    report: LocalReport | None = None


class LocalClient:
    """Path of a user, kept on the device: requirements with their slots, and the last report.

    Store `state` before a report is sent. A report that was drawn is sent again unchanged.

    Args:
        cells: the declared domain.
        state: earlier `state`; empty for a new user.
    """

    def __init__(self, cells: int | Sequence[Any], state: bytes = b"") -> None:
        self._cells = cells
        self._state = msgspec.json.decode(state, type=_State) if state else _State()

    @property
    def state(self) -> bytes:
        """Path and last report. Private: keep it on the device."""
        return msgspec.json.encode(self._state)

    def set_requirement(self, requirement: Requirement | None, slot: int) -> None:
        """Hold another requirement from a slot on, or none. The earlier one stays in force for its own window.

        Raises:
            InvalidReports: if the slot, or a later one, was reported already.
        """
        self._refuse_past(slot)
        rows = end_current(self._state.path, slot)
        if requirement is not None:
            rows.append(Membership("", *requirement.key, None, slot, None))
        self._state.path = rows

    def report(self, cell: Any, slot: int, classes: Iterable[Key], told: Key | None = None) -> LocalReport:
        """Return the report of a slot; the same one again for a slot that was reported.

        Args:
            cell: the user's cell, None if absent.
            slot: the slot.
            classes: public class table of the slot, as window and nano-epsilons.
            told: class that the server names. None: the loosest class that is allowed.

        Raises:
            InvalidReports: if the user holds no requirement, the class of the server is too loose or impossible, a later
                slot was reported already, or the cell is not in the domain.
        """
        last = self._state.report
        if last is not None and last.slot == slot:
            return last
        self._refuse_past(slot)
        if not any(row.first <= slot and row.last is None for row in self._state.path):
            raise _refused("No requirement is held.", "Set one first.")
        in_force, table = find_in_force(self._state.path, slot), set(classes)
        if any(window < 1 or nano < 0 for window, nano in (*table, *([] if told is None else [told]))):
            raise _refused("A class of the server has no window or a negative epsilon.", "Send nothing.")
        table.add(find_corner([*table, *in_force]))
        window, nano = find_counting_class(in_force, table) if told is None else told
        if not all(is_at_least_as_strict((window, nano), key) for key in in_force):
            raise _refused("The class of the server is looser than a requirement in force.", "Send nothing.")
        answer = randomize_nano(cell, cells=self._cells, budget=nano // window)
        self._state.report = LocalReport(slot, window, nano, answer)
        self._state.path = [row for row in self._state.path if row.last is None or slot < row.last + row.window]
        return self._state.report

    def _refuse_past(self, slot: int) -> None:
        if self._state.report is not None and slot <= self._state.report.slot:
            problem = f"Slot {slot} is not after slot {self._state.report.slot}, which was reported."
            raise _refused(problem, "Report slots in order.")


def _refused(problem: str, fix: str) -> InvalidReports:
    return InvalidReports(problem, fix, index=None)
