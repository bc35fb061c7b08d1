"""TIST2015 in its raw layout."""

import gzip

import numpy as np
import pytest

from wevent.errors import InvalidOption
from wevent.experiments.datasets import foursquare
from wevent.experiments.datasets.foursquare import foursquare_stream, is_chosen


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Users 1 to 4, all of them in the sample; user 3 without a usable check-in."""
    monkeypatch.setattr(foursquare, "SHARE", 1.0)
    (tmp_path / "dataset_TIST2015_Cities.txt").write_bytes(
        b"Brussels\t50.833\t4.333\tBE\tBelgium\tNational and provincial capital\r\n"
        b"Antwerpen\t51.2\t4.4\tBE\tBelgium\tProvincial capital\r\n"
        b"Tokyo\t35.68\t139.75\tJP\tJapan\tNational capital\r\n"
        b"broken line\r\n"
    )
    with gzip.open(tmp_path / "dataset_TIST2015_POIs.txt.gz", "wb") as file:
        file.write(
            b"venue-a\t50.8\t4.3\tCaf\xc3\xa9\tBE\n"
            b"venue-a\t50.8\t4.3\tCaf\xc3\xa9\tBE\n"
            b'venue-b\t35.6\t139.7\tBar "Blue\tJP\n'
            b"venue-c\t10\t10\tBar\tZZ\n"
        )
    (tmp_path / "dataset_TIST2015_Checkins.txt").write_bytes(
        b"1\tvenue-a\tTue Apr 03 18:00:09 +0000 2012\t120\n"
        b"1\tvenue-b\tTue Apr 03 19:40:00 +0000 2012\t540\n"  # 100 minutes after the first minute: slot 1
        b"1\tvenue-a\tTue Apr 03 19:39:59 +0000 2012\t120\n"  # still slot 0
        b"2\tvenue-b\tTue Apr 03 21:30:00 +0000 2012\t540\n"  # slot 2
        b"2\tvenue-b\tTue Apr 03 21:30:00 +0000 2012\t540\n"
        b"3\tvenue-c\tTue Apr 03 18:00:10 +0000 2012\t0\n"
        b"3\tnowhere\tTue Apr 03 18:00:11 +0000 2012\t0\n"
        b"4\tvenue-b\tyesterday\t0\n"
        b"4 venue-b Tue Apr 03 18:00:11 +0000 2012 0\n"
        b"4\tvenue-b\tTue Apr 03 18:30:00 +0000 2012\t0\n"
    )
    return tmp_path


def test_users_countries_and_what_was_left_out(folder):
    stream = foursquare_stream(folder)
    assert stream.user_labels.tolist() == ["1", "2", "3", "4"]
    assert list(stream.cells) == ["BE", "JP"]
    assert stream.slots == 3
    assert stream.remarks["malformed lines"] == 3
    assert stream.remarks["check-ins at unknown venues"] == 1
    assert stream.remarks["check-ins in countries outside the Cities file"] == 1


def test_positions_are_carried(folder):
    counts = foursquare_stream(folder).count(np.arange(4), 4)
    assert counts[:, 0].tolist() == [[1, 0], [0, 1], [0, 1]]
    assert counts[:, 1].tolist() == [[0, 1]] * 3
    assert counts[:, 2].tolist() == [[0, 0]] * 3
    assert counts[:, 3].tolist() == [[0, 1]] * 3


def test_the_sample_is_five_percent_and_the_same_everywhere():
    chosen = [user for user in range(20_000) if is_chosen(str(user))]
    assert 900 < len(chosen) < 1100
    assert chosen[:3] == [30, 72, 100]


def test_each_missing_file_is_named(tmp_path):
    (tmp_path / "dataset_TIST2015_POIs.txt").write_text("x")
    with pytest.raises(InvalidOption, match=r"Checkins and Cities file.*yangdingqi"):
        foursquare_stream(tmp_path)
