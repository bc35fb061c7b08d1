"""`wevent publish`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from wevent.cli.answers import PrivateTotals, PublishAnswer, RegistryDifference, as_json
from wevent.cli.flags import option_flags
from wevent.cli.loudness import log_to_standard_error
from wevent.cli.parameter_types import FILE, Word
from wevent.cli.progress import Show, progress_bar
from wevent.cli.screen import remarks
from wevent.cli.standard_output import report
from wevent.errors import InvalidSettings
from wevent.publishing.configuration import Settings, load_settings
from wevent.publishing.importing import Difference
from wevent.publishing.loop import Summary
from wevent.publishing.session import Intent, RunReport, Watch, run, settings_files

_EXAMPLE = (
    "Example: wevent publish events.parquet --requirements users.csv --cells 100 --slot 60s "
    "--start 2026-01-01T00:00:00Z --end 2026-01-02T00:00:00Z --journal run.journal --out releases.ndjson"
)

_NOT_COUNTED = ("rejected", "malformed", "late")
_STRICT = (
    "With --strict the run stops at a malformed line: whoever sees that it stopped learns about the record in it. "
    "Use it for checking data, not for protecting it."
)


@click.command("publish", epilog=_EXAMPLE)
@click.argument("events", nargs=-1, type=FILE)
@click.option("--config", type=click.Path(path_type=Path), help="A TOML file with any of these settings.")
@click.option("--journal", type=FILE, help="The journal; made if it does not exist, resumed if it does.")
@click.option(
    "--out", type=FILE, help="Releases: a .ndjson, .csv or .parquet file, or - for standard output (the default)."
)
@click.option(
    "--requirements", type=FILE, help="Who asks for what: user,level or user,privacy,window or user,window,epsilon."
)
@click.option(
    "--cells", type=FILE, metavar="CELLS", help="The number of cells, their labels as a,b,c, or a file with them."
)
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
@click.option(
    "--close", type=Word("clock", "lines", checked=False), help="What closes a live slot; the clock unless told."
)
@click.option("--timezone", help="The offset of times that carry none: UTC or such as +02:00.")
@click.option("--time-unit", type=Word("s", "ms", "us", checked=False), help="What numbers as times count.")
@click.option("--time-column", help="The name of the time column.")
@click.option("--user-column", help="The name of the user column.")
@click.option("--cell-column", help="The name of the cell column.")
@click.option(
    "--engine", type=Word("auto", "duckdb", "numpy", checked=False), help="What reads files; auto unless told."
)
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
@click.option(
    "--log", type=Word("debug", "info", "warning"), help="How much to log, warning unless told; wins over --verbose."
)
@click.option("--json", is_flag=True, help="Print what the run came to as a line of JSON; releases must go to a file.")
def command(events: tuple[str, ...], config: Path | None, **options: Any) -> None:
    """Publish a stream: read a slot, draw its release, store it with its charges in the journal, then emit it.

    Run the same command again after a crash or with more events: it resumes where it stopped and never draws a slot
    twice. Events are files (Parquet, CSV, NDJSON, also .gz and globs) or - for live lines.
    """
    log_to_standard_error(options.pop("log"))
    intent = Intent(**{entry.name: options.pop(entry.name) for entry in fields(Intent)})
    wants_json = options.pop("json")
    settings = load_settings(config, {**options, "inputs": events or None})
    if wants_json:
        _refuse_mixing(settings)
    console = remarks(silent=wants_json)
    if settings.strict:
        _say(console, _STRICT)
    told: list[str] = []
    with progress_bar(console, "slots") as show:
        done = run(settings, intent, settings_files(config, options["cells"]), _watching(console, show, told))
    _report(console, done.summary, settings)
    _report_private(console, done.totals, done.malformed)
    if wants_json:
        report(
            as_json(_answer(done, settings, told), indent=None),
            "The run is over, and everything is stored.",
            asked=True,
        )


def _refuse_mixing(settings: Settings) -> None:
    if settings.out in (None, "-"):
        raise InvalidSettings(
            "releases in a file for --json",
            "standard output for both",
            "Give --out releases.ndjson, or leave --json out.",
            key="out",
        )


def _answer(done: RunReport, settings: Settings, told: list[str]) -> PublishAnswer:
    summary, imported = done.summary, done.imported
    return PublishAnswer(
        journal=str(settings.journal),
        out=str(settings.out),
        first=summary.first,
        last=summary.last,
        sent_again=summary.sent_again,
        interrupted=summary.interrupted,
        requirements=None if imported is None else msgspec.convert(imported.to_dict(), RegistryDifference),
        remarks=told,
        private=PrivateTotals(
            not_counted={name: done.totals.get(name, 0) for name in _NOT_COUNTED}, first_malformed=done.malformed
        ),
    )


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _watching(console: Console, show: Show, told: list[str]) -> Watch:
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

    def tell(sentence: str) -> None:
        told.append(sentence)
        _say(console, sentence)

    return Watch(imported=imported, told=tell, begun=begun, progress=advance)


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
    counts = ", ".join(f"{totals.get(name, 0)} {name}" for name in _NOT_COUNTED)
    where = f"; the first malformed: {'; '.join(malformed)}" if malformed else ""
    text = f"Events not counted in this run (private: do not publish these numbers): {counts}{where}."
    _say(console, text)
