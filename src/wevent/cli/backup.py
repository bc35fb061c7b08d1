"""`wevent backup`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from wevent.journal import back_up


@click.command("backup", epilog="Example: wevent backup run.journal backups/run-monday.journal")
@click.argument("journal", type=click.Path(path_type=Path))
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace what is at TARGET, whatever it is.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(journal: Path, target: Path, force: bool, as_json: bool) -> None:
    """Copy a journal while it is in use.

    The copy is marked: nothing can be published from it before `wevent restore` is told through which slot releases
    went out. A journal that is behind must never draw a slot twice.
    """
    slot = back_up(journal, target, replace=force)
    if as_json:
        click.echo(json.dumps({"target": str(target), "through_slot": slot}))
    else:
        click.echo(f"{target}: the journal through slot {slot}")
