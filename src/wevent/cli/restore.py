"""`wevent restore`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from wevent.cli.standard_output import report
from wevent.publishing.restoring import Restored, Stated, restore


@click.command("restore", epilog="Example: wevent restore backups/monday.journal run.journal --released-through 4711")
@click.argument("backup", type=click.Path(path_type=Path))
@click.argument("journal", type=click.Path(path_type=Path))
@click.option("--released-through", type=click.IntRange(0), help="The last slot that ever went out; needed.")
@click.option(
    "--widest-window",
    type=click.IntRange(1),
    help="The widest window ever declared, in slots; needed without a side file that reaches that slot.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    backup: Path, journal: Path, released_through: int | None, widest_window: int | None, as_json: bool
) -> None:
    """Put a backup back in place of a journal that is damaged, missing or older.

    The old files are renamed, not deleted. Slots after the backup are charged with the most they could have cost and
    never drawn again; whose membership in them is not proven waits. It asks nothing: without the last slot that went
    out it changes nothing.
    """
    done = restore(backup, journal, Stated(released_through, widest_window))
    text = json.dumps(_facts(backup, journal, done), indent=2) if as_json else _text(backup, journal, done)
    report(text, "The backup was restored.")


def _facts(backup: Path, journal: Path, done: Restored) -> dict[str, object]:
    return {
        "journal": str(journal),
        "backup": str(backup),
        **done._asdict(),
        "put_aside": [str(path) for path in done.put_aside],
    }


def _text(backup: Path, journal: Path, done: Restored) -> str:
    first, last = done.backup_through + 1, done.released_through
    lines = [f"{journal}: restored from {backup} through slot {done.backup_through}"]
    if done.put_aside:
        lines.append(f"put aside, not deleted: {', '.join(path.name for path in done.put_aside)}")
    if last >= first:
        slots = f"slot {last} was" if last == first else f"slots {first} to {last} were"
        lines.append(f"{slots} released elsewhere: charged with the most that could have been spent, never drawn again")
    else:
        lines.append("no slot was released after the backup: nothing had to be charged")
    lines.append(
        f"{done.waiting} of {done.members} members wait, until slot {done.waiting_until} at the latest"
        if done.waiting
        else f"none of {done.members} members has to wait"
    )
    lines.append("next: import the requirements again (changes after the backup are unknown), then publish as before")
    return "\n".join(lines)
