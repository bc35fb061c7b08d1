"""Settings from a TOML file and options: reading, missing and unknown keys, checks."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

from wevent.core.nearest import did_you_mean
from wevent.core.requirements import Levels
from wevent.core.settings import Kind, kinds
from wevent.errors import InvalidRequirement, InvalidSettings
from wevent.settings import SETTINGS, RunOptions, ServiceSettings, Settings
from wevent.settings.values import (
    WindowReader,
    invalid,
    parse_cycles,
    parse_days,
    parse_length,
    parse_listen,
    parse_offset,
    parse_time,
    parse_url,
)

PUBLISHING = ("journal", "requirements", "start", "end")
"""Keys that publishing needs, besides those that every use of settings needs."""
REQUIREMENTS_COLUMNS = ("user", "level", "privacy", "window", "epsilon")
"""The columns that a requirements file may have."""

_MAX_BYTES = 1 << 20  # of a configuration file
_OF_THE_COMMAND = ("config", "json", "log", "quiet", "verbose", *kinds(RunOptions))
_BLANK_IS_MISSING = ("inputs", "cells", "slot", *PUBLISHING)  # a template leaves them blank
_NO_BLANK = ("time_column", "user_column", "cell_column", "timezone")  # a blank one is no default


def read_config(config: Path | str) -> dict[str, Any]:
    """Return the values of a TOML file by key, with relative paths resolved against its folder, except for the journal."""
    if not isinstance(config, (str, Path)):
        problem = f"config must be the path of a configuration file, not {type(config).__name__}."
        raise InvalidSettings(problem, "Give the name of a TOML file.", key="config")
    path, name = Path(config), repr(str(config))
    try:
        if path.exists() and not path.is_file():  # a pipe or a device may never end
            raise InvalidSettings(f"The configuration {name} is no file.", "Name a TOML file.", key="config")
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            problem = f"The configuration file {name} is longer than {_MAX_BYTES:,} bytes."
            raise InvalidSettings(problem, "Check the path.", key="config")
        text = data.decode("utf-8-sig")  # some editors put a byte order mark before UTF-8 text
        values = tomllib.loads(text, parse_float=Decimal)
    except OSError as error:
        problem = f"The configuration file {name} is not readable ({error.strerror})."
        raise InvalidSettings(problem, "Check the path.", key="config") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problem = f"The configuration file {name} is no TOML: {error}."
        raise InvalidSettings(problem, "Correct the line.", key="config") from None
    _check_keys(values, name)
    values = _without_blanks(values)
    folder = path.parent
    for key, word in (("requirements", None), ("calendar", "none"), ("out", "-")):
        if isinstance(values.get(key), str) and values[key] != word:
            values[key] = str(folder / values[key])
    if cells_file(values.get("cells"), folder) is not None:
        values["cells"] = folder / values["cells"]
    if "inputs" in values:
        values["inputs"] = tuple(name if name == "-" else str(folder / name) for name in parse_inputs(values["inputs"]))
    if "service" in values:
        values["service"] = parse_service(values["service"], folder)
    return values


def with_options(values: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a file with options on top; None and () are the same as not given."""
    given = {
        key: value
        for key, value in options.items()
        if value is not None and not (isinstance(value, tuple) and not value)  # an array has no truth value
    }
    _check_keys(given, "an option")
    return _without_blanks({**values, **given})


def _without_blanks(values: Mapping[str, Any]) -> dict[str, Any]:
    blank = [key for key in _BLANK_IS_MISSING if isinstance(values.get(key), str | list | tuple) and not values[key]]
    return {key: value for key, value in values.items() if key not in blank}


def _check_keys(values: Mapping[str, Any], where: str) -> None:
    for key in values:
        if key in _OF_THE_COMMAND:
            fix = f"It is an option of the command, for one run: --{key.replace('_', '-')} (in Python: options)."
            raise InvalidSettings(f"{key!r} in {where} is no setting of a stream.", fix, key=key)
        if key not in SETTINGS:
            raise _unknown(key, SETTINGS, where, key)


def _unknown(name: str, known: Collection[str], where: str, key: str) -> InvalidSettings:
    fix = did_you_mean(name, known, f"Known are {', '.join(sorted(known))}.")
    return InvalidSettings(f"Unknown setting {name!r} in {where}.", fix, key=key)


def refuse_missing(
    values: Mapping[str, Any], also: Collection[str], *, framed: bool, is_begun: Callable[[], bool]
) -> None:
    """Refuse missing settings, naming all of them at once, with the option for each.

    Args:
        values: values by key.
        also: keys out of `PUBLISHING` that are needed, unless a journal, live input or `start = "auto"` replaces them.
        framed: whether events are in a data frame, instead of inputs.
        is_begun: returns whether the journal exists; called only where that matters, since a database may be away.
    """
    slotted = values.get("slot_column") is not None
    needed = [*(() if framed else ("inputs",)), "cells", *(() if slotted else ("slot",))]
    asks = any(key in also and key not in values for key in ("requirements", "start"))
    begun = asks and "journal" in values and is_begun()
    live = not framed and values.get("inputs") in ("-", ["-"], ("-",))
    replaced = {"requirements": begun, "start": begun or live or slotted, "end": live or values.get("start") == "auto"}
    needed += [key for key in PUBLISHING if key in also and not replaced.get(key)]
    missing = [key for key in needed if key not in values]
    missing += [key for key in _NO_BLANK if values.get(key) == ""]
    if not missing:
        return
    empty = _without_rows(values.get("requirements")) if "requirements" in also else None
    options = ["EVENTS" if key == "inputs" else f"--{key.replace('_', '-')}" for key in missing]
    keys = f"{missing[0]} = …" if len(missing) == 1 else "the same keys"
    raise InvalidSettings(
        f"{_listed(missing)} must be set" + (f", and {empty} has no rows." if empty else "."),
        f"Give {_listed(options)}, or {keys} in the configuration file."
        + (" Write who asks for what into the requirements file, a line each." if empty else ""),
        key=missing[0],
    )


def _without_rows(path: Any) -> str | None:
    """Return the name of a requirements file that has at most a header, as a template leaves it; None for any other."""
    if not isinstance(path, str | Path) or not Path(path).is_file():
        return None
    try:
        with open(path, encoding="utf-8") as file:
            lines = sum(1 for line in islice((line for line in file if line.strip()), 2))
    except (OSError, UnicodeDecodeError):
        return None  # the reader of the file reports the error
    return str(path) if lines < 2 else None


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def parse_settings(values: Mapping[str, Any], *, framed: bool = False) -> Settings:
    """Return settings from values by key. Journal, cells and days of the calendar are read already, and none is missing."""
    slotted = values.get("slot_column") is not None
    slot_us = 1 if slotted else parse_length(values["slot"])
    windows = WindowReader(None if slotted else slot_us)
    readers: dict[str, Callable[[Any], Any]] = {
        "inputs": parse_inputs,
        "timezone": parse_offset,
        "grace": lambda value: parse_length(value, "grace"),
        "due": lambda value: parse_length(value, "due"),
        "cycle": lambda value: _check("cycle", parse_cycles(value, None if slotted else slot_us)),
        "requirements": lambda value: _path("requirements", value),
        "requirements_columns": parse_columns,
        "levels": lambda value: _parse_levels(value, windows),
        "service": parse_service,
    }
    found = {
        SETTINGS[key].field: readers[key](value) if key in readers else _check(key, value)
        for key, value in values.items()
        if key not in ("slot", "start", "end", "cells", "journal", "calendar")
    }
    found |= _numbers(values) if slotted else _clock(values, slot_us, found.get("timezone_us"))
    if framed:
        found["inputs"] = ()
    settings = Settings(
        **found,
        slot_us=slot_us,
        start_auto=values.get("start") == "auto",
        cells=values["cells"],
        journal=values.get("journal"),
        days=parse_days(values["calendar"]) if "calendar" in values else None,
        notes=windows.notes,
        said=frozenset(values),
    )
    if settings.due_us is not None and settings.due_us < settings.grace_us:
        expected = "at least as long as grace, while slots are open"
        raise invalid("due", expected, values["due"], "Make it longer.")
    columns = {**settings.columns, "time": settings.slot_column or settings.time_column}
    if len(set(columns.values())) < len(columns):  # every user would be counted in a wrong cell, or no user at all
        raise InvalidSettings(
            f"Time, user and cell have a column each, not {', '.join(repr(name) for name in columns.values())}.",
            "Correct time_column (or slot_column), user_column or cell_column.",
            key="user_column" if columns["user"] in (columns["time"], columns["cell"]) else "cell_column",
        )
    return settings


def _check(key: str, value: Any) -> Any:
    """Return a value that the declaration describes completely."""
    kind = SETTINGS[key]
    return _checked(key, kind, kind.read(str(value) if isinstance(value, Path) else value))


def _checked(key: str, kind: Kind, value: Any) -> Any:
    if kind.takes(value) and value != "":
        return value
    fix = {bool: "Write it without quotes.", str: "Write it in quotes."}.get(kind.type, "Correct the value.")
    if kind.choices:
        fix = did_you_mean(str(value), kind.choices, "Use one of these words.")
    raise invalid(key, str(kind).replace("True or False", "true or false"), value, fix)


def _path(key: str, value: Any) -> Path:
    if not isinstance(value, (str, Path)) or not str(value):
        raise invalid(key, "the name of a file", value, "Write it in quotes.")
    return Path(value)


def _clock(values: Mapping[str, Any], slot_us: int, timezone_us: int | None) -> dict[str, Any]:
    """Return start and end of slots that have times."""
    if values.get("end") == "auto" and values.get("start") != "auto":
        raise invalid("end", "a time (only start may be auto, and then reads both)", "auto", "Declare the end.")
    start_us, end_us = (
        None if values.get(key) in (None, "auto") else parse_time(values[key], key, timezone_us)
        for key in ("start", "end")
    )
    if start_us is not None and end_us is not None and end_us - start_us < slot_us:
        raise invalid("end", "at least one slot after the start", str(values["end"]), "Declare a later end.")
    return {"start_us": start_us, "end_us": end_us}


def _numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return start and end of slots that have numbers: slot n is microsecond n − 1."""
    for key in ("slot", "start"):
        if values.get(key) not in (None, "auto"):
            raise InvalidSettings(f"{key} is given beside slot_column.", f"Leave {key} out.", key=key)
    end = values.get("end")
    if end is not None and (not str(end).isdecimal() or int(end) < 1):
        raise invalid("end", "the number of slots beside slot_column", end, "Write the number of slots.")
    return {"start_us": 0, "end_us": None if end is None else int(end)}


def parse_inputs(value: Any) -> tuple[str, ...]:
    """Return names of files and globs, or "-" alone."""
    inputs = (value,) if isinstance(value, (str, Path)) else value
    if not isinstance(inputs, (list, tuple)) or not inputs or not all(isinstance(name, (str, Path)) for name in inputs):
        raise invalid("inputs", str(SETTINGS["inputs"]), value, "Write inputs = ['events/*.parquet'].")
    names = tuple(str(name) for name in inputs)
    if "-" in names and len(names) > 1:
        raise invalid("inputs", "'-' alone, or files", names, "Read files or standard input, not both.")
    return names


def cells_file(value: Any, folder: Path = Path()) -> Path | None:
    """Return the file that `cells` names; None for a number, or for labels `a,b,c` where no such file exists."""
    if isinstance(value, Path):
        return value
    if not isinstance(value, str) or value.isdecimal():
        return None
    exists = os.path.exists(folder / value)  # not of the path itself: many labels are longer than any file's name
    return None if "," in value and not exists else Path(value)


def _parse_levels(value: Any, windows: WindowReader) -> Levels:
    if not isinstance(value, Mapping) or {*value, "combined"} != {"privacy", "window", "combined"}:
        received = list(value) if isinstance(value, Mapping) else value
        expected = "two tables, [levels.privacy] and [levels.window], and if wanted [levels.combined]"
        raise invalid("levels", expected, received, "Give both.")
    for name, table in value.items():
        key = f"levels.{name}"
        if not isinstance(table, Mapping) or not table:
            raise invalid(key, "a table of words and values", table, f"Write [{key}] and a line for each.")
        for word in table:
            if not word or word != word.strip() or "/" in word:
                raise invalid(key, "words without a slash, nor blanks at their ends", word, "Rename it.")
    for word, window in value["window"].items():
        if isinstance(window, str) and window.strip().isdecimal():  # a number of slots is a number
            raise invalid(f"levels.window.{word}", "a number of slots or a duration such as 24h", window, "Write 40.")
    try:
        slots = {word: windows.read(window) for word, window in value["window"].items()}
        return Levels(dict(value["privacy"]), slots, dict(value.get("combined", {})))
    except InvalidRequirement as error:
        raise InvalidSettings(f"[levels]: {error.problem}", error.fix, key="levels") from None


def parse_columns(value: Any) -> Mapping[str, str]:
    """Return the names of the columns of the requirements file, as far as they differ from `REQUIREMENTS_COLUMNS`."""
    names = list(value.values()) if isinstance(value, Mapping) else [None]
    if not all(isinstance(name, str) and name for name in names) or len({*names}) < len(names):
        raise invalid("requirements_columns", "a table of different column names", value, 'Write user = "id".')
    unknown = sorted({*value} - {*REQUIREMENTS_COLUMNS})
    if unknown:
        expected = f"a table with keys out of {', '.join(REQUIREMENTS_COLUMNS)}"
        raise invalid("requirements_columns", expected, unknown[0], "Correct the key.")
    return {key: name for key, name in value.items() if name != key or key != "user"}


def parse_service(value: Any, folder: Path = Path()) -> ServiceSettings:
    """Return the table [service]; a relative path of the tokens file starts at the folder."""
    if isinstance(value, ServiceSettings):
        return value
    if not isinstance(value, Mapping):
        raise invalid("service", "a table", value, "Write [service] and a line for each setting.")
    declared = kinds(ServiceSettings)
    readers: dict[str, Callable[[Any], Any]] = {
        "listen": parse_listen,
        "url": parse_url,
        "tokens": lambda value: folder / _path("service.tokens", value),
    }
    found: dict[str, Any] = {}
    for key, given in value.items():
        if key not in declared:
            raise _unknown(key, declared, "[service]", f"service.{key}")
        found[key] = readers[key](given) if key in readers else _checked(f"service.{key}", declared[key], given)
    return ServiceSettings(**found)
