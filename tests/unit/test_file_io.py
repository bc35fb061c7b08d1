"""Files: destroyed for good, replaced whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wevent.errors import StorageFailed
from wevent.file_io import atomic_write, atomic_write_text, destroy_file, link_whole, probe_write, storage_errors


def test_it_is_overwritten_on_disk_before_its_name_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, sync, forced = tmp_path / "secret", os.fsync, list[bytes]()

    def noted(file: int) -> None:
        sync(file)
        forced.append(path.read_bytes())  # by its name, which is still there

    path.write_bytes(b"head" + b"a key" + b"tail")
    with path.open("rb") as still_open:
        monkeypatch.setattr(os, "fsync", noted)
        destroy_file(path, 4, 5)
        assert still_open.read() == b"head" + bytes(5) + b"tail"
    assert forced == [b"head" + bytes(5) + b"tail"]
    assert not path.exists()


def test_one_that_is_gone_is_gone(tmp_path: Path) -> None:
    destroy_file(tmp_path / "secret", 0, 32)
    assert list(tmp_path.iterdir()) == []


def test_one_that_another_removes_meanwhile_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"a key")
    monkeypatch.setattr(os, "fsync", lambda _: path.unlink())
    destroy_file(path, 0, 5)
    assert not path.exists()


def test_one_that_cannot_be_overwritten_stays(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.mkdir()
    with pytest.raises(OSError, match="secret"):
        destroy_file(path, 0, 32)
    assert path.exists()


def test_a_file_is_replaced_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    atomic_write_text(path, "ä")
    atomic_write_text(path, "b")
    assert path.read_text(encoding="utf-8") == "b"
    assert [found.name for found in path.parent.iterdir()] == ["a.txt"]


def test_what_goes_wrong_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def stop_half_way() -> None:
        with atomic_write(path) as unfinished:
            unfinished.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        stop_half_way()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_linked_file_is_private_and_replaces_nothing(tmp_path: Path) -> None:
    path, unfinished = tmp_path / "key", tmp_path / "key.new"
    link_whole(path, b"first", unfinished)
    with pytest.raises(FileExistsError):
        link_whole(path, b"second", unfinished)
    assert path.read_bytes() == b"first"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_probe_leaves_nothing(tmp_path: Path) -> None:
    probe_write(tmp_path / "probe", 100)
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_system_names_task_and_remedy(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "a"
    said = pytest.raises(StorageFailed, match=r"to write a: No such file.* Make the folder\.")
    with said as caught, storage_errors("to write a", "Make the folder.", path):
        path.write_bytes(b"")
    assert caught.value.facts["path"] == str(path)
