"""Template of a configuration and of a requirements file, from the names and types of the columns of an events file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from wevent.errors import InvalidSettings
from wevent.streams.duckdb_tables import NAIVE, WHOLE, ZONED
from wevent.streams.inspection import Column, column_types

FILES = ("wevent.toml", "requirements.csv")
_NAMES = {
    "time": ("time", "timestamp", "datetime", "date", "ts", "when", "at", "moment", "started", "start", "created"),
    "user": ("user", "userid", "rider", "customer", "person", "member", "subscriber", "device", "uid", "who", "client"),
    "cell": ("cell", "zone", "area", "region", "district", "place", "location", "station", "city", "category", "where"),
}
_UNITS = {13: "ms", 16: "us"}  # digits of a time in our days
_OUTPUTS = """\
# Releases, and the journal, which records the spent budget and must never be lost.
out = "releases.ndjson"
journal = "run.journal"

"""
_LEVELS = """\
# Higher privacy is a smaller epsilon; a larger window (in slots, or a duration such as "24h") protects a longer span.
[levels.privacy]
High = 0.1
Medium = 0.5
Low = 0.9

[levels.window]
Small = 40
Medium = 80
Large = 120
"""
OUTPUTS_AND_LEVELS = _OUTPUTS + _LEVELS
"""The end of every configuration that `wevent init` writes."""

_WITH_WORDS = "# Every level is a class. Remove these tables if {requirements} has windows and epsilons as numbers.\n"
_WITH_NUMBERS = (
    "# {requirements} has windows and epsilons of its own, so no levels are declared: each would be a class, held or not.\n"
    "# To offer levels, remove the # in front of these tables.\n"
)

_CONFIG = """\
# A stream of wevent, from the columns of {name}: their names and types, nothing of their values.
# Fill in the blanks, and the requirements of users in {requirements}. Then:
#   wevent check {config}         # validates; spends nothing
#   wevent publish --config {config}
# Paths start at the folder of this file; options of the command win over it.

# Events: Parquet, CSV or NDJSON files (also .gz, also globs), or "-" for live lines on standard input.
inputs = [{inputs}]
{columns}
# The clock is declared, never read from events: the times of the first and the last one are private.
# Times in UTC or with an offset, such as "2026-01-01T00:00:00Z".
start = ""
end = ""
slot = "1h"

# All cells, declared for the same reason: a number n for 0 to n-1, or a file with one label per line.
cells = ""

# Requirements of users: user,level or user,privacy,window with the names of [levels], or user,window,epsilon as numbers.
requirements = {requirements_file}

{outputs_and_levels}"""


class Template(NamedTuple):
    """Files that were written, and settings that are left blank."""

    files: list[Path]
    blank: list[str]


def write_template(events: str, folder: Path) -> Template:
    """Write a configuration for these events, and a requirements file without rows; existing files stay.

    Of a glob the first file is read. The header of an existing requirements file decides whether the configuration declares
    levels.
    """
    columns = column_types(events)
    config, requirements = (folder / name for name in FILES)
    if config.exists():
        problem = f"The folder {str(folder)!r} has a configuration, {config.name}."
        raise InvalidSettings(problem, "Choose another one.", key="DIR")
    roles = guess_roles(columns)
    folder.mkdir(parents=True, exist_ok=True)
    own = requirements.exists()
    text = _CONFIG.format(
        name=_comment(Path(events).name),
        config=_comment(str(config)),
        requirements=requirements.name,
        requirements_file=_toml(requirements.name),
        inputs=_toml(os.path.relpath(events, folder)),
        outputs_and_levels=_OUTPUTS + _levels(requirements),
        columns="\n".join(_column_lines(columns, roles)) + "\n",
    )
    config.write_text(text, encoding="utf-8")
    if not own:
        requirements.write_text("user,privacy,window\n", encoding="utf-8")
    return Template([config] if own else [config, requirements], re.findall(r'^(\w+) = ""', text, re.MULTILINE))


def _levels(requirements: Path) -> str:
    """Return the tables of levels; as comments where the requirements have windows and epsilons as numbers."""
    header = ""
    if requirements.exists():
        with requirements.open(encoding="utf-8-sig", errors="replace") as file:
            header = file.readline()
    own = {"window", "epsilon"} <= {name.strip().strip('"') for name in header.split(",")}
    note = (_WITH_NUMBERS if own else _WITH_WORDS).format(requirements=requirements.name)
    return note + (re.sub(r"^(?=[^#\n])", "# ", _LEVELS, flags=re.MULTILINE) if own else _LEVELS)


def guess_roles(columns: Sequence[Column]) -> dict[str, Column | None]:
    """Return the columns that look like time, user and cell by name and type; None where none does."""
    left = list(columns)
    roles: dict[str, Column | None] = {}
    for role, names in _NAMES.items():
        fits = [column for column in left if role != "time" or column.type in (ZONED, NAIVE, WHOLE)]
        named = [column for name in names for column in fits if name in _words(column.name)]
        timed = [column for column in fits if column.type in (ZONED, NAIVE)] if role == "time" else []
        chosen = next((column for column in named if not timed or column in timed), next(iter(timed), None))
        roles[role] = chosen
        left = [column for column in left if column != chosen]
    return roles


def _words(name: str) -> set[str]:
    """Return the words of a name: `userId`, `user_id` and `USER-ID` all have the word user."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return {word.casefold() for word in re.split(r"[^A-Za-z]+", spaced) if word} | {name.casefold()}


def _column_lines(columns: Sequence[Column], roles: dict[str, Column | None]) -> list[str]:
    lines = []
    for role, column in roles.items():
        what = "" if column is None else f"  # {column.type}"
        lines.append(f"{role}_column = {_toml('' if column is None else column.name)}{what}")
    time = roles["time"]
    if time is not None and time.type == NAIVE:
        lines.append('timezone = ""  # what these times are in: "UTC", or a fixed offset such as "+02:00"')
    if time is not None and time.type == WHOLE:
        lines.append(
            f"time_unit = {_toml(_UNITS.get(time.digits, 's'))}  # what these numbers count since 1970: s, ms or us"
        )
    others = [f"{_comment(column.name)} ({column.type})" for column in columns if column not in roles.values()]
    return [*lines, f"# Other columns: {', '.join(others)}."] if others else lines


def _toml(text: str) -> str:
    """Return a TOML string; JSON strings are TOML strings."""
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")


def _comment(name: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in name)
