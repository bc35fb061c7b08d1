"""Flags for the settings of a stream, made from the list of them; and the configuration that is used without being named."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import click

from wevent.cli.loudness import is_quiet
from wevent.cli.parameter_types import FILE, JOURNAL, MECHANISM, Word
from wevent.core.settings import option_kinds
from wevent.errors import InvalidSettings
from wevent.journal.place import JournalPlace, PostgresPlace
from wevent.publishing.configuration import Settings, load_settings, read_config
from wevent.streams.stream_settings import ENGINES

Command = Callable[..., Any]
FOUND = Path("wevent.toml")
"""The configuration that is used where none is named."""

CONFIG = click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="A TOML file with any of these settings.  [default: ./wevent.toml]",
)
INPUT_FLAGS = (
    click.option(
        "--requirements", type=FILE, help="Who asks for what: user,level or user,privacy,window or user,window,epsilon."
    ),
    click.option(
        "--cells", type=FILE, metavar="CELLS", help="The number of cells, their labels as a,b,c, or a file with them."
    ),
    click.option("--slot", help="How long a slot is, such as 60s."),
    click.option(
        "--start", help="Where slot 1 starts (UTC or with an offset); auto reads start and end from the data: unsafe."
    ),
    click.option("--end", help="Where the last slot ends."),
    click.option("--slot-column", help="The column with slot numbers, for data already slotted."),
    click.option("--timezone", help="The offset of times that carry none: UTC or such as +02:00."),
    click.option("--time-unit", type=Word("s", "ms", "us", checked=False), help="What numbers as times count."),
    click.option("--time-column", help="The name of the time column."),
    click.option("--user-column", help="The name of the user column."),
    click.option("--cell-column", help="The name of the cell column."),
)
"""How events and people are read."""
INPUT_KEYS = (
    "requirements",
    "cells",
    "slot",
    "start",
    "end",
    "slot_column",
    "timezone",
    "time_unit",
    "time_column",
    "user_column",
    "cell_column",
)
"""The settings behind these flags."""
STREAM_FLAGS = (
    click.option(
        "--journal",
        type=FILE,
        help="The journal, a file or postgresql://…; made if it does not exist, resumed if it does.",
    ),
    click.option(
        "--out", type=FILE, help="Releases: a .ndjson, .csv or .parquet file, or - for standard output (the default)."
    ),
    click.option("--unknown-users", help="How many unregistered users a slot may count; 0 rejects them."),
    click.option("--stream", help="The stream's id, pinned by the journal."),
    click.option("--grace", help="How long a live slot stays open after its end."),
    click.option(
        "--due", help="How long after its end a live slot's release goes out; soon after the grace unless told."
    ),
    click.option(
        "--close", type=Word("clock", "lines", checked=False), help="What closes a live slot; the clock unless told."
    ),
    click.option("--engine", type=Word(*ENGINES, checked=False), help="What counts files; auto unless told."),
    click.option("--strict", is_flag=True, default=None, help="Stop at a malformed line; not private."),
)
"""The other settings of a stream."""


RESTORE_FLAGS = (
    click.option(
        "--same-settings",
        is_flag=True,
        help="For a restored backup without its side file: the settings did not change after it.",
    ),
    click.option(
        "--accept-lost-changes",
        is_flag=True,
        help="For a restored backup: publish although registry changes may be lost.",
    ),
)
RUN_FLAGS = (
    click.option("--declare", multiple=True, metavar="WINDOW,EPSILON", help="A class that may have members later."),
    click.option(
        "--new-epoch", is_flag=True, help="Go on with another mechanism, cells or levels; every charge stays."
    ),
    click.option(
        "--allow-removals",
        is_flag=True,
        help="Also if more than one in ten of the registered are not in --requirements.",
    ),
    click.option(
        "--released-through", type=click.IntRange(0), help="For a restored backup: the last slot that went out."
    ),
    click.option(
        "--widest-window",
        type=click.IntRange(1),
        help="For a restored backup without its side file: the widest window ever declared, in slots.",
    ),
    *RESTORE_FLAGS,
    click.option(
        "--start-over",
        is_flag=True,
        help="For a journal that is lost: a new one over the same people. Epsilons add up, and slots that went out go out "
        "again with other numbers.",
    ),
    click.option(
        "--keep",
        type=click.IntRange(1),
        help="How many slots the journal keeps, all unless told; not with a Parquet output.",
    ),
)
"""What is said for one run: the attributes of `wevent.publishing.resolve.RunOptions`."""


def journal_flags(command: Command) -> Command:
    """The argument JOURNAL, which may be left out where a configuration names it (`chosen_journal`)."""
    argument = click.argument("journal", required=False, type=JOURNAL)
    config = click.option(
        "--config",
        type=click.Path(path_type=Path),
        help="The configuration that names the journal.  [default: ./wevent.toml]",
    )
    return _with(command, (argument, config))


def option_flags(*, without: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """A flag for every option; values are text as the configuration file's, switches are None unless given."""

    def decorate(command: Command) -> Command:
        for name, kind in reversed(list(option_kinds().items())):
            if name in without:
                continue
            flag = f"--{name.replace('_', '-')}"
            kept: dict[str, Any] = {}
            if kind.type is bool:
                flag, kept = f"{flag}/--{kind.off}", {"default": None}
            elif name == "calendar":
                kept = {"type": FILE}
            elif name == "cycle":
                kept = {"metavar": "LENGTH"}
            elif kind.type is int:
                kept = {"metavar": "INTEGER"}
            elif kind.choices:
                kept = {"type": Word(*kind.choices, checked=False)}
            elif name == "mechanism":
                kept = {"type": MECHANISM}
            command = click.option(flag, help=kind.help, **kept)(command)
        return command

    return decorate


def input_flags(command: Command) -> Command:
    """`--config`, and a flag for every setting that says how events and people are read."""
    return _with(command, (CONFIG, *INPUT_FLAGS))


def setting_flags(command: Command) -> Command:
    """`--config`, and a flag for every setting of a stream."""
    return _with(option_flags()(command), (CONFIG, *INPUT_FLAGS, *STREAM_FLAGS))


def run_flags(command: Command) -> Command:
    """What publishing is told for one run alone."""
    return _with(command, RUN_FLAGS)


def _with(command: Command, flags: tuple[Callable[[Command], Command], ...]) -> Command:
    for flag in reversed(flags):
        command = flag(command)
    return command


def chosen_config(config: Path | None, given: Mapping[str, Any]) -> Path | None:
    """The configuration file to use: the named one, else ./wevent.toml, which is said on standard error.

    A command that names its events and its journal is about a stream of its own: the file that happens to lie here is
    not mixed into it.

    Args:
        config: what --config says.
        given: the other settings by key, as written on the command line.
    """
    if config is not None or not FOUND.is_file():
        return config
    if given.get("inputs") and given.get("journal"):
        _remark(f"{FOUND} is not used: events and a journal are named. With it: --config {FOUND}")
        return None
    _remark(f"Settings: {FOUND}")
    return FOUND


def _remark(text: str) -> None:
    if not is_quiet():
        click.echo(text, err=True)


def chosen_settings(
    config: Path | None, given: Mapping[str, Any], also: Collection[str] = ()
) -> tuple[Settings, Path | None]:
    """The settings of a stream, options on top of the file's; and the file.

    Args:
        config: what --config says.
        given: the other settings by key, as written on the command line.
        also: what must be there besides, as of `load_settings`.

    Raises:
        InvalidSettings: as of `load_settings`.
    """
    used = chosen_config(config, given)
    return load_settings(used, given, also), used


def chosen_journal(journal: JournalPlace | None, config: Path | None = None) -> JournalPlace:
    """The journal that a command is about: the named one, else the configuration's.

    Raises:
        InvalidSettings: if nothing names one.
    """
    if journal is not None:
        if config is not None:
            raise InvalidSettings("a journal or --config", "both", "Give one of them.", key="config")
        return journal
    used = chosen_config(config, {})
    named = None if used is None else read_config(used).get("journal")
    if not isinstance(named, (Path, PostgresPlace)):
        raise InvalidSettings(
            "a journal",
            "none" if used is None else f"none in {str(used)!r}",
            f"Name it, or a configuration that does (--config; ./{FOUND} is found).",
            key="journal",
        )
    return named
