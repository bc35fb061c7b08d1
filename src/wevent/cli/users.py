"""`wevent users`."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import click
import msgspec

from wevent.cli.answers import (
    ChangeAnswer,
    ConsequencesAnswer,
    MemberAnswer,
    RegistryDifference,
    UsersAnswer,
    as_json,
)
from wevent.cli.commands import JournalGroup
from wevent.cli.flags import chosen_journal, journal_flags
from wevent.cli.standard_output import is_quiet, report, without_controls
from wevent.core.budget import NANO
from wevent.journal import JournalAddress, open_journal
from wevent.outputs import standard_output
from wevent.publishing import registrations
from wevent.publishing.configuration import parse_columns, read_config
from wevent.publishing.importing import Difference
from wevent.settings.values import span_text


@click.group("users", cls=JournalGroup, epilog="Example: wevent users run.journal set 4711 --window 40 --epsilon 0.5")
@journal_flags
@click.pass_context
def command(context: click.Context, journal: JournalAddress | None, config: Path | None) -> None:
    """Manage registered users and their requirements. Works while `publish` runs.

    Changes take effect at the next slot. Until the old window has passed, the user is counted in a class that is at
    least as strict as both requirements.
    """
    context.obj = chosen_journal(None if journal == Path() else journal, config)


@command.command("list")
@click.option("--json", "wants_json", is_flag=True, help="Print one object.")
@click.pass_obj
def list_users(path: JournalAddress, wants_json: bool) -> None:
    """List users with requirement and first counted slot."""
    with open_journal(path) as journal:
        journal.registry.check()
        members = journal.registry.members()
        pending = journal.registry.pending()
    rows = [
        MemberAnswer(user=one.user, window=one.window, epsilon=one.nano / NANO, level=one.level, first=one.first)
        for one in members
    ]
    answer = UsersAnswer(users=rows, pending_changes=pending)
    if wants_json:
        click.echo(as_json(answer))
        return
    for row in answer.users:
        level = f"  {row.level}" if row.level else ""
        user = without_controls(row.user)  # people may have chosen their ids
        click.echo(f"{user}  window {row.window}  epsilon {row.epsilon:g}  from slot {row.first}{level}")
    if not is_quiet():
        click.echo(f"{len(answer.users)} users; {pending} changes take effect at the next slot boundary", err=True)


def _change_options(function: click.decorators.FC) -> click.decorators.FC:
    for option in (
        click.option("--dry-run", is_flag=True, help="Only say what it means; nothing is stored."),
        click.option("--json", "wants_json", is_flag=True, help="Print one object."),
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
def add(path: JournalAddress, /, user: str, dry_run: bool, wants_json: bool, **asked: str | None) -> None:
    """Register a user. Add the user to the requirements file, too: the next import overrides the registry."""
    _say(
        registrations.choose(path, user, registrations.Requested(**asked), is_known=False, dry_run=dry_run),
        dry_run,
        wants_json,
    )


@command.command("set")
@click.argument("user")
@_requirement_options
@click.pass_obj
def set_requirement(path: JournalAddress, /, user: str, dry_run: bool, wants_json: bool, **asked: str | None) -> None:
    """Change the requirement of a user."""
    _say(
        registrations.choose(path, user, registrations.Requested(**asked), is_known=True, dry_run=dry_run),
        dry_run,
        wants_json,
    )


@command.command("remove")
@click.argument("user")
@_change_options
@click.pass_obj
def remove(path: JournalAddress, user: str, dry_run: bool, wants_json: bool) -> None:
    """Unregister a user. The id is kept until its last requirement has expired."""
    _say(registrations.leave(path, user, dry_run=dry_run), dry_run, wants_json)


@command.command("erase")
@click.argument("user")
@_change_options
@click.pass_obj
def erase(path: JournalAddress, user: str, dry_run: bool, wants_json: bool) -> None:
    """Unregister a user and delete the id. A keyed hash is kept until its last requirement has expired.

    Delete the row in the requirements file, too: the next import overrides the registry.
    """
    _say(registrations.leave(path, user, erased=True, dry_run=dry_run), dry_run, wants_json)


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--allow-removals", is_flag=True, help="Also if more than one in ten of the registered are not in it.")
@click.option(
    "--config", type=click.Path(path_type=Path), help="A TOML file whose [requirements_columns] names its columns."
)
@_change_options
@click.pass_obj
def import_file(
    path: JournalAddress, file: Path, allow_removals: bool, config: Path | None, dry_run: bool, wants_json: bool
) -> None:
    """Replace the registry with a requirements file."""
    columns = {} if config is None else parse_columns(read_config(config).get("requirements_columns", {}))
    done = registrations.import_file(path, file, allow_removals=allow_removals, columns=columns, dry_run=dry_run)
    if not wants_json and not is_quiet():
        click.echo(" ".join((f"requirements: {done}.", *done.sentences())), err=True)
    force = registrations.apply_changes(path, dry_run=dry_run)
    if wants_json:
        _report(_answer(force, dry_run, done), force, dry_run)
    else:
        report(f"{done.total} changes\n{_when(force, dry_run)}", _done(force, dry_run), asked=dry_run)


@command.command("export")
@click.pass_obj
def export(path: JournalAddress) -> None:
    """Print the registry as CSV, readable by `import`."""
    out = io.TextIOWrapper(standard_output(), encoding="utf-8", newline="", write_through=True)  # data, on any console
    writer = csv.writer(out, lineterminator="\n")
    try:
        writer.writerow(("user", "window", "epsilon", "level"))
        with open_journal(path) as journal:
            journal.registry.check()
            for member in journal.registry.members():
                epsilon = f"{member.key[1] / NANO:.9f}".rstrip("0").rstrip(".")
                writer.writerow((member.user, member.key[0], epsilon, member.level or ""))
    finally:
        out.detach()


def _say(force: registrations.ChangeResult, dry_run: bool, wants_json: bool) -> None:
    if wants_json:
        _report(_answer(force, dry_run), force, dry_run)
        return
    said = [*_guarantee(force), *force.notes]
    if force.preview is not None:
        said += force.preview._replace(in_transition=0).sentences()
    report("\n".join((_when(force, dry_run), *said)), _done(force, dry_run), asked=dry_run)


def _guarantee(force: registrations.ChangeResult) -> list[str]:
    """Return what a user who chose a requirement may rely on, in times where slots have a clock."""
    terms, held = force.terms, None if force.person is None else force.person.current
    if terms is None or held is None:
        return []

    def start(slot: int) -> str:
        return terms.slot_span(slot)[0] or f"slot {slot}"

    span = span_text(held.window * terms.length_us) if terms.has_clock else f"{held.window} slots"
    first = "the next slot" if force.slot is None else start(force.slot)
    said = f"From {first} on, any {span} lose at most {held.nano / NANO:g}."
    if force.earlier_until is not None:
        said += f" Until {start(force.earlier_until)} the earlier choice protects as well."
    return [said]


def _report(answer: ChangeAnswer, force: registrations.ChangeResult, dry_run: bool) -> None:
    report(as_json(answer), _done(force, dry_run), asked=True)


def _answer(force: registrations.ChangeResult, dry_run: bool, imported: Difference | None = None) -> ChangeAnswer:
    effect = force.preview
    return ChangeAnswer(
        stored=not dry_run,
        in_force_from=force.slot,
        earlier_until=force.earlier_until,
        notes=list(force.notes),
        consequences=None if effect is None else msgspec.convert(effect.to_dict(), ConsequencesAnswer),
        difference=None if imported is None else msgspec.convert(imported.to_dict(), RegistryDifference),
    )


def _when(force: registrations.ChangeResult, dry_run: bool) -> str:
    when = "the next slot" if force.slot is None else f"slot {force.slot}"
    return f"nothing was stored; it would be in force from {when} on" if dry_run else f"in force from {when} on"


def _done(force: registrations.ChangeResult, dry_run: bool) -> str:
    return "Nothing was stored." if dry_run else f"The change was made, and is {_when(force, dry_run)}."
