"""Files that appear whole or not at all."""

import pytest

from wevent.experiments.appearing import appearing_whole, write_text


def test_a_file_is_replaced_when_it_is_whole(tmp_path):
    path = tmp_path / "new" / "a.txt"
    write_text(path, "ä")
    write_text(path, "b")
    assert path.read_text(encoding="utf-8") == "b"
    assert [found.name for found in path.parent.iterdir()] == ["a.txt"]


def test_what_goes_wrong_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def stop_half_way():
        with appearing_whole(path) as unfinished:
            unfinished.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        stop_half_way()
    assert path.read_text() == "old"
