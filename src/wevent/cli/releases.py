"""`wevent releases`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from wevent.cli.console import remarks
from wevent.cli.flags import chosen_journal, journal_flags
from wevent.cli.parameter_types import FILE, Word
from wevent.counting.labels import split_labels
from wevent.errors import InvalidOption
from wevent.journal import Journal, JournalAddress, open_journal
from wevent.outputs import open_output, refuse_existing, refuse_same_file, standard_output
from wevent.outputs.lines import CSV_HEADER, csv_lines, ndjson_line
from wevent.outputs.selection import Selection, parse_slots


@click.command(
    "releases", epilog="Example: wevent releases run.journal --from 100 --to 199 --cells north,south --format csv"
)
@journal_flags
@click.option("--from", "begin", default="1", show_default=True, help="The first slot: its number, or a time.")
@click.option("--to", "end", default=None, help="The last slot: its number, or a time it starts before.")
@click.option("--cells", default=None, help="Labels of the cells, separated by commas; all of them.")
@click.option(
    "--format",
    "kind",
    default="ndjson",
    show_default=True,
    type=Word("ndjson", "csv"),
    help="How they are printed; a file is written as its ending says.",
)
@click.option(
    "--out",
    type=FILE,
    default=None,
    help="A file (.ndjson, .csv, .parquet) for these releases instead of printing them.",
)
@click.option("--follow", is_flag=True, help="Wait for further releases and print them as they are committed.")
def command(
    journal: JournalAddress | None,
    config: Path | None,
    begin: str,
    end: str | None,
    cells: str | None,
    kind: str,
    out: str | None,
    follow: bool,
) -> None:
    """Print or export releases, the same bytes as they were emitted.

    With --cells the lines are those of a stream that has only these cells: the same numbers.
    """
    if follow and out is not None:
        raise InvalidOption(
            "--follow and --out exclude each other.", "A publisher keeps its own output up to date.", option="follow"
        )
    with open_journal(chosen_journal(journal, config)) as source:
        first, last = parse_slots(source.head(), begin, end, "--")
        assert first is not None, "--from has a default"
        selection = Selection(source, last, None if cells is None else split_labels(cells))
        if out is not None:
            _export(source, selection, out, first, whole=last is None and cells is None)
        else:
            head = source.head()
            if first > head.committed and not follow:
                remarks().print(f"No slot from {first} on: the last one is {head.committed}.", markup=False)
            _print(selection, first, last, as_csv=kind == "csv", follow=follow)


def _export(source: Journal, selection: Selection, out: str, first: int, *, whole: bool) -> None:
    refuse_same_file(out, [("the journal or a file beside it", file) for file in source.files()])
    output = open_output(out, first)
    if not whole and out != "-":
        refuse_existing(Path(out))
    try:
        output.repair(source if whole else selection, selection.head().committed, first - 1)
        output.close()
    except BaseException:
        output.abandon()
        raise


def _print(selection: Selection, first: int, last: int | None, *, as_csv: bool, follow: bool) -> None:
    render = csv_lines if as_csv else ndjson_line
    stream = standard_output()
    if as_csv:
        stream.write(CSV_HEADER)
    try:
        while True:
            for record in selection.releases(first):
                first = record.slot + 1
                if record.shown is not None:
                    stream.write(render(record))
            stream.flush()
            if not follow or (last is not None and first > last):
                return
            time.sleep(0.2)
    except KeyboardInterrupt:
        sys.exit(0)
