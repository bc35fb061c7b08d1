"""`wevent demo`."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from wevent.cli.pictures import PICTURE
from wevent.experiments.city import CityStream
from wevent.experiments.demo import DemoResult, run_mechanism


@click.command("demo", epilog="Example: wevent demo --users 5000 --slots 288 --plot demo.png")
@click.option("--users", default=20_000, show_default=True, type=click.IntRange(100), help="Registered users.")
@click.option("--slots", default=576, show_default=True, type=click.IntRange(10), help="Five-minute slots to publish.")
@click.option("--plot", default="demo.png", show_default=True, type=PICTURE)
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON, nothing else.")
def command(users: int, slots: int, plot: Path, as_json: bool) -> None:
    """Publish a synthetic city stream with every mechanism, with secure noise, and compare with the truth.

    A simulation: the people are invented, so the truth may be shown. Real counts never are.
    """
    from wevent.publisher.catalogue import mechanisms

    console = Console(stderr=True, quiet=as_json)
    city = CityStream.generate(users=users, slots=slots)
    console.print(
        f"A city of {users} users in {len(city.cells)} districts, {slots} five-minute slots; "
        f"{len(city.population)} requirement classes: privacy High/Medium/Low x window Small/Medium/Large."
    )
    results = []
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total} slots")
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        for name in mechanisms():
            task = progress.add_task(f"{name:<8}", total=slots)
            results.append(run_mechanism(name, city, advance=lambda task=task: progress.advance(task)))  # type: ignore[misc]
    results.sort(key=lambda result: result.mean_squared_error)
    if as_json:
        click.echo(json.dumps([result.to_dict() for result in results], indent=2))
    else:
        Console().print(_table(results))
    try:
        from wevent.experiments.figures import draw_demo
    except ImportError:
        console.print("No plot: it needs matplotlib (pip install 'wevent\\[experiments]').")
        return
    draw_demo(city, results, plot)
    console.print(f"Truth against releases: {plot}")


def _table(results: list[DemoResult]) -> Table:
    table = Table(title="Error of what was published (lower is better)", caption=_CAPTION)
    table.add_column("mechanism")
    for heading in ("mean squared error", "mean abs. error", "fresh releases", "worst window"):
        table.add_column(heading, justify="right")
    for result in results:
        table.add_row(
            result.mechanism,
            f"{result.mean_squared_error:,.0f}",
            f"{result.mean_absolute_error:,.1f}",
            f"{result.fresh}",
            f"{result.worst_window_share:.1%}",
        )
    return table


_CAPTION = (
    "Errors are per slot and district. Worst window: the largest part of its epsilon that any class spent in any of "
    "its windows; never above 100 %."
)
