"""`wevent users`."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import click

from wevent.cli.standard_output import report
from wevent.core.budget import NANO
from wevent.journal import open_journal
from wevent.publishing import registrations
from wevent.publishing.configuration import read_config, requirements_columns


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


def _change_options(function: click.decorators.FC) -> click.decorators.FC:
    for option in (
        click.option("--dry-run", is_flag=True, help="Only say what it means; nothing is stored."),
        click.option("--json", "as_json", is_flag=True, help="Print one object."),
    ):
        function = option(function)
    return function


def _requirement_options(function: click.decorators.FC) -> click.decorators.FC:
    for option in (
        click.option("--level", help="A level as `wevent levels` shows them, such as High/Large."),
        click.option("--window", help="Slots or a duration such as 24h; with --privacy, a word of the level table."),
        click.option("--epsilon", help="A number; with a window in slots or a duration."),
        click.option("--privacy", help="A word of the level table; with a window word."),
    ):
        function = option(function)
    return _change_options(function)


@command.command("add")
@click.argument("user")
@_requirement_options
@click.pass_obj
def add(path: Path, /, user: str, dry_run: bool, as_json: bool, **asked: str | None) -> None:
    """Register a new user. Say it in the requirements file, too: the next import removes who is not in it."""
    _say(registrations.register(path, user, registrations.Asked(**asked), dry_run=dry_run), dry_run, as_json)


@command.command("set")
@click.argument("user")
@_requirement_options
@click.pass_obj
def set_requirement(path: Path, /, user: str, dry_run: bool, as_json: bool, **asked: str | None) -> None:
    """Change a user's requirement."""
    _say(registrations.change(path, user, registrations.Asked(**asked), dry_run=dry_run), dry_run, as_json)


@command.command("remove")
@click.argument("user")
@_change_options
@click.pass_obj
def remove(path: Path, user: str, dry_run: bool, as_json: bool) -> None:
    """Let a user leave; the id is kept as long as a hold-out may need it."""
    _say(registrations.remove(path, user, dry_run=dry_run), dry_run, as_json)


@command.command("erase")
@click.argument("user")
@_change_options
@click.pass_obj
def erase(path: Path, user: str, dry_run: bool, as_json: bool) -> None:
    """Let a user leave and erase the id; a keyed digest of it stays as long as a hold-out may need it.

    Delete the row in the requirements file, too: the next import registers whoever is in it.
    """
    _say(registrations.erase(path, user, dry_run=dry_run), dry_run, as_json)


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--allow-removals", is_flag=True, help="Also if more than one in ten of the registered are not in it.")
@click.option(
    "--config", type=click.Path(path_type=Path), help="A TOML file whose [requirements_columns] names its columns."
)
@_change_options
@click.pass_obj
def import_file(
    path: Path, file: Path, allow_removals: bool, config: Path | None, dry_run: bool, as_json: bool
) -> None:
    """Make the registry say what a requirements file says: the differences are joins, changes and leaves."""
    columns = {} if config is None else requirements_columns(read_config(config))
    done = registrations.import_file(path, file, allow_removals=allow_removals, columns=columns, dry_run=dry_run)
    if not as_json:
        click.echo(" ".join((f"requirements: {done}.", *done.sentences())), err=True)
    force = registrations.foreseen_slot(path) if dry_run else registrations.put_in_force(path)
    if as_json:
        _report({"difference": done.to_dict(), **_plain(force, dry_run)}, force, dry_run)
    else:
        report(f"{done.total} changes\n{_when(force, dry_run)}", _done(force, dry_run))


@command.command("export")
@click.pass_obj
def export(path: Path) -> None:
    """Print user,window,epsilon,level as CSV, as `import` reads it; level is empty for those who chose numbers."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("user", "window", "epsilon", "level"))
    with open_journal(path) as journal:
        journal.registry.check()
        for member in journal.registry.members():
            epsilon = f"{member.key[1] / NANO:.9f}".rstrip("0").rstrip(".")
            writer.writerow((member.user, member.key[0], epsilon, member.level or ""))


def _say(force: registrations.InForce, dry_run: bool, as_json: bool) -> None:
    if as_json:
        _report(_plain(force, dry_run), force, dry_run)
        return
    said = [*force.notes, *(() if force.consequences is None else force.consequences.sentences())]
    report("\n".join((_when(force, dry_run), *said)), _done(force, dry_run))


def _report(plain: dict[str, Any], force: registrations.InForce, dry_run: bool) -> None:
    report(json.dumps(plain, indent=2), _done(force, dry_run))


def _plain(force: registrations.InForce, dry_run: bool) -> dict[str, Any]:
    return {
        "stored": not dry_run,
        "in_force_from": force.slot,
        "counted_from": force.counted,
        "notes": list(force.notes),
        "consequences": None if force.consequences is None else force.consequences.to_dict(),
    }


def _when(force: registrations.InForce, dry_run: bool) -> str:
    when = "the next slot" if force.slot is None else f"slot {force.slot}"
    later = "" if force.counted is None else f"; counted from slot {force.counted} on"
    if force.slot is None and force.user is not None:
        later = "; `users list` then says from which slot they are counted"
    return (
        f"nothing was stored; it would be in force from {when} on{later}"
        if dry_run
        else f"in force from {when} on{later}"
    )


def _done(force: registrations.InForce, dry_run: bool) -> str:
    return "Nothing was stored." if dry_run else f"The change was made, and is {_when(force, dry_run)}."
