"""`wevent demo`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from wevent.cli.answers import DemoAnswer, DemoRow, as_json
from wevent.cli.pictures import PICTURE, draw
from wevent.cli.printing import new_table, print_table
from wevent.cli.progress import progress_bar
from wevent.cli.screen import remarks
from wevent.core.requirements import Levels
from wevent.experiments import Assigner, Compared, compare
from wevent.experiments.datasets.city import City


@click.command("demo", epilog="Example: wevent demo --users 5000 --slots 288 --plot demo.png")
@click.option("--users", default=20_000, show_default=True, type=click.IntRange(100), help="Registered users.")
@click.option("--slots", default=576, show_default=True, type=click.IntRange(10), help="Five-minute slots to publish.")
@click.option("--plot", default="demo.png", show_default=True, type=PICTURE, help="Draw truth and releases here.")
@click.option("--json", "wants_json", is_flag=True, help="Print an object, nothing else.")
def command(users: int, slots: int, plot: Path, wants_json: bool) -> None:
    """Publish a synthetic city stream with every mechanism, with secure noise, and compare with the truth.

    A simulation: the people are invented, so the truth may be shown. Real counts never are.
    """
    console = remarks(silent=wants_json)
    city, levels = City(users, slots), Levels.default()
    assigner = Assigner("independent", list(levels.privacy.values()), list(levels.window.values()))
    console.print(
        f"A city of {users} users in {len(city.cells)} districts, {slots} five-minute slots; "
        "every user draws a level: privacy High/Medium/Low x window Small/Medium/Large."
    )
    with progress_bar(console, "mechanisms") as show:
        comparison = compare(city, assigner=assigner, repeats=1, secure=True, timed_slots=0, progress=show)
    answer = DemoAnswer(
        users=users,
        districts=len(city.cells),
        slots=slots,
        mechanisms=[_row(row) for row in comparison.ranked],
        plot=None,
    )
    if not wants_json:
        print_table(_table(answer))
    if draw(console, "Truth against releases", plot, lambda figures: figures.draw_city(comparison, plot)):
        answer.plot = str(plot)
    if wants_json:
        click.echo(as_json(answer))


def _row(row: Compared) -> DemoRow:
    figures = row.to_dict()
    return DemoRow(
        mechanism=row.mechanism,
        mean_squared_error=figures["amre"],
        mean_absolute_error=figures["mae"],
        fresh=int(figures["fresh"]),
        worst_window_share=figures["worst_window_share"],
    )


def _table(answer: DemoAnswer) -> Table:
    headings = ("mean squared error", "mean abs. error", "fresh releases", "worst window")
    table = new_table("Error of what was published (lower is better)", ["mechanism"], headings, caption=_CAPTION)
    for row in answer.mechanisms:
        table.add_row(
            row.mechanism,
            f"{row.mean_squared_error:,.0f}",
            f"{row.mean_absolute_error:,.1f}",
            f"{row.fresh}",
            f"{row.worst_window_share:.1%}",
        )
    return table


_CAPTION = (
    "Errors are per slot and district. Worst window: the largest part of its epsilon that any class spent in any of "
    "its windows; never above 100 %."
)
