"""T-Drive in its raw layout: duplicates, edges, broken lines, CRLF, gz."""

import gzip

import numpy as np
import pytest

from wevent.errors import InvalidOption
from wevent.experiments.datasets.taxi import taxi_stream


@pytest.fixture
def folder(tmp_path):
    """Five taxis: plain, CRLF and duplicates, gz, nothing usable, an empty file."""
    nested = tmp_path / "taxi" / "taxi_log_2008_by_id"
    nested.mkdir(parents=True)
    (nested / "1.txt").write_bytes(
        b"1,2008-02-02 15:00:08,116.04,39.54\n"  # cell 0,0
        b"1,2008-02-02 15:00:59,116.12,39.54\n"  # the last of the slot wins: 0,1
        b"1,2008-02-02 15:02:00,116.8,40.3\n"  # both outer edges: 9,9
    )
    (nested / "2.txt").write_bytes(
        b"2,2008-02-02 15:01:00,116.0,39.5\r\n"  # both inner edges: 0,0
        b"2,2008-02-02 15:01:00,116.0,39.5\r\n"  # duplicate
        b"\r\n"
        b"2,2008-02-02 15:03:30,115.9999,39.9\r\n"  # outside the box
        b"2,not a time,116.1,39.9\r\n"
        b'2,"2008-02-02 15:01:30\r\n'
        b"2,2008-02-02 15:02:10,116.1\r\n"
        b"2,2008-02-02 15:02:10,116.1,nan\r\n"
        b"\xff\xfe,2008-02-02 15:02:10,116.1,39.9\r\n"
    )
    with gzip.open(nested / "3.txt.gz", "wb") as file:
        file.write(b"3,2008-02-02 15:03:59,116.4,39.9")  # no line end
    (nested / "4.txt").write_bytes(b"4,2008-02-02 15:00:00,0.0,0.0\n")
    (nested / "5.txt").write_bytes(b"")
    return tmp_path / "taxi"


def test_users_slots_cells_and_what_was_left_out(folder):
    stream = taxi_stream(folder)
    assert stream.user_labels.tolist() == [1, 2, 3, 4, 5]
    assert stream.slots == 4  # 15:00 to 15:03
    assert len(stream.cells) == 100
    assert stream.remarks == {"malformed lines": 5, "duplicate lines": 1, "outside the box": 2}


def test_positions_are_carried_forward_and_the_first_one_back(folder):
    counts = taxi_stream(folder).count(np.arange(5), 5)
    where = [[np.flatnonzero(counts[slot, taxi]).tolist() for slot in range(4)] for taxi in range(5)]
    assert where[0] == [[1], [1], [99], [99]]
    assert where[1] == [[0], [0], [0], [0]]
    assert where[2] == [[55], [55], [55], [55]]
    assert where[3] == where[4] == [[], [], [], []]  # never present


def test_a_missing_folder_says_where_to_get_the_data(tmp_path):
    with pytest.raises(InvalidOption, match=r"has no files of T-Drive.*microsoft.com.*--data"):
        taxi_stream(tmp_path / "taxi")
    (tmp_path / "taxi").mkdir()
    with pytest.raises(InvalidOption, match="has no files of T-Drive"):
        taxi_stream(tmp_path / "taxi")
