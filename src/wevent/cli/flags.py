"""Flags of settings, made from their declaration; the configuration file and the journal that a command uses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from wevent.cli.parameter_types import FILE, JOURNAL, MECHANISM, Word
from wevent.cli.standard_output import is_quiet
from wevent.core.options import Kind, kinds, option_kinds
from wevent.errors import InvalidSettings
from wevent.journal.address import JournalAddress, PostgresAddress
from wevent.publishing.configuration import load_settings, read_config
from wevent.settings import SETTINGS, RestoreOptions, RunOptions, ServiceSettings, Settings

Command = Callable[..., Any]
FOUND = Path("wevent.toml")
"""The configuration file that a command uses if none is named."""

CONFIG = click.option(
    "--config", type=click.Path(path_type=Path), help="TOML file with settings (default: ./wevent.toml)."
)
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
"""The settings with which events and requirements are read."""
_NO_FLAGS = ("inputs", "levels", "requirements_columns", "service")  # an argument, and tables
_FILES = ("requirements", "cells", "special_days", "journal", "out")
_SECTIONS = {
    "Stream": ("config", "listen", "journal", *INPUT_KEYS[:5], "out", "stream", "unknown_users"),
    "Input format": (*INPUT_KEYS[5:], "engine", "strict"),
    "Live streams": ("grace", "release_delay", "close_slots_by"),
    "Mechanism": ("mechanism", *(name for name in option_kinds() if name != "mechanism")),
    "This run only": tuple(kinds(RunOptions)),
    "Output": ("ajsd", "plot", "per_slot", "log", "json", "wants_json"),
}
"""Options by heading of a help text, in their order there; a command's own options come first."""


class GroupedCommand(click.Command):
    """Command whose help shows the options in groups, the most used first."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = {one.name: one for one in self.params if isinstance(one, click.Option)}
        grouped = {"quiet", "verbose", *(name for names in _SECTIONS.values() for name in names)}
        own = tuple(name for name in options if name not in grouped)
        for title, names in {"Options": own, **_SECTIONS}.items():
            records = [options[name].get_help_record(ctx) for name in names if name in options]
            if records:
                with formatter.section(title):
                    formatter.write_dl([record for record in records if record is not None])
        formatter.write_paragraph()
        formatter.write_text("Global options: -q/--quiet, -v/--verbose, -h/--help")


def _flag(key: str, kind: Kind, *, once: bool = False) -> Callable[[Command], Command]:
    """Return the flag of a setting, or of an option for one run.

    The value of a setting stays text, as a configuration file has it, and is checked there; None: not given.
    """
    name, facts = f"--{key.replace('_', '-')}", dict[str, Any]()
    if kind.type is bool and not once:
        name, facts = f"{name}/--no-{key.replace('_', '-')}", {"default": None}
    elif kind.type is bool:
        facts = {"is_flag": True}
    elif kind.choices:
        facts = {"type": Word(*kind.choices, checked=False)}
    elif kind.type is int and not kind.form:
        facts = {"type": click.IntRange(kind.least)} if once else {"metavar": "INTEGER"}
    elif kind.several:
        facts = {"metavar": kind.form or "LENGTH", "multiple": once}
    elif key == "mechanism":
        facts = {"type": MECHANISM}
    elif key == "listen":
        facts = {"metavar": kind.form}
    if key in _FILES:
        facts = {"type": FILE, "metavar": "CELLS" if key == "cells" else "FILE"}
    default = "" if kind.shown in ("", "false") else f" (default: {kind.shown})"
    return click.option(name, help=f"{kind.help.removesuffix('.')}{default}." if default else kind.help, **facts)


def _with(flags: Iterable[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for flag in reversed(list(flags)):
            command = flag(command)
        return command

    return decorate


_SETTING_KEYS = (*INPUT_KEYS, *(key for key in SETTINGS if key not in (*INPUT_KEYS, *_NO_FLAGS)))

input_flags = _with([CONFIG, *(_flag(key, SETTINGS[key]) for key in INPUT_KEYS)])
"""`--config`, and the flags of the settings with which events and requirements are read."""
setting_flags = _with([CONFIG, *(_flag(key, SETTINGS[key]) for key in _SETTING_KEYS)])
"""`--config`, and the flags of all settings."""
run_flags = _with([_flag(key, kind, once=True) for key, kind in kinds(RunOptions).items()])
"""The flags of `RunOptions`."""
restore_flags = _with([_flag(key, kind, once=True) for key, kind in kinds(RestoreOptions).items()])
"""The flags of `RestoreOptions`."""


def option_flags(*, without: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Return the flags of the options of a publisher."""
    return _with([_flag(name, kind) for name, kind in option_kinds().items() if name not in without])


def service_flag(key: str) -> Callable[[Command], Command]:
    """Return the flag of a setting in [service]."""
    return _flag(key, kinds(ServiceSettings)[key])


def take_run_options(given: dict[str, Any]) -> RunOptions:
    """Remove the values of `run_flags` from the values of a command, and return them."""
    return RunOptions(**{name: given.pop(name) for name in kinds(RunOptions)})


def journal_flags(command: Command) -> Command:
    """Add the argument JOURNAL, which may be left out where a configuration names it (`chosen_journal`)."""
    argument = click.argument("journal", required=False, type=JOURNAL)
    config = click.option(
        "--config",
        type=click.Path(path_type=Path),
        help="Configuration that names the journal (default: ./wevent.toml).",
    )
    return _with((argument, config))(command)


def chosen_config(config: Path | None, given: Mapping[str, Any]) -> Path | None:
    """Return the configuration file to use: the named one, else ./wevent.toml, with a remark on standard error.

    A command that names its events and its journal does not use ./wevent.toml: that file may be about another stream.

    Args:
        config: value of --config.
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
    """Return the settings of a stream, options on top of the file's, and the file; arguments as of `load_settings`."""
    used = chosen_config(config, given)
    return load_settings(used, given, also), used


def chosen_journal(journal: JournalAddress | None, config: Path | None = None) -> JournalAddress:
    """Return the journal that a command is about: the named one, else the configuration's."""
    if journal is not None:
        if config is not None:
            raise InvalidSettings("A journal and --config exclude each other.", "Give one of them.", key="config")
        return journal
    used = chosen_config(config, {})
    named = None if used is None else read_config(used).get("journal")
    if not isinstance(named, (Path, PostgresAddress)):
        raise InvalidSettings(
            "No journal given." if used is None else f"{used} names no journal.",
            f"Pass JOURNAL, use --config, or run in a folder with {FOUND}.",
            key="journal",
        )
    return named
