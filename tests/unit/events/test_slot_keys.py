"""Keys of open slots: whole, shared by replicas, on disk before they are used, and gone for good when they are destroyed."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from wevent.errors import StorageFailed
from wevent.events.records import SlotKeys, decrypt, encrypt


def keys(folder: Path, store: str = "s") -> SlotKeys:
    return SlotKeys(folder / "keys", f"wevent.{store}.")


def test_replicas_that_race_get_the_same_key(tmp_path: Path) -> None:
    found: list[bytes | None] = []
    start = threading.Barrier(8)

    def make() -> None:
        own = keys(tmp_path)
        start.wait()
        found.append(own.make([7]).get(7))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert found[0] is not None
    assert len(found[0]) == 32
    assert [path.name for path in (tmp_path / "keys").iterdir()] == ["wevent.s.7.key"], "no draft is left"


def test_a_destroyed_key_is_overwritten_before_it_is_removed(tmp_path: Path) -> None:
    one, other = keys(tmp_path), keys(tmp_path)
    key = one.make([1])[1]
    assert other.get(1) == key
    path = tmp_path / "keys" / "wevent.s.1.key"
    left = os.open(path, os.O_RDONLY)  # as a file system may still have it
    one.make([2])
    one.destroy(1)
    assert os.pread(left, 64, 0) == bytes(32)
    os.close(left)
    assert one.slots() == other.slots() == [2]
    assert one.get(1) is None
    other.destroy(1)
    assert other.get(1) is None


def test_what_a_crash_left_of_a_key_goes_with_it(tmp_path: Path) -> None:
    one = keys(tmp_path)
    one.make([1])
    folder = tmp_path / "keys"
    os.link(folder / "wevent.s.1.key", folder / "wevent.s.1.0123456789abcdef.new")
    one.destroy(1)
    assert list(folder.iterdir()) == []


def test_a_key_that_is_being_destroyed_is_none(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "wevent.s.1.key").write_bytes(bytes(32))
    assert keys(tmp_path).get(1) is None
    assert keys(tmp_path).make([1]) == {}


def test_another_journals_keys_are_not_touched(tmp_path: Path) -> None:
    one, other = keys(tmp_path, "s"), keys(tmp_path, "t")
    assert one.make([1]) != other.make([1])
    one.destroy(5)
    assert other.slots() == [1]


def test_only_the_owner_may_read_them(tmp_path: Path) -> None:
    keys(tmp_path).make([1])
    assert (tmp_path / "keys").stat().st_mode & 0o077 == 0
    assert (tmp_path / "keys" / "wevent.s.1.key").stat().st_mode & 0o077 == 0


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("")
    with pytest.raises(StorageFailed, match="keys of open slots"):
        keys(tmp_path).slots()


def test_what_is_encrypted_tells_its_length_only_roughly() -> None:
    key = bytes(range(32))
    short, longer = (encrypt(key, b"x" * size) for size in (1, 500))
    assert len(short) == len(longer) == 512 + 12 + 16
    assert len({encrypt(key, b"x") for _ in range(9)}) == 9, "no nonce is used twice"
    assert decrypt(key, short) == b"x"
    assert decrypt(bytes(32), short) is None
    assert decrypt(key, short[:-1] + b"?") is None
    assert decrypt(key, b"") is None


def test_a_key_is_made_at_once_for_many_slots(tmp_path: Path) -> None:
    one = keys(tmp_path)
    made = one.make(range(1, 50))
    assert len(set(made.values())) == 49
    assert keys(tmp_path).make(range(1, 51)).items() >= made.items()
