"""Events of an open slot: why those that cannot count are dropped, whenever that happens."""

from __future__ import annotations

import numpy as np
import pytest

from wevent.counting.counts import Rejected
from wevent.counting.label_index import Labels
from wevent.counting.roster import Roster
from wevent.streams.decoding import EventColumns
from wevent.streams.live.open_slot import OpenSlot

USERS = ["1", "2", "1", "x", "w", "x", "2"]
CELLS = [0, 1, -1, 0, 1, -1, -1]
WHY = Rejected(unknown_cell=3, unknown_user=2)


def people() -> Roster:
    return Roster.from_columns(["1", "2"], [4, 4], [1, 1])


def filled(slot: OpenSlot) -> OpenSlot:
    for place, (user, cell) in enumerate(zip(USERS, CELLS, strict=True)):
        slot.add(EventColumns(np.array([place]), Labels.of_values([user]), np.array([cell])))
    return slot


@pytest.mark.parametrize("compact_above", [1, 3, 100])
def test_the_reasons_stay_when_events_are_forgotten_early(compact_above: int) -> None:
    slot = OpenSlot(1, compact_above=compact_above)
    slot.belongs_to(people())
    counts = filled(slot).count(people(), 2)
    assert counts.matrix.tolist() == [[1, 1]]
    assert counts.reasons == WHY


def test_the_reasons_survive_being_stored() -> None:
    slot = OpenSlot(1, compact_above=3)
    slot.belongs_to(people())
    restored = OpenSlot.load(1, filled(slot).dump(), 2)
    assert restored.count(people(), 2).reasons == WHY


@pytest.mark.parametrize("cell", [2, -2, 2**62])
def test_a_cell_that_there_is_not_is_refused_when_it_is_read(cell: int) -> None:
    """Counting would fail, slot after slot, long after the bytes were taken for good ones."""
    times, users, cells, rejected = filled(OpenSlot(1)).dump()
    cells = np.array([cell, *np.frombuffer(cells, dtype=np.int64)[1:]], dtype=np.int64).tobytes()
    with pytest.raises(ValueError, match="cell"):
        OpenSlot.load(1, [times, users, cells, rejected], 2)
