"""`wevent releases`: some slots, some cells, the same numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import call, publish, run, write_stream
from wevent import read_releases

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("stream")
    write_stream(place)
    assert publish(place, 20, "--mechanism", "pft").code == 0
    return place


def printed(folder: Path, *options: str) -> list[dict[str, Any]]:
    done = run(folder, "releases", "run.journal", *options)
    assert done.code == 0, done
    return [json.loads(line) for line in done.out.splitlines()]


def test_a_range_of_slots(folder: Path) -> None:
    whole = (folder / "out.ndjson").read_text().splitlines(keepends=True)
    assert run(folder, "releases", "run.journal").out == "".join(whole)
    assert run(folder, "releases", "run.journal", "--from", "5", "--to", "9").out == "".join(whole[4:9])
    assert run(folder, "releases", "run.journal", "--to", "1", "--follow").out == whole[0]
    assert run(folder, "releases", "run.journal", "--from", "21").out == ""


def test_slots_by_their_times(folder: Path) -> None:
    """As `plot` takes them: a slot that starts at --to is not in it."""
    times = ("--from", "2026-01-01T00:04:00Z", "--to", "2026-01-01T00:09:00Z")
    assert [line["slot"] for line in printed(folder, *times)] == [5, 6, 7, 8, 9]
    between = ("--from", "2026-01-01T00:03:30", "--to", "2026-01-01T00:08:30")
    assert [line["slot"] for line in printed(folder, *between)] == [5, 6, 7, 8, 9]
    assert printed(folder, "--from", "2025-01-01", "--to", "1")[0]["slot"] == 1


def test_no_slot_is_said_to_be_none(folder: Path) -> None:
    done = call(folder, "releases", "run.journal", "--from", "21")
    assert (done.code, done.out) == (0, "")
    assert "No slot from 21 on: the last one is 20." in done.err
    assert not call(folder, "releases", "run.journal", "--from", "21", "--quiet").err
    beyond = call(folder, "releases", "run.journal", "--from", "9" * 30)
    assert beyond.code == 0, "a whole journal was said to be damaged"


def test_some_cells(folder: Path) -> None:
    whole = [json.loads(line) for line in (folder / "out.ndjson").read_text().splitlines()]
    found = printed(folder, "--cells", "3, 1", "--from", "2")
    assert [line["slot"] for line in found] == list(range(2, 21))
    for part, line in zip(found, whole[1:], strict=True):
        assert part["cells"] == [1, 3]
        for field in ("histogram", "std_error", "low", "high"):
            assert part[field] == (None if line[field] is None else [line[field][1], line[field][3]])
        rest = {
            key: value for key, value in line.items() if key not in ("cells", "histogram", "std_error", "low", "high")
        }
        assert rest.items() <= part.items()
    rows = run(folder, "releases", "run.journal", "--cells", "3", "--to", "2", "--format", "csv").out.splitlines()
    assert [row.split(",")[3] for row in rows] == ["cell", "3", "3"]


@pytest.mark.parametrize("ending", ["ndjson", "csv", "parquet"])
def test_a_part_in_a_file(ending: str, folder: Path) -> None:
    options = ("--from", "3", "--to", "8", "--cells", "0,2", "--out", f"part.{ending}")
    assert call(folder, "releases", "run.journal", *options).code == 0
    part = read_releases(folder / f"part.{ending}").columns
    whole = read_releases(folder / "run.journal").columns
    kept = [row for row, slot in enumerate(whole["slot"]) if 3 <= slot <= 8 and whole["cell"][row] in ("0", "2")]
    assert part == {name: [column[row] for row in kept] for name, column in whole.items()}
    before = (folder / f"part.{ending}").read_bytes()
    again = call(folder, "releases", "run.journal", *options)
    assert again.code == 2
    assert "needs a new file" in again.err
    assert (folder / f"part.{ending}").read_bytes() == before


def test_all_in_a_file_goes_on_where_it_ended(folder: Path) -> None:
    for _ in range(2):
        assert call(folder, "releases", "run.journal", "--out", "all.ndjson").code == 0
        assert (folder / "all.ndjson").read_bytes() == (folder / "out.ndjson").read_bytes()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--from", "9", "--to", "3"), "The last slot is before the first (--from 9 --to 3)."),
        (("--cells", "north,9"), "The journal declares no cells '9', 'north'. It has 4, such as 0, 1, 2, 3."),
        (("--cells", ""), "No cells are chosen."),
        (("--cells", '"1'), "in double quotes"),
        (("--to", "0"), "--to"),
        (("--from", "yesterday"), "--from must be a time such as 2026-01-01T00:00:00Z, not 'yesterday'."),
        (("--follow", "--out", "all.ndjson"), "--follow and --out exclude each other."),
    ],
)
def test_mistakes(options: tuple[str, ...], said: str, folder: Path) -> None:
    done = call(folder, "releases", "run.journal", *options)
    assert done.code == 2
    assert said in done.err


def test_labels_with_commas(tmp_path: Path) -> None:
    write_stream(tmp_path)
    text = (tmp_path / "events.csv").read_text().splitlines()
    (tmp_path / "events.csv").write_text(
        "\n".join([text[0], *(f'{line[:-1]}"a,{line[-1]}"' for line in text[1:])]) + "\n"
    )
    (tmp_path / "cells.txt").write_text("".join(f"a,{cell}\n" for cell in range(4)))
    assert publish(tmp_path, 5, "--cells", "cells.txt").code == 0
    assert {tuple(line["cells"]) for line in printed(tmp_path, "--cells", '"a,1","a,2"')} == {("a,1", "a,2")}
