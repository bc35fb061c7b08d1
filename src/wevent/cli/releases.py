"""`wevent releases`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from wevent.cli.parameter_types import FILE, Word
from wevent.journal import open_journal
from wevent.outputs import open_output, refuse_same_file, standard_output
from wevent.outputs.lines import CSV_HEADER, csv_lines, ndjson_line


@click.command("releases", epilog="Example: wevent releases run.journal --from 100 --format csv")
@click.argument("journal", type=click.Path(path_type=Path))
@click.option("--from", "first", default=1, show_default=True, type=click.IntRange(1), help="The first slot.")
@click.option("--format", "kind", default="ndjson", show_default=True, type=Word("ndjson", "csv"), help="How to print.")
@click.option(
    "--out",
    type=FILE,
    default=None,
    help="A file (.ndjson, .csv, .parquet) for these releases instead of printing them.",
)
@click.option("--follow", is_flag=True, help="Wait for further releases and print them as they are committed.")
def command(journal: Path, first: int, kind: str, out: str | None, follow: bool) -> None:
    """Print or export the releases of a journal, the same bytes as they were emitted."""
    with open_journal(journal) as source:
        if out is not None:
            refuse_same_file(out, [("the journal or a file beside it", file) for file in source.files()])
            output = open_output(out, first)
            output.repair(source, source.head().committed, 0)
            output.close()
            return
        render = csv_lines if kind == "csv" else ndjson_line
        stream = standard_output()
        if kind == "csv":
            stream.write(CSV_HEADER)
        try:
            while True:
                for record in source.releases(first):
                    first = record.slot + 1
                    if record.shown is not None:
                        stream.write(render(record))
                stream.flush()
                if not follow:
                    return
                time.sleep(0.2)
        except KeyboardInterrupt:
            sys.exit(0)
