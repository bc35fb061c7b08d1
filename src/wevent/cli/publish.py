"""`wevent publish`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from wevent.cli.answers import PrivateTotals, PublishAnswer, RegistryDifference, as_json
from wevent.cli.console import Show, progress_bar, remarks, report_private, report_run, say
from wevent.cli.flags import GroupedCommand, chosen_settings, run_flags, setting_flags, take_run_options
from wevent.cli.parameter_types import FILE, Word
from wevent.cli.standard_output import log_to_standard_error, report
from wevent.errors import InvalidSettings
from wevent.publishing.configuration import PUBLISHING
from wevent.publishing.event_stores import open_input
from wevent.publishing.importing import Difference
from wevent.publishing.session import RunCallbacks, RunReport, SourceFactory, run
from wevent.settings import Settings
from wevent.settings.values import SECOND_US
from wevent.streams import SlotClock, Source
from wevent.streams.source import MALFORMED, REJECTED

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


@click.command("publish", cls=GroupedCommand, epilog=_EXAMPLE)
@click.argument("events", nargs=-1, type=FILE)
@setting_flags
@run_flags
@click.option(
    "--log", type=Word("debug", "info", "warning"), help="How much to log, warning unless told; wins over --verbose."
)
@click.option("--json", is_flag=True, help="Print what the run came to as a line of JSON; releases must go to a file.")
def command(events: tuple[str, ...], config: Path | None, **options: Any) -> None:
    """Publish files or a live stream from standard input.

    EVENTS are Parquet, CSV or NDJSON files (globs and .gz allowed), or - for a live stream on standard input. Each slot
    is committed to the journal before it is emitted. Run the same command again to resume.
    """
    log_to_standard_error(options.pop("log"))
    run_options = take_run_options(options)
    wants_json = options.pop("json")
    settings, _ = chosen_settings(config, {**options, "inputs": events or None}, PUBLISHING)
    if wants_json:
        _refuse_mixing(settings)
    console = remarks(silent=wants_json)
    if settings.strict:
        say(console, _STRICT)
    live = settings.is_live
    if settings.start_auto and not live:
        click.echo(_AUTO, err=True)  # also for who is quiet: it weakens the promise
    usual = 60 * SECOND_US / settings.slot_us if live else 0.0
    told: list[str] = []
    with progress_bar(console, "slots", usual=usual) as show:
        watch = _watching(console, show, told)
        done = run(settings, run_options, watch, source_of=_source_of(settings))
    report_run(console, done.summary, settings)
    report_private(console, done.totals, done.malformed)
    if wants_json:
        report(
            as_json(_answer(done, settings, told), indent=None),
            "The run is over, and everything is stored.",
            asked=True,
        )


def _source_of(settings: Settings) -> SourceFactory:
    """Return the function that opens the events; Spark is an extra, and loading it takes seconds.

    Raises:
        InvalidSettings: if it, or Java, is not there; before anything is made.
    """
    if settings.engine != "spark" or settings.is_live:
        return open_input
    from wevent.spark import require_java, require_pyspark

    require_pyspark()
    require_java()
    return _open_folder


def _open_folder(settings: Settings, clock: SlotClock, last: int | None) -> Source:
    from wevent.spark.input_files import FolderSource, session_for_files

    assert last is not None, "files have an end"
    return FolderSource(session_for_files(), settings, clock, last)


def _refuse_mixing(settings: Settings) -> None:
    if settings.out in (None, "-"):
        raise InvalidSettings(
            "--json and the releases would both go to standard output.",
            "Set --out to a file, or remove --json.",
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


def _watching(console: Console, show: Show, told: list[str]) -> RunCallbacks:
    """Return callbacks that show changes by the requirements file and the slots as they are committed."""
    begins = 1

    def begun(first: int, last: int | None) -> None:
        nonlocal begins
        begins = first
        advance(first - 1, last)

    def advance(slot: int, last: int | None) -> None:
        total = None if last is None else max(last - begins + 1, 0)
        show(f"slot {slot}", slot - begins + 1, total)

    def imported(difference: Difference) -> None:
        say(console, " ".join((f"Requirements: {difference}.", *difference.sentences())))

    def tell(sentence: str) -> None:
        told.append(sentence)
        say(console, sentence)

    return RunCallbacks(imported=imported, told=tell, begun=begun, progress=advance)
