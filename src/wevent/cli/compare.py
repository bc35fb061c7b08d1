"""`wevent compare`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import duckdb
from rich.console import Console
from rich.table import Table

from wevent.cli.answers import CompareAnswer, ComparedRow, as_json
from wevent.cli.console import new_table, print_table, progress_bar, remarks
from wevent.cli.flags import INPUT_KEYS, GroupedCommand, input_flags
from wevent.cli.parameter_types import ASSIGNMENT, STREAM, Word, parse_epsilons, parse_windows
from wevent.cli.pictures import PICTURE, TABLE, draw
from wevent.cli.simulation import (
    DATA,
    EVENTS,
    VARIANT,
    known_setup,
    registered,
    runs_wanted,
    say_left_out,
    seconds,
    simulation_options,
)
from wevent.experiments import Assigner, Comparison, StreamRequest, compare
from wevent.experiments.comparison import SlotColumns
from wevent.experiments.datasets import as_stream
from wevent.experiments.datasets.recorded import Recorded
from wevent.experiments.datasets.stream import Stream
from wevent.experiments.formatting import short
from wevent.experiments.requirement_sampling import Registered
from wevent.file_io import atomic_write
from wevent.streams.duckdb_tables import literal


@click.command(
    "compare",
    cls=GroupedCommand,
    epilog="Example: wevent compare --stream file:events.csv --slot-length 1h --mechanisms pba,pbd --repeats 10",
)
@click.option(
    "--stream",
    "stream_name",
    type=STREAM,
    metavar="STREAM",
    default=None,
    help="tlns, sin, log, city, taxi, foursquare, file:PATH, or events: those of the configuration.  "
    "[default: events if there is a configuration, else sin]",
)
@input_flags
@click.option("--users", type=click.IntRange(1), help="Users; 10,000 for invented streams, all of a recorded one.")
@click.option("--slots", type=click.IntRange(2), help="Slots; 1,000 for invented streams, all of a recorded one.")
@VARIANT
@click.option("--slot-length", default=None, help="Length of a slot for files with times: 90s, 5m, 1h, 1d.")
@DATA
@click.option("--epsilons", default="0.6,0.8,1.0", show_default=True, help="What users' epsilons are drawn from.")
@click.option("--windows", default="40,80,120", show_default=True, help="What users' windows are drawn from, in slots.")
@click.option(
    "--assign",
    type=ASSIGNMENT,
    default=None,
    help="Who asks for what: types (the paper's ten), equal, independent, ratio:R, csv:PATH (user,window,epsilon).  "
    "[default: the requirements file if there is one, else types]",
)
@simulation_options(baselines=True)
@click.option("--ajsd", type=Word("raw", "normalised"), default="raw", show_default=True, help="Form of AJSD.")
@click.option("--plot", type=PICTURE, help="Draw truth, releases and errors here.")
@click.option("--per-slot", type=TABLE, help="Write the errors of every slot here: .parquet or .csv.")
@click.option("--json", "wants_json", is_flag=True, help="Print an object, nothing else.")
def command(stream_name: str | None, **given: Any) -> None:
    """Compare mechanisms on a stream with known truth.

    This is a SIMULATION: it sees the truth in order to measure errors, it draws seeded noise, and so its output
    protects nobody. Do not publish what it prints about real people.

    Every run of a mechanism is made by the publisher itself, slot by slot: a slot takes about half a millisecond, with
    pft several times that, times slots, repeats and mechanisms. --jobs spreads the runs over processes.

    Baselines (spas, rescuedp, fast, pegasus, adapub) are other published mechanisms, corrected, with one budget for all: the
    strictest. They are there to compare with and never publish.

    \b
    amre    mean squared error per slot and cell (the paper's formula, which it calls relative)
    mre     mean relative error: |release - count| / max(count, 0.1 % of the slot's total), the bound of the literature
    ajsd    Jensen-Shannon divergence, on raw counts as in the authors' code, or normalised
    mae     mean absolute error
    fresh   releases that were measured in their slot
    ms/slot time of one slot of a real publisher with secure noise, one run, counting not included; none for baselines
    window  the largest part of its epsilon that any class spent in any of its windows
    covered how often the truth lay within the stated 95 % interval
    """  # noqa: D301  click needs the backspace itself
    console = remarks(silent=given["wants_json"])
    wanted = runs_wanted(given)
    given["slot"] = given["slot"] or given["slot_length"]
    setup = known_setup({**given, "slot": None} if _is_plain(stream_name, given) else given, stream_name)
    asked = None
    if setup is None:
        stream = as_stream(_request(stream_name or "sin", given), wanted["options"])
    else:
        wanted["options"] = {**setup.options, **wanted["options"]}
        setup = setup._replace(settings=replace(setup.settings, max_cells_per_user=_most_cells(wanted["options"])))
        asked = setup.asked()
        stream = setup.stream(asked).limited(users=given["users"], slots=given["slots"])
    assigner: Assigner | Registered = Assigner(
        given["assign"] or "types", parse_epsilons(given["epsilons"]), parse_windows(given["windows"])
    )
    if given["assign"] is None and asked is not None:
        assigner = registered(asked)
    _introduce(console, stream)
    with progress_bar(console, "runs") as show:
        per_slot = given["per_slot"] is not None
        comparison = compare(stream, assigner=assigner, per_slot=per_slot, progress=show, **wanted)
    say_left_out(console, comparison.left_out)
    answer = _answer(comparison, stream, given["ajsd"])
    if not given["wants_json"]:
        print_table(_table(answer))
        for sentence in answer.findings:
            click.echo(sentence)
    _write(console, comparison, given["per_slot"], given["plot"], answer)
    if given["wants_json"]:
        click.echo(as_json(answer))


def _is_plain(name: str | None, given: dict[str, Any]) -> bool:
    """Return whether a stream is named that needs no settings but the slot length."""
    others = [key for key in INPUT_KEYS if key != "slot" and given.get(key) is not None]
    return name not in (None, EVENTS) and not others and given["config"] is None


def _most_cells(options: dict[str, Any]) -> int:
    most = options.get("max_cells_per_user", 1)
    return most if type(most) is int and most > 0 else 1


def _request(name: str, given: dict[str, Any]) -> StreamRequest:
    length = given["slot"]
    return StreamRequest(
        name,
        users=given["users"],
        slots=given["slots"],
        variant=given["variant"],
        data=given["data"],
        slot_length_s=None if length is None else seconds(length),
    )


def _introduce(console: Console, stream: Stream) -> None:
    console.print(
        f"Simulation on {stream.name}: {len(stream.user_labels)} users, {stream.slots} slots, "
        f"{len(stream.cells)} cells."
    )
    for reason, number in _not_read(stream).items():
        console.print(f"Left out while reading: {number} {reason}.")


def _not_read(stream: Stream) -> dict[str, int]:
    """Return the number of records that were left out, by reason."""
    remarks = stream.remarks if isinstance(stream, Recorded) else {}
    return {reason: number for reason, number in remarks.items() if number}


def _answer(comparison: Comparison, stream: Stream, form: str) -> CompareAnswer:
    return CompareAnswer(
        stream=stream.name,
        users=len(stream.user_labels),
        slots=stream.slots,
        cells=len(stream.cells),
        not_read=_not_read(stream),
        repeats=len(comparison.ranked[0].scores.amre),
        ajsd_form=form,
        mechanisms=[ComparedRow(**row.to_dict(normalised=form == "normalised")) for row in comparison.ranked],
        findings=comparison.findings(),
        left_out=dict(comparison.left_out),
        plot=None,
        per_slot=None,
    )


def _table(answer: CompareAnswer) -> Table:
    runs = f"mean of {answer.repeats} repeats, ± half of the 95 % interval" if answer.repeats > 1 else "one repeat"
    title = f"Errors on {answer.stream}, smallest first ({runs})"
    numbers = ("amre", "±", "mre", "ajsd", "mae", "fresh", "ms/slot", "window", "covered")
    table = new_table(title, ["mechanism"], numbers, caption=_CAPTION)
    for row in answer.mechanisms:
        table.add_row(*_cells(row))
    return table


def _cells(row: ComparedRow) -> list[str]:
    low, high = row.amre_low, row.amre_high
    return [
        row.mechanism,
        short(row.amre),
        "-" if low is None or high is None else short((high - low) / 2, digits=2),
        short(row.mre),
        short(row.ajsd),
        short(row.mae),
        f"{row.fresh:.0f}",
        "-" if row.ms_per_slot is None else f"{row.ms_per_slot:.2f}",
        f"{row.worst_window_share:.1%}",
        "-" if row.covered is None else f"{row.covered:.0%}",
    ]


_CAPTION = (
    "window: most of its epsilon that a class spent in one of its windows; covered: truth within the stated 95 % "
    "interval; for pft that is of the estimate, for others of the noise alone (not of sampling or the age of a repeat)."
)


def _write(
    console: Console, comparison: Comparison, per_slot: Path | None, plot: Path | None, answer: CompareAnswer
) -> None:
    if per_slot is not None:
        _write_table(per_slot, comparison.per_slot)
        console.print(f"Errors of every slot: {per_slot}", markup=False)
        answer.per_slot = str(per_slot)
    if plot is not None and draw(
        console, "Truth, releases and errors", plot, lambda figures: figures.draw_comparison(comparison, plot)
    ):
        answer.plot = str(plot)


def _write_table(path: Path, columns: SlotColumns) -> None:
    form = "FORMAT csv, HEADER" if path.suffix.lower() == ".csv" else "FORMAT parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as unfinished, duckdb.connect() as connection:
        connection.register("columns_to_write", dict(columns))
        connection.execute(f"COPY (SELECT * FROM columns_to_write) TO {literal(str(unfinished))} ({form})")
