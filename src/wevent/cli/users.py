"""`wevent users`."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from wevent.cli.standard_output import report
from wevent.core.budget import NANO
from wevent.core.requirements import Levels, Requirement
from wevent.errors import InvalidMembership, JournalLocked
from wevent.journal import SqliteJournal, Terms
from wevent.journal.rebuild import holdout_of
from wevent.people.holdout import Key
from wevent.people.membership import Change, check_countable, check_id
from wevent.publishing.opening import check_requirement
from wevent.publishing.staleness import known_released, refuse_stale


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
    with SqliteJournal(path) as journal:
        journal.registry.check()
        rows = [
            {
                "user": one.user,
                "window": one.key[0],
                "epsilon": one.key[1] / NANO,
                "level": one.level,
                "from": one.first,
            }
            for one in journal.registry.members()
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
    _set(path, user, (window, epsilon, privacy), known=False)


@command.command("set")
@click.argument("user")
@_requirement_options
@click.pass_obj
def set_requirement(path: Path, user: str, window: str, epsilon: str | None, privacy: str | None) -> None:
    """Change a user's requirement."""
    _set(path, user, (window, epsilon, privacy), known=True)


@command.command("remove")
@click.argument("user")
@click.pass_obj
def remove(path: Path, user: str) -> None:
    """Let a user leave; the id is kept as long as a hold-out may need it."""
    _leave(path, Change("remove", user))


@command.command("erase")
@click.argument("user")
@click.pass_obj
def erase(path: Path, user: str) -> None:
    """Let a user leave and erase the id; a keyed digest of it stays as long as a hold-out may need it."""
    _leave(path, Change("erase", user))


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--allow-removals", is_flag=True, help="Also if more than one in ten of the registered are not in it.")
@click.pass_obj
def import_file(path: Path, file: Path, allow_removals: bool) -> None:
    """Make the registry say what a requirements file says: the differences are joins, changes and leaves."""
    from wevent.publishing.opening import import_users, wanted_users
    from wevent.streams import read_requirements

    with _changeable(path) as journal:
        levels = _levels(journal.head().epoch.terms)
        wanted = wanted_users(file, levels, read_requirements(file, levels))
        done = import_users(journal, wanted, allow_removals=allow_removals)
        click.echo(f"requirements: {done}", err=True)
    _put_in_force(path, f"{done.total} changes\n")


@command.command("export")
@click.pass_obj
def export(path: Path) -> None:
    """Print user,window,epsilon as CSV, as `import` reads it."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("user", "window", "epsilon"))
    with SqliteJournal(path) as journal:
        journal.registry.check()
        for one in journal.registry.members():
            writer.writerow((one.user, one.key[0], f"{one.key[1] / NANO:.9f}".rstrip("0").rstrip(".")))


@contextmanager
def _changeable(path: Path) -> Iterator[SqliteJournal]:
    """A journal whose registry may change: not a backup, nor one that is behind what was released (spec 10)."""
    with SqliteJournal(path) as journal:
        head = journal.head()
        known = known_released(journal, head.committed, stated=head.copied)
        committed = journal.head().committed  # again: a publisher may have gone on between, and marks after it commits
        refuse_stale(committed, known, copied=head.copied)
        yield journal


def _set(path: Path, user: str, asked: tuple[str, str | None, str | None], *, known: bool) -> None:
    check_id(user)
    if not known:  # who is registered under such an id, by an older version, can still change and leave
        check_countable(user)
    with _changeable(path) as journal:
        terms = journal.head().epoch.terms
        key, level = _requirement(terms, *asked)
        check_requirement(terms, key)
        _check_known(journal, user, known=known)
        journal.registry.ask([Change("set", user, key, level)])
    _put_in_force(path, user=user)


def _leave(path: Path, change: Change) -> None:
    check_id(change.user)
    with _changeable(path) as journal:
        if change.action != "erase" or not journal.registry.remembers(change.user):
            _check_known(journal, change.user, known=True)
        journal.registry.ask([change])
    _put_in_force(path)


def _requirement(terms: Terms, window: str, epsilon: str | None, privacy: str | None) -> tuple[Key, str | None]:
    if (epsilon is None) == (privacy is None):
        raise InvalidMembership(
            "either --epsilon (with a window in slots) or --privacy (with a window word)",
            "both" if epsilon else "neither",
            "Give one of them.",
        )
    if privacy is not None:
        one = (_levels(terms) or Levels.default()).requirement(privacy, window)
        return (one.window, one.nano), f"{privacy}/{window}"
    one = Requirement(int(window) if window.isdecimal() else 0, epsilon)
    return (one.window, one.nano), None


def _levels(terms: Terms) -> Levels | None:
    return None if terms.levels is None else Levels(terms.levels["privacy"], terms.levels["window"])


def _check_known(journal: SqliteJournal, user: str, *, known: bool) -> None:
    if journal.registry.holds(user) != known:
        raise InvalidMembership(
            "a registered user" if known else "a user who is not registered yet",
            "one who is not" if known else "one who is",
            "Use `add` for new users." if known else "Use `set` to change a requirement.",
        )


def _put_in_force(path: Path, said: str = "", user: str | None = None) -> None:
    """Apply the queue at once if nobody publishes; otherwise the publisher does it before its next slot. Then report.

    Of a user who is held out, say from which slot they count.
    """
    when, later = "the next slot", "" if user is None else "; `users list` then says from which slot they are counted"
    with suppress(JournalLocked), SqliteJournal(path, write=True) as journal:
        slot = journal.head().committed + 1
        journal.registry.apply(slot, holdout_of(journal.epochs(), journal.registry.restores()))
        journal.mark()
        first = None if user is None else journal.registry.counts_from(user)
        when, later = f"slot {slot}", f"; counted from slot {first} on" if first is not None and first > slot else ""
    report(f"{said}in force from {when} on{later}", f"The change was made, and is in force from {when} on{later}.")
