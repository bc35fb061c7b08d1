"""`wevent restore`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from wevent.cli.answers import RestoreAnswer, as_json
from wevent.cli.flags import restore_flags
from wevent.cli.parameter_types import JOURNAL
from wevent.cli.standard_output import report
from wevent.cli.status import LOST, doubt_sentences
from wevent.journal import JournalAddress
from wevent.publishing.staleness import Restored, restore
from wevent.settings import RestoreOptions

_AS_BEFORE = (
    "publish as before. The witness does not show requests that were queued after the backup: import the registry again "
    "(wevent users JOURNAL import FILE) if there may be any"
)


@click.command("restore", epilog="Example: wevent restore backups/monday.journal run.journal --released-through 4711")
@click.argument("backup", type=click.Path(path_type=Path))
@click.argument("journal", type=JOURNAL)
@restore_flags
@click.option("--json", "wants_json", is_flag=True, help="Print the result as JSON.")
def command(backup: Path, journal: JournalAddress, wants_json: bool, **stated: Any) -> None:
    """Replace a damaged or lost journal with a backup.

    The old files are renamed, not deleted. Slots after the backup are charged with the most they could have cost and
    never drawn again. Users in doubt are counted in stricter classes for one window. Without the last slot that was
    released the command changes nothing.
    """
    done = restore(backup, journal, RestoreOptions(**stated))
    answer = _answer(backup, journal, done)
    report(as_json(answer) if wants_json else _text(answer), "The backup was restored.", asked=wants_json)


def _answer(backup: Path, journal: JournalAddress, done: Restored) -> RestoreAnswer:
    facts = {**done._asdict(), "put_aside": [str(path) for path in done.put_aside]}
    return RestoreAnswer(
        journal=str(journal), backup=str(backup), next=LOST if done.changes_lost else _AS_BEFORE, **facts
    )


def _text(answer: RestoreAnswer) -> str:
    first, last = answer.backup_through + 1, answer.released_through
    lines = [f"{answer.journal}: restored from {answer.backup} through slot {answer.backup_through}"]
    if answer.put_aside:
        lines.append(f"put aside, not deleted: {', '.join(Path(path).name for path in answer.put_aside)}")
    if last >= first:
        slots = f"slot {last} was" if last == first else f"slots {first} to {last} were"
        lines.append(f"{slots} released elsewhere: charged with the most that could have been spent, never drawn again")
    else:
        lines.append("no slot was released after the backup: nothing had to be charged")
    lines += doubt_sentences(answer)
    lines.append(f"next: {answer.next}")
    return "\n".join(lines)
