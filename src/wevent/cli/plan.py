"""`wevent plan`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from wevent.cli.pictures import PICTURE
from wevent.cli.tables import print_table, short
from wevent.experiments.choices import parse_choices
from wevent.experiments.options import parse_duration, parse_list
from wevent.experiments.plan import Plan, describe, make_plan, parse_class, population_of, to_dict
from wevent.experiments.streams import StreamRequest, open_stream
from wevent.experiments.streams.source import Stream
from wevent.experiments.streams.synthetic import Daily
from wevent.publisher.catalogue import mechanisms as known_mechanisms

_DAY_S = 86_400.0


@click.command(
    "plan", epilog="Example: wevent plan --class High/Large=500 --class Low/Small=9500 --cells 20 --slot-length 5m"
)
@click.option(
    "--class",
    "classes",
    multiple=True,
    required=True,
    help="A level and how many users hold it: WINDOW:EPSILON=USERS, or High/Large=USERS. Once per level.",
)
@click.option("--cells", default=10, show_default=True, type=click.IntRange(1), help="Cells, without a sample.")
@click.option("--slot-length", default="1h", show_default=True, help="Length of a slot: 90s, 5m, 1h, 1d.")
@click.option(
    "--slots", default=None, type=click.IntRange(2), help="Slots to simulate.  [default: 500, or the sample's]"
)
@click.option(
    "--present",
    default=0.5,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Share of users in a slot, no sample.",
)
@click.option(
    "--sample",
    "--stream",
    "sample",
    default="daily",
    show_default=True,
    help="A stream like yours: file:PATH (slot,user,cell or time,user,cell), sin, log, tlns, or daily (invented).",
)
@click.option("--mechanisms", default=None, help="Comma-separated.  [default: all]")
@click.option("--repeats", default=5, show_default=True, type=click.IntRange(1), help="Runs of each mechanism.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Same seed, same figures.")
@click.option("--plot", type=PICTURE, help="Draw expected errors and moves here.")
@click.option("--json", "as_json", is_flag=True, help="Print an object, nothing else.")
def command(**given: Any) -> None:
    """Say what error to expect before anything is deployed, and what it would be if people chose other levels.

    A SIMULATION on a sample or on a stream like yours: it sees that stream's truth and protects nobody. A sample of
    real people stays as confidential as it is.
    """
    console = Console(stderr=True, quiet=given["as_json"])
    population = population_of([parse_class(text) for text in given["classes"]])
    length_s = parse_duration(given["slot_length"])
    stream = _stream(given, population.users, length_s)
    choices = parse_choices(parse_list(given["mechanisms"] or ",".join(known_mechanisms())))
    with console.status("") as status:
        plan = make_plan(
            stream,
            population,
            choices,
            repeats=given["repeats"],
            seed=given["seed"],
            progress=lambda label: status.update(f"simulating {label}"),
        )
    if given["as_json"]:
        click.echo(json.dumps(to_dict(plan), indent=2))
    else:
        _print(plan, stream, length_s)
    if given["plot"] is not None:
        _draw(console, plan, given["plot"])


def _stream(given: dict[str, Any], users: int, length_s: float) -> Stream:
    if given["sample"] == "daily":
        return Daily(users, given["slots"] or 500, given["cells"], _DAY_S / length_s, given["present"])
    slots = given["slots"] or (None if given["sample"].startswith("file:") else 500)
    return open_stream(StreamRequest(given["sample"], slots=slots, slot_length_s=length_s))


def _print(plan: Plan, stream: Stream, length_s: float) -> None:
    levels = Table(title="Levels", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("window (slots)", "window (hours)", "epsilon", "users"):
        levels.add_column(heading, justify="right", no_wrap=True)
    for requirement, size in plan.population.items():
        hours = requirement.window * length_s / 3600
        levels.add_row(str(requirement.window), short(hours), f"{requirement.epsilon:g}", f"{size:,}")
    print_table(levels)
    title = f"Expected errors on {stream.name} ({stream.slots} slots, {len(stream.cells)} cells), smallest first"
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("mechanism", no_wrap=True)
    for heading in ("typical error", "95 % interval", "relative (mre)", "fresh", "window"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in plan.expected:
        error = one.typical_error
        ends = "-" if error.low != error.low else f"{short(max(error.low, 0.0))} to {short(error.high)}"
        share = f"{one.scores.worst_window_share.max():.1%}"
        table.add_row(
            one.mechanism,
            short(error.mean),
            ends,
            short(one.scores.mre.mean()),
            f"{one.scores.fresh.mean():.0f}",
            share,
        )
    print_table(table)
    if plan.moves:
        print_table(_moves(plan))
    for sentence in plan.advice():
        click.echo(sentence)
    for warning in plan.warnings:
        click.echo(f"Warning: {warning}")


def _moves(plan: Plan) -> Table:
    table = Table(title=f"If users moved ({plan.expected[0].mechanism})", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("from", "to"):
        table.add_column(heading, no_wrap=True)
    for heading in ("users", "squared error", "95 % interval"):
        table.add_column(heading, justify="right", no_wrap=True)
    for move in plan.moves:
        low, high = move.ratio.low, move.ratio.high
        ends = "-" if low != low else f"{low - 1:+.0%} to {high - 1:+.0%}"
        change = f"{move.ratio.mean - 1:+.0%}"
        table.add_row(describe(move.source), describe(move.target), f"{move.users:,}", change, ends)
    return table


def _draw(console: Console, plan: Plan, path: Path) -> None:
    try:
        from wevent.experiments.figures import draw_plan
    except ImportError:
        console.print("No plot: it needs matplotlib (pip install 'wevent\\[experiments]').")
        return
    draw_plan(plan, path)
    console.print(f"Expected errors and moves: {path}", markup=False)
