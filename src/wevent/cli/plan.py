"""`wevent plan`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import msgspec
from rich.table import Table

from wevent.cli.answers import PlanAnswer, as_json
from wevent.cli.console import new_table, print_table, progress_bar, remarks
from wevent.cli.flags import GroupedCommand, input_flags
from wevent.cli.parameter_types import STREAM, parse_class, population_of
from wevent.cli.pictures import PICTURE, draw
from wevent.cli.simulation import (
    EVENTS,
    Setup,
    known_setup,
    population_asked,
    runs_wanted,
    say_left_out,
    simulation_options,
)
from wevent.core.requirements import Population, Requirement
from wevent.errors import InvalidOption
from wevent.experiments import Forecast, StreamRequest, plan
from wevent.experiments.datasets import as_stream
from wevent.experiments.datasets.stream import Stream
from wevent.experiments.datasets.synthetic import Daily
from wevent.experiments.forecast import describe
from wevent.experiments.formatting import change_and_interval, short
from wevent.settings.values import SECOND_US
from wevent.streams.requirements_file import Requirements

_DAY_S = 86_400.0
_SLOTS = 500  # of invented streams


@click.command(
    "plan",
    cls=GroupedCommand,
    epilog="Example: wevent plan --class High/Large=500 --class Low/Small=9500 --cells 20 --slot-length 5m",
)
@click.option(
    "--class",
    "classes",
    multiple=True,
    help="A level and how many users hold it: WINDOW:EPSILON=USERS, or a word such as High/Large=USERS. Once per level.  "
    "[default: who is in the requirements file]",
)
@input_flags
@click.option("--slot-length", default=None, help="The same as --slot.  [default: 1h]")
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
    type=STREAM,
    metavar="STREAM",
    default="daily",
    show_default=True,
    help="A stream like yours: file:PATH, events (those of the configuration), sin, log, tlns, city, or daily (invented).",
)
@simulation_options()
@click.option("--plot", type=PICTURE, help="Draw expected errors and moves here.")
@click.option("--json", "wants_json", is_flag=True, help="Print an object, nothing else.")
def command(**given: Any) -> None:
    """Estimate the error before you deploy, and for other choices of levels.

    A SIMULATION on a sample or on a stream like yours: it sees that stream's truth and protects nobody. A sample of
    real people stays as confidential as it is.

    Every run is made by the publisher itself: each mechanism once per repeat, then the best one again for every move
    between levels. --jobs spreads the runs over processes.
    """
    console = remarks(silent=given["wants_json"])
    given["slot"] = given["slot"] or given["slot_length"]
    setup = known_setup(given, None if given["sample"] == "daily" else given["sample"])
    asked = None if setup is None else setup.asked()
    levels = None if setup is None else setup.settings.levels
    population = _population([parse_class(text, levels) for text in given["classes"]], asked)
    length_us = None if setup is None else setup.settings.slot_length_us
    length_s = 3600.0 if length_us is None else length_us / SECOND_US
    wanted = runs_wanted(given)
    if setup is not None:
        wanted["options"] = {**setup.options, **wanted["options"]}
    stream = _stream(given, population.users, length_s, wanted["options"], setup, asked)
    with progress_bar(console, "runs") as show:
        forecast = plan(population, stream, progress=show, **wanted)
    say_left_out(console, forecast.left_out)
    answer, path = _answer(forecast, stream, length_s), given["plot"]
    if not given["wants_json"]:
        _print(answer, forecast, stream)
    if path is not None and draw(
        console, "Expected errors and moves", path, lambda figures: figures.draw_plan(forecast, path)
    ):
        answer.plot = str(path)
    if given["wants_json"]:
        click.echo(as_json(answer))


def _answer(forecast: Forecast, stream: Stream, length_s: float) -> PlanAnswer:
    """Return the forecast with windows as times."""
    facts = forecast.to_dict()
    for level in facts["classes"]:
        level["hours"] = level["window"] * length_s / 3600
    facts.update(stream=stream.name, slots=stream.slots, cells=len(stream.cells), left_out=dict(forecast.left_out))
    return msgspec.convert({**facts, "plot": None}, PlanAnswer)


def _population(classes: Sequence[tuple[Requirement, int]], asked: Requirements | None) -> Population:
    if classes:
        return population_of(classes)
    if asked is None:
        raise InvalidOption(
            "No requirements of users given.",
            "Use --class WINDOW:EPSILON=USERS for each class, --requirements, or --config.",
            option="class",
        )
    return population_asked(asked)


def _stream(
    given: dict[str, Any],
    users: int,
    length_s: float,
    options: dict[str, Any],
    setup: Setup | None,
    asked: Requirements | None,
) -> Stream:
    sample, slots = given["sample"], given["slots"]
    if sample == "daily":
        cells = 10 if setup is None else len(setup.settings.cells)
        return Daily(users, slots or _SLOTS, cells, max(1.0, _DAY_S / length_s), given["present"])
    if setup is not None and (sample == EVENTS or (sample.startswith("file:") and setup.said - {"slot", "inputs"})):
        return setup.stream(asked).limited(slots=slots)
    slots = slots or (None if sample.startswith("file:") else _SLOTS)
    return as_stream(StreamRequest(sample, slots=slots, slot_length_s=length_s), options)


def _print(answer: PlanAnswer, forecast: Forecast, stream: Stream) -> None:
    levels = new_table("Levels", [], ("window (slots)", "window (hours)", "epsilon", "users"))
    for level in answer.classes:
        levels.add_row(str(level.window), short(level.hours), f"{level.epsilon:g}", f"{level.users:,}")
    print_table(levels)
    print_table(_errors(forecast, stream))
    if forecast.moves:
        print_table(_moves(forecast))
    for sentence in answer.advice:
        click.echo(sentence)
    for warning in answer.warnings:
        click.echo(f"Warning: {warning}")


def _errors(forecast: Forecast, stream: Stream) -> Table:
    title = f"Expected errors on {stream.name} ({stream.slots} slots, {len(stream.cells)} cells), smallest first"
    table = new_table(title, ["mechanism"], ("typical error", "95 % interval", "relative (mre)", "fresh", "window"))
    for row in forecast.expected:
        error = row.typical_error
        ends = "-" if error.low != error.low else f"{short(error.low)} to {short(error.high)}"
        table.add_row(
            row.mechanism,
            short(error.mean),
            ends,
            short(row.scores.mre.mean()),
            f"{row.scores.fresh.mean():.0f}",
            f"{row.scores.worst_window_share.max():.1%}",
        )
    return table


def _moves(forecast: Forecast) -> Table:
    title = f"If users moved ({forecast.expected[0].mechanism})"
    table = new_table(title, ("from", "to"), ("users", "squared error", "95 % interval"))
    for move in forecast.moves:
        figures = (f"{move.users:,}", *change_and_interval(move.ratio))
        table.add_row(describe(move.source), describe(move.target), *figures)
    return table
