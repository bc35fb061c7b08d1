"""`wevent.publish` for programs: frames in, releases back; the clock, the cells and a journal are never guessed."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import wevent
from tests.support.commands import write_stream

pytestmark = pytest.mark.slow

DECLARED: dict[str, Any] = {
    "slot": "60s",
    "start": "2026-01-01T00:00:00Z",
    "end": "2026-01-01T00:10:00Z",
    "cells": 4,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_stream(tmp_path)
    return tmp_path


@pytest.fixture
def events(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "events.csv", parse_dates=["time"])


def call(folder: Path, events: Any, **changes: Any) -> wevent.RunReport:
    given = {**DECLARED, "requirements": folder / "users.csv", "journal": folder / "run.journal", **changes}
    return wevent.publish(events, **given)


def test_a_frame_in_and_releases_back(folder: Path, events: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    report = call(folder, events, requirements=pd.read_csv(folder / "users.csv"))
    assert (report.summary.first, report.summary.last) == (1, 10)
    assert "300" not in repr(report).replace(str(report.journal), "")  # private numbers are shown to who asks for them
    assert (report.totals["events"], report.totals["rejected"], report.totals["malformed"]) == (300, 600, 0)
    releases = report.releases().to_pandas()
    assert releases["slot"].tolist() == [slot for slot in range(1, 11) for _ in range(4)]
    assert releases["mechanism"].unique().tolist() == ["pft"]
    assert capsys.readouterr().out == ""  # nothing was asked to be printed
    assert wevent.verify_journal(folder / "run.journal").ok
    assert sorted(path.name for path in folder.iterdir()) == [
        "events.csv",
        "run.journal",
        "run.journal.witness",
        "users.csv",
    ]  # and no file with events


def test_releases_that_are_nowhere_else_are_not_dropped(folder: Path, events: pd.DataFrame) -> None:
    with pytest.raises(wevent.InvalidOption, match=r"There is no output.* grows with every slot"):
        call(folder, events, options=wevent.RunOptions(keep=5))
    report = call(folder, events, options=wevent.RunOptions(keep=5), out=folder / "out.ndjson")
    assert report.summary.last == 10


def test_empty_slots_are_filled(folder: Path, events: pd.DataFrame) -> None:
    gap = events[(events.time < "2026-01-01T00:03Z") | (events.time >= "2026-01-01T00:07Z")]
    assert len(set(call(folder, gap).releases().columns["slot"])) == 10
    nobody = call(folder, events.iloc[:0].astype({"time": "datetime64[us, UTC]"}), journal=folder / "empty.journal")
    assert len(set(nobody.releases().columns["slot"])) == 10


def test_it_resumes_with_a_longer_frame_or_with_files(folder: Path, events: pd.DataFrame) -> None:
    call(folder, events[events.time < "2026-01-01T00:10Z"], out=folder / "out.csv")
    before = (folder / "out.csv").read_bytes()
    assert call(folder, pl.from_pandas(events), end="2026-01-01T00:20:00Z", requirements=None).summary.first == 11
    report = call(folder, folder / "events.csv", end="2026-01-01T00:30:00Z", out=folder / "out.csv")
    assert (report.summary.first, report.summary.last, report.summary.sent_again) == (21, 30, 10)
    assert (folder / "out.csv").read_bytes().startswith(before)
    assert wevent.verify_journal(folder / "run.journal").ok
    assert len(set(report.releases().columns["slot"])) == 30


def test_the_same_people_in_memory_are_imported_once(folder: Path, events: pd.DataFrame) -> None:
    people = {user: wevent.Requirement(4, "0.5") for user in range(60)}
    assert call(folder, events, requirements=people).imported is None
    again = call(folder, events, requirements=people, end="2026-01-01T00:12:00Z")
    assert again.imported is None
    people[60] = wevent.Requirement(4, "0.5")
    more = call(folder, events, requirements=people, end="2026-01-01T00:14:00Z")
    assert more.imported is not None
    assert (more.imported.joining, more.imported.changing, more.imported.leaving) == (1, 0, 0)
    with pytest.raises(wevent.InvalidMembership, match="Was the file cut"):
        call(folder, events, requirements={0: wevent.Requirement(4, "0.5")}, end="2026-01-01T00:16:00Z")


def test_settings_by_name_as_of_the_command(folder: Path, events: pd.DataFrame) -> None:
    renamed = events.rename(columns={"time": "when", "user": "who", "cell": "where"})
    renamed = renamed.assign(when=renamed.when.dt.tz_localize(None))
    names = {"time_column": "when", "user_column": "who", "cell_column": "where", "timezone": "UTC"}
    start, end = (datetime.datetime(2026, 1, 1, 0, minute, tzinfo=datetime.UTC) for minute in (0, 10))
    moments = {"slot": datetime.timedelta(minutes=1), "start": start, "end": pd.Timestamp(end)}
    report = call(folder, renamed, mechanism="pbu", neighbours="replace", **moments, **names)
    assert report.totals["events"] == 300
    assert set(report.releases().columns["mechanism"]) == {"pbu"}


@pytest.mark.parametrize(
    "cells",
    [
        np.arange(4),
        np.array(["0", "1", "2", "3"]),
        pd.Series([0, 1, 2, 3]),
        pl.Series([0, 1, 2, 3]),
        wevent.Cells.of(4),
    ],
    ids=lambda cells: type(cells).__name__,
)
def test_cells_of_many_kinds(folder: Path, events: pd.DataFrame, cells: Any) -> None:
    assert set(map(str, call(folder, events, cells=cells).releases().columns["cell"])) == {"0", "1", "2", "3"}


def test_a_slot_column(folder: Path, events: pd.DataFrame) -> None:
    slotted = events.assign(slot_number=events.time.dt.minute + 1)
    report = call(folder, slotted, slot=None, start=None, end=10, slot_column="slot_number")
    assert (report.summary.last, report.totals["events"]) == (10, 300)


def test_settings_from_a_file_with_a_frame_on_top(folder: Path, events: pd.DataFrame) -> None:
    lines = ['slot = "60s"', 'start = "2026-01-01T00:00:00Z"', 'end = "2026-01-01T00:05:00Z"', "cells = 4"]
    lines += ['requirements = "users.csv"', 'journal = "run.journal"', 'inputs = ["nothing.csv"]']
    (folder / "wevent.toml").write_text("\n".join(lines))
    assert wevent.publish(events, config=folder / "wevent.toml").summary.last == 5


def test_a_configuration_file_alone_is_what_it_was(folder: Path) -> None:
    lines = ['slot = "60s"', 'start = "2026-01-01T00:00:00Z"', 'end = "2026-01-01T00:05:00Z"', "cells = 4"]
    lines += ['requirements = "users.csv"', 'journal = "run.journal"', 'inputs = ["events.csv"]', 'out = "out.ndjson"']
    (folder / "wevent.toml").write_text("\n".join(lines))
    assert wevent.publish(folder / "wevent.toml").summary.last == 5
    assert wevent.publish(config=folder / "wevent.toml").summary.first == 6
    assert len((folder / "out.ndjson").read_text().splitlines()) == 5


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "the clock": ({"start": None, "end": None}, wevent.InvalidSettings, "start and end must be set"),
    "the cells": ({"cells": None, "slot": None}, wevent.InvalidSettings, "cells and slot must be set"),
    "the journal": ({"journal": None}, wevent.InvalidSettings, "journal must be set"),
    "people": ({"requirements": None}, wevent.InvalidSettings, "requirements must be set"),
    "a clock of the data": ({"start": "auto"}, wevent.InvalidSettings, "start must be declared"),
    "a local start": ({"start": "2026-01-01"}, wevent.InvalidSettings, "start must be a time with its offset"),
    "people of no kind": ({"requirements": 7}, wevent.InvalidInput, "a mapping of users to requirements"),
    "inputs beside events": ({"inputs": "events.csv"}, wevent.InvalidSettings, "Both events and inputs"),
    "a misspelt setting": ({"mechanisn": "pft"}, wevent.InvalidSettings, "Did you mean 'mechanism'"),
    "a setting for one run": ({"reconfigure": True}, wevent.InvalidSettings, "in Python: options"),
    "no cells": ({"cells": []}, wevent.InvalidSettings, "cells must be set"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_declared_is_refused(folder: Path, events: pd.DataFrame, case: str) -> None:
    changes, kind, said = REFUSED[case]
    with pytest.raises(kind, match=said):
        call(folder, events, **changes)
    assert not (folder / "run.journal").exists()


@pytest.mark.parametrize("odd", [7, [], ["-"], "-", {"time": [1]}, [pd.DataFrame()], pd.Series([1])], ids=repr)
def test_events_of_no_kind(folder: Path, odd: Any) -> None:
    with pytest.raises(wevent.InvalidInput, match=r"data frame"):
        call(folder, odd)


def test_frames_of_polars_need_no_pyarrow(folder: Path) -> None:
    code = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name.startswith('pyarrow') else find(name, *more)\n"
        "sys.modules['pyarrow'] = None\n"
        "import polars, wevent\n"
        "events = polars.read_csv('events.csv', try_parse_dates=True)\n"
        f"done = wevent.publish(events, requirements='users.csv', journal='run.journal', **{DECLARED!r})\n"
        "print(done.summary.last, done.totals['events'])\n"
    )
    environment = {"PYTHONPATH": str(Path(wevent.__file__).parents[1]), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.stdout == "10 300\n", done.stderr
