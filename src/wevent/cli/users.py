"""`wevent users`."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import click

from wevent.cli.standard_output import report
from wevent.core.budget import NANO
from wevent.journal import open_journal
from wevent.publishing import registrations


@click.group("users", epilog="Example: wevent users run.journal set 4711 --window 40 --epsilon 0.5")
@click.argument("journal", type=click.Path(path_type=Path))
@click.pass_context
def command(context: click.Context, journal: Path) -> None:
    """List and change who is registered with which requirement; works while publish runs.

    Changes take effect at the next slot. Who changes requirements is not counted until the old and the new window have
    passed (hold-out); who comes back to the same one is counted at once.
    """
    context.obj = journal


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects.")
@click.pass_obj
def list_users(path: Path, as_json: bool) -> None:
    """List everybody: id, window, epsilon, level, and the slot from which they are counted."""
    with open_journal(path) as journal:
        journal.registry.check()
        rows = [
            {
                "user": member.user,
                "window": member.key[0],
                "epsilon": member.key[1] / NANO,
                "level": member.level,
                "from": member.first,
            }
            for member in journal.registry.members()
        ]
        waiting = journal.registry.pending()
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        level = f"  {row['level']}" if row["level"] else ""
        click.echo(f"{row['user']}  window {row['window']}  epsilon {row['epsilon']:g}  from slot {row['from']}{level}")
    click.echo(f"{len(rows)} users; {waiting} changes wait for the next slot", err=True)


def _requirement_options(function: click.decorators.FC) -> click.decorators.FC:
    for option in (
        click.option("--window", required=True, help="Slots, or a word of the level table."),
        click.option("--epsilon", help="A number; with a window in slots."),
        click.option("--privacy", help="A word of the level table; with a window word."),
    ):
        function = option(function)
    return function


@command.command("add")
@click.argument("user")
@_requirement_options
@click.pass_obj
def add(path: Path, user: str, window: str, epsilon: str | None, privacy: str | None) -> None:
    """Register a new user."""
    _say_when(registrations.register(path, user, registrations.Asked(window, epsilon, privacy)))


@command.command("set")
@click.argument("user")
@_requirement_options
@click.pass_obj
def set_requirement(path: Path, user: str, window: str, epsilon: str | None, privacy: str | None) -> None:
    """Change a user's requirement."""
    _say_when(registrations.change(path, user, registrations.Asked(window, epsilon, privacy)))


@command.command("remove")
@click.argument("user")
@click.pass_obj
def remove(path: Path, user: str) -> None:
    """Let a user leave; the id is kept as long as a hold-out may need it."""
    _say_when(registrations.remove(path, user))


@command.command("erase")
@click.argument("user")
@click.pass_obj
def erase(path: Path, user: str) -> None:
    """Let a user leave and erase the id; a keyed digest of it stays as long as a hold-out may need it."""
    _say_when(registrations.erase(path, user))


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--allow-removals", is_flag=True, help="Also if more than one in ten of the registered are not in it.")
@click.pass_obj
def import_file(path: Path, file: Path, allow_removals: bool) -> None:
    """Make the registry say what a requirements file says: the differences are joins, changes and leaves."""
    done = registrations.import_file(path, file, allow_removals=allow_removals)
    click.echo(f"requirements: {done}", err=True)
    _say_when(registrations.put_in_force(path), f"{done.total} changes\n")


@command.command("export")
@click.pass_obj
def export(path: Path) -> None:
    """Print user,window,epsilon as CSV, as `import` reads it."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("user", "window", "epsilon"))
    with open_journal(path) as journal:
        journal.registry.check()
        for member in journal.registry.members():
            writer.writerow((member.user, member.key[0], f"{member.key[1] / NANO:.9f}".rstrip("0").rstrip(".")))


def _say_when(force: registrations.InForce, said: str = "") -> None:
    when = "the next slot" if force.slot is None else f"slot {force.slot}"
    later = "" if force.counted is None else f"; counted from slot {force.counted} on"
    if force.slot is None and force.user is not None:
        later = "; `users list` then says from which slot they are counted"
    report(f"{said}in force from {when} on{later}", f"The change was made, and is in force from {when} on{later}.")
