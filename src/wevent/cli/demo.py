"""`wevent demo`."""

from __future__ import annotations

from pathlib import Path

import click

from wevent.cli import compare
from wevent.cli.pictures import PICTURE
from wevent.core.requirements import Levels


@click.command("demo", epilog="Example: wevent demo --users 5000 --slots 288 --plot demo.png")
@click.option("--users", default=20_000, show_default=True, type=click.IntRange(100), help="Registered users.")
@click.option("--slots", default=576, show_default=True, type=click.IntRange(10), help="Five-minute slots to publish.")
@click.option("--plot", default="demo.png", show_default=True, type=PICTURE, help="Draw truth and releases here.")
@click.option("--json", "wants_json", is_flag=True, help="Print an object, nothing else.")
def command(users: int, slots: int, plot: Path, wants_json: bool) -> None:
    """Compare all mechanisms on a synthetic city: `wevent compare --stream city`, once.

    Every user draws a level: privacy High/Medium/Low x window Small/Medium/Large. A simulation: the people are invented.
    """
    levels = Levels.default()
    epsilons, windows = (",".join(map(str, words.values())) for words in (levels.privacy, levels.window))
    arguments = ["--stream", "city", "--assign", "independent", "--epsilons", epsilons, "--windows", windows]
    arguments += ["--users", str(users), "--slots", str(slots), "--repeats", "1", "--plot", str(plot)]
    compare.command.main([*arguments, *(["--json"] if wants_json else [])], "wevent demo", standalone_mode=False)
