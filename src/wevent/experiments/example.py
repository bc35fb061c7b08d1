"""A small stream of invented people as files: what `wevent init` writes."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np

from wevent.core.requirements import Levels
from wevent.experiments.datasets.city import DISTRICTS, SLOTS_PER_DAY, City
from wevent.publishing.template import OUTPUTS_AND_LEVELS
from wevent.settings.values import format_time, parse_time
from wevent.streams.duckdb_tables import literal

USERS = 2_000
START = "2026-01-01T00:00:00Z"

_SLOT_US = 300_000_000
_CONFIG = """\
# A stream of wevent. Publish it:   wevent publish --config {name}
# Then check every window of it:    wevent verify run.journal
# Options of `wevent publish` have keys here, with _ for -; options win over this file. Paths start at its folder. What is
# said for one run has none: --keep, --declare, --reconfigure, --allow-removals, --released-through, --widest-window,
# --start-over, --log.

# What goes in: Parquet, CSV or NDJSON files (also .gz, also globs), or "-" for live lines on standard input.
# An event is a time (UTC or with its offset), a user and a cell.
inputs = ["events.parquet"]

# The clock is declared: what is published must not depend on when somebody's event happened to come.
slot = "5m"
start = "{start}"
end = "{end}"

# The cells are declared too: events elsewhere are dropped. A number, or a file with one label per line.
cells = "cells.txt"

# Who asks for what: user,privacy,window or user,level (such as High/Large) in the words of [levels] below, or
# user,window,epsilon as numbers. `wevent levels --config {name}` shows what is offered and how many hold it.
requirements = "requirements.csv"

# How: `wevent mechanisms` lists them. "add_remove" hides presence, "replace" any change, with twice the noise.
mechanism = "pft"
neighbours = "add_remove"

{outputs_and_levels}"""


def write_example(folder: Path) -> list[Path]:
    """Write configuration, requirements, cells and a day of events; the files in that order."""
    folder.mkdir(parents=True, exist_ok=True)
    config, requirements, cells, events = (folder / name for name in FILES)
    end = format_time(parse_time(START, "start") + SLOTS_PER_DAY * _SLOT_US)
    config.write_text(
        _CONFIG.format(name=config.name, start=START, end=end, outputs_and_levels=OUTPUTS_AND_LEVELS), encoding="utf-8"
    )
    generator = np.random.default_rng(1)
    levels = Levels.default()
    privacy, window = (generator.choice(list(words), USERS) for words in (levels.privacy, levels.window))
    rows = (f"{user},{privacy[user]},{window[user]}\n" for user in range(USERS))
    requirements.write_text("user,privacy,window\n" + "".join(rows), encoding="utf-8")
    cells.write_text("".join(f"{district}\n" for district in DISTRICTS), encoding="utf-8")
    _write_events(events, generator)
    return [config, requirements, cells, events]


FILES = ("wevent.toml", "requirements.csv", "cells.txt", "events.parquet")


def _write_events(path: Path, generator: np.random.Generator) -> None:
    """Write a day of the city, each event at a moment of its own."""
    times, users, places = [], [], []
    for slot, (present, district) in enumerate(City(USERS, SLOTS_PER_DAY).walk(generator)):
        moments = np.sort(generator.integers(_SLOT_US, size=len(present)))
        times.append(parse_time(START, "start") + slot * _SLOT_US + moments)
        users.append(present)
        places.append(district)
    columns = {"us": np.concatenate(times), "user": np.concatenate(users), "place": np.concatenate(places)}
    connection = duckdb.connect(":memory:")
    connection.register("columns", columns)
    connection.register("districts", {"place": np.arange(len(DISTRICTS)), "cell": np.array(DISTRICTS, dtype=object)})
    connection.execute(
        'COPY (SELECT make_timestamptz(us) AS time, "user", cell FROM columns JOIN districts USING (place) '
        f"ORDER BY us) TO {literal(str(path))} (FORMAT parquet)"
    )
