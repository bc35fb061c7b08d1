"""Events of an open slot: why those that cannot count are dropped, whenever that happens."""

from __future__ import annotations

import numpy as np
import pytest

from wevent.counting.labels import Labels
from wevent.counting.roster import Rejected, Roster
from wevent.events import live_source
from wevent.events.live_source import SlotBuffer
from wevent.streams.decoding import EventColumns

USERS = ["1", "2", "1", "x", "w", "x", "2"]
CELLS = [0, 1, -1, 0, 1, -1, -1]
WHY = Rejected(unknown_cell=3, unknown_user=2)


def people() -> Roster:
    return Roster.from_columns(["1", "2"], [4, 4], [1, 1])


def filled(slot: SlotBuffer) -> SlotBuffer:
    for place, (user, cell) in enumerate(zip(USERS, CELLS, strict=True)):
        slot.add(EventColumns(np.array([place]), Labels.of_values([user]), np.array([cell])))
    return slot


@pytest.mark.parametrize("compact_above", [1, 3, 100])
def test_the_reasons_stay_when_events_are_forgotten_early(compact_above: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_source, "_COMPACT_ABOVE", compact_above)
    counts = filled(SlotBuffer(1, people())).count(2)
    assert counts.matrix.tolist() == [[1, 1]]
    assert counts.reasons == WHY
