"""`wevent compare`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from wevent.cli.pictures import PICTURE
from wevent.cli.tables import print_table, short
from wevent.experiments.assign import Assigner
from wevent.experiments.choices import Choice, parse_choices
from wevent.experiments.compare import Compared, Comparison, compare
from wevent.experiments.options import parse_duration, parse_epsilons, parse_list, parse_windows
from wevent.experiments.streams import StreamRequest, open_stream
from wevent.experiments.streams.source import Recorded, Stream
from wevent.publisher.catalogue import mechanisms as known_mechanisms


def stream_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which stream, for the commands that take one."""
    for option in reversed(
        (
            click.option(
                "--users", type=click.IntRange(1), help="Users; 10,000 for invented streams, all of a recorded one."
            ),
            click.option(
                "--slots", type=click.IntRange(2), help="Slots; 1,000 for invented streams, all of a recorded one."
            ),
            click.option(
                "--variant",
                type=click.Choice(["printed", "authors"]),
                default="printed",
                show_default=True,
                help="Synthetic streams as the paper prints them, or as its authors' code draws them.",
            ),
            click.option("--slot-length", default=None, help="Length of a slot for files with times: 90s, 5m, 1h, 1d."),
            click.option(
                "--data",
                type=click.Path(file_okay=False, path_type=Path),
                default=lambda: Path(os.environ.get("WEVENT_DATA", "data")),
                help="Folder with the raw files of taxi/ and foursquare/.  [default: $WEVENT_DATA or data]",
            ),
        )
    ):
        command = option(command)
    return command


def stream_request(name: str, given: dict[str, Any]) -> StreamRequest:
    """The request that the stream options describe."""
    length = given["slot_length"]
    return StreamRequest(
        name,
        users=given["users"],
        slots=given["slots"],
        variant=given["variant"],
        data=given["data"],
        slot_length_s=None if length is None else parse_duration(length),
    )


@click.command(
    "compare",
    epilog="Example: wevent compare --stream file:events.csv --slot-length 1h --mechanisms pba,pbd --repeats 10",
)
@click.option(
    "--stream", "stream_name", default="sin", show_default=True, help="tlns, sin, log, taxi, foursquare or file:PATH."
)
@stream_options
@click.option("--mechanisms", default=None, help="Comma-separated; bd:std and ba:std use √2/ε.  [default: all]")
@click.option("--epsilons", default="0.6,0.8,1.0", show_default=True, help="What users' epsilons are drawn from.")
@click.option("--windows", default="40,80,120", show_default=True, help="What users' windows are drawn from, in slots.")
@click.option(
    "--assign",
    default="types",
    show_default=True,
    help="Who asks for what: types (the paper's ten), equal, independent, ratio:R, csv:PATH (user,window,epsilon).",
)
@click.option("--repeats", default=5, show_default=True, type=click.IntRange(1), help="Runs of each mechanism.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Same seed, same figures.")
@click.option(
    "--ajsd", type=click.Choice(["raw", "normalised"]), default="raw", show_default=True, help="Form of AJSD."
)
@click.option("--plot", type=PICTURE, help="Draw truth, releases and errors here.")
@click.option(
    "--per-slot", type=click.Path(dir_okay=False, path_type=Path), help="Write the errors of every slot here (Parquet)."
)
@click.option("--json", "as_json", is_flag=True, help="Print an array of objects, nothing else.")
def command(stream_name: str, **given: Any) -> None:
    """Compare mechanisms on a stream whose truth is known, and say which differences are beyond noise.

    This is a SIMULATION: it sees the truth in order to measure errors, it draws seeded noise, and so its output
    protects nobody. Do not publish what it prints about real people.

    \b
    amre    mean squared error per slot and cell (the paper's formula, which it calls relative)
    ajsd    Jensen-Shannon divergence, on raw counts as in the authors' code, or normalised
    mre     error relative to the true count, at least 0.1 % of the slot's total
    mae     mean absolute error
    fresh   releases that were measured in their slot
    ms/slot time of one slot of a real publisher with secure noise, one run, counting not included
    window  the largest part of its epsilon that any class spent in any of its windows
    covered how often the truth lay within the stated 95 % interval
    """  # noqa: D301  click needs the backspace itself
    console = Console(stderr=True, quiet=given["as_json"])
    stream = open_stream(stream_request(stream_name, given))
    choices = parse_choices(parse_list(given["mechanisms"] or ",".join(known_mechanisms())))
    assigner = Assigner(given["assign"], parse_epsilons(given["epsilons"]), parse_windows(given["windows"]))
    _introduce(console, stream)
    comparison = _run(console, stream, assigner, choices, given)
    if given["as_json"]:
        normalised = given["ajsd"] == "normalised"
        click.echo(json.dumps([one.to_dict(normalised=normalised) for one in comparison.ranked], indent=2))
    else:
        print_table(_table(comparison, stream, given["ajsd"]))
        for sentence in comparison.findings():
            click.echo(sentence)
    _write(console, comparison, stream, given["per_slot"], given["plot"])


def _introduce(console: Console, stream: Stream) -> None:
    console.print(
        f"Simulation on {stream.name}: {len(stream.user_labels)} users, {stream.slots} slots, "
        f"{len(stream.cells)} cells."
    )
    if isinstance(stream, Recorded):
        for reason, number in stream.remarks.items():
            if number:
                console.print(f"Left out while reading: {number} {reason}.")


def _run(
    console: Console, stream: Stream, assigner: Assigner, choices: list[Choice], given: dict[str, Any]
) -> Comparison:
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}")
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task("", total=len(choices))

        def before(label: str) -> None:
            progress.update(task, description=f"{label:<8}", advance=1 if progress.tasks[0].description else 0)

        return compare(
            stream,
            assigner,
            choices,
            repeats=given["repeats"],
            seed=given["seed"],
            per_slot=given["per_slot"] is not None,
            progress=before,
        )


def _table(comparison: Comparison, stream: Stream, form: str) -> Table:
    repeats = len(comparison.ranked[0].scores.amre)
    title = f"Errors on {stream.name}, smallest first (mean of {repeats} repeats, ± half of the 95 % interval)"
    table = Table(title=title, caption=_CAPTION, box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("mechanism", no_wrap=True)
    for heading in ("amre", "±", "ajsd", "mre", "mae", "fresh", "ms/slot", "window", "covered"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in comparison.ranked:
        table.add_row(*_cells(one, form))
    return table


def _cells(one: Compared, form: str) -> list[str]:
    figures = one.to_dict(normalised=form == "normalised")
    interval = one.amre
    covered = one.scores.coverage[one.scores.coverage >= 0.0]  # NaN: no interval stated
    return [
        one.mechanism,
        short(interval.mean),
        "-" if interval.low != interval.low else short((interval.high - interval.low) / 2, digits=2),
        short(figures["ajsd"]),
        short(figures["mre"]),
        short(figures["mae"]),
        f"{figures['fresh']:.0f}",
        f"{figures['ms_per_slot']:.2f}",
        f"{figures['worst_window_share']:.1%}",
        f"{covered.mean():.0%}" if len(covered) else "-",
    ]


_CAPTION = (
    "window: most of its epsilon that a class spent in one of its windows; covered: truth within the stated 95 % "
    "interval; for pft that is of the estimate, for others of the noise alone (not of sampling or the age of a repeat)."
)


def _write(console: Console, comparison: Comparison, stream: Stream, per_slot: Path | None, plot: Path | None) -> None:
    if per_slot is not None:
        from wevent.experiments.streams.raw import write_parquet

        per_slot.parent.mkdir(parents=True, exist_ok=True)
        write_parquet(per_slot, comparison.per_slot)
        console.print(f"Errors of every slot: {per_slot}")
    if plot is not None:
        try:
            from wevent.experiments.figures import draw_comparison
        except ImportError:
            console.print("No plot: it needs matplotlib (pip install 'wevent\\[experiments]').")
            return
        draw_comparison(comparison, stream.name, plot)
        console.print(f"Truth, releases and errors: {plot}")
