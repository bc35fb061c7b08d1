"""Settings of a stream from a TOML file and options: reading, missing and unknown keys, checks."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from wevent.core.options import Kind, kinds
from wevent.core.requirements import Levels
from wevent.counting.labels import Cells, split_labels
from wevent.errors import InvalidInput, InvalidRequirement, InvalidSettings, did_you_mean
from wevent.journal import JournalAddress, PostgresAddress, is_begun, parse_address
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
from wevent.streams.duckdb_tables import frame_name, is_frame
from wevent.streams.inputs import within_folders
from wevent.streams.requirements_file import (
    COLUMNS,
    Requirements,
    read_column,
    requirements_of_frame,
    requirements_of_mapping,
)

PUBLISHING = ("journal", "requirements", "start", "end")
"""Keys that publishing needs, besides those that every use of settings needs."""

_MAX_BYTES = 1 << 20  # of a configuration file
_OF_THE_COMMAND = ("config", "json", "log", "quiet", "verbose", *kinds(RunOptions))
_BLANK_IS_MISSING = ("inputs", "cells", "slot", *PUBLISHING)  # a template leaves them blank
_NO_BLANK = ("time_column", "user_column", "cell_column", "timezone")  # a blank one is no default


def read_config(config: Path | str) -> dict[str, Any]:
    """Return the values of a TOML file by key, with relative paths resolved against its folder."""
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
    except InvalidSettings:
        raise
    except (ValueError, RecursionError) as error:  # no UTF-8, no TOML, numbers too long, tables too deep
        problem = f"The configuration file {name} is no TOML: {error}."
        raise InvalidSettings(problem, "Correct the line.", key="config") from None
    _check_keys(values, name)
    values = _without_blanks(values)
    folder = path.parent
    for key, word in (("requirements", None), ("special_days", "none"), ("out", "-")):
        if isinstance(values.get(key), str) and values[key] != word:
            values[key] = str(folder / values[key])
    if cells_file(values.get("cells"), folder) is not None:
        values["cells"] = folder / values["cells"]
    if "inputs" in values:
        values["inputs"] = tuple(
            name if name == "-" else str(folder / name) for name in _parse_inputs(values["inputs"])
        )
    if isinstance(values.get("journal"), str):
        values["journal"] = parse_address(values["journal"], folder)
    if "service" in values:
        values["service"] = parse_service(values["service"], folder)
    return values


def load_settings(
    config: Path | str | None, options: Mapping[str, Any], also: Collection[str] = (), *, framed: bool = False
) -> Settings:
    """Return the settings of a TOML file, with options on top.

    Args:
        config: the file; None: options only.
        options: values by key, as written on the command line; None and () are the same as not given. Requirements may also
            be a frame or a mapping.
        also: keys out of `PUBLISHING` that are needed, as of `refuse_missing`.
        framed: whether events are in a data frame, instead of inputs.
    """
    people = options.get("requirements") if in_memory(options.get("requirements")) else None
    if people is not None:
        options = {**options, "requirements": None}
        also = [key for key in also if key != "requirements"]
    values = {} if config is None else read_config(config)
    given = {
        key: value
        for key, value in options.items()
        if value is not None and not (isinstance(value, tuple) and not value)  # an array has no truth value
    }
    _check_keys(given, "an option")
    values = _without_blanks({**values, **given})
    if "journal" in values:
        values["journal"] = _read_journal(values["journal"])
    refuse_missing(values, also, framed=framed)
    settings = _parse_settings(values, framed=framed)
    files = (("the configuration file", config), ("the file of cells", cells_file(values["cells"])))
    settings = replace(settings, read_from=tuple((kind, Path(file)) for kind, file in files if file is not None))
    return settings if people is None else replace(settings, requirements=None, people=people_of(people, settings))


def _without_blanks(values: Mapping[str, Any]) -> dict[str, Any]:
    blank = [key for key in _BLANK_IS_MISSING if isinstance(values.get(key), str | list | tuple) and not values[key]]
    return {key: value for key, value in values.items() if key not in blank}


def _check_keys(values: Mapping[str, Any], where: str, known: Collection[str] = SETTINGS, *, table: str = "") -> None:
    for key in values:
        if not table and key in _OF_THE_COMMAND:
            fix = f"It is an option of the command, for one run: --{key.replace('_', '-')} (in Python: options)."
            raise InvalidSettings(f"{key!r} in {where} is no setting of a stream.", fix, key=key)
        if key not in known:
            fix = did_you_mean(key, known, f"Known are {', '.join(sorted(known))}.")
            raise InvalidSettings(f"Unknown setting {key!r} in {where}.", fix, key=table + key)


def refuse_missing(values: Mapping[str, Any], also: Collection[str], *, framed: bool) -> None:
    """Refuse missing settings, naming all of them at once, with the option for each.

    Keys in `also`, out of `PUBLISHING`, are needed unless a journal, live input or `start = "auto"` replaces them.
    """
    slotted = values.get("slot_column") is not None
    needed = [*(() if framed else ("inputs",)), "cells", *(() if slotted else ("slot",))]
    asks = any(key in also and key not in values for key in ("requirements", "start"))
    begun = asks and "journal" in values and is_begun(values["journal"])  # only now: a database may be away
    live = not framed and values.get("inputs") in ("-", ["-"], ("-",))
    replaced = {"requirements": begun, "start": begun or live or slotted, "end": live or values.get("start") == "auto"}
    needed += [key for key in PUBLISHING if key in also and not replaced.get(key)]
    missing = [key for key in needed if key not in values]
    missing += [key for key in _NO_BLANK if values.get(key) == ""]
    if not missing:
        return
    options = ["EVENTS" if key == "inputs" else f"--{key.replace('_', '-')}" for key in missing]
    keys = f"{missing[0]} = …" if len(missing) == 1 else "the same keys"
    raise InvalidSettings(
        f"{_listed(missing)} must be set.",
        f"Give {_listed(options)}, or {keys} in the configuration file.",
        key=missing[0],
    )


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _parse_settings(values: Mapping[str, Any], *, framed: bool) -> Settings:
    """Return settings from values by key. The journal is read already, and none is missing."""
    slotted = values.get("slot_column") is not None
    slot_us = 1 if slotted else parse_length(values["slot"])
    windows = WindowReader(None if slotted else slot_us)
    readers: dict[str, Callable[[Any], Any]] = {
        "inputs": _parse_inputs,
        "cells": _read_cells,
        "journal": lambda value: value,
        "timezone": parse_offset,
        "grace": lambda value: parse_length(value, "grace"),
        "release_delay": lambda value: parse_length(value, "release_delay"),
        "seasonality": lambda value: _checked(
            "seasonality", SETTINGS["seasonality"], parse_cycles(value, None if slotted else slot_us)
        ),
        "requirements": lambda value: _path("requirements", value),
        "requirements_columns": parse_columns,
        "levels": lambda value: _parse_levels(value, windows),
        "service": parse_service,
    }
    plain = {key: value for key, value in values.items() if key not in ("slot", "start", "end", "special_days")}
    found = _read_values(plain, SETTINGS, readers)
    found |= _numbers(values) if slotted else _clock(values, slot_us, found.get("timezone_us"))
    if framed:
        found["inputs"] = ()
    elif found.get("engine") == "spark":
        found["inputs"] = tuple(within_folders(found["inputs"]))
    if "special_days" in values:
        days = values["special_days"]
        is_file = isinstance(days, (str, Path)) and days != "none"
        found["days"] = parse_days(read_column(days, "day", headed=True) if is_file else days)
    settings = Settings(
        **found,
        slot_us=slot_us,
        start_auto=values.get("start") == "auto",
        notes=windows.notes,
        said=frozenset(values),
    )
    if settings.release_delay_us is not None and settings.release_delay_us < settings.grace_us:
        expected = "at least as long as grace, while slots are open"
        raise invalid("release_delay", expected, values["release_delay"], "Make it longer.")
    columns = {**settings.columns, "time": settings.slot_column or settings.time_column}
    if len(set(columns.values())) < len(columns):  # every user would be counted in a wrong cell, or no user at all
        raise InvalidSettings(
            f"Time, user and cell have a column each, not {', '.join(repr(name) for name in columns.values())}.",
            "Correct time_column (or slot_column), user_column or cell_column.",
            key="user_column" if columns["user"] in (columns["time"], columns["cell"]) else "cell_column",
        )
    return settings


def _read_values(
    values: Mapping[str, Any],
    declared: Mapping[str, Kind],
    readers: Mapping[str, Callable[[Any], Any]],
    table: str = "",
) -> dict[str, Any]:
    """Return values by field: as their readers return them, or as the declaration describes them completely."""
    found = {}
    for key, value in values.items():
        kind = declared[key]
        if key in readers:
            found[kind.field] = readers[key](value)
        else:
            text = str(value) if isinstance(value, Path) else value
            # flags give text, and the keys of a table have no flags that are checked here
            found[kind.field] = _checked(table + key, kind, text if table else kind.read(text))
    return found


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


def _parse_inputs(value: Any) -> tuple[str, ...]:
    """Return names of files and globs, or "-" alone."""
    inputs = (value,) if isinstance(value, (str, Path)) else value
    if not isinstance(inputs, (list, tuple)) or not inputs or not all(isinstance(name, (str, Path)) for name in inputs):
        raise invalid("inputs", str(SETTINGS["inputs"]), value, "Write inputs = ['events/*.parquet'].")
    names = tuple(str(name) for name in inputs)
    if "-" in names and len(names) > 1:
        raise invalid("inputs", "'-' alone, or files", names, "Read files or standard input, not both.")
    return names


def in_memory(requirements: object) -> bool:
    """Return whether requirements are a frame or a mapping, and not the name of a file."""
    return requirements is not None and not isinstance(requirements, (str, Path))


def people_of(requirements: Any, settings: Settings) -> Requirements:
    """Return requirements in a frame or a mapping, read under the settings of a stream."""
    if is_frame(requirements):
        return requirements_of_frame(
            requirements, settings.levels, slot_us=settings.slot_length_us, columns=settings.requirements_columns
        )
    if isinstance(requirements, Mapping):
        return requirements_of_mapping(requirements)
    raise InvalidInput(
        f"Requirements are a file, a data frame, or a mapping of users to requirements, not {frame_name(requirements)}.",
        "Give a path, a frame with user, window and epsilon, or {'ann': Requirement(40, 0.5), …}.",
        path=None,
    )


def _read_journal(value: Any) -> JournalAddress:
    if not isinstance(value, (str, Path, PostgresAddress)):
        raise InvalidSettings(f"journal must be text, not {value!r}.", "Write it in quotes.", key="journal")
    return parse_address(value)


def _read_cells(value: Any) -> Cells:
    file = cells_file(value)
    if file is None:
        if isinstance(value, str):
            return Cells.of(split_labels(value) if "," in value else int(value))
        return Cells.of(value)
    if not file.exists():
        raise InvalidInput(
            f"There is no such file of cells: {str(value)!r}.",
            "Check the path, or write a number, or labels with commas between (a,b,c).",
            path=str(value),
        )
    return Cells.of(read_column(file, "cell"))


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
    """Return the names of the columns of the requirements file, as far as they differ from `COLUMNS`."""
    names = list(value.values()) if isinstance(value, Mapping) else [None]
    if not all(isinstance(name, str) and name for name in names) or len({*names}) < len(names):
        raise invalid("requirements_columns", "a table of different column names", value, 'Write user = "id".')
    unknown = sorted({*value} - {*COLUMNS})
    if unknown:
        expected = f"a table with keys out of {', '.join(COLUMNS)}"
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
    _check_keys(value, "[service]", declared, table="service.")
    return ServiceSettings(**_read_values(value, declared, readers, "service."))
