"""A release as it is written: every field true, exact, and the same bytes whenever it is rendered."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.support.publications import publish
from tests.support.synthetic import CLASSES, SyntheticSource, make_journal, make_terms
from wevent import Publisher
from wevent.journal import Journal, SqliteJournal
from wevent.outputs import open_output
from wevent.outputs.lines import COLUMNS, ndjson_line
from wevent.people.membership import Change
from wevent.publishing.loop import Publication, Running
from wevent.publishing.staleness import _charge_elsewhere

pytestmark = pytest.mark.slow

FIELDS = [
    *("format", "slot", "start", "end", "mechanism", "outcome", "measured", "cells", "histogram", "std_error"),
    *("low", "high", "classes", "charges", "threshold", "dissimilarity"),
]
MECHANISMS = {
    "pft": {"mechanism": "pft"},
    "pbd": {"mechanism": "pbd"},
    "pba": {"mechanism": "pba"},
    "sample": {"mechanism": "sample"},
    "lbu": {"mechanism": "lbu"},
    "pba filter": {"mechanism": "pba", "smoothing": "filter"},
}


def lines(journal: Journal, first: int = 1) -> list[dict[str, Any]]:
    return [json.loads(ndjson_line(record)) for record in journal.releases(first) if record.shown is not None]


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_line_says_what_the_release_said(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    releases = []
    step = Publisher.step
    monkeypatch.setattr(Publisher, "step", lambda self, counts: releases.append(step(self, counts)) or releases[-1])
    journal = make_journal(tmp_path / "run.journal", **MECHANISMS[name])
    publish(journal, tmp_path / "out.ndjson", 60, batch=7)
    written = [json.loads(line) for line in (tmp_path / "out.ndjson").read_text().splitlines()]
    assert written == lines(journal)
    for line, release in zip(written, releases, strict=True):
        assert list(line) == FIELDS
        facts = release.to_dict()
        for field in ("slot", "mechanism", "outcome", "measured", "cells", "histogram", "std_error", "low", "high"):
            assert line[field] == facts[field], (line["slot"], field)
    journal.close()


def test_times_and_exact_decimals(tmp_path: Path) -> None:
    journal = make_journal(tmp_path / "run.journal", origin_us=1_767_225_600_000_000, mechanism="uniform")
    publish(journal, tmp_path / "out.ndjson", 2)
    text = (tmp_path / "out.ndjson").read_text().splitlines()[1]
    assert text.startswith('{"format":2,"slot":2,"start":"2026-01-01T00:01:00Z","end":"2026-01-01T00:02:00Z",')
    corner = '{"window":8,"epsilon":0.4}'  # a live class without members
    declared = '{"window":3,"epsilon":0.4},{"window":4,"epsilon":1}', '{"window":8,"epsilon":0.6}'
    assert f'"classes":[{declared[0]},{corner},{declared[1]}]' in text
    exact = json.loads(text, parse_float=Decimal)
    record = next(journal.releases(2))
    assert [int(charge * 10**9) for charge in exact["charges"]] == record.publication.tolist()
    assert exact["charges"] == [Decimal("0.05")] * (len(CLASSES) + 1)  # the smallest epsilon over the widest window
    assert exact["threshold"] == Decimal("0.05")
    journal.close()


def test_no_times_are_invented_for_slot_numbers(tmp_path: Path) -> None:
    journal = make_journal(tmp_path / "run.journal", length_us=1)
    publish(journal, tmp_path / "out.csv", 2)
    assert [(line["start"], line["end"]) for line in lines(journal)] == [(None, None)] * 2
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert {(row["start"], row["end"]) for row in rows} == {("", "")}
    publish(journal, tmp_path / "out.csv", 4)  # and the file is known again
    journal.close()


@pytest.mark.parametrize("name", MECHANISMS)
def test_measured_is_the_same_wherever_reading_begins(name: str, tmp_path: Path) -> None:
    """Also after slots were dropped, and by a journal that is opened anew."""
    journal = make_journal(tmp_path / "run.journal", **MECHANISMS[name])
    publish(journal, tmp_path / "out.ndjson", 1200, batch=64)
    whole = [ndjson_line(record) for record in journal.releases()]
    measured = [json.loads(line)["measured"] for line in whole]
    assert all(one is None or one <= slot for slot, one in enumerate(measured, start=1))
    assert all(after in (before, slot) for slot, (before, after) in enumerate(pairwise(measured), start=2))
    for first in (2, 7, 500, 1200):
        assert [ndjson_line(record) for record in journal.releases(first)] == whole[first - 1 :]
    kept = journal.compact(600)
    assert kept > 1
    kept = journal.compact(10)  # a second time: what is known of dropped slots goes on
    journal.close()
    with SqliteJournal(tmp_path / "run.journal") as again:
        assert [ndjson_line(record) for record in again.releases()] == whole[kept - 1 :]
        assert [ndjson_line(record) for record in again.releases(1190)] == whole[1189:]


class Still(SyntheticSource):
    """Nobody, ever: a mechanism that looks first finds nothing new."""

    def count(self, roster: Any, first: int, most: int) -> Any:
        for counted in super().count(roster, first, most):
            counted.counts.matrix[:] = 0
            yield counted


def dropped(folder: Path, mechanism: str) -> tuple[SqliteJournal, int]:
    """A journal that dropped slots, and the first one that it kept."""
    key = (700, 400_000_000)
    journal = make_journal(folder / f"{mechanism}.journal", users=0, mechanism=mechanism, declared=[key])
    journal.registry.ask(Change("set", f"u{user}", key) for user in range(90))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wevent.publishing.loop.state_interval", lambda publisher: 100)
        publish(journal, folder / f"{mechanism}.ndjson", 1010, batch=100)
    return journal, journal.compact(1)


def test_a_measurement_that_was_dropped_is_still_known(tmp_path: Path) -> None:
    """The last measurement lies before the slots that are kept; what repeats it still says when it was."""
    journal, first = dropped(tmp_path, "sample")
    assert first == 311
    found = lines(journal)
    assert {line["measured"] for line in found} == {1, 701}
    assert found[0]["histogram"] is not None
    journal.close()


@pytest.mark.parametrize("mechanism", ["sample", "pft"])
def test_a_journal_that_dropped_slots_goes_on(mechanism: str, tmp_path: Path) -> None:
    """What was measured last is known, for repeats and estimates, and stays the same."""
    journal, first = dropped(tmp_path, mechanism)
    before = lines(journal)[0]
    assert before["measured"] < first
    for end in (1020, 1030):  # each run compares with the file that the one before wrote
        publish(journal, tmp_path / "new.ndjson", end)
    journal.close()


def test_after_slots_released_elsewhere_the_words_stay_true(tmp_path: Path) -> None:
    for mechanism in ("sample", "pft"):
        journal = make_journal(tmp_path / f"{mechanism}.journal", mechanism=mechanism)
        publish(journal, tmp_path / f"{mechanism}.ndjson", 10)
        before = lines(journal)[-1]
        journal.take_over(_charge_elsewhere(journal, 12))
        publish(journal, tmp_path / f"{mechanism}-2.ndjson", 16)
        after = lines(journal, 13)[0]
        if after["outcome"] == "fresh":  # pft may spend in slot 13 what has left the window by then
            assert (mechanism, after["measured"]) == ("pft", 13)
        else:
            assert after["outcome"] == ("repeated" if mechanism == "sample" else "estimated")
            assert after["measured"] == before["measured"]
        assert (after["low"] is None) == (mechanism == "sample")
        if mechanism == "sample":
            assert after["histogram"] == before["histogram"]
        journal.close()


def test_a_new_epoch_has_measured_nothing_yet(tmp_path: Path) -> None:
    journal = make_journal(tmp_path / "run.journal", mechanism="uniform")
    publish(journal, tmp_path / "out.ndjson", 5)
    journal.begin(make_terms(mechanism="pbd"))
    output = open_output(str(tmp_path / "out.ndjson"))
    Publication(journal, Still(9), output, running=Running(last=9)).run()
    output.close()
    for line in lines(journal, 6):
        if line["measured"] is None:
            assert (line["histogram"], line["std_error"], line["low"], line["high"]) == (None, None, None, None)
        else:
            assert line["measured"] >= 6
    journal.close()


def test_csv_has_a_row_per_cell_and_nothing_where_nothing_is_known(tmp_path: Path) -> None:
    journal = make_journal(tmp_path / "run.journal", cells=["a,b", 'say "hi"', ""], mechanism="bd")
    publish(journal, tmp_path / "out.csv", 30)
    text = (tmp_path / "out.csv").read_bytes()
    assert text.startswith(b",".join(name.encode() for name in COLUMNS) + b"\n")
    rows = list(csv.DictReader(io.StringIO(text.decode(), newline="")))
    assert len(rows) == 3 * 30
    for line in lines(journal):
        for place, row in enumerate(rows[3 * line["slot"] - 3 : 3 * line["slot"]]):
            assert row["cell"] == line["cells"][place]
            for column, field in (("value", "histogram"), *((name, name) for name in ("low", "high", "std_error"))):
                expected = "" if line[field] is None else str(line[field][place])
                assert row[column] == expected
            assert row["measured"] == ("" if line["measured"] is None else str(line["measured"]))
            assert row["outcome"] == line["outcome"]
    journal.close()


def test_parquet_is_typed_and_knows_its_version(tmp_path: Path) -> None:
    journal = make_journal(tmp_path / "run.journal", cells=["a,b", 'say "hi"', ""], mechanism="bd")
    path = tmp_path / "out.parquet"
    publish(journal, path, 30)
    connection = duckdb.connect()
    types = {row[0]: row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM '{path}'").fetchall()}
    assert list(types) == list(COLUMNS)
    assert set(types.values()) == {"BIGINT", "TIMESTAMP WITH TIME ZONE", "VARCHAR", "DOUBLE"}
    found = connection.execute(f"SELECT decode(key), decode(value) FROM parquet_kv_metadata('{path}')").fetchall()
    assert ("wevent_format", "2") in found
    cells = connection.execute(f"SELECT DISTINCT cell FROM '{path}' ORDER BY 1").fetchall()
    assert cells == [("",), ("a,b",), ('say "hi"',)]
    values = [row[0] for row in connection.execute(f"SELECT value FROM '{path}' ORDER BY slot").fetchall()]
    expected = [value for line in lines(journal) for value in (line["histogram"] or [None] * 3)]
    assert values == expected
    publish(journal, path, 32)
    journal.close()
