"""`wevent backup`."""

from __future__ import annotations

from pathlib import Path

import click

from wevent.cli.answers import BackupAnswer, as_json
from wevent.cli.parameter_types import JOURNAL
from wevent.cli.standard_output import report
from wevent.journal import JournalAddress, back_up


@click.command("backup", epilog="Example: wevent backup run.journal backups/run-monday.journal")
@click.argument("journal", type=JOURNAL)
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace the file at TARGET; never a link, folder, pipe or device.")
@click.option("--json", "wants_json", is_flag=True, help="Print the result as JSON.")
def command(journal: JournalAddress, target: Path, force: bool, wants_json: bool) -> None:
    """Copy a journal while it is in use.

    The copy is marked: nothing can be published from it before `wevent restore` is told through which slot releases
    went out. A journal that is behind must never draw a slot twice.
    """
    slot = back_up(journal, target, replace=force)
    answer = BackupAnswer(target=str(target), through_slot=slot)
    text = as_json(answer) if wants_json else f"{target}: the journal through slot {slot}"
    report(text, f"The backup was made and goes through slot {slot}.", asked=wants_json)
