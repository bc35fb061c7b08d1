"""`wevent.publish`: the command for programs, with events and requirements in files or data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from wevent.core.requirements import Requirement
from wevent.counting.cells import Cells
from wevent.errors import InvalidInput, InvalidSettings
from wevent.journal import PostgresPlace
from wevent.outputs import KeptOutput
from wevent.publishing.configuration import load_settings
from wevent.publishing.session import RunReport, run, settings_files
from wevent.settings import RunOptions, Settings
from wevent.settings.loading import PUBLISHING
from wevent.streams.duckdb_tables import frame_name, is_frame, load_frame
from wevent.streams.requirements_file import Requirements, requirements_of_frame, requirements_of_mapping

Events = Any
"""A path, a glob, several of them; or a frame: pandas, Polars (also lazy), Arrow (table, batch, reader), DuckDB relation."""

Moment = str | datetime


def publish(
    events: Events | None = None,
    *,
    config: Path | str | None = None,
    slot: str | timedelta | None = None,
    start: Moment | None = None,
    end: Moment | int | None = None,
    cells: int | str | Path | Sequence[Any] | Cells | None = None,
    requirements: Path | str | Mapping[Any, Requirement] | Any | None = None,
    journal: Path | str | PostgresPlace | None = None,
    out: Path | str | None = None,
    options: RunOptions | None = None,
    **settings: Any,
) -> RunReport:
    """Publish a stream: read a slot, draw its release, store it with its charges in the journal, then emit it.

    A second call resumes after a crash, or continues with more events, and never draws a slot twice. Every slot from start to
    end is published, empty ones too. Cells and clock must be declared: events must not decide what is published.

    Args:
        events: files (a path, a glob, or several), or a data frame with the columns time, user and cell: pandas, Polars,
            Arrow or a DuckDB relation, read as its Parquet file would be and copied in memory only. A path that ends in .toml
            is a configuration file. None: the settings name inputs.
        config: a TOML file with settings, as of `wevent publish --config`.
        slot: slot length, such as "10min".
        start: start of slot 1, such as 2026-01-01T00:00:00Z; with its offset, unless `timezone` is given. A journal that
            exists has it already.
        end: end of the last slot.
        cells: the declared cells: a number, labels, or a file of them.
        requirements: requirements of users: a file, a frame with the same columns, or a mapping of users to requirements. A
            journal that has users needs none.
        journal: the journal, created if it does not exist: a file, or postgresql://…
        out: a second place for releases: a .ndjson, .csv or .parquet file, or "-" for standard output, which is the default
            without `events`.
        options: options of this run; a journal that drops slots (`keep`) needs `out`.
        **settings: other settings by key, on top of the file's: mechanism, neighbours, timezone, time_column, …

    Returns:
        A report of the run; `.releases()` are the releases.

    Raises:
        WeventError: one clear sentence; nothing is lost or half-written.
    """
    if options is not None and not isinstance(options, RunOptions):
        remedy = "Write options=wevent.RunOptions(new_epoch=True)."
        raise InvalidSettings("RunOptions", type(options).__name__, remedy, key="options")
    if config is None and isinstance(events, (str, Path)) and str(events).lower().endswith(".toml"):
        config, events = events, None
    named = {"slot": slot, "start": start, "end": end, "cells": cells, "journal": journal, "out": out}
    given = {**settings, **named, "requirements": None if in_memory(requirements) else requirements}
    needed = [key for key in PUBLISHING if key != "requirements" or not in_memory(requirements)]
    framed = events is not None and is_frame(events)
    if events is not None:
        if settings.get("inputs") is not None:
            raise InvalidSettings("events or inputs", "both", "Pass events once.", key="inputs")
        given["inputs"] = None if framed else _paths(events)
    chosen = load_settings(config, given, needed, framed=framed)
    if events is not None and chosen.start_auto:
        remedy = "Declare start and end: the clock is never read from the events, which it would show."
        raise InvalidSettings("start to be declared", "'auto'", remedy, key="start")
    if framed:
        columns = {**chosen.columns, "time": chosen.slot_column or chosen.time_column}
        chosen = replace(chosen, frame=load_frame(events, [*columns.values()]))
    if in_memory(requirements):
        chosen = replace(chosen, requirements=None, people=people_of(requirements, chosen))
    output = KeptOutput() if events is not None and chosen.out is None else None
    return run(chosen, options or RunOptions(), settings_files(config, cells), output=output)


def in_memory(requirements: object) -> bool:
    """Return whether requirements are a frame or a mapping, and not the name of a file."""
    return requirements is not None and not isinstance(requirements, (str, Path))


def people_of(requirements: Any, settings: Settings) -> Requirements:
    """Return requirements in a frame or a mapping, read under the settings of a stream."""
    if is_frame(requirements):
        return requirements_of_frame(
            requirements, settings.levels, slot_us=settings.slot_length_us, columns=settings.requirements_columns
        )
    if isinstance(requirements, Mapping):
        return requirements_of_mapping(requirements)
    raise InvalidInput(
        "requirements as a file, a data frame, or a mapping of users to requirements",
        frame_name(requirements),
        "Give a path, a frame with user, window and epsilon, or {'ann': Requirement(40, 0.5), …}.",
        path=None,
    )


def _paths(events: Any) -> tuple[str, ...]:
    paths = (events,) if isinstance(events, (str, Path)) else events
    if not isinstance(paths, (list, tuple)) or not paths or not all(isinstance(path, (str, Path)) for path in paths):
        raise InvalidInput(
            "events as files or as a data frame of pandas, Polars, Arrow or DuckDB",
            frame_name(events),
            "Give a path, a list of paths, or one frame with the columns time, user and cell.",
            path=None,
        )
    if "-" in map(str, paths):
        remedy = "Live lines are for the command: wevent publish -."
        raise InvalidInput("files or a data frame", "'-'", remedy, path="-")
    return tuple(map(str, paths))
