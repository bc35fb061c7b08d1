"""Class × cell counts of folded events: only sums leave Spark. `wevent.spark.count` gives them as a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from wevent.core.arrays import IntArray
from wevent.core.requirements import Population, Requirement
from wevent.counting.labels import Cells, Labels
from wevent.counting.roster import Counts, Rejected, Roster
from wevent.counting.string_column import StringColumn
from wevent.errors import InvalidInput, InvalidSettings
from wevent.publishing.configuration import in_memory, load_settings, people_of
from wevent.publishing.session import Moment
from wevent.settings import Settings
from wevent.spark.event_plan import COUNTS, EventPlan, arrow_texts
from wevent.streams import declared_clock, read_requirements

_SUMS = 1 << 22  # that the driver takes at once: slots × classes × cells
_MOST_SLOTS = 1_024  # of one job: users may change between slots, and then those that follow are counted again
_PAGE = 1_000  # ids of unregistered users that the driver reads beyond those that may count
_BROADCAST = 200_000  # rosters of more ids are joined where the rows are, instead of being sent to every executor


def count(
    events: DataFrame,
    *,
    requirements: Path | str | Mapping[Any, Requirement] | Any,
    slot: str | timedelta | None = None,
    start: Moment | None = None,
    end: Moment | None = None,
    cells: int | str | Path | Sequence[Any] | Cells | None = None,
    config: Path | str | None = None,
    **settings: Any,
) -> DataFrame:
    """Count users per slot, class and cell: the truth. **It is not private**: nothing is added, nothing is charged.

    Releases are drawn from these counts. Use them for experiments and checks, and protect them like the events. A user
    counts in the cell of the last event of a slot, or with `max_cells_per_user` k in the last k cells. Of equal times the
    cell declared last wins. Rows that are no events, and undeclared users and cells, are left out.

    Args:
        events: with columns for time, user and cell (`time_column`, … name them); not streaming.
        requirements: requirements of users: a file, a frame (not of Spark), or a mapping.
        slot: length of a slot, such as "10min".
        start: start of slot 1.
        end: end of the last slot.
        cells: the declared cells: a number, labels, or a file of them.
        config: a TOML file with settings.
        **settings: other settings by key: timezone, time_unit, time_column, max_cells_per_user, …

    Returns:
        A frame slot, window, epsilon, cell, count, with a row for each count that is not 0; Spark computes it when asked.

    Raises:
        WeventError: one clear sentence.
    """
    if not isinstance(events, DataFrame) or events.isStreaming:
        what = "a streaming DataFrame" if isinstance(events, DataFrame) else type(events).__name__
        problem = f"The events are in {what}, not in a DataFrame of Spark at rest."
        raise InvalidInput(problem, "A stream is for wevent.spark.publish.", path=None)
    named = {"slot": slot, "start": start, "end": end, "cells": cells}
    chosen = load_settings(config, {**settings, **named}, ("start", "end"), framed=True)
    if chosen.start_auto:
        raise InvalidSettings("start is 'auto', and slots are numbered from there.", "Declare it.", key="start")
    clock, last = declared_clock(chosen)
    plan = EventPlan(chosen, clock)
    read = plan.read(events, F.lit(last)).where(F.col("why") == COUNTS)
    latest = plan.last_cells(plan.folded(read)).where(F.col("place").isNotNull())
    roster = _roster(requirements, chosen)
    found = _with_classes(latest, _members(latest, roster), roster).where(F.col("class").isNotNull())
    counted = found.groupBy("slot", "class", "place").agg(F.count(F.lit(1)).alias("count"))
    return _named(counted, roster, chosen)


class ClassCounter:
    """Counts slots of folded events; of unregistered users it looks at no more than may count.

    Spark keeps the roster in use for the next slots, until another one is used or `release` is called.
    """

    def __init__(self, plan: EventPlan) -> None:
        self._plan = plan
        self._cells = len(plan.settings.cells)
        self._roster: Roster | None = None
        self._members: DataFrame | None = None

    def stretch(self, roster: Roster) -> int:
        """Return the number of slots that one job may count."""
        return max(1, min(_MOST_SLOTS, _SUMS // (len(roster.population) * self._cells)))

    def release(self) -> None:
        """Drop the roster from Spark."""
        members, self._members, self._roster = self._members, None, None
        if members is not None:
            members.unpersist()

    def count(self, folded: DataFrame, roster: Roster, first: int, last: int) -> dict[int, Counts]:
        """Count slots first to last, empty ones too, or as many of them as one job may."""
        last = min(last, first + self.stretch(roster) - 1)
        latest = self._plan.last_cells(folded)
        inside = latest.where(F.col("slot").between(first, last) & F.col("user").isNotNull())
        if self._members is None or self._roster is not roster:
            self.release()
            self._members, self._roster = _members(latest, roster).persist(), roster
        found = _with_classes(inside, self._members, roster)
        place = F.when(F.col("class").isNotNull(), F.col("place")).alias("place")
        sums = int_columns(found.groupBy("slot", "class", place).agg(*_users_and_events()))
        slots, classes, places = sums["slot"] - first, sums["class"], sums["place"]
        matrices = np.zeros((last - first + 1, len(roster.population), self._cells), dtype=np.int64)
        known = (classes >= 0) & (places >= 0)
        matrices[slots[known], classes[known], places[known]] = sums["users"][known]
        counted = {}
        for slot, matrix in enumerate(matrices, first):
            unknown = int(sums["events"][(slots == slot - first) & (classes < 0)].sum())
            if unknown and roster.unknown_row is not None:
                strangers = found.where((F.col("slot") == slot) & F.col("class").isNull())
                unknown -= _add_strangers(matrix[roster.unknown_row], strangers, roster)
            counted[slot] = Counts(matrix, Rejected(unknown_user=unknown))
        return counted


def _roster(requirements: Any, settings: Settings) -> Roster:
    if in_memory(requirements):
        people = people_of(requirements, settings)
    else:
        columns = settings.requirements_columns
        people = read_requirements(requirements, settings.levels, slot_us=settings.slot_length_us, columns=columns)
    sizes = {Requirement.from_nano(*key): size for key, size in people.keys.sizes().items()}
    population = Population(sizes)
    rows = np.array([population.index(requirement) for requirement in sizes], dtype=np.int64)
    return Roster(people.users, rows[people.keys.codes], population)


def _named(counted: DataFrame, roster: Roster, settings: Settings) -> DataFrame:
    """Replace classes by requirements, and places by the cells that were declared."""
    held = list(roster.population.classes)
    classes = pyarrow.table(
        {
            "class": pyarrow.array(range(len(held)), type=pyarrow.int32()),
            "window": [requirement.window for requirement in held],
            "epsilon": [float(requirement.epsilon) for requirement in held],
        }
    )
    session = counted.sparkSession
    named = counted.join(session.createDataFrame(classes).hint("broadcast"), "class")
    if settings.cells.numbered:
        return named.select("slot", "window", "epsilon", F.col("place").alias("cell"), "count")
    labels = [str(label) for label in settings.cells]
    cells = pyarrow.table({"place": range(len(labels)), "cell": labels})
    named = named.join(session.createDataFrame(cells).hint("broadcast"), "place")
    return named.select("slot", "window", "epsilon", "cell", "count")


def _users_and_events() -> tuple[Column, Column]:
    return F.count(F.lit(1)).alias("users"), F.sum("events").alias("events")


def int_columns(sums: DataFrame) -> dict[str, IntArray]:
    """Return columns of whole numbers as arrays, NULL as -1."""
    table: Any = sums.toArrow()
    return {
        name: table[name].cast(pyarrow.int64()).fill_null(-1).to_numpy().astype(np.int64) for name in table.column_names
    }


def _add_strangers(row: IntArray, unknown: DataFrame, roster: Roster) -> int:
    """Add unregistered users of a slot to their class, as `Roster.count_rows` does; return the number of their events.

    The smallest ids of those that the registry admits count. They are read in pages, since some may be excluded. Pages go by
    number: an id in the question would be in Spark's plan, which its event log keeps.
    """
    unknown = unknown.select(F.col("user").alias("name"), "place", "events")
    names = unknown.select("name").distinct().orderBy("name")
    chosen: list[str] = []
    page = roster.unknown_limit + _PAGE
    looked, is_last = 0, False
    while len(chosen) < roster.unknown_limit and not is_last:
        found = names.offset(looked).limit(page).toArrow()["name"].to_pylist()
        chosen += roster.strangers(found)
        looked, is_last = looked + page, len(found) < page
    if not chosen:
        return 0
    counting = unknown.sparkSession.createDataFrame(pyarrow.table({"chosen": chosen[: roster.unknown_limit]}))
    kept = unknown.join(counting.hint("broadcast"), F.col("name") == F.col("chosen"), "left_semi")
    sums = int_columns(kept.groupBy("place").agg(*_users_and_events()))
    here = sums["place"] >= 0
    row[sums["place"][here]] += sums["users"][here]
    return int(sums["events"].sum())


def _members(rows: DataFrame, roster: Roster) -> DataFrame:
    """Return a frame with columns `member` and `class`, one row per user of the roster, to be joined with such rows."""
    ids = roster.ids if isinstance(roster.ids, StringColumn) else Labels.of(roster.ids).values()
    texts = ids if isinstance(ids, StringColumn) else StringColumn.from_texts([str(one) for one in ids])
    table = pyarrow.table({"member": arrow_texts(texts), "class": roster.classes.astype(np.int32)})
    frame = rows.sparkSession.createDataFrame(table)
    return frame.repartition("member") if len(roster) > _BROADCAST else frame


def _with_classes(rows: DataFrame, members: DataFrame, roster: Roster) -> DataFrame:
    """Return rows with the `class` of their user, NULL for unregistered users."""
    if len(roster) <= _BROADCAST:
        members = members.hint("broadcast")
    return rows.join(members, rows["user"] == members["member"], "left").drop("member")
