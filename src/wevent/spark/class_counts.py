"""Each user's last cells of some slots, and a roster: the class × cell matrix of each slot. Only sums leave Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from wevent.core.arrays import IntArray
from wevent.counting.counts import Counts, Rejected
from wevent.counting.roster import Roster
from wevent.spark.roster_frame import RosterFrames

_SUMS = 1 << 22  # that the driver takes at once: slots × classes × cells
_MOST_SLOTS = 4_096
_PAGE = 1_000  # ids of strangers that the driver looks at beyond those that may count


class ClassCounter:
    """Counts slots of a frame; of unregistered users it looks at no more than may count.

    Args:
        cells: how many cells there are.
        members: rosters as frames.
    """

    def __init__(self, cells: int, members: RosterFrames) -> None:
        self._cells, self._members = cells, members

    def stretch(self, roster: Roster) -> int:
        """How many slots may be counted at once."""
        return max(1, min(_MOST_SLOTS, _SUMS // (len(roster.population) * self._cells)))

    def release(self) -> None:
        """Let Spark forget who counts: nothing is counted any more."""
        self._members.release()

    def count(self, latest: DataFrame, roster: Roster, first: int, last: int) -> Iterator[tuple[int, Counts]]:
        """Every slot from first to last, empty ones too.

        Args:
            latest: slot, user, place (NULL: not among a user's last cells) and events; rows without a user are none.
            roster: who counts.
            first, last: which slots, at most `stretch`.
        """
        inside = latest.where(F.col("slot").between(first, last) & F.col("user").isNotNull())
        found = self._members.with_classes(inside, roster)
        sums = _sums(found)
        slots = sums["slot"] - first
        classes, places = sums["class"], sums["place"]
        matrices = np.zeros((last - first + 1, len(roster.population), self._cells), dtype=np.int64)
        known = (classes >= 0) & (places >= 0)
        matrices[slots[known], classes[known], places[known]] = sums["users"][known]
        for index, matrix in enumerate(matrices):
            unknown = int(sums["events"][(slots == index) & (classes < 0)].sum())
            counts = Counts(matrix, Rejected(unknown_user=unknown))
            yield first + index, self._with_strangers(counts, found, roster, first + index)

    def _with_strangers(self, counts: Counts, found: DataFrame, roster: Roster, slot: int) -> Counts:
        """Unregistered users too, as `Roster.count_rows` does: the smallest ids of those that the registry admits."""
        if roster.unknown_row is None or not counts.reasons.unknown_user:
            return counts
        unknown = found.where((F.col("slot") == slot) & F.col("class").isNull())
        unknown = unknown.select(F.col("user").cast("string").alias("name"), "place", "events")
        chosen = _strangers(unknown, roster)
        if not chosen:
            return counts
        names = unknown.sparkSession.createDataFrame(pyarrow.table({"chosen": chosen}))
        kept = unknown.join(names.hint("broadcast"), F.col("name") == F.col("chosen"), "left_semi")
        sums = _columns(kept.groupBy("place").agg(F.count(F.lit(1)).alias("users"), F.sum("events").alias("events")))
        matrix, here = counts.matrix.copy(), sums["place"] >= 0
        matrix[roster.unknown_row, sums["place"][here]] += sums["users"][here]
        return Counts(matrix, counts.reasons.plus(Rejected(unknown_user=-int(sums["events"].sum()))))


def _sums(found: DataFrame) -> dict[str, IntArray]:
    """How many users of each class are in each cell, slot by slot; of those who do not count, how many events."""
    place = F.when(F.col("class").isNotNull(), F.col("place")).alias("place")
    users, events = F.count(F.lit(1)).alias("users"), F.sum("events").alias("events")
    return _columns(found.groupBy("slot", "class", place).agg(users, events))


def _columns(sums: DataFrame) -> dict[str, IntArray]:
    """Columns of whole numbers as arrays, NULLs as -1."""
    table: Any = sums.toArrow()
    return {
        name: table[name].cast(pyarrow.int64()).fill_null(-1).to_numpy().astype(np.int64) for name in table.column_names
    }


def _strangers(unknown: DataFrame, roster: Roster) -> list[str]:
    """The ids that count, the smallest ones first; looked at in pages, since some of them may be barred.

    Pages go by number: an id in the question would be in Spark's plan, which its event log keeps.
    """
    chosen: list[str] = []
    names = unknown.select("name").distinct().orderBy("name")
    page = roster.unknown_limit + _PAGE
    looked = 0
    while len(chosen) < roster.unknown_limit:
        found = names.offset(looked).limit(page).toArrow()["name"].to_pylist()
        chosen += roster.strangers(found)
        if len(found) < page:
            break
        looked += page
    return chosen[: roster.unknown_limit]
