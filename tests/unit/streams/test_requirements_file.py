"""The requirements file."""

import csv
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.profiles import examples
from wevent import Levels
from wevent.errors import InvalidInput, InvalidRequirement, WeventError
from wevent.streams import read_requirements

pytestmark = pytest.mark.slow


def write(folder: Path, text: str, name: str = "requirements.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_levels_and_text_ids(tmp_path: Path) -> None:
    path = write(tmp_path, "user,privacy,window\nanna,High,Small\n7,Low,Large\n007,Low,Large\n")
    ids, keys, words, *_ = read_requirements(path, None)
    windows, nanos = (np.array(column) for column in zip(*keys, strict=True))
    assert words is not None
    assert words == ["High/Small", "Low/Large", "Low/Large"]
    assert ids.tolist() == ["anna", "7", "007"]
    assert windows.tolist() == [40, 120, 120]
    assert nanos.tolist() == [100_000_000, 900_000_000, 900_000_000]
    with pytest.raises(InvalidRequirement, match="level"):
        read_requirements(path, Levels({"Strong": 1}, {"Small": 2}))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not there"):
        read_requirements(tmp_path / "missing.csv")


LEVELS = Levels({"High": "0.1", "Low": 1}, {"Hour": 60, "Day": 1440}, {"strict": "High/Day"})
HOUR, DAY = (60, 1_000_000_000), (1440, 100_000_000)


@pytest.mark.parametrize(
    ("text", "keys", "words"),
    [
        ("user,level\na,Low/Hour\nb,strict\n", [HOUR, DAY], ["Low/Hour", "strict"]),
        ("user,privacy,window\na,Low,Hour\nb,High,Day\n", [HOUR, DAY], ["Low/Hour", "High/Day"]),
        ("user,window,epsilon\na,60,1\nb,24h,0.1\n", [HOUR, DAY], None),
        ("epsilon,level,user,window\n,Low/Hour,a,\n0.1,,b,1440\n", [HOUR, DAY], ["Low/Hour", None]),
        ("user,window,epsilon,level\na,60,1,Low/Hour\nb,1440,0.1,\n", [HOUR, DAY], ["Low/Hour", None]),
        ("user,level,privacy,window,epsilon\na,,Low,Hour,\nb,strict,,1d,0.1\n", [HOUR, DAY], ["Low/Hour", "strict"]),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "ndjson", "parquet"])
def test_levels_words_and_numbers_may_stand_in_one_file(
    tmp_path: Path, text: str, keys: list[tuple[int, int]], words: list[str | None] | None, ending: str
) -> None:
    path = write(tmp_path, text)
    if ending == "ndjson":
        rows = list(csv.DictReader(text.splitlines()))
        path = write(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "requirements.ndjson")
    elif ending == "parquet":
        duckdb.execute(f"COPY (FROM read_csv('{path}', all_varchar = true)) TO '{path}.parquet' (FORMAT parquet)")
        path = path.with_name(path.name + ".parquet")
    asked = read_requirements(path, LEVELS, slot_us=60_000_000)
    assert (asked.users.tolist(), list(asked.keys), asked.words, asked.notes) == (["a", "b"], keys, words, ())


def test_columns_have_the_names_that_were_declared(tmp_path: Path) -> None:
    path = write(tmp_path, "id,window,epsilon,plan\na,left,right,strict\n")
    asked = read_requirements(path, LEVELS, columns={"user": "id", "level": "plan"})
    assert (asked.users.tolist(), asked.words) == (["a"], ["strict"])
    with pytest.raises(InvalidInput, match=r"declared as id, package.*'plan'.*\[requirements_columns\]"):
        read_requirements(path, LEVELS, columns={"user": "id", "level": "package"})
    with pytest.raises(InvalidInput, match=r"user and level"):
        read_requirements(write(tmp_path, "user,user,level\na,b,strict\n"), LEVELS)


def test_a_duration_is_rounded_up_to_whole_slots_and_that_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, "user,window,epsilon\na,90m,1\nb,2h,1\nc,90m,1\n")
    asked = read_requirements(path, slot_us=3_600_000_000)
    assert [window for window, _ in asked.keys] == [2, 2, 2]
    assert asked.notes == ("Window 90m is no whole number of slots: it covers 2 slots (2 hours).",)
    with pytest.raises(InvalidRequirement, match=r"line 2: .*'90m'.*numbers and no length.* Write the number"):
        read_requirements(path)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("c,,,", r"line 6: The row has an empty field\."),
        ("c,,60,", r"line 6: The row has an empty field\."),
        (",strict,,", r"line 6: The row has no id\."),
        ("a,strict,,", r"line 6: the id is in line 2 too"),
        ("é" * 129 + ",strict,,", r"line 6: No event can have this id\. .*at most 256 bytes"),
        ("c,srtict,,", r"line 6: Unknown level 'srtict'\. Did you mean 'strict'\?"),
        ("c,strict,60,1", r"line 6: Level 'strict' stands beside other fields than the window and epsilon"),
        ("c,,Day,1", r"line 6: .*a whole number of slots or a duration such as 24h, not 'Day'"),
        ("c,,60,99", r"line 6: .*Epsilon must be greater than 0 and at most 50, not '99'"),
        ("c,strict", r"line 6 is no row"),
    ],
)  # fmt: skip
def test_every_mistake_names_file_and_line_and_no_id(tmp_path: Path, row: str, sentence: str) -> None:
    path = write(tmp_path, f"user,level,window,epsilon\na,strict,,\n\n\r\nb,Low/Hour,,\n{row}\n")
    with pytest.raises(WeventError, match=sentence) as caught:
        read_requirements(path, LEVELS, slot_us=60_000_000)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert "Levels(" not in str(caught.value)


def test_a_row_of_a_parquet_file_is_named_by_its_number(tmp_path: Path) -> None:
    target = tmp_path / "requirements.parquet"
    duckdb.execute(f"COPY (SELECT i AS \"user\", 60 AS window, 9 * i AS epsilon FROM range(1, 9) t(i)) TO '{target}'")
    with pytest.raises(InvalidRequirement, match=r"row 6: .*'54'"):
        read_requirements(target)


_TEXT = st.text(st.sampled_from(' "ü1a,0-'), max_size=4)
_ROW = st.tuples(_TEXT, st.sampled_from(["4", " 4", "7 ", ""]), st.sampled_from(["1", "0.5", "0.50 ", "nine", ""]))


@examples(50)
@given(rows=st.lists(_ROW, max_size=12), long=st.booleans())
def test_delimited_files_are_read_as_objects_are(rows: list[tuple[str, str, str]], long: bool) -> None:
    if long:
        rows = [*rows, ("ü" * 129, "4", "1")]
    found: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with (place / "asked.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(
                [("user", "window", "epsilon"), *rows]
            )
        names = ("user", "window", "epsilon")
        objects = [json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows]
        (place / "asked.ndjson").write_text("".join(objects) or "\n", encoding="utf-8")
        for name in ("asked.csv", "asked.ndjson"):
            try:
                asked = read_requirements(place / name)
            except WeventError as error:
                lines = [int(line) - name.endswith("csv") for line in re.findall(r"line (\d+)", str(error))]
                found.append((type(error), lines, re.sub(r"line \d+", "line", str(error)).replace(name, "")))
            else:
                found.append((asked.users.tolist(), list(asked.keys), asked.words))
    if rows:
        assert found[0] == found[1]
    else:
        assert found[0][0] is InvalidInput


@pytest.mark.parametrize("line", ["rider-0815,40,0.5", "rider-0815,High/Large", "rider@example.org,High,Large"])
def test_a_file_without_a_header_shows_nobody(tmp_path: Path, line: str) -> None:
    (tmp_path / "users.csv").write_text(f"{line}\n")
    with pytest.raises(InvalidInput, match="is the header line missing") as caught:
        read_requirements(tmp_path / "users.csv")
    assert "rider" not in str(caught.value)
