"""`wevent users`."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import click

from wevent.cli.answers import ChangeAnswer, MemberAnswer, RegistryDifference, UsersAnswer, as_json
from wevent.cli.loudness import is_quiet
from wevent.cli.standard_output import report
from wevent.cli.suggesting import SuggestingGroup
from wevent.core.budget import NANO
from wevent.journal import open_journal
from wevent.journal.contents import Member
from wevent.outputs import standard_output
from wevent.publishing import registrations
from wevent.publishing.importing import Difference


@click.group(
    "users", cls=SuggestingGroup, epilog="Example: wevent users run.journal set 4711 --window 40 --epsilon 0.5"
)
@click.argument("journal", type=click.Path(path_type=Path))
@click.pass_context
def command(context: click.Context, journal: Path) -> None:
    """List and change who is registered with which requirement; works while publish runs.

    Changes take effect at the next slot. Who changes requirements is not counted until the old and the new window have
    passed (hold-out); who comes back to the same one is counted at once.
    """
    context.obj = journal


_JSON = click.option("--json", "wants_json", is_flag=True, help="Print an object.")


@command.command("list")
@_JSON
@click.pass_obj
def list_users(path: Path, wants_json: bool) -> None:
    """List everybody: id, window, epsilon, level, and the slot from which they are counted."""
    with open_journal(path) as journal:
        journal.registry.check()
        members = journal.registry.members()
        waiting = journal.registry.pending()
    answer = UsersAnswer(users=[_member(one) for one in members], pending_changes=waiting)
    if wants_json:
        click.echo(as_json(answer))
        return
    for row in answer.users:
        level = f"  {row.level}" if row.level else ""
        click.echo(f"{row.user}  window {row.window}  epsilon {row.epsilon:g}  from slot {row.first}{level}")
    if not is_quiet():
        click.echo(f"{len(answer.users)} users; {waiting} changes wait for the next slot", err=True)


def _member(one: Member) -> MemberAnswer:
    window, nano = one.key
    return MemberAnswer(user=one.user, window=window, epsilon=nano / NANO, level=one.level, first=one.first)


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
@_JSON
@click.pass_obj
def add(path: Path, user: str, window: str, epsilon: str | None, privacy: str | None, wants_json: bool) -> None:
    """Register a new user."""
    _say_when(registrations.register(path, user, registrations.Asked(window, epsilon, privacy)), wants_json)


@command.command("set")
@click.argument("user")
@_requirement_options
@_JSON
@click.pass_obj
def set_requirement(
    path: Path, user: str, window: str, epsilon: str | None, privacy: str | None, wants_json: bool
) -> None:
    """Change a user's requirement."""
    _say_when(registrations.change(path, user, registrations.Asked(window, epsilon, privacy)), wants_json)


@command.command("remove")
@click.argument("user")
@_JSON
@click.pass_obj
def remove(path: Path, user: str, wants_json: bool) -> None:
    """Let a user leave; the id is kept as long as a hold-out may need it."""
    _say_when(registrations.remove(path, user), wants_json)


@command.command("erase")
@click.argument("user")
@_JSON
@click.pass_obj
def erase(path: Path, user: str, wants_json: bool) -> None:
    """Let a user leave and erase the id; a keyed digest of it stays as long as a hold-out may need it."""
    _say_when(registrations.erase(path, user), wants_json)


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--allow-removals", is_flag=True, help="Also if more than one in ten of the registered are not in it.")
@_JSON
@click.pass_obj
def import_file(path: Path, file: Path, allow_removals: bool, wants_json: bool) -> None:
    """Make the registry say what a requirements file says: the differences are joins, changes and leaves."""
    done = registrations.import_file(path, file, allow_removals=allow_removals)
    if not wants_json and not is_quiet():
        click.echo(f"requirements: {done}", err=True)
    _say_when(registrations.put_in_force(path), wants_json, done)


@command.command("export")
@click.pass_obj
def export(path: Path) -> None:
    """Print user,window,epsilon as CSV, as `import` reads it."""
    out = io.TextIOWrapper(standard_output(), encoding="utf-8", newline="", write_through=True)  # data, on any console
    writer = csv.writer(out, lineterminator="\n")
    try:
        writer.writerow(("user", "window", "epsilon"))
        with open_journal(path) as journal:
            journal.registry.check()
            for member in journal.registry.members():
                writer.writerow((member.user, member.key[0], f"{member.key[1] / NANO:.9f}".rstrip("0").rstrip(".")))
    finally:
        out.detach()


def _say_when(force: registrations.InForce, wants_json: bool, imported: Difference | None = None) -> None:
    when = "the next slot" if force.slot is None else f"slot {force.slot}"
    later = "" if force.counted is None else f"; counted from slot {force.counted} on"
    if force.slot is None and force.user is not None:
        later = "; `users list` then says from which slot they are counted"
    said = "" if imported is None else f"{imported.total} changes\n"
    answer = ChangeAnswer(
        in_force_from=force.slot,
        counted_from=force.counted,
        requirements=None if imported is None else RegistryDifference(**imported._asdict()),
    )
    text = as_json(answer) if wants_json else f"{said}in force from {when} on{later}"
    report(text, f"The change was made, and is in force from {when} on{later}.", asked=wants_json)
