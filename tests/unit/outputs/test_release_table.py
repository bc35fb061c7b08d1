"""Releases read back: the same table from every format and from the journal; one sentence for what is none."""

from __future__ import annotations

import gzip
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.support.publications import publish
from tests.support.synthetic import make_journal
from wevent import InvalidInput, InvalidJournal, InvalidOption, ReleaseTable, read_releases
from wevent.outputs import open_output
from wevent.outputs.lines import COLUMNS, CSV_HEADER

CELLS = ["north", 7, "a,b", 'say "hi"', "", "ü"]
KINDS = {"pft": {}, "bd": {}, "pbd": {}, "numbers alone": {"length_us": 1, "mechanism": "bd", "cells": 6}}


@pytest.fixture(scope="module", params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal and its releases in every format."""
    place = tmp_path_factory.mktemp("releases")
    terms: dict[str, Any] = {"mechanism": request.param, "cells": CELLS, **KINDS[request.param]}
    with make_journal(place / "run.journal", **terms) as journal:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tests.support.synthetic.SyntheticSource.__init__.__defaults__", (6,))
            for name in ("out.ndjson", "out.csv", "out.parquet"):
                publish(journal, place / name, 40, batch=8)
        for name in ("out.ndjson", "out.csv"):
            (place / f"{name}.gz").write_bytes(gzip.compress((place / name).read_bytes()))
    return place


def test_the_same_table_from_every_format(folder: Path) -> None:
    table = read_releases(folder / "run.journal")
    assert len(table) == 40 * 6
    assert list(table.columns) == list(COLUMNS)
    assert {type(cell) for cell in table.columns["cell"]} == {str}
    for name in ("out.ndjson", "out.csv", "out.parquet", "out.ndjson.gz", "out.csv.gz"):
        assert read_releases(str(folder / name)) == table, name
    assert repr(table) == "<ReleaseTable 240 rows: 40 slots × 6 cells>"


def test_frames(folder: Path) -> None:
    table = read_releases(folder / "out.parquet")
    frames = table.to_pandas(), table.to_polars(), table.to_arrow()
    assert [type(frame) for frame in frames] == [pd.DataFrame, pl.DataFrame, pa.Table]
    arrow = frames[2]
    assert pl.DataFrame(table).equals(frames[1])  # through the Arrow interface
    assert pa.table(table).equals(arrow)
    assert duckdb.sql("SELECT count(*), count(measured), count(low) FROM arrow").fetchall() == [
        tuple(sum(one is not None for one in table.columns[name]) for name in ("slot", "measured", "low"))
    ]
    for name in COLUMNS:
        assert arrow[name].to_pylist() == frames[1][name].to_list() == table.columns[name]
        plain = [None if pd.isna(value) else value for value in frames[0][name].tolist()]
        assert plain == table.columns[name]
    kinds = {name: str(kind) for name, kind in frames[0].dtypes.items()}
    assert kinds["start"] == kinds["end"] == "datetime64[us, UTC]"
    assert (kinds["slot"], kinds["measured"], kinds["low"]) == ("int64", "Int64", "float64")


def test_times(folder: Path) -> None:
    table = read_releases(folder / "out.csv")
    if table.columns["start"][0] is None:
        assert set(table.columns["start"]) == set(table.columns["end"]) == {None}
    else:
        assert table.columns["start"][-1] == datetime(1970, 1, 1, 0, 39, tzinfo=UTC)
        assert table.columns["end"][-1] == datetime(1970, 1, 1, 0, 40, tzinfo=UTC)


def test_a_line_that_is_still_being_written_is_left_out(folder: Path, tmp_path: Path) -> None:
    whole = read_releases(folder / "out.ndjson")
    for name, rows in (("out.ndjson", 39 * 6), ("out.csv", 40 * 6 - 1)):
        text = (folder / name).read_bytes()
        (tmp_path / name).write_bytes(text[:-3])
        cut = read_releases(tmp_path / name)
        assert cut.columns == {column: values[:rows] for column, values in whole.columns.items()}
        for length in (0, 5, 30):
            (tmp_path / name).write_bytes(text[:length])
            assert len(read_releases(tmp_path / name)) == 0


def test_what_standard_output_sent_twice_counts_once(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "out.ndjson").read_bytes().splitlines(keepends=True)
    (tmp_path / "seen").write_bytes(b"".join([*lines[:30], *lines[25:]]))
    assert read_releases(tmp_path / "seen") == read_releases(folder / "out.ndjson")


OTHERS = {
    "text": b"hello\n",
    "text without an end": b"hello",
    "events": b"time,user,cell\n",
    "a list": b"[1]\n",
    "a number": b"7\n",
    "json of others": b'{"a":1}\n',
    "deep": b"[" * 100_000 + b"\n",
    "bytes": b"\x00\xff" * 40,
    "a line of others": b'{"format":2,"slot":1}\n',
    "no version": b'{"format":"x"}\n',
    "cut gzip": gzip.compress(b"hello" * 100)[:20],
    "cut parquet": b"PAR1" + b"\x00" * 40,
}


@pytest.mark.parametrize("kind", OTHERS)
def test_what_is_no_release(kind: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OTHERS[kind])
    with pytest.raises(InvalidInput, match=r"neither a file of releases|cannot be read"):
        read_releases(tmp_path / "file")


def test_lines_that_are_broken(folder: Path, tmp_path: Path) -> None:
    for name, text in (("out.csv", b"1,2\n"), ("out.csv", b"x" * 9 + b",,,,,,,,,,\n"), ("out.ndjson", b"{}\n")):
        (tmp_path / name).write_bytes((folder / name).read_bytes() + text)
        with pytest.raises(InvalidInput, match="neither a file of releases"):
            read_releases(tmp_path / name)
    first = (folder / "out.ndjson").read_bytes().splitlines(keepends=True)[0]
    (tmp_path / "short").write_bytes(first.replace(b'"histogram":', b'"histogram":[1],"other":'))
    with pytest.raises(InvalidInput, match="neither a file of releases"):
        read_releases(tmp_path / "short")


@pytest.mark.parametrize(
    ("start", "end", "outcome"),
    [
        ("", "", "<img src=x onerror=alert(1)>"),
        ("", "", ""),
        ("2026-01-01T00:00:00", "2026-01-01T00:01:00", "fresh"),
        ("2026-01-01T00:00:00Z", "", "fresh"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "fresh"),
    ],
)
def test_words_and_times_that_nobody_wrote(start: str, end: str, outcome: str, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_bytes(CSV_HEADER + f"1,{start},{end},a,1,,,,{outcome},1,pbd\n".encode())
    with pytest.raises(InvalidInput, match="neither a file of releases"):
        read_releases(tmp_path / "r.csv")


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        read_releases(tmp_path / "nothing.ndjson")
    with pytest.raises(InvalidInput, match="neither a file of releases"):
        read_releases(tmp_path)
    (tmp_path / "other.db").write_bytes(b"SQLite format 3\0" + b"\0" * 100)
    with pytest.raises(InvalidJournal):
        read_releases(tmp_path / "other.db")


def test_another_version(tmp_path: Path) -> None:
    (tmp_path / "new.ndjson").write_bytes(b'{"format":3,"slot":1}\n')
    made = "COPY (SELECT 1 AS slot) TO '{}' (FORMAT parquet, KV_METADATA {{wevent_format: '3'}})"
    duckdb.connect().execute(made.format(tmp_path / "new.parquet"))
    duckdb.connect().execute(f"COPY (SELECT 1 AS slot) TO '{tmp_path / 'other.parquet'}' (FORMAT parquet)")
    for name in ("new.ndjson", "new.parquet", "other.parquet"):
        with pytest.raises(InvalidInput, match="neither a file of releases"):
            read_releases(tmp_path / name)


@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow"])
def test_a_library_that_is_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    method = {"pandas": "to_pandas", "polars": "to_polars", "pyarrow": "to_arrow"}[name]
    with pytest.raises(InvalidOption, match=f"pip install {name}"):
        getattr(ReleaseTable({column: [] for column in COLUMNS}), method)()


def test_nothing_published_is_an_empty_table(tmp_path: Path) -> None:
    with make_journal(tmp_path / "run.journal") as journal:
        output = open_output(str(tmp_path / "out.parquet"))
        output.repair(journal, 0, 0)
        output.close()
    for name in ("run.journal", "out.parquet"):
        table = read_releases(tmp_path / name)
        assert len(table) == len(table.to_pandas()) == len(table.to_polars()) == len(table.to_arrow()) == 0
