"""Settings: one TOML file, options on top, every mistake one sentence that names the key."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.support.streams import DAY, SECOND
from wevent import Cells
from wevent.errors import InvalidInput, InvalidSettings, WeventError
from wevent.publishing.configuration import PUBLISHING, load_settings, read_config
from wevent.settings import Settings

OPTIONS = {"inputs": ("events.csv",), "cells": "4", "slot": "60s"}

WHOLE = """
inputs = ["events/*.parquet"]
requirements = "requirements.csv"
cells = "cells.txt"
journal = "run.journal"
out = "releases.ndjson"
slot = "5m"
start = 2026-01-01T00:00:00Z
end = "2026-01-02T00:00:00Z"
grace = "10s"
user_column = "rider"
mechanism = "pba"
unknown_users = 5

[levels.privacy]
Strong = 0.1
Weak = 1

[levels.window]
Day = 288
"""


def test_one_file_holds_everything(tmp_path: Path) -> None:
    (tmp_path / "cells.txt").write_text("# districts\nnorth\n\nsouth\n")
    config = tmp_path / "wevent.toml"
    config.write_text(WHOLE)
    settings = load_settings(config, {"mechanism": "pbd", "strict": True, "out": None})
    assert isinstance(settings, Settings)
    assert settings.inputs == (str(tmp_path / "events/*.parquet"),)
    assert settings.journal == tmp_path / "run.journal"
    assert settings.out == str(tmp_path / "releases.ndjson")
    assert settings.cells == Cells.of(["north", "south"])
    assert (settings.slot_us, settings.start_us, settings.grace_us) == (300 * SECOND, DAY, 10 * SECOND)
    assert settings.end_us == DAY + 86_400 * SECOND
    assert dict(settings.columns) == {"time": "time", "user": "rider", "cell": "cell"}
    assert (settings.mechanism, settings.strict, settings.unknown_users) == ("pbd", True, 5)
    assert settings.levels is not None
    assert settings.levels.requirement("Strong", "Day").nano == 100_000_000
    assert read_config(config)["journal"] == tmp_path / "run.journal"


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    """What Windows editors write first: the first cell would be one that no event is in."""
    (tmp_path / "cells.txt").write_text("north\nsouth\n", encoding="utf-8-sig")
    config = tmp_path / "wevent.toml"
    config.write_text(WHOLE, encoding="utf-8-sig")
    assert load_settings(config, {}).cells == Cells.of(["north", "south"])


def test_many_labels_are_no_file_with_a_long_name() -> None:
    labels = [f"cell-{number}" for number in range(1000)]
    assert load_settings(None, {**OPTIONS, "cells": ",".join(labels)}).cells == Cells.of(labels)


def test_options_alone_suffice() -> None:
    settings = load_settings(None, {**OPTIONS, "start": "auto", "max_cells_per_user": "2", "timezone": "+01:00"})
    assert settings.start_auto
    assert (settings.start_us, settings.end_us, settings.timezone_us) == (None, None, 3600 * SECOND)
    assert settings.max_cells_per_user == 2
    assert len(settings.cells) == 4


def test_data_already_slotted_has_numbers_for_a_clock() -> None:
    settings = load_settings(None, {"inputs": "e.csv", "cells": 4, "slot_column": "slot", "end": "12"})
    assert (settings.slot_us, settings.start_us, settings.end_us) == (1, 0, 12)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("inputs", ("-", "a.csv")),
        ("inputs", 5),
        ("cells", None),
        ("slot", None),
        ("slot", "0s"),
        ("start", "2026-10-25T02:30"),
        ("start", "soon"),
        ("end", "2026-01-01T00:00:59Z"),
        ("end", "auto"),
        ("timezone", "Europe/Berlin"),
        ("grace", "a while"),
        ("engine", "spark!"),
        ("close_slots_by", "never"),
        ("strict", "yes"),
        ("max_cells_per_user", 0),
        ("unknown_users", -1),
        ("mechanism", ""),
        ("levels", {"privacy": {}}),
        ("levels", {"privacy": {"a": 1}, "window": {"b": "soon"}}),
        ("levels", {"privacy": {"a": 1}, "window": {"b": 4}, "combined": {"c": "b/a"}}),
        ("requirements_columns", {"users": "id"}),
        ("requirements_columns", {"user": "id", "window": "id"}),
    ],
)
def test_a_mistake_is_one_sentence_that_names_its_key(key: str, value: Any) -> None:
    options = {**OPTIONS, "start": "2026-01-01T00:00:00Z", key: value}
    with pytest.raises(InvalidSettings) as caught:
        load_settings(None, options)
    assert caught.value.key == key
    assert key in str(caught.value)


@pytest.mark.parametrize("others", [{"slot": "60s"}, {"start": "2026-01-01T00:00:00Z"}, {"end": "2026-01-01"}])
def test_a_slot_column_leaves_no_room_for_a_clock(others: dict[str, str]) -> None:
    with pytest.raises(InvalidSettings, match="beside slot_column"):
        load_settings(None, {"inputs": "e.csv", "cells": 4, "slot_column": "slot", **others})


def test_an_unknown_key_suggests_the_nearest(tmp_path: Path) -> None:
    config = tmp_path / "wevent.toml"
    config.write_text('mechanisn = "pbd"\n')
    with pytest.raises(InvalidSettings, match="Did you mean 'mechanism'"):
        load_settings(config, OPTIONS)
    with pytest.raises(InvalidSettings, match="Known are"):
        load_settings(None, {**OPTIONS, "xyzzy": 1})


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="not readable"):
        load_settings(tmp_path / "missing.toml", {})
    (tmp_path / "bad.toml").write_text("slot = \n")
    with pytest.raises(InvalidSettings, match="TOML"):
        load_settings(tmp_path / "bad.toml", {})


def test_a_missing_file_of_cells_is_no_list_of_labels_whatever_its_folder_is_called(tmp_path: Path) -> None:
    folder = tmp_path / "events, 2026"
    folder.mkdir()
    (folder / "stream.toml").write_text('cells = "zones.txt"\ninputs = "e.csv"\nslot = "1h"\n')
    with pytest.raises(InvalidInput, match="no such file"):
        load_settings(folder / "stream.toml", {})


def test_cells_from_a_column_or_a_list(tmp_path: Path) -> None:
    (tmp_path / "cells.csv").write_text("id,cell\n1,north\n2,south\n")
    assert list(load_settings(None, {**OPTIONS, "cells": tmp_path / "cells.csv"}).cells) == ["north", "south"]
    assert list(load_settings(None, {**OPTIONS, "cells": ["a", "b"]}).cells) == ["a", "b"]
    assert list(load_settings(None, {**OPTIONS, "cells": "north, south,east"}).cells) == ["north", "south", "east"]
    (tmp_path / "a,b.txt").write_text("west\n")
    assert list(load_settings(None, {**OPTIONS, "cells": str(tmp_path / "a,b.txt")}).cells) == ["west"]
    (tmp_path / "stream.toml").write_text('cells = "north,south"\ninputs = "e.csv"\nslot = "1h"\n')
    assert list(load_settings(tmp_path / "stream.toml", {}).cells) == ["north", "south"]
    assert list(load_settings(None, {**OPTIONS, "cells": '"old town, west",north'}).cells) == [
        "old town, west",
        "north",
    ]
    with pytest.raises(InvalidInput, match="labels with commas"):
        load_settings(None, {**OPTIONS, "cells": "north"})
    with pytest.raises(InvalidInput):
        load_settings(None, {**OPTIONS, "cells": "missing.csv"})
    (tmp_path / "twice.txt").write_text("north\nnorth\n")
    with pytest.raises(WeventError, match="twice"):
        load_settings(None, {**OPTIONS, "cells": tmp_path / "twice.txt"})


def test_windows_of_levels_may_be_durations_and_are_rounded_up() -> None:
    table = {"privacy": {"High": "0.1"}, "window": {"day": "24h", "ten": 10}, "combined": {"strict": "High/day"}}
    settings = load_settings(None, {**OPTIONS, "slot": "100min", "levels": table})
    assert settings.levels is not None
    assert dict(settings.levels.window) == {"day": 15, "ten": 10}
    assert settings.levels.choose("strict").window == 15
    assert settings.notes == ("Window 24h is no whole number of slots: it covers 15 slots (1 day 1 hour).",)
    assert load_settings(None, {**OPTIONS, "levels": table}).notes == ()
    with pytest.raises(InvalidSettings, match="slot_column") as caught:
        load_settings(None, {"inputs": "e.csv", "cells": 4, "slot_column": "slot", "end": "12", "levels": table})
    assert caught.value.key == "levels"


def test_columns_of_requirements_have_names_of_their_own() -> None:
    columns = {"user": "customer", "level": "plan"}
    assert load_settings(None, {**OPTIONS, "requirements_columns": columns}).requirements_columns == columns
    assert load_settings(None, {**OPTIONS, "requirements_columns": {"user": "user"}}).requirements_columns == {}


@pytest.mark.parametrize(
    ("given", "also", "named"),
    [
        ({}, (), "Give EVENTS, --cells and --slot,"),
        ({"inputs": "e.csv", "cells": "", "slot": ""}, (), "Give --cells and --slot,"),
        ({}, PUBLISHING, "Give EVENTS, --cells, --slot, --journal, --requirements, --start and --end,"),
        ({"inputs": "-", "cells": 2, "slot": "1s"}, PUBLISHING, "Give --journal and --requirements,"),
        ({"inputs": "e.csv", "cells": 2, "slot_column": "s"}, PUBLISHING, "--journal, --requirements and --end,"),
        ({"inputs": "e.csv", "cells": 2, "slot": "1s", "start": "auto"}, PUBLISHING, "--journal and --requirements,"),
    ],
)
def test_all_that_is_missing_is_named_at_once(given: dict[str, Any], also: tuple[str, ...], named: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        load_settings(None, given, also)
    assert named in str(caught.value)


def test_a_journal_that_exists_knows_its_people_and_its_start(tmp_path: Path) -> None:
    (tmp_path / "run.journal").touch()
    given = {"inputs": "e.csv", "cells": 2, "slot": "1s", "journal": str(tmp_path / "run.journal")}
    with pytest.raises(InvalidSettings, match="end must be set"):
        load_settings(None, given, PUBLISHING)


def test_blanks_in_a_file_are_named_together(tmp_path: Path) -> None:
    config = tmp_path / "wevent.toml"
    config.write_text(
        'inputs = ["e.csv"]\ncells = ""\nslot = "1m"\nstart = ""\nend = ""\njournal = "j"\nrequirements = "r"\n'
    )
    with pytest.raises(InvalidSettings, match="cells, start and end must be set"):
        load_settings(config, {}, PUBLISHING)


def days_of(calendar: Any) -> tuple[date, ...] | None:
    return load_settings(None, {**OPTIONS, "special_days": calendar}).days


def test_days_of_a_file_or_a_list(tmp_path: Path) -> None:
    file = tmp_path / "days.csv"
    file.write_text("kind,day\nholiday,2026-12-25\nsunday,2026-01-04\nagain,2026-01-04\n")
    days = (date(2026, 1, 4), date(2026, 12, 25))
    assert days_of(file) == days_of(str(file)) == days_of(["2026-12-25", date(2026, 1, 4)]) == days
    lines = tmp_path / "days.txt"
    lines.write_text("# closed\n2026-12-25\n\n2026-01-04\n")
    assert days_of(lines) == days
    assert days_of("none") == ()


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not there"):
        days_of(tmp_path / "none.csv")
    with pytest.raises(InvalidInput, match="is a folder"):
        days_of(tmp_path)


def test_the_first_day_is_never_taken_for_a_heading(tmp_path: Path) -> None:
    file = tmp_path / "days.csv"
    for text, said in (
        ("2026-01-03\n2026-01-04\n", "header line missing"),
        ("date\n2026-01-03\n", "'date'. Give the column the heading day"),
        ("day;kind\n2026-01-03;sunday\n", "separated by"),
    ):
        file.write_text(text)
        with pytest.raises(InvalidInput, match="has no column day") as caught:
            days_of(file)
        assert said in str(caught.value)


@pytest.mark.parametrize("text", ["slot = " + "[" * 100_000, "cells = " + "9" * 5_000], ids=["deep", "long"])
def test_endless_values_are_no_configuration(text: str, tmp_path: Path) -> None:
    (tmp_path / "w.toml").write_text(text)
    with pytest.raises(InvalidSettings, match="is no TOML"):
        read_config(tmp_path / "w.toml")
