"""`wevent publish`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from wevent.cli.answers import PrivateTotals, PublishAnswer, RegistryDifference, as_json
from wevent.cli.flags import chosen_settings, setting_flags
from wevent.cli.loudness import log_to_standard_error
from wevent.cli.parameter_types import FILE, Word
from wevent.cli.progress import Show, progress_bar
from wevent.cli.screen import remarks
from wevent.cli.standard_output import report
from wevent.errors import InvalidSettings
from wevent.publishing.configuration import Settings
from wevent.publishing.importing import Difference
from wevent.publishing.loop import Summary
from wevent.publishing.missing_settings import PUBLISHING
from wevent.publishing.session import Intent, RunReport, Watch, run, settings_files
from wevent.streams.clock import SECOND_US
from wevent.streams.uncounted import MALFORMED, REJECTED, in_words

_EXAMPLE = (
    "Example: wevent publish events.parquet --requirements users.csv --cells 100 --slot 60s "
    "--start 2026-01-01T00:00:00Z --end 2026-01-02T00:00:00Z --journal run.journal --out releases.ndjson"
)

_AUTO = (
    "With --start auto the first and the last slot are read from the events: one person's event can decide when the "
    "stream begins or ends, which no epsilon covers. The journal keeps the note (unsafe: start auto). Declare --start and "
    "--end for data that is to be protected."
)
_NOT_COUNTED = ("rejected", *REJECTED, "malformed", *MALFORMED, "late")
_STRICT = (
    "With --strict the run stops at a malformed line: whoever sees that it stopped learns about the record in it. "
    "Use it for checking data, not for protecting it."
)


@click.command("publish", epilog=_EXAMPLE)
@click.argument("events", nargs=-1, type=FILE)
@setting_flags
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
    "--check", is_flag=True, help="Only say what publishing would meet, as `wevent check` does; spend nothing."
)
@click.option(
    "--log", type=Word("debug", "info", "warning"), help="How much to log, warning unless told; wins over --verbose."
)
@click.option("--json", is_flag=True, help="Print what the run came to as a line of JSON; releases must go to a file.")
def command(events: tuple[str, ...], config: Path | None, check: bool, **options: Any) -> None:
    """Publish a stream: read a slot, draw its release, store it with its charges in the journal, then emit it.

    Run the same command again after a crash or with more events: it resumes where it stopped and never draws a slot
    twice. Events are files (Parquet, CSV, NDJSON, also .gz and globs) or - for live lines.
    """
    log_to_standard_error(options.pop("log"))
    intent = Intent(**{entry.name: options.pop(entry.name) for entry in fields(Intent)})
    wants_json = options.pop("json")
    needed = [key for key in PUBLISHING if key != "journal" or not check]
    settings, config = chosen_settings(config, {**options, "inputs": events or None}, needed)
    if check:
        from wevent.cli.check import show_check  # simulation comes with it, which publishing does without

        show_check(settings, intent, wants_json=wants_json)
        return
    if wants_json:
        _refuse_mixing(settings)
    console = remarks(silent=wants_json)
    if settings.strict:
        _say(console, _STRICT)
    live = settings.is_live
    if settings.start_auto and not live:
        click.echo(_AUTO, err=True)  # also for who is quiet: it weakens the promise
    usual = 60 * SECOND_US / settings.slot_us if live else 0.0
    told: list[str] = []
    with progress_bar(console, "slots", usual=usual) as show:
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
    counts = in_words(totals)
    where = f"; the first malformed: {'; '.join(malformed)}" if malformed else ""
    text = f"Events not counted in this run (private: do not publish these numbers): {counts}{where}."
    _say(console, text)
