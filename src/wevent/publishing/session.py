"""From settings to a running publication, in numbered steps; and `wevent.publish`, the command for programs.

The order makes a failed start harmless: nothing is pinned before the first slot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from wevent.core.requirements import Requirement
from wevent.counting.labels import Cells
from wevent.errors import InvalidInput, InvalidSettings
from wevent.journal import Journal, JournalAddress, PostgresAddress, open_journal
from wevent.noise import SecureNoise
from wevent.outputs import KeptOutput, Output, open_output, refuse_dropping, refuse_same_file
from wevent.outputs.release_table import ReleaseTable, read_releases
from wevent.publishing.configuration import PUBLISHING, load_settings
from wevent.publishing.event_stores import open_input, open_sweeper
from wevent.publishing.importing import Difference, import_changes
from wevent.publishing.loop import DueMoments, Progress, Publication, Running, Summary, due_moments
from wevent.publishing.resolve import begin, check_journal, pinned_terms, resolve
from wevent.publishing.shutdown import ForcedShutdown, Stop, Stopped, forbid_core_dumps
from wevent.publishing.staleness import refuse_lost_changes, store_settlement
from wevent.settings import RunOptions, Settings
from wevent.streams import SlotClock, Source
from wevent.streams.duckdb_tables import frame_name, is_frame, load_frame
from wevent.streams.inputs import find_files
from wevent.streams.source import Rejections

_FILE_BATCH = 256  # slots that file input may commit at once

Events = Any
"""A path, a glob, several of them; or a frame: pandas, Polars (also lazy), Arrow (table, batch, reader), DuckDB relation."""

Moment = str | datetime

SourceFactory = Callable[[Settings, SlotClock, int | None], Source]
"""Opens the source of a stream, given its clock and its last slot (None: no end)."""

DueFactory = Callable[[Settings, SlotClock], DueMoments | None]
"""Returns when releases of a stream are due, given its clock; None: as soon as they are stored."""


@dataclass(frozen=True)
class RunReport:
    """Result of a run.

    Attributes:
        summary: published slots; public.
        imported: changes by the requirements file or an edited level table; None without one or on a new journal; public.
        totals: events that were not counted, of the whole run: private, for the operator only.
        malformed: places of the first malformed records; private.
        journal: place of the journal.
    """

    summary: Summary
    imported: Difference | None
    totals: dict[str, int] = field(repr=False)  # a notebook or a log shows reports
    malformed: list[str] = field(repr=False)
    journal: JournalAddress

    def releases(self) -> ReleaseTable:
        """Return every release that the journal keeps, a row per slot and cell: `.to_pandas()`, `.to_polars()`, …"""
        return read_releases(self.journal)


@dataclass(frozen=True)
class RunCallbacks:
    """Callbacks of a run."""

    imported: Callable[[Difference], None] = lambda difference: None  # changes of a journal that exists, before slots
    told: Callable[[str], None] = lambda sentence: None  # sentences for the operator: rounded durations, classes of one
    begun: Progress = lambda first, last: None  # the first slot and the last there will be (None: no end)
    committed: Callable[[int], None] = lambda slot: None  # the last committed slot, before anything of it goes out
    progress: Progress = lambda slot, last: None  # after every commit, when it is out


def publish(
    events: Events | None = None,
    *,
    config: Path | str | None = None,
    slot: str | timedelta | None = None,
    start: Moment | None = None,
    end: Moment | int | None = None,
    cells: int | str | Path | Sequence[Any] | Cells | None = None,
    requirements: Path | str | Mapping[Any, Requirement] | Any | None = None,
    journal: Path | str | PostgresAddress | None = None,
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
        slot, end: slot length, such as "10min", and end of the last slot.
        start: start of slot 1 with its offset, unless `timezone` is given; not needed for a journal that exists.
        cells: a number, labels, or a file of them.
        requirements: a file, a frame with the same columns, or a mapping of users to requirements; not needed for a journal
            that has users.
        journal: a file, or postgresql://…; created if it does not exist.
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
        problem = f"options must be RunOptions, not {type(options).__name__}."
        raise InvalidSettings(problem, "Write options=wevent.RunOptions(reconfigure=True).", key="options")
    if config is None and isinstance(events, (str, Path)) and str(events).lower().endswith(".toml"):
        config, events = events, None
    named = {"slot": slot, "start": start, "end": end, "cells": cells, "journal": journal, "out": out}
    given = {**settings, **named, "requirements": requirements}
    framed = events is not None and is_frame(events)
    if events is not None:
        if settings.get("inputs") is not None:
            raise InvalidSettings("Both events and inputs are given.", "Pass events once.", key="inputs")
        given["inputs"] = None if framed else _paths(events)
    chosen = load_settings(config, given, PUBLISHING, framed=framed)
    if events is not None and chosen.start_auto:
        fix = "Declare start and end: the clock is never read from the events, which it would show."
        raise InvalidSettings("start must be declared, not 'auto'.", fix, key="start")
    if framed:
        columns = {**chosen.columns, "time": chosen.slot_column or chosen.time_column}
        chosen = replace(chosen, frame=load_frame(events, [*columns.values()]))
    output = KeptOutput() if events is not None and chosen.out is None else None
    return run(chosen, options or RunOptions(), output=output)


def run(
    settings: Settings,
    options: RunOptions,
    watch: RunCallbacks | None = None,
    output: Output | None = None,
    source_of: SourceFactory = open_input,
    *,
    enrolling: bool = False,
    due_of: DueFactory = due_moments,
) -> RunReport:
    """Publish under checked settings.

    Args:
        settings, options, watch: of the stream, of the run, and callbacks.
        output: output of releases; None: as the settings name it.
        source_of: opens the source of events; by default from the settings.
        enrolling: whether users may choose a level during the run: all levels are then declared, and a new journal may begin
            without users.
        due_of: moments of releases; by default from the settings.
    """
    watch = watch or RunCallbacks()
    place = settings.journal
    assert place is not None, "settings of a publication name a journal"
    if isinstance(place, Path) and not place.parent.is_dir():
        raise InvalidSettings(f"There is no folder for the journal {place}.", "Make the folder first.", key="journal")
    forbid_core_dumps()
    with ForcedShutdown(place) as shutdown, Stop() as stop, ExitStack() as at_end:
        stop.call(shutdown.request)  # also while the journal is opened: its database may not answer
        # 1. The only writer, of a journal that is neither damaged nor lost.
        journal = at_end.enter_context(
            open_journal(place, write=True, start_over=options.start_over, released_through=options.released_through)
        )
        # 2. One that ran with seeded noise is refused; so is an old copy, unless it is told what went out elsewhere.
        plan = check_journal(journal, options)
        known = 0 if journal.is_new else journal.head().committed
        # 3. The settings agree with the pinned ones, and the input can be opened. Nothing is stored. Requirements files and
        #    Spark may take a while: a signal interrupts them.
        try:
            with stop.at_once():
                settings, clock, last, wanted, terms = resolve(journal, settings, options, enrolling=enrolling)
                refuse_same_file(settings.out, _own_files(journal, settings))
                source = source_of(settings, clock, last)
        except Stopped:
            return RunReport(Summary(known + 1, known, 0, interrupted=True), None, Rejections().totals(), [], place)
        # 4. The output can be used: it holds this journal's releases or none. Nothing is written.
        output = open_output(settings.out) if output is None else output
        refuse_dropping(output, options.keep)
        output.check(journal, plan.batch.records[-1].slot if plan is not None and plan.batch.records else known)
        # 5. Slots that were released elsewhere are charged, now that a wrong output is ruled out (spec 10). A version and its
        #    registry changes are stored with its first slot.
        if plan is not None:
            if wanted is not None:  # a file that was cut is refused before anything is charged
                import_changes(journal, wanted, terms, allow_removals=options.allow_removals)
            store_settlement(journal, plan)
        if not journal.is_new:
            if options.accept_lost_changes:
                journal.accept_lost_changes()
            refuse_lost_changes(journal)
        resumed = pinned_terms(journal) is not None
        difference = begin(
            journal,
            terms,
            reconfigure=options.reconfigure,
            wanted=wanted,
            unsafe=("start auto",) if settings.start_auto else (),
            allow_removals=options.allow_removals,
        )
        imported = difference if resumed and (wanted is not None or difference.relevelled) else None
        for sentence in settings.notes:
            watch.told(sentence)
        if imported is not None:
            watch.imported(imported)
        else:
            for sentence in (*difference.notes, *difference.preview.warnings()):
                watch.told(sentence)
        # 6. Slot after slot: read, step, commit, emit.
        due = due_of(settings, clock)
        sweep_events = open_sweeper(place, at_end, is_live=settings.is_live, is_service=enrolling)
        sweep_events(0 if journal.is_new else journal.head().committed)

        def progress(slot: int, last: int | None) -> None:
            sweep_events(slot)
            watch.progress(slot, last)

        running = Running(
            last=last,
            batch=1 if settings.is_live else _FILE_BATCH,
            keep=options.keep,
            due=due,
            committed=watch.committed,
            progress=progress,
        )
        noise = SecureNoise()
        if due is not None:
            noise.get_ready()
        publication = Publication(journal, source, output, running=running, noise=noise)
        journal.update_witness()  # a witness that was put back may be older than the journal
        watch.begun(publication.publisher.slot, last)
        try:
            with closing(source):
                summary = publication.run(stop)
            output.close()
        finally:
            output.abandon()
    return RunReport(summary, imported, source.totals(), source.first_malformed(), place)


def _paths(events: Any) -> tuple[str, ...]:
    paths = (events,) if isinstance(events, (str, Path)) else events
    if not isinstance(paths, (list, tuple)) or not paths or not all(isinstance(path, (str, Path)) for path in paths):
        raise InvalidInput(
            f"Events are files or a data frame of pandas, Polars, Arrow or DuckDB, not {frame_name(events)}.",
            "Give a path, a list of paths, or one frame with the columns time, user and cell.",
            path=None,
        )
    if "-" in map(str, paths):
        problem = "Events are files or a data frame, not '-'."
        raise InvalidInput(problem, "Live lines are for the command: wevent publish -.", path="-")
    return tuple(map(str, paths))


def _own_files(journal: Journal, settings: Settings) -> list[tuple[str, Path]]:
    """Return every file that a run reads or keeps, and what it is: releases must not go there."""
    inputs = [] if settings.is_live else find_files(settings.inputs)
    files = [("the journal or a file beside it", file) for file in journal.files()]
    files += [("an input", Path(file)) for file in inputs]
    people = [] if settings.requirements is None else [("the requirements file", settings.requirements)]
    return [*files, *settings.read_from, *people]
