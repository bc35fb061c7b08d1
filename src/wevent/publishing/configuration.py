"""Settings of a stream with what only upper packages can read: the journal's address, files of cells and of days."""

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
from wevent.streams.inputs import within_folders
from wevent.streams.requirements_file import read_column


def load_settings(
    config: Path | str | None, options: Mapping[str, Any], also: Collection[str] = (), *, framed: bool = False
) -> Settings:
    """Return the settings of a TOML file, with options on top.

    Args:
        config: the file; None: options only.
        options: values by key, as written on the command line; None is the same as not given.
        also: keys out of `PUBLISHING` that are needed, as of `refuse_missing`.
        framed: whether events are in a data frame, instead of inputs.
    """
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
    return settings


def read_config(config: Path | str) -> dict[str, Any]:
    """Return the values of a TOML file by key, with relative paths resolved against its folder."""
    values = loading.read_config(config)
    if isinstance(values.get("journal"), str):
        values["journal"] = journal_place(values["journal"], Path(config).parent)
    return values


def _read_journal(value: Any) -> JournalPlace:
    if not isinstance(value, (str, Path, PostgresPlace)):
        raise InvalidSettings("journal to be text", f"{value!r}", "Write it in quotes.", key="journal")
    return journal_place(value)


def _read_cells(value: Any) -> Cells:
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
