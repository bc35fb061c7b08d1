"""`wevent.spark.count`: the true class × cell counts of a DataFrame, for who may see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from wevent.core.requirements import Population, Requirement
from wevent.counting.cells import Cells
from wevent.counting.roster import Roster
from wevent.errors import InvalidInput, InvalidSettings
from wevent.publishing.api import Moment, in_memory, people_of
from wevent.publishing.configuration import Settings, load_settings
from wevent.spark.event_plan import COUNTS, EventPlan
from wevent.spark.roster_frame import RosterFrames
from wevent.streams import declared_clock, read_requirements


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

    It is what every release is drawn from, for experiments and for checking a stream before it is published; show it to
    nobody who may not see the events. A user counts in the cell of their last event of a slot (with `max_cells_per_user` k in
    their last k cells; of equal times the cell declared last wins); rows that are no events, and events of people or cells
    that are not declared, are left out.

    Args:
        events: with columns for time, user and cell (`time_column`, … name them); not streaming.
        requirements: who asks for what: a file, a frame (not of Spark), or a mapping of users to requirements.
        slot: how long a slot is, such as "10min".
        start: where slot 1 starts.
        end: where the last slot ends.
        cells: the declared cells: a number, labels, or a file of them.
        config: a TOML file with settings.
        **settings: other settings by key: timezone, time_unit, time_column, max_cells_per_user, …

    Returns:
        A frame slot, window, epsilon, cell, count, with a row for each count that is not 0; Spark computes it when asked.

    Raises:
        WeventError: one clear sentence.
    """
    if not isinstance(events, DataFrame) or events.isStreaming:
        what = "a streaming one" if isinstance(events, DataFrame) else type(events).__name__
        raise InvalidInput("a DataFrame of Spark", what, "A stream is for wevent.spark.publish.", path=None)
    named = {"slot": slot, "start": start, "end": end, "cells": cells}
    chosen = load_settings(config, {**settings, **named}, ("start", "end"), framed=True)
    if chosen.start_auto:
        raise InvalidSettings("a start", "'auto'", "Declare it: slots are numbered from there.", key="start")
    clock, last = declared_clock(chosen)
    plan = EventPlan(chosen, clock)
    read = plan.read(events, F.lit(last)).where(F.col("why") == COUNTS).withColumn("moment", plan.moment())
    latest = plan.last_cells(plan.fold(read)).where(F.col("place").isNotNull())
    roster = _roster(requirements, chosen)
    members = RosterFrames(kept=False)  # whoever has the counts does not know of a roster that could be let go
    found = members.with_classes(latest, roster).where(F.col("class").isNotNull())
    counted = found.groupBy("slot", "class", "place").agg(F.count(F.lit(1)).alias("count"))
    return _named(counted, roster, chosen)


def _roster(requirements: Any, settings: Settings) -> Roster:
    if in_memory(requirements):
        people = people_of(requirements, settings)
    else:
        people = read_requirements(
            requirements,
            settings.levels,
            slot_us=settings.slot_length_us,
            columns=settings.requirements_columns,
        )
    sizes = {Requirement.from_nano(*key): size for key, size in people.keys.sizes().items()}
    population = Population(sizes)
    rows = np.array([population.index(requirement) for requirement in sizes], dtype=np.int64)
    return Roster(people.users, rows[people.keys.codes], population)


def _named(counted: DataFrame, roster: Roster, settings: Settings) -> DataFrame:
    """Classes as requirements, places as the cells that were declared."""
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
