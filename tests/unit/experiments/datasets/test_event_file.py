"""Anyone's file of events."""

import gzip

import duckdb
import numpy as np
import pytest

from wevent import Roster
from wevent.errors import InvalidEvents, InvalidInput, InvalidOption
from wevent.experiments.datasets import StreamRequest, as_stream, open_stream
from wevent.experiments.datasets.event_file import file_stream
from wevent.publishing.configuration import load_settings
from wevent.streams import FileSource, declared_clock


def test_slots_users_and_cells_from_a_csv(tmp_path):
    path = tmp_path / "events.csv"
    path.write_bytes(
        b"slot,user,cell\r\n1,ann,north\r\n1,bob,south\r\n1,ann,south\r\n3,bob,north\r\n,bob,north\r\nx,ann,north\r\n"
    )
    stream = file_stream(path)
    assert stream.user_labels.tolist() == ["ann", "bob"]
    assert stream.cells == ["north", "south"]
    assert stream.slots == 3
    assert {reason: number for reason, number in stream.remarks.items() if number} == {
        "malformed lines": 2,
        "earlier events of a user in a slot": 1,
    }
    counts = stream.count(np.array([0, 1]), 2)
    assert counts[:, 0].tolist() == [[0, 1], [0, 0], [0, 0]]  # no carrying: absent means absent
    assert counts[:, 1].tolist() == [[0, 1], [0, 0], [1, 0]]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_slot_numbers_are_those_of_publish(tmp_path, ending):
    """Slot 1 is the first in both; what is before it counts in neither."""
    rows = [(0, "a"), (-1, "b"), (2, "a"), (2, "b"), (4, "a")]
    (tmp_path / "events.csv").write_text("slot,user,cell\n" + "".join(f"{slot},{user},0\n" for slot, user in rows))
    (tmp_path / "users.csv").write_text("user,window,epsilon\na,2,1\nb,2,1\n")
    path = tmp_path / f"events.{ending}"
    if ending == "parquet":
        duckdb.sql(f"COPY (SELECT * FROM '{tmp_path / 'events.csv'}') TO '{path}' (FORMAT parquet)")
    stream = file_stream(path)
    assert stream.remarks["events outside the slots"] == 2
    simulated = stream.count(np.zeros(2, dtype=np.int64), 1)[:, 0, 0].tolist()

    chosen = load_settings(None, {"inputs": str(path), "cells": "1", "slot_column": "slot", "end": "4"})
    clock, last = declared_clock(chosen)
    roster = Roster.from_columns(["a", "b"], [2, 2], [1, 1])
    counted = [int(one.counts.matrix.sum()) for one in FileSource(chosen, clock, last).count(roster, 1, last)]
    assert simulated == counted == [0, 2, 0, 1]


def test_slot_numbers_beyond_any_simulation(tmp_path):
    (tmp_path / "a.csv").write_text("slot,user,cell\n1767225600,1,1\n")
    with pytest.raises(InvalidEvents, match="from 1 on"):
        file_stream(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text("time,user,cell\n0,1,1\n1767225600,1,1\n")
    with pytest.raises(InvalidEvents, match="Choose a longer slot"):
        file_stream(tmp_path / "b.csv", slot_length_s=1)


@pytest.mark.parametrize("times", [["2024-01-01 00:59:59", "2024-01-01 01:00:00"], ["1704070799", "1704070800"]])
def test_times_become_slots(tmp_path, times):
    path = tmp_path / "events.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write("user,time,cell\n" + "".join(f"u{row},{time},3\n" for row, time in enumerate(times)))
    stream = file_stream(path, slot_length_s=3600)
    assert (stream.slots, list(stream.cells)) == (2, [0, 1, 2, 3])  # whole numbers from 0 on
    with pytest.raises(InvalidOption, match="--slot-length"):
        file_stream(path)


def test_parquet_with_timestamps(tmp_path):
    path = tmp_path / "it's.parquet"
    quoted = str(path).replace("'", "''")
    duckdb.sql(
        "COPY (SELECT TIMESTAMP '2024-01-01' + INTERVAL (i) MINUTE AS time, i % 5 AS \"user\", 'c' || (i % 2) AS cell "
        f"FROM range(20) t(i)) TO '{quoted}' (FORMAT parquet)"
    )
    stream = file_stream(path, slot_length_s=300)
    assert (stream.slots, len(stream.user_labels), list(stream.cells)) == (4, 5, ["c0", "c1"])
    assert stream.count(np.zeros(5, dtype=np.int64), 1).sum() == 20


def test_users_are_in_numerical_order_and_can_be_limited(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("slot,user,cell\n1,10,a\n2,9,b\n3,8,a\n")
    stream = open_stream(StreamRequest(f"file:{path}", users=2, slots=2))
    assert stream.user_labels.tolist() == [8, 9]
    assert stream.slots == 2
    assert stream.count(np.zeros(2, dtype=np.int64), 1, seed=[1]).sum() == 1


def test_a_user_may_be_in_several_cells(tmp_path):
    """As a publisher with k > 1 counts: the last k distinct cells of the slot."""
    path = tmp_path / "events.csv"
    path.write_text("slot,user,cell\n1,a,0\n1,a,1\n1,a,2\n1,a,1\n1,b,0\n1,b,0\n2,a,2\n")
    rows = np.zeros(2, dtype=np.int64)
    for most, expected in ((1, [[1, 1, 0], [0, 0, 1]]), (2, [[1, 1, 1], [0, 0, 1]]), (3, [[2, 1, 1], [0, 0, 1]])):
        assert file_stream(path, max_cells_per_user=most).count(rows, 1)[:, 0].tolist() == expected
    request = StreamRequest(f"file:{path}")
    assert as_stream(request, {"max_cells_per_user": 3}).count(rows, 1, seed=[])[:, 0].tolist() == expected


def test_resized_users_live_the_records_of_others(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text(
        "slot,user,cell\n" + "".join(f"{slot},{user},{user}\n" for user in range(4) for slot in range(user + 1, 10))
    )
    stream = file_stream(path).resized(400, seed=[1])
    assert len(stream.user_labels) == 400
    counts = stream.count(np.zeros(400, dtype=np.int64), 1)[:, 0]
    assert counts[8].sum() == 400
    assert (counts[8] > 60).all()
    assert counts[0].tolist() == [counts[8][0], 0, 0, 0]


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("a.csv", "slot,who,cell\n1,2,3\n", InvalidInput, "user"),
        ("a.csv", "slot,user,cell\nx,2,3\n", InvalidEvents, "no event"),
        ("a.xlsx", "", InvalidInput, "parquet"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, name, content, error, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(error, match=message):
        file_stream(tmp_path / name)
    with pytest.raises(InvalidOption, match="No file"):
        file_stream(tmp_path / "nothing.csv")
