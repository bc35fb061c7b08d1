"""`wevent.publish`: the command for programs, which may hand over events and requirements as data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from wevent.core.requirements import Requirement
from wevent.counting.cells import Cells
from wevent.errors import InvalidInput, InvalidSettings
from wevent.journal import PostgresPlace, is_begun
from wevent.outputs import KeptOutput
from wevent.publishing.configuration import Settings, load_settings, read_config
from wevent.publishing.missing_settings import PUBLISHING
from wevent.publishing.resolve import RunOptions
from wevent.publishing.session import RunReport, run, settings_files
from wevent.streams.frames import frame_name, is_frame, load_frame
from wevent.streams.requirements_file import Requirements, requirements_of_frame, requirements_of_mapping

Events = Any
"""A path, a glob, several of them; or a frame: pandas, Polars (also lazy), Arrow (table, batch, reader), DuckDB relation."""

Moment = str | datetime

_DECLARED = ("slot", "start", "end", "cells", "requirements", "journal")


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

    Call it again after a crash or with more events: it resumes where it stopped and never draws a slot twice. Every slot
    from start to end is published, empty ones too. With `events`, the cells and the clock must be declared: what is
    published must not depend on which cells, or when, somebody's events happened to be.

    Args:
        events: files (a path, a glob, or several), or a data frame with the columns time, user and cell: pandas, Polars,
            Arrow or a DuckDB relation, read as the Parquet file of it would be and copied in memory only. A path that ends
            in .toml is a configuration file. None: the settings name inputs.
        config: a TOML file with settings, as of `wevent publish --config`.
        slot: how long a slot is, such as "10min".
        start: where slot 1 starts; with its offset, such as 2026-01-01T00:00:00Z, unless `timezone` is given.
        end: where the last slot ends.
        cells: the declared cells: a number, labels, or a file of them.
        requirements: who asks for what: a file, a frame with the same columns, or a mapping of users to requirements.
            A journal that has people needs none.
        journal: the journal, made if it does not exist: a file, or postgresql://… Without one nothing would be accounted for.
        out: where releases are written, too: a .ndjson, .csv or .parquet file, or "-" for standard output, which is also
            what is meant without `events` and `out`.
        options: options of this run alone; a journal that drops slots (`keep`) needs `out`.
        **settings: other settings by key, on top of the file's: mechanism, neighbours, timezone, time_column, …

    Returns:
        What the run came to; `.releases()` are the releases.

    Raises:
        WeventError: one clear sentence; nothing is lost or half-written.
    """
    if options is not None and not isinstance(options, RunOptions):
        raise InvalidSettings(
            "RunOptions", type(options).__name__, "Write options=wevent.RunOptions(new_epoch=True).", key="options"
        )
    if config is None and _is_config(events):
        events, config = None, events
    named = {"slot": slot, "start": start, "end": end, "cells": cells, "requirements": requirements}
    given = {**settings, **named, "journal": journal, "out": out}
    people = given.pop("requirements") if in_memory(requirements) else None
    if events is None:
        chosen = load_settings(config, given, [key for key in PUBLISHING if key != "requirements" or people is None])
    else:
        _check_declared(config, {**given, "requirements": requirements}, settings)
        framed = is_frame(events)
        chosen = load_settings(config, given if framed else {**given, "inputs": _paths(events)}, framed=framed)
        if framed:
            chosen = replace(chosen, frame=load_frame(events, _wanted_columns(chosen)))
    if people is not None:
        chosen = replace(chosen, requirements=None, people=people_of(people, chosen))
    output = KeptOutput() if events is not None and chosen.out is None else None
    return run(chosen, options or RunOptions(), settings_files(config, cells), output=output)


def _is_config(events: object) -> bool:
    return isinstance(events, (str, Path)) and str(events).lower().endswith(".toml")


def in_memory(requirements: object) -> bool:
    """Whether requirements were handed over as they are, and not as the name of a file."""
    return requirements is not None and not isinstance(requirements, (str, Path))


def people_of(requirements: Any, settings: Settings) -> Requirements:
    """Requirements that were handed over as a frame or a mapping, read under the settings of a stream.

    Raises:
        InvalidInput: for something else; and as of `requirements_of_frame` and `requirements_of_mapping`.
    """
    if is_frame(requirements):
        return requirements_of_frame(
            requirements,
            settings.levels,
            slot_us=settings.slot_length_us,
            columns=settings.requirements_columns,
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
    several = (events,) if isinstance(events, (str, Path)) else events
    if (
        not isinstance(several, (list, tuple))
        or not several
        or not all(isinstance(path, (str, Path)) for path in several)
    ):
        raise InvalidInput(
            "events as files or as a data frame of pandas, Polars, Arrow or DuckDB",
            frame_name(events),
            "Give a path, a list of paths, or one frame with the columns time, user and cell.",
            path=None,
        )
    if "-" in map(str, several):
        raise InvalidInput(
            "files or a data frame", "'-'", "Live lines are for the command: wevent publish -.", path="-"
        )
    return tuple(map(str, several))


def _check_declared(config: Path | str | None, given: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Refuse a call that leaves the clock, the cells or the journal open, naming all that is missing.

    Raises:
        InvalidSettings: with the names.
    """
    if settings.get("inputs") is not None:
        raise InvalidSettings("events or inputs", "both", "Hand over events once.", key="inputs")
    values = {} if config is None else read_config(config)
    values |= {key: value for key, value in given.items() if value is not None}
    needed = [key for key in _DECLARED if key != "requirements" or not _exists(values.get("journal"))]
    if "slot_column" in values:
        needed = [key for key in needed if key not in ("slot", "start")]
    missing = [key for key in needed if key not in values]
    missing += [key for key in ("start", "end") if isinstance(values.get(key), str) and values[key] == "auto"]
    if missing:
        raise InvalidSettings(
            f"{', '.join(missing)} to be declared",
            "nothing" if not any(key in values for key in missing) else "nothing, or 'auto'",
            "Cells and clock are never read from the events, whose people would show in them; without a journal nobody "
            "would know what has been spent.",
            key=missing[0],
        )


def _exists(journal: Any) -> bool:
    return isinstance(journal, (str, Path, PostgresPlace)) and is_begun(journal)


def _wanted_columns(settings: Settings) -> list[str]:
    return [settings.slot_column or settings.columns["time"], settings.columns["user"], settings.columns["cell"]]
