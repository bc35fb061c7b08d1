"""All settings of a stream: one TOML file, overridden by options, checked before anything is read or written."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

from wevent.core.nearest import did_you_mean
from wevent.core.requirements import Levels
from wevent.core.settings import Options, option_kinds, option_text
from wevent.counting.cells import Cells, split_labels
from wevent.errors import InvalidInput, InvalidRequirement, InvalidSettings
from wevent.journal import JournalPlace, PostgresPlace, journal_place
from wevent.publishing.missing_settings import refuse_missing, without_blanks
from wevent.publishing.service_table import check_table
from wevent.streams.clock import parse_length, parse_offset, parse_time
from wevent.streams.cycles import read_cycles, read_days
from wevent.streams.inputs import within_folders
from wevent.streams.requirements_file import COLUMNS, Requirements, read_column
from wevent.streams.stream_settings import ENGINES, StreamSettings
from wevent.streams.windows import WindowReader

_MOST_BYTES = 1 << 20  # of a configuration file
_CHOICES = {
    "engine": ENGINES,
    "close": ("clock", "lines"),
    "time_unit": ("s", "ms", "us"),
}
_TEXTS = ("out", "stream", "slot_column", "time_column", "user_column", "cell_column", "timezone")
_PATHS = ("requirements",)
_FLAGS = ("strict",)
_LEAST = {"unknown_users": 0}
_CHECKED = {*_CHOICES, *_FLAGS, *_LEAST, *_TEXTS, *_PATHS, "journal", *option_kinds()}
_OF_THE_COMMAND = (
    "config",
    "json",
    "log",
    "quiet",
    "verbose",
    "declare",
    "new_epoch",
    "allow_removals",
    "released_through",
    "widest_window",
    "same_settings",
    "accept_lost_changes",
    "start_over",
    "keep",
)
"""Options that are said for one run: none of them is a setting of the stream."""
_TABLES = ("levels", "requirements_columns", "service")
KEYS = ("inputs", "cells", "slot", "start", "end", "grace", "due", *_TABLES, *sorted(_CHECKED))


@dataclass(frozen=True, kw_only=True)
class Settings(Options, StreamSettings):
    """Everything that publishing a stream needs, resolved and checked: its options, its events, and the files.

    Attributes:
        journal: where the journal is.
        out: where releases go: a path, or "-" and None for standard output.
        requirements: the requirements file.
        people: requirements that were handed over in memory, instead of the file.
        levels: what the words in the requirements file stand for; None: the default ones.
        requirements_columns: what its columns are called, where they have names of their own.
        notes: what was made of the settings and is not obvious: a sentence each.
        unknown_users: how many unregistered users may count; 0 rejects their events.
        days: of the calendar, if one was named; its slots are known when the clock is.
        stream: the stream's name, pinned by the journal.
        service: the table [service], checked; `wevent.service` makes something of it.
        said: the keys that somebody gave a value; the others have their defaults, or what a journal pins.
    """

    journal: JournalPlace | None = None
    out: str | None = None
    requirements: Path | None = None
    people: Requirements | None = None
    levels: Levels | None = None
    requirements_columns: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unknown_users: int = 0
    days: tuple[date, ...] | None = None
    stream: str = "default"
    service: Mapping[str, Any] = field(default_factory=dict)
    said: frozenset[str] = frozenset()

    @property
    def slot_length_us(self) -> int | None:
        """How long a slot is, None for slots that have numbers and no times."""
        return None if self.slot_column is not None else self.slot_us


def load_settings(
    config: Path | str | None, options: Mapping[str, Any], also: Collection[str] = (), *, framed: bool = False
) -> Settings:
    """The settings of a TOML file, with options on top.

    Args:
        config: the file; paths in it are relative to its folder. None: options only.
        options: values by key, as written on the command line; None is the same as not given.
        also: which of `PUBLISHING` must be there, as far as no journal, live input or `start = "auto"` does without.
        framed: whether events come in a data frame, instead of inputs.

    Raises:
        InvalidSettings: for missing values, naming all of them; for an unknown key or a meaningless value, naming it.
        InvalidInput: for a cells file that cannot be read.
    """
    values = dict(read_config(config)) if config is not None else {}
    given = {
        key: value
        for key, value in options.items()
        if value is not None and not (isinstance(value, tuple) and not value)
    }
    _check_keys(given, "an option")
    values.update(given)
    values = without_blanks(values)
    refuse_missing(values, also, framed=framed)
    slot_us = None if values.get("slot_column") is not None else parse_length(values["slot"])
    if "cycle" in values:
        values["cycle"] = read_cycles(values["cycle"], slot_us)
    days = read_days(values["calendar"]) if "calendar" in values else None
    checked = {key: _checked(key, value) for key, value in values.items() if key in _CHECKED - {"calendar"}}
    columns = {name: checked.pop(f"{name}_column", name) for name in ("time", "user", "cell")}
    _refuse_one_column_twice({**columns, "time": values.get("slot_column") or columns["time"]})
    clock = _clock(values, checked.pop("timezone", None))
    windows = WindowReader(slot_us)
    return Settings(
        inputs=() if framed else _inputs(values["inputs"], folders=checked.get("engine") == "spark"),
        cells=_cells(values["cells"]),
        columns=MappingProxyType(columns),
        levels=_levels(values["levels"], windows) if "levels" in values else None,
        requirements_columns=requirements_columns(values),
        notes=windows.notes,
        days=days,
        service=_service(values),
        said=frozenset(values),
        **clock,
        **checked,
    )


def read_config(config: Path | str) -> dict[str, Any]:
    """The raw values of a TOML file by key, its relative paths made to start at its folder.

    Raises:
        InvalidSettings: if it cannot be read, or has an unknown key.
    """
    if not isinstance(config, (str, Path)):
        raise InvalidSettings(
            "the path of a configuration file", type(config).__name__, "Give the name of a TOML file.", key="config"
        )
    path = Path(config)
    try:
        values = tomllib.loads(_read_text(path), parse_float=Decimal)
    except OSError as error:
        raise InvalidSettings(
            "a readable configuration file", f"{str(path)!r} ({error.strerror})", "Check the path.", key="config"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidSettings(
            "a TOML file", f"{str(path)!r}, which is not: {error}", "Correct the line.", key="config"
        ) from None
    _check_keys(values, f"{str(path)!r}")
    values = without_blanks(values)
    folder = path.parent
    for key in (*_PATHS, "calendar"):
        if isinstance(values.get(key), str) and values[key] != "none":
            values[key] = str(folder / values[key])
    if isinstance(values.get("journal"), str):
        values["journal"] = journal_place(values["journal"], folder)
    if isinstance(values.get("out"), str) and values["out"] != "-":
        values["out"] = str(folder / values["out"])
    if cells_file(values.get("cells"), folder) is not None:
        values["cells"] = folder / values["cells"]
    if "inputs" in values:
        values["inputs"] = tuple(name if name == "-" else str(folder / name) for name in _inputs(values["inputs"]))
    return values


def _check_keys(values: Mapping[str, Any], where: str) -> None:
    for key in values:
        if key in _OF_THE_COMMAND:
            raise InvalidSettings(
                "settings of a stream",
                f"{key!r} in {where}",
                f"It is an option of the command, for one run: --{key.replace('_', '-')} (in Python: options).",
                key=key,
            )
        if key not in KEYS:
            raise InvalidSettings(
                "settings that wevent knows",
                f"{key!r} in {where}",
                did_you_mean(key, KEYS, f"Known are {', '.join(sorted(KEYS))}."),
                key=key,
            )


def _checked(key: str, value: Any) -> Any:
    if key in option_kinds():
        return _option(key, value)
    if key in _CHOICES:
        if value not in _CHOICES[key]:
            known = _CHOICES[key]
            remedy = did_you_mean(str(value), known, "Use one of these words.")
            raise _invalid(key, f"one of {', '.join(known)}", value, remedy)
        return value
    if key in _FLAGS:
        if not isinstance(value, bool):
            raise _invalid(key, "true or false", value, "Write it without quotes.")
        return value
    if key in _LEAST:
        whole = int(value) if isinstance(value, str) and value.isdecimal() else value
        if type(whole) is not int or whole < _LEAST[key]:
            raise _invalid(key, f"a whole number, at least {_LEAST[key]}", value, "Correct the number.")
        return whole
    if key == "journal" and isinstance(value, PostgresPlace):
        return value
    if not isinstance(value, (str, Path)) or not str(value):
        raise _invalid(key, "text", value, "Write it in quotes.")
    if key == "timezone":
        return parse_offset(str(value))
    if key == "journal":
        return journal_place(value)
    return Path(value) if key in _PATHS else str(value)


def _option(key: str, value: Any) -> Any:
    kind = option_kinds()[key]
    value = kind.read(value)
    if not kind.takes(value) or value == "":
        remedy = "Write it without quotes." if kind.type is bool else "Correct the value."
        if kind.choices:
            remedy = did_you_mean(str(value), kind.choices, remedy)
        raise _invalid(key, str(kind).replace("True or False", "true or false"), value, remedy)
    return value


def _clock(values: Mapping[str, Any], timezone_us: int | None) -> dict[str, Any]:
    """Slot length, start, end and grace in microseconds; with a slot column numbers of slots."""
    auto = values.get("start") == "auto"
    clock: dict[str, Any] = {"timezone_us": timezone_us, "start_auto": auto}
    clock["grace_us"] = parse_length(values.get("grace", "0s"), "grace")
    clock["due_us"] = _due(values, clock["grace_us"])
    if values.get("slot_column") is not None:
        return {**clock, **_slotted(values, auto)}
    clock["slot_us"] = parse_length(values["slot"])
    for key in ("start", "end"):
        value = values.get(key)
        clock[f"{key}_us"] = None if value in (None, "auto") else parse_time(value, key, timezone_us)
    if values.get("end") == "auto" and not auto:
        raise _invalid("end", "a time (only start may be auto, and then reads both)", "auto", "Declare the end.")
    if None not in (clock["start_us"], clock["end_us"]) and clock["end_us"] - clock["start_us"] < clock["slot_us"]:
        raise _invalid("end", "at least one slot after the start", str(values["end"]), "Declare a later end.")
    return clock


def _due(values: Mapping[str, Any], grace_us: int) -> int | None:
    """How long after its end a live release goes out; its slot must have closed by then."""
    if "due" not in values:
        return None
    due_us = parse_length(values["due"], "due")
    if due_us < grace_us:
        raise _invalid("due", "at least as long as grace: slots are open until then", values["due"], "Make it longer.")
    return due_us


def _service(values: Mapping[str, Any]) -> Mapping[str, Any]:
    value = values.get("service", {})
    if not isinstance(value, Mapping):
        raise _invalid("service", "a table", value, "Write [service] and a line for each setting.")
    check_table(value)
    return MappingProxyType(dict(value))


def _slotted(values: Mapping[str, Any], auto: bool) -> dict[str, Any]:
    for key in ("slot", "start"):
        if values.get(key) not in (None, "auto"):
            raise _invalid(key, "not to be given beside slot_column", values[key], f"Leave {key} out.")
    end = values.get("end")
    if end is None:
        return {"slot_us": 1, "start_us": 0, "end_us": None}
    if not str(end).isdecimal() or int(end) < 1:
        raise _invalid("end", "the number of slots beside slot_column", end, "Write how many slots there are.")
    return {"slot_us": 1, "start_us": 0, "end_us": int(end)}


def _inputs(value: Any, *, folders: bool = False) -> tuple[str, ...]:
    inputs = (value,) if isinstance(value, (str, Path)) else value
    if not isinstance(inputs, (list, tuple)) or not inputs or not all(isinstance(name, (str, Path)) for name in inputs):
        raise _invalid("inputs", "file names and globs, or '-'", value, "Write inputs = ['events/*.parquet'].")
    names = tuple(str(name) for name in inputs)
    if "-" in names and len(names) > 1:
        raise _invalid("inputs", "'-' alone", f"{len(names)} inputs", "Read files or standard input, not both.")
    return tuple(within_folders(names)) if folders else names


def cells_file(value: Any, folder: Path = Path()) -> Path | None:
    """The file that `cells` names; None if it is a number of cells, or their labels: `a,b,c` where no such file is."""
    if isinstance(value, Path):
        return value
    if not isinstance(value, str) or value.isdecimal():
        return None
    is_there = os.path.exists(folder / value)  # not of the path itself: many labels are longer than any file's name
    return None if "," in value and not is_there else Path(value)


def _cells(value: Any) -> Cells:
    file = cells_file(value)
    if file is None:
        if isinstance(value, str):
            return Cells.of(split_labels(value) if "," in value else int(value))
        return Cells.of(value)
    if not file.exists():
        raise InvalidInput(
            "cells as a number, as labels with commas between (a,b,c), or as a file with labels",
            f"{str(value)!r}, and no such file",
            "Check the path, or write the labels.",
            path=str(value),
        )
    return Cells.of(read_column(file, "cell"))


def _levels(value: Any, windows: WindowReader) -> Levels:
    if not isinstance(value, Mapping) or {*value, "combined"} != {"privacy", "window", "combined"}:
        raise _invalid(
            "levels",
            "two tables, [levels.privacy] and [levels.window], and if wanted [levels.combined]",
            list(value) if isinstance(value, Mapping) else value,
            "Give both.",
        )
    for name, table in value.items():
        if not isinstance(table, Mapping) or not table:
            raise _invalid(
                f"levels.{name}", "a table of words and values", table, f"Write [levels.{name}] and a line for each."
            )
        for word in table:
            if not word or word != word.strip() or "/" in word:
                raise _invalid(f"levels.{name}", "words without a slash, nor blanks at their ends", word, "Rename it.")
    for word, window in value["window"].items():
        if isinstance(window, str) and window.strip().isdecimal():
            raise _invalid(
                f"levels.window.{word}", "a number of slots, or a duration", window, "Write a number without quotes."
            )
    try:
        slots = {word: windows.read(window) for word, window in value["window"].items()}
        return Levels(dict(value["privacy"]), slots, dict(value.get("combined", {})))
    except InvalidRequirement as error:
        raise InvalidSettings(f"in [levels] {error.expected}", error.received, error.remedy, key="levels") from None


def requirements_columns(values: Mapping[str, Any]) -> Mapping[str, str]:
    """What the columns of the requirements file are called, of the raw values of a configuration.

    Raises:
        InvalidSettings: if it is no table of column names.
    """
    value = values.get("requirements_columns", {})
    names = list(value.values()) if isinstance(value, Mapping) else [None]
    if not all(isinstance(name, str) and name for name in names) or len({*names}) < len(names):
        raise _invalid("requirements_columns", "a table of different column names", value, 'Write user = "id".')
    unknown = sorted({*value} - {*COLUMNS})
    if unknown:
        raise _invalid(
            "requirements_columns", f"a table with keys out of {', '.join(COLUMNS)}", unknown[0], "Correct the key."
        )
    return MappingProxyType({key: name for key, name in value.items() if name != key or key != "user"})


def _refuse_one_column_twice(columns: Mapping[str, str]) -> None:
    """One column cannot say who was there and where: everybody would be counted in the wrong place, or nobody at all."""
    if len(set(columns.values())) < len(columns):
        raise InvalidSettings(
            "a column each for time, user and cell",
            ", ".join(repr(name) for name in columns.values()),
            "Correct time_column (or slot_column), user_column or cell_column.",
            key="user_column" if columns["user"] in (columns["time"], columns["cell"]) else "cell_column",
        )


def _invalid(key: str, expected: str, value: Any, remedy: str) -> InvalidSettings:
    return InvalidSettings(f"{key} to be {expected}", option_text(value), remedy, key=key)


def _read_text(path: Path) -> str:
    """The text of a configuration file: what is no file may never end, and is not opened.

    Raises:
        InvalidSettings: for something else, and for a file that is too long to be one.
        OSError: if it cannot be read.
    """
    if path.exists() and not path.is_file():
        raise InvalidSettings(
            "a configuration file", f"something else ({str(path)!r})", "Name a TOML file.", key="config"
        )
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise InvalidSettings(
            f"a configuration file of at most {_MOST_BYTES:,} bytes",
            f"a longer one ({str(path)!r})",
            "Check the path; cells and requirements have files of their own.",
            key="config",
        )
    return data.decode("utf-8-sig")  # some editors put a byte order mark before UTF-8 text
