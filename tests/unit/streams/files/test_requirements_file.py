"""The requirements file."""

import csv
import json
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wevent import Levels
from wevent.errors import InvalidInput, InvalidRequirement, InvalidRoster, WeventError
from wevent.streams import read_requirements

pytestmark = pytest.mark.slow


def write(folder: Path, text: str, name: str = "requirements.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, "user,window,epsilon\n3,40,0.6\n1,80,1.001\n2,40,0.6\n")
    ids, keys, _ = read_requirements(path)
    windows, nanos = (np.array(column) for column in zip(*keys, strict=True))
    assert ids.dtype.kind == "i"
    assert ids.tolist() == [3, 1, 2]
    assert windows.tolist() == [40, 80, 40]
    assert nanos.tolist() == [600_000_000, 1_001_000_000, 600_000_000]


def test_levels_and_text_ids(tmp_path: Path) -> None:
    path = write(tmp_path, "user,privacy,window\nanna,High,Small\n7,Low,Large\n007,Low,Large\n")
    ids, keys, words = read_requirements(path, None)
    windows, nanos = (np.array(column) for column in zip(*keys, strict=True))
    assert words is not None
    assert all("/" in word for word in words)
    assert ids.tolist() == ["anna", "7", "007"]
    assert windows.tolist() == [40, 120, 120]
    assert nanos.tolist() == [100_000_000, 900_000_000, 900_000_000]
    with pytest.raises(InvalidRequirement, match="level"):
        read_requirements(path, Levels({"Strong": 1}, {"Small": 2}))


def test_parquet_and_ndjson(tmp_path: Path) -> None:
    target = tmp_path / "requirements.parquet"
    duckdb.execute(f"COPY (SELECT 5 AS \"user\", 40 AS window, 0.6 AS epsilon) TO '{target}' (FORMAT parquet)")
    ids, keys, _ = read_requirements(target)
    windows, nanos = (np.array(column) for column in zip(*keys, strict=True))
    assert (ids.tolist(), windows.tolist(), nanos.tolist()) == ([5], [40], [600_000_000])
    path = write(tmp_path, '{"user": 5, "window": 40, "epsilon": 0.6}\n', "requirements.ndjson")
    ids, keys, _ = read_requirements(path)
    assert (ids.tolist(), list(keys)) == ([5], [(40, 600_000_000)])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("user,window\n1,40\n", InvalidInput),
        ("user,window,epsilon\n", InvalidInput),
        ("user,window,epsilon\n1,40,\n", InvalidInput),
        ("user,window,epsilon\n1,40\n", InvalidInput),
        ("user,window,epsilon\n1,40,0.5\n1,40,0.5\n", InvalidRoster),
        ("user,window,epsilon\n1,Small,0.5\n", InvalidRequirement),
        ("user,window,epsilon\n1,40,99\n", InvalidRequirement),
        ("user,privacy,window\n1,Highest,Small\n", InvalidRequirement),
    ],
)
def test_one_sentence_per_mistake(tmp_path: Path, text: str, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        read_requirements(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not there"):
        read_requirements(tmp_path / "missing.csv")


_TEXT = st.text(st.sampled_from(' "ü1a,0-'), max_size=4)
_ROW = st.tuples(_TEXT, st.sampled_from(["4", " 4", "7 ", ""]), st.sampled_from(["1", "0.5", "0.50 ", "nine", ""]))


@settings(deadline=None, max_examples=200)
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
                found.append((type(error), str(error).replace(name, "")))
            else:
                found.append((asked.users.tolist(), list(asked.keys), asked.words))
    if rows:
        assert found[0] == found[1]
    else:
        assert found[0][0] is InvalidInput
