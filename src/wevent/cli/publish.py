"""`wevent publish`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from wevent.core.requirements import Requirement
from wevent.core.settings import option_kinds
from wevent.errors import InvalidMembership, InvalidSettings
from wevent.journal import SqliteJournal, Terms
from wevent.journal.sqlite.lock import own_files
from wevent.noise import SecureNoise
from wevent.outputs import open_output, refuse_same_file
from wevent.publishing.configuration import Settings, load_settings, read_config
from wevent.publishing.loop import Publication, Running, Summary
from wevent.publishing.opening import (
    Wanted,
    agree,
    begin,
    make_terms,
    pinned_terms,
    refuse_seeded,
    registered,
    requirements_digest,
    wanted_users,
)
from wevent.publishing.staleness import settle_stale
from wevent.publishing.stopping import forbid_core_dumps
from wevent.streams import SlotClock, declared_clock, open_source, read_requirements
from wevent.streams.files.inputs import find_files

_FILE_BATCH = 256  # slots that file input may commit at once
_EXAMPLE = (
    "Example: wevent publish events.parquet --requirements users.csv --cells 100 --slot 60s "
    "--start 2026-01-01T00:00:00Z --end 2026-01-02T00:00:00Z --journal run.journal --out releases.ndjson"
)

_STRICT = (
    "With --strict the run stops at a malformed line: whoever sees that it stopped learns about the record in it. "
    "Use it for checking data, not for protecting it."
)


def _option_flags(function: Callable[..., None]) -> Callable[..., None]:
    """A flag for every option of the list."""
    for name, kind in reversed(list(option_kinds().items())):
        switch: dict[str, Any] = {"is_flag": True, "default": None} if kind.type is bool else {}
        function = click.option(f"--{name.replace('_', '-')}", help=kind.help, **switch)(function)
    return function


@click.command("publish", epilog=_EXAMPLE)
@click.argument("events", nargs=-1)
@click.option("--config", type=click.Path(path_type=Path), help="A TOML file with any of these settings.")
@click.option("--journal", help="The journal; made if it does not exist, resumed if it does.")
@click.option("--out", help="Releases: a .ndjson, .csv or .parquet file, or - for standard output (the default).")
@click.option("--requirements", help="Who asks for what: user,window,epsilon or user,privacy,window.")
@click.option("--cells", help="The number of cells, or a file with their labels.")
@click.option("--slot", help="How long a slot is, such as 60s.")
@click.option(
    "--start", help="Where slot 1 starts (UTC or with an offset); auto reads start and end from the data: unsafe."
)
@click.option("--end", help="Where the last slot ends.")
@click.option("--slot-column", help="The column with slot numbers, for data already slotted.")
@_option_flags
@click.option("--unknown-users", help="How many unregistered users a slot may count; 0 rejects them.")
@click.option("--stream", help="The stream's id, pinned by the journal.")
@click.option("--grace", help="How long a live slot stays open after its end.")
@click.option("--close", help="What closes a live slot: clock (default) or lines.")
@click.option("--timezone", help="The offset of times that carry none: UTC or such as +02:00.")
@click.option("--time-unit", help="What numbers as times count: s, ms or us.")
@click.option("--time-column", help="The name of the time column.")
@click.option("--user-column", help="The name of the user column.")
@click.option("--cell-column", help="The name of the cell column.")
@click.option("--engine", help="auto, duckdb or numpy.")
@click.option("--strict", is_flag=True, default=None, help="Stop at a malformed line; not private.")
@click.option("--declare", multiple=True, metavar="WINDOW,EPSILON", help="A class that may have members later.")
@click.option("--new-epoch", is_flag=True, help="Go on with another mechanism, cells or levels; every charge stays.")
@click.option(
    "--allow-removals", is_flag=True, help="Also if more than one in ten of the registered are not in --requirements."
)
@click.option("--released-through", type=click.IntRange(0), help="For a restored backup: the last slot that went out.")
@click.option(
    "--widest-window",
    type=click.IntRange(1),
    help="For a restored backup without its side file: the widest window ever declared, in slots.",
)
@click.option(
    "--start-over",
    is_flag=True,
    help="For a journal that is lost: a new one over the same people. Epsilons add up, and slots that went out go out "
    "again with other numbers.",
)
@click.option("--keep", type=click.IntRange(1), help="How many slots the journal keeps; all unless told otherwise.")
@click.option("--log", default="warning", type=click.Choice(["debug", "info", "warning"]), help="How much to log.")
def command(events: tuple[str, ...], config: Path | None, **options: Any) -> None:
    """Publish a stream: read a slot, draw its release, store it with its charges in the journal, then emit it.

    Run the same command again after a crash or with more events: it resumes where it stopped and never draws a slot
    twice. Events are files (Parquet, CSV, NDJSON, also .gz and globs) or - for live lines.
    """
    logging.basicConfig(level=options.pop("log").upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    names = ("declare", "new_epoch", "allow_removals", "released_through", "widest_window", "start_over", "keep")
    ours = {name: options.pop(name) for name in names}
    settings = load_settings(config, {**options, "inputs": events or None})
    forbid_core_dumps()
    ours["files"] = _read_files(config, options["cells"])
    if settings.journal is None:
        raise InvalidSettings(
            "a journal", "none", "Give --journal, or journal = … in the configuration file.", key="journal"
        )
    if not settings.journal.parent.is_dir():
        raise InvalidSettings(
            "a journal in an existing folder", f"{settings.journal}", "Make the folder first.", key="journal"
        )
    _publish(settings.journal, settings, ours)


def _publish(path: Path, settings: Settings, ours: dict[str, Any]) -> None:
    """Publish. The order is what makes a failed start harmless: nothing is pinned before the first slot (step 6)."""
    console = Console(stderr=True)
    if settings.strict:
        console.print(_STRICT, markup=False, highlight=False, soft_wrap=True)
    # 1. The only writer, of a journal that is neither damaged nor lost.
    with SqliteJournal(path, write=True, start_over=ours["start_over"]) as journal:
        # 2. One that ran with seeded noise is refused; so is an old copy, or it is charged for what went out elsewhere.
        refuse_seeded(journal)
        _settle(journal, ours)
        # 3. The settings agree with those that are pinned. Nothing is stored.
        clock, last = declared_clock(settings, _pinned_clock(journal))
        wanted, terms = _terms(journal, settings, clock, ours)
        agree(journal, terms, new_epoch=ours["new_epoch"])
        # 4. Input and output can be used: the output holds this journal's releases or none. Nothing is written.
        refuse_same_file(settings.out, _own_files(path, settings, ours["files"]))
        source = open_source(settings, clock, last)
        output = open_output(settings.out)
        output.check(journal, 0 if journal.is_new else journal.head().committed)
        # 5. Terms, and who is registered: an epoch is stored with its first slot, first terms bind with the first slot.
        unsafe = ("start auto",) if settings.start_auto else ()
        resumed = pinned_terms(journal) is not None
        done = begin(
            journal,
            terms,
            new_epoch=ours["new_epoch"],
            wanted=wanted,
            unsafe=unsafe,
            allow_removals=ours["allow_removals"],
        )
        if resumed and wanted is not None:
            console.print(f"Requirements: {done}.", markup=False, highlight=False, soft_wrap=True)
        # 6. Slot after slot: read, step, commit, emit.
        with _Shown(console) as shown:
            batch = 1 if settings.inputs == ("-",) else _FILE_BATCH
            running = Running(last=last, batch=batch, keep=ours["keep"], progress=shown.show)
            publication = Publication(journal, source, output, running=running, noise=SecureNoise())
            shown.begin(publication.publisher.slot, last)
            summary = publication.run()
            output.close()
    _report(console, summary, settings)
    _report_private(console, source.totals(), source.first_malformed())


def _read_files(config: Path | None, cells: str | None) -> list[tuple[str, Path]]:
    """The files that the settings were read from, and what each is."""
    cells = cells if cells is not None or config is None else read_config(config).get("cells")
    labels = isinstance(cells, str) and not cells.isdecimal()
    files = [("the configuration file", config), ("the file of cells", Path(cells) if labels and cells else None)]
    return [(kind, file) for kind, file in files if file is not None]


def _own_files(path: Path, settings: Settings, read: list[tuple[str, Path]]) -> list[tuple[str, Path]]:
    """Every file that a run reads or keeps, and what it is: releases must not go there."""
    inputs = [] if settings.inputs == ("-",) else find_files(settings.inputs)
    files = [("the journal or a file beside it", one) for one in own_files(path)]
    files += [("an input", Path(one)) for one in inputs]
    return files + read + ([] if settings.requirements is None else [("the requirements file", settings.requirements)])


def _settle(journal: SqliteJournal, ours: dict[str, Any]) -> None:
    if not journal.is_new:
        settle_stale(journal, ours["released_through"], ours["widest_window"])
    elif ours["released_through"] is not None:
        raise InvalidSettings(
            "a restored backup for --released-through",
            f"no journal at {journal.path}",
            "Put the backup there first.",
            key="released_through",
        )


def _pinned_clock(journal: SqliteJournal) -> SlotClock | None:
    pinned = pinned_terms(journal)
    return None if pinned is None else SlotClock(pinned.origin_us, pinned.length_us)


def _terms(
    journal: SqliteJournal, settings: Settings, clock: SlotClock, ours: dict[str, Any]
) -> tuple[Wanted | None, Terms]:
    """Who the requirements file wants, and the terms that the settings ask for."""
    pinned = pinned_terms(journal)
    wanted = _wanted(settings, None if pinned is None else journal.imported())
    keys = {_declared(one) for one in ours["declare"]}
    if pinned is None:
        people = set() if wanted is None else set(wanted.keys)
        if wanted is None or (not journal.is_new and journal.imported() == wanted.digest):
            people |= {key for key, _ in registered(journal).values()}  # acknowledged before the first slot: they stay
        if not people:
            raise InvalidSettings(
                "requirements for a new journal",
                "none",
                "Give --requirements with one row per user.",
                key="requirements",
            )
        keys |= people
    return wanted, make_terms(settings, (clock.origin_us, clock.length_us), keys, pinned)


def _wanted(settings: Settings, imported: bytes | None) -> Wanted | None:
    """Who the requirements file wants, None without one; a file that was imported already is not read again."""
    if settings.requirements is None:
        return None
    if (
        imported is not None
        and settings.requirements.is_file()
        and requirements_digest(settings.requirements, settings.levels) == imported
    ):
        return None
    columns = read_requirements(settings.requirements, settings.levels)
    return wanted_users(settings.requirements, settings.levels, columns)


def _declared(text: str) -> tuple[int, int]:
    window, _, epsilon = text.partition(",")
    if not window.strip().isdecimal() or not epsilon:
        raise InvalidMembership("WINDOW,EPSILON to declare", repr(text), "Write for example 40,0.5.")
    one = Requirement(int(window), epsilon.strip())
    return one.window, one.nano


class _Shown:
    """Progress on standard error: slots, slots per second, time left."""

    def __init__(self, console: Console) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task("", total=None, rate="")
        self._first, self._begun = 1, time.monotonic()

    def __enter__(self) -> _Shown:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, first: int, last: int | None) -> None:
        """The run starts with this slot."""
        self._first, self._begun = first, time.monotonic()
        self._progress.update(self._task, total=None if last is None else max(last - first + 1, 0))

    def show(self, slot: int, last: int | None) -> None:
        """A slot was committed."""
        done = slot - self._first + 1
        rate = f"{done / max(time.monotonic() - self._begun, 1e-9):,.0f} slots/s"
        self._progress.update(self._task, completed=done, description=f"slot {slot}", rate=rate)


def _report(console: Console, summary: Summary, settings: Settings) -> None:
    """What the run came to: nothing here depends on anybody's events."""
    if summary.last < summary.first:
        text = f"Nothing new: slot {summary.last} was the last one."
    else:
        text = f"Published slots {summary.first} to {summary.last}."
    if summary.sent_again:
        text += f" {summary.sent_again} releases were missing in the output and were sent again."
    if summary.interrupted:
        text += f" Stopped as asked; everything is stored in {settings.journal}. Run the same command again to resume."
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _report_private(console: Console, totals: dict[str, int], malformed: list[str]) -> None:
    """The one line that depends on events: totals of the whole run, for the operator's eyes. It is always there."""
    counts = ", ".join(f"{totals.get(name, 0)} {name}" for name in ("rejected", "malformed", "late"))
    where = f"; the first malformed: {'; '.join(malformed)}" if malformed else ""
    text = f"Events not counted in this run (private: do not publish these numbers): {counts}{where}."
    console.print(text, markup=False, highlight=False, soft_wrap=True)
