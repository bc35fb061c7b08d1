"""`wevent demo`."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from wevent.cli.pictures import PICTURE, draw
from wevent.cli.printing import new_table, print_table
from wevent.cli.progress import progress_bar
from wevent.core.requirements import Levels
from wevent.experiments import Assigner, Compared, Comparison, compare
from wevent.experiments.datasets.city import City


@click.command("demo", epilog="Example: wevent demo --users 5000 --slots 288 --plot demo.png")
@click.option("--users", default=20_000, show_default=True, type=click.IntRange(100), help="Registered users.")
@click.option("--slots", default=576, show_default=True, type=click.IntRange(10), help="Five-minute slots to publish.")
@click.option("--plot", default="demo.png", show_default=True, type=PICTURE)
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON, nothing else.")
def command(users: int, slots: int, plot: Path, as_json: bool) -> None:
    """Publish a synthetic city stream with every mechanism, with secure noise, and compare with the truth.

    A simulation: the people are invented, so the truth may be shown. Real counts never are.
    """
    console = Console(stderr=True, quiet=as_json)
    city, levels = City(users, slots), Levels.default()
    assigner = Assigner("independent", list(levels.privacy.values()), list(levels.window.values()))
    console.print(
        f"A city of {users} users in {len(city.cells)} districts, {slots} five-minute slots; "
        "every user draws a level: privacy High/Medium/Low x window Small/Medium/Large."
    )
    with progress_bar(console, "mechanisms") as show:
        comparison = compare(city, assigner=assigner, repeats=1, secure=True, timed_slots=0, progress=show)
    if as_json:
        click.echo(json.dumps([_figures(row) for row in comparison.ranked], indent=2))
    else:
        print_table(_table(comparison))
    draw(console, "Truth against releases", plot, lambda figures: figures.draw_city(comparison, plot))


def _figures(row: Compared) -> dict[str, object]:
    figures = row.to_dict()
    return {
        "mechanism": row.mechanism,
        "mean_squared_error": figures["amre"],
        "mean_absolute_error": figures["mae"],
        "fresh": int(figures["fresh"]),
        "worst_window_share": figures["worst_window_share"],
    }


def _table(comparison: Comparison) -> Table:
    headings = ("mean squared error", "mean abs. error", "fresh releases", "worst window")
    table = new_table("Error of what was published (lower is better)", ["mechanism"], headings, caption=_CAPTION)
    for row in comparison.ranked:
        figures = row.to_dict()
        table.add_row(
            row.mechanism,
            f"{figures['amre']:,.0f}",
            f"{figures['mae']:,.1f}",
            f"{figures['fresh']:.0f}",
            f"{figures['worst_window_share']:.1%}",
        )
    return table


_CAPTION = (
    "Errors are per slot and district. Worst window: the largest part of its epsilon that any class spent in any of "
    "its windows; never above 100 %."
)
