"""`wevent publish`."""

from __future__ import annotations

import logging
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from wevent.cli.flags import option_flags
from wevent.cli.progress import Show, progress_bar
from wevent.publishing.configuration import Settings, load_settings
from wevent.publishing.importing import Difference
from wevent.publishing.loop import Summary
from wevent.publishing.session import Intent, Watch, run, settings_files

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
@click.option("--requirements", help="Who asks for what: user,level or user,privacy,window or user,window,epsilon.")
@click.option("--cells", help="The number of cells, or a file with their labels.")
@click.option("--slot", help="How long a slot is, such as 60s.")
@click.option(
    "--start", help="Where slot 1 starts (UTC or with an offset); auto reads start and end from the data: unsafe."
)
@click.option("--end", help="Where the last slot ends.")
@click.option("--slot-column", help="The column with slot numbers, for data already slotted.")
@option_flags()
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
@click.option(
    "--keep",
    type=click.IntRange(1),
    help="How many slots the journal keeps, all unless told; not with a Parquet output.",
)
@click.option("--log", default="warning", type=click.Choice(["debug", "info", "warning"]), help="How much to log.")
def command(events: tuple[str, ...], config: Path | None, **options: Any) -> None:
    """Publish a stream: read a slot, draw its release, store it with its charges in the journal, then emit it.

    Run the same command again after a crash or with more events: it resumes where it stopped and never draws a slot
    twice. Events are files (Parquet, CSV, NDJSON, also .gz and globs) or - for live lines.
    """
    logging.basicConfig(level=options.pop("log").upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    intent = Intent(**{entry.name: options.pop(entry.name) for entry in fields(Intent)})
    settings = load_settings(config, {**options, "inputs": events or None})
    console = Console(stderr=True)
    if settings.strict:
        _say(console, _STRICT)
    with progress_bar(console, "slots") as show:
        done = run(settings, intent, settings_files(config, options["cells"]), _watching(console, show))
    _report(console, done.summary, settings)
    _report_private(console, done.totals, done.malformed)


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _watching(console: Console, show: Show) -> Watch:
    """Says what the requirements file changes, and shows the slots of this run as they are committed."""
    begins = 1

    def begun(first: int, last: int | None) -> None:
        nonlocal begins
        begins = first
        advance(first - 1, last)

    def advance(slot: int, last: int | None) -> None:
        total = None if last is None else max(last - begins + 1, 0)
        show(f"slot {slot}", slot - begins + 1, total)

    def imported(difference: Difference) -> None:
        _say(console, " ".join((f"Requirements: {difference}.", *difference.sentences())))

    return Watch(imported=imported, told=lambda sentence: _say(console, sentence), begun=begun, progress=advance)


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
    _say(console, text)


def _report_private(console: Console, totals: dict[str, int], malformed: list[str]) -> None:
    """The one line that depends on events: totals of the whole run, for the operator's eyes. It is always there."""
    counts = ", ".join(f"{totals.get(name, 0)} {name}" for name in ("rejected", "malformed", "late"))
    where = f"; the first malformed: {'; '.join(malformed)}" if malformed else ""
    text = f"Events not counted in this run (private: do not publish these numbers): {counts}{where}."
    _say(console, text)
