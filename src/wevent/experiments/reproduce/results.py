"""The results of a reproduction: one table in its folder, which a killed run continues."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from wevent import __version__
from wevent.core.arrays import FloatArray
from wevent.errors import InvalidOption
from wevent.experiments.comparison import compare
from wevent.experiments.datasets import REAL, StreamRequest, open_stream
from wevent.experiments.datasets.stream import Stream
from wevent.experiments.processes import Progress
from wevent.experiments.reproduce.campaign import SETTINGS, Campaign
from wevent.experiments.scores import Scores
from wevent.file_io import atomic_write_text

_SETTINGS, _TABLE = "settings.json", "results.csv"
_KEYS = ("stream", "setting", "mechanism", "repeat")
_MEASURES = (*(field.name for field in fields(Scores)), "ms_per_slot")

Row = Mapping[str, Any]


class Results:
    """One row per stream, setting, mechanism and repeat, in `results.csv`; the campaign in `settings.json`."""

    def __init__(self, folder: Path, campaign: Campaign | None = None) -> None:
        """Begin, or continue what was begun with the same campaign.

        Raises:
            InvalidOption: for results of another campaign or version; without a campaign, if there are none.
        """
        self.folder = folder
        self._rows: list[Row] = []
        self._values: dict[tuple[str, str, str], list[Row]] = {}
        wanted = None if campaign is None else {**asdict(campaign), "version": __version__}
        settings = folder / _SETTINGS
        if not settings.exists():
            if wanted is None:
                raise InvalidOption(
                    f"{str(folder)!r} has no reproduction.",
                    "Name its folder with --out, or run it first.",
                    option="out",
                )
            folder.mkdir(parents=True, exist_ok=True)
            atomic_write_text(settings, json.dumps(wanted, indent=2) + "\n")
        self.settings: dict[str, Any] = json.loads(settings.read_text(encoding="utf-8"))
        if wanted is not None:
            wanted = json.loads(json.dumps(wanted))
            differing = sorted(key for key in wanted if self.settings.get(key) != wanted[key])
            if differing:
                raise InvalidOption(
                    f"{folder} was begun with another {', '.join(differing)}.",
                    "Name another folder with --out, repeat the old settings, or remove the folder.",
                    option="out",
                    value=str(folder),
                )
        if (folder / _TABLE).exists():
            with (folder / _TABLE).open(encoding="utf-8", newline="") as file:
                self._append(
                    [{**row, **{name: float(row[name]) for name in _MEASURES}} for row in csv.DictReader(file)]
                )

    @property
    def streams(self) -> list[str]:
        return sorted({stream for stream, _, _ in self._values})

    @property
    def mechanisms(self) -> list[str]:
        return sorted({mechanism for _, _, mechanism in self._values})

    def values(self, stream: str, setting: str, mechanism: str, measure: str) -> FloatArray | None:
        """Return one value per repeat; None if it was not run or not measured."""
        rows = self._values.get((stream, setting, mechanism))
        values = np.array([row[measure] for row in rows or ()], dtype=np.float64)
        return None if rows is None or np.isnan(values).any() else values

    def is_finished(self, stream: str, setting: str) -> bool:
        """Return whether a setting has been run on a stream."""
        return (stream, setting, self.settings["mechanisms"][0]) in self._values

    def add(self, rows: Sequence[Row]) -> None:
        """Store the rows of one stream and setting: the table on disk has all of them or none."""
        self._append(rows)
        text = io.StringIO()
        writer = csv.DictWriter(text, [*_KEYS, *_MEASURES], lineterminator="\n")
        writer.writeheader()
        writer.writerows(self._rows)
        atomic_write_text(self.folder / _TABLE, text.getvalue())

    def _append(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._rows.append(row)
            self._values.setdefault((row["stream"], row["setting"], row["mechanism"]), []).append(row)


def open_streams(names: Sequence[str], campaign: Campaign, data: Path) -> tuple[dict[str, Stream], dict[str, str]]:
    """Return the streams by name, and why the others (the real ones without their files) are absent."""
    found: dict[str, Stream] = {}
    absent = {}
    for name in names:
        users = None if name in REAL else campaign.users
        try:
            found[name] = open_stream(StreamRequest(name, users, campaign.slots, campaign.variant, data))
        except InvalidOption as error:
            absent[name] = str(error)
    return found, absent


def run(
    results: Results,
    campaign: Campaign,
    streams: Mapping[str, Stream],
    settings: Sequence[str],
    *,
    jobs: int,
    progress: Progress,
) -> None:
    """Run what is not finished yet, a setting of a stream at a time; report each to `progress`."""
    tasks = [(stream, setting) for stream in streams for setting in settings]
    for number, (stream, setting) in enumerate(tasks):
        progress(f"{stream}, {setting}", number, len(tasks))
        if not results.is_finished(stream, setting):
            results.add(_run_setting(campaign, stream, streams[stream], setting, jobs))
    progress("all", len(tasks), len(tasks))


def _run_setting(campaign: Campaign, name: str, stream: Stream, key: str, jobs: int) -> list[Row]:
    """Publish with every mechanism; times are taken of settings that a figure of times has."""
    setting = SETTINGS[key]
    compared = compare(
        stream,
        campaign.mechanisms,
        assigner=setting.assigner,
        repeats=campaign.repeats,
        seed=campaign.seed,
        processes=jobs,
        timed_slots=campaign.timed_slots if {"epsilon", "window"} & set(setting.places) else 0,
    )
    return [
        {
            "stream": name,
            "setting": key,
            "mechanism": row.mechanism,
            "repeat": repeat + 1,
            **{measure: float(getattr(row.scores, measure)[repeat]) for measure in _MEASURES[:-1]},
            "ms_per_slot": row.ms_per_slot,
        }
        for row in compared.ranked
        for repeat in range(campaign.repeats)
    ]
