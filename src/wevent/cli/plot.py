"""`wevent plot`."""

from __future__ import annotations

from pathlib import Path

import click

from wevent.cli.answers import PlotAnswer, as_json
from wevent.cli.console import remarks
from wevent.cli.flags import CONFIG, chosen_journal
from wevent.cli.parameter_types import JOURNAL
from wevent.cli.pictures import PAGE, PICTURE, require
from wevent.counting.labels import split_labels
from wevent.journal import JournalAddress
from wevent.outputs import refuse_same_file
from wevent.outputs.release_table import read_releases
from wevent.plotting.release_data import data_from_table

_LINES = 8  # cells that get a line each unless others are chosen
_MOST_LINES = 24  # chosen ones


@click.command("plot", epilog="Example: wevent plot run.journal --cells Harbour,Market --out run.png --html run.html")
@click.argument("source", required=False, type=JOURNAL)
@CONFIG
@click.option("--cells", default=None, help="Labels, comma-separated.  [default: all; a heatmap if more than 8]")
@click.option("--from", "first", default=None, help="The first slot: its number, or a time.")
@click.option("--to", "last", default=None, help="The last slot: its number, or a time it starts before.")
@click.option("--out", type=PICTURE, help="The picture.  [default: named after SOURCE, .png, unless --html is given]")
@click.option("--html", "page", type=PAGE, help="One page that opens offline.")
@click.option("--json", "wants_json", is_flag=True, help="Print the names of the files as JSON.")
def command(
    source: JournalAddress | None,
    config: Path | None,
    out: Path | None,
    page: Path | None,
    wants_json: bool,
    **chosen: str | None,
) -> None:
    """Draw releases as a picture or an offline page.

    A line per cell with its 95 % interval, or a heatmap of many cells.

    SOURCE is a journal or a file of releases (NDJSON, CSV, Parquet); the configuration's journal if none is named. There
    is no truth in the picture: it shows nothing but releases, and marks the slots that were measured. Bands stand only
    where a valid interval is known.
    """
    console = remarks(silent=wants_json)
    source = chosen_journal(source, config)
    if out is None and page is None:
        out = Path(f"{source.name.removesuffix('.gz').rpartition('.')[0] or source.name}.png")
    for target, package in ((out, "matplotlib"), (page, "plotly")):
        if target is not None:
            require(package)
            refuse_same_file(str(target), [("what is drawn", source)] if isinstance(source, Path) else [])
    data = data_from_table(source.name, read_releases(source).columns).between(chosen["first"], chosen["last"])
    cells = chosen["cells"]
    if cells is not None:
        data = data.only(split_labels(cells))
    as_lines = len(data.cells) <= (_LINES if cells is None else _MOST_LINES)
    if page is not None:
        from wevent.plotting.release_page import write_page

        write_page(data, page, as_lines=as_lines)
        console.print(f"Page: {page}", markup=False)
    if out is not None:
        from wevent.plotting.release_figure import draw_heatmap, draw_lines

        (draw_lines if as_lines else draw_heatmap)(data, out)
        console.print(f"Picture: {out}", markup=False)
    if wants_json:
        made = [None if target is None else str(target) for target in (out, page)]
        click.echo(as_json(PlotAnswer(source=str(source), picture=made[0], page=made[1])))
