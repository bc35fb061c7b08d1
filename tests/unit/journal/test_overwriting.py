"""A file with a secret goes for good."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wevent.journal.overwriting import destroy_file


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
