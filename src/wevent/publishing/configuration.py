"""Settings of a stream with what only upper packages can read: the journal's address, files of cells and days, people."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from wevent.counting.cells import Cells, split_labels
from wevent.errors import InvalidInput, InvalidSettings
from wevent.journal import JournalPlace, PostgresPlace, is_begun, journal_place
from wevent.settings import Settings, loading
from wevent.settings.loading import cells_file
from wevent.streams.frames import frame_name, is_frame
from wevent.streams.inputs import within_folders
from wevent.streams.requirements_file import (
    Requirements,
    read_column,
    requirements_of_frame,
    requirements_of_mapping,
)


def load_settings(
    config: Path | str | None, options: Mapping[str, Any], also: Collection[str] = (), *, framed: bool = False
) -> Settings:
    """Return the settings of a TOML file, with options on top.

    Args:
        config: the file; None: options only.
        options: values by key, as written on the command line; None is the same as not given. Requirements may also be a
            frame or a mapping.
        also: keys out of `PUBLISHING` that are needed, as of `refuse_missing`.
        framed: whether events are in a data frame, instead of inputs.
    """
    people = options.get("requirements") if in_memory(options.get("requirements")) else None
    if people is not None:
        options = {**options, "requirements": None}
        also = [key for key in also if key != "requirements"]
    values = loading.with_options({} if config is None else read_config(config), options)
    if "journal" in values:
        values["journal"] = _read_journal(values["journal"])
    loading.refuse_missing(values, also, framed=framed, is_begun=lambda: is_begun(values["journal"]))
    values["cells"] = _read_cells(values["cells"])
    days = values.get("calendar")
    if isinstance(days, (str, Path)) and days != "none":
        values["calendar"] = read_column(days, "day", headed=True)
    settings = loading.parse_settings(values, framed=framed)
    if settings.engine == "spark":
        settings = replace(settings, inputs=tuple(within_folders(settings.inputs)))
    if people is not None:
        settings = replace(settings, requirements=None, people=people_of(people, settings))
    return settings


def read_config(config: Path | str) -> dict[str, Any]:
    """Return the values of a TOML file by key, with relative paths resolved against its folder."""
    values = loading.read_config(config)
    if isinstance(values.get("journal"), str):
        values["journal"] = journal_place(values["journal"], Path(config).parent)
    return values


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


def _read_journal(value: Any) -> JournalPlace:
    if not isinstance(value, (str, Path, PostgresPlace)):
        raise InvalidSettings(f"journal must be text, not {value!r}.", "Write it in quotes.", key="journal")
    return journal_place(value)


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
