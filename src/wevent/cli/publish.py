"""`wevent publish`."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from wevent.config import Settings, load_settings
from wevent.core.requirements import Requirement
from wevent.errors import InvalidMembership, InvalidSettings, WeventError
from wevent.journal import SqliteJournal
from wevent.journal.terms import Terms
from wevent.opening import Wanted, agree, import_users, make_terms, requirements_digest, wanted_users
from wevent.outputs import open_output
from wevent.publishing import Publication, Running, Summary
from wevent.stale import settle_stale
from wevent.streams import SlotClock, declared_clock, open_source, read_requirements

_FILE_BATCH = 256  # slots that file input may commit at once
_EXAMPLE = (
    "Example: wevent publish events.parquet --requirements users.csv --cells 100 --slot 60s "
    "--start 2026-01-01T00:00:00Z --end 2026-01-02T00:00:00Z --journal run.journal --out releases.ndjson"
)

_STRICT = (
    "With --strict the run stops at a malformed line: whoever sees that it stopped learns about the record in it. "
    "Use it for checking data, not for protecting it."
)


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
@click.option("--mechanism", help="See `wevent mechanisms`; pbd unless told otherwise.")
@click.option("--neighbours", help="add_remove (default) or replace.")
@click.option("--max-cells-per-user", help="How many cells a user may be in within a slot; 1 unless told otherwise.")
@click.option("--refund", is_flag=True, default=None, help="Charge publications what was really lost.")
@click.option("--threshold", help="For bd and ba: scale or std.")
@click.option("--estimator", help="sampling or weighting, instead of the mechanism's own.")
@click.option("--smoothing", help="hold or filter, instead of the mechanism's own.")
@click.option("--unbiased", is_flag=True, default=None, help="For pft: right even if requirement and cell correlate.")
@click.option("--nonnegative", is_flag=True, default=None, help="Publish no value below 0 (free).")
@click.option("--known-total", help="Everyone is present in every slot: publish this total (free; replace only).")
@click.option("--round", is_flag=True, default=None, help="Publish whole numbers (free).")
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
@click.option("--released-through", type=click.IntRange(0), help="For a restored backup: the last slot that went out.")
@click.option("--keep", type=click.IntRange(1), help="How many slots the journal keeps; all unless told otherwise.")
@click.option("--log", default="warning", type=click.Choice(["debug", "info", "warning"]), help="How much to log.")
def command(events: tuple[str, ...], config: Path | None, **options: Any) -> None:
    """Publish a stream: read a slot, draw its release, store it with its charges in the journal, then emit it.

    Run the same command again after a crash or with more events: it resumes where it stopped and never draws a slot
    twice. Events are files (Parquet, CSV, NDJSON, also .gz and globs) or - for live lines.
    """
    logging.basicConfig(level=options.pop("log").upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    ours = {name: options.pop(name) for name in ("declare", "new_epoch", "released_through", "keep")}
    settings = load_settings(config, {**options, "inputs": events or None})
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
    """Publish; a first run that fails before its first slot leaves no journal: its settings must not be pinned."""
    existed = path.exists()
    with SqliteJournal(path, write=True) as journal:
        try:
            _run(journal, settings, ours)
            return
        except WeventError as error:
            failure = error
            unused = not existed and (journal.is_new or journal.head().committed == 0)
    if unused:
        for name in (path, *(path.with_name(path.name + ending) for ending in ("-wal", "-shm", ".lock"))):
            name.unlink(missing_ok=True)
    raise failure


def _run(journal: SqliteJournal, settings: Settings, ours: dict[str, Any]) -> None:
    live = settings.inputs == ("-",)
    pinned = None if journal.is_new else journal.head().epoch.terms
    clock, last = declared_clock(settings, None if pinned is None else SlotClock(pinned.origin_us, pinned.length_us))
    files = None if live else open_source(settings, clock, last)  # refuses bad ones before anything is written
    _open(journal, settings, ours, clock, pinned)
    source = files or open_source(settings, clock, last)
    console = Console(stderr=True)
    if settings.strict:
        console.print(_STRICT, markup=False, highlight=False, soft_wrap=True)
    output = open_output(settings.out)
    with _Shown(console) as shown:
        running = Running(last=last, batch=1 if live else _FILE_BATCH, keep=ours["keep"], progress=shown.show)
        publication = Publication(journal, source, output, running=running)
        shown.begin(publication.publisher.slot, last)
        summary = publication.run()
        output.close()
    _report(console, summary, settings)
    _report_private(console, source.totals(), source.first_malformed())


def _open(
    journal: SqliteJournal, settings: Settings, ours: dict[str, Any], clock: SlotClock, pinned: Terms | None
) -> None:
    """Bring the journal to the point where publishing can go on."""
    wanted = _wanted(settings, None if pinned is None else journal.imported())
    if pinned is None and wanted is None:
        raise InvalidSettings(
            "requirements for a new journal", "none", "Give --requirements with one row per user.", key="requirements"
        )
    keys = {_declared(one) for one in ours["declare"]} | (set(wanted.keys) if wanted and pinned is None else set())
    terms = make_terms(settings, (clock.origin_us, clock.length_us), keys, pinned)
    agree(journal, terms, new_epoch=ours["new_epoch"], unsafe=("start auto",) if settings.start_auto else ())
    settle_stale(journal, ours["released_through"])
    if wanted is not None:
        import_users(journal, wanted)


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
    """The one line that depends on events: totals of the whole run, for the operator's eyes."""
    dropped = ", ".join(f"{totals[name]} {name}" for name in ("rejected", "malformed", "late") if totals.get(name))
    if dropped:
        where = f"; the first malformed: {'; '.join(malformed)}" if malformed else ""
        text = f"Private, do not publish: not counted in this run were {dropped} events{where}."
        console.print(text, markup=False, highlight=False, soft_wrap=True)
