"""Journals that can only be read: on a read-only disk, in a folder of somebody else, through a link."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.support.commands import call, publish, write_stream

NOBODY = 65534
COMMANDS = (("verify", "run.journal"), ("status", "run.journal"), ("releases", "run.journal"))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that anybody can reach, with a journal that anybody can read."""
    place = Path(tempfile.mkdtemp(prefix="wevent-"))
    place.chmod(0o755)
    write_stream(place)
    assert publish(place, 5).code == 0
    for command in COMMANDS:  # what they import must be there before the process has no rights
        assert call(place, *command).code == 0
    (place / "run.journal").chmod(0o644)
    yield place
    place.chmod(0o755)
    shutil.rmtree(place)


def as_nobody(folder: Path, *commands: tuple[str, ...]) -> list[tuple[int, str, str]]:
    """Commands of a process that may write nothing in the folder."""
    folder.chmod(0o555)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            found = [(done.code, done.out, done.err) for done in (call(folder, *command) for command in commands)]
            os.write(writing, json.dumps(found).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    folder.chmod(0o755)
    return [tuple(one) for one in json.loads(text)]  # type: ignore[misc]


def test_a_healthy_journal_is_read_as_it_is(folder: Path) -> None:
    expected = [call(folder, *command) for command in COMMANDS]
    (folder / "run.journal.witness").chmod(0o644)
    found = as_nobody(folder, *COMMANDS)
    assert [code for code, _, _ in found] == [0, 0, 0], found
    assert [out for _, out, _ in found] == [done.out for done in expected]
    assert "clean" in found[0][1]
    assert sorted(one.suffix for one in folder.iterdir()) == [".csv", ".csv", ".journal", ".ndjson", ".witness"]


def test_a_log_that_cannot_be_read_is_told(folder: Path) -> None:
    """What is in the write-ahead log alone must not be missing unnoticed."""
    child = os.fork()
    if not child:
        database = apsw.Connection(str(folder / "run.journal"))
        database.execute("CREATE TABLE more (data)")
        os._exit(0)
    os.waitpid(child, 0)
    assert (folder / "run.journal-wal").stat().st_size > 0
    for ending in ("-wal", "-shm"):
        (folder / f"run.journal{ending}").chmod(0o644)
    (folder / "run.journal-shm").unlink()
    for code, out, err in as_nobody(folder, *COMMANDS):
        assert code == 2
        assert out == ""
        assert "write-ahead log" in err
        assert "damaged" not in err
    assert call(folder, "verify", "run.journal").code == 0


@pytest.mark.parametrize("link", ["link.journal", "sub/link.journal"])
def test_through_a_link(folder: Path, link: str) -> None:
    (folder / "sub").mkdir()
    (folder / link).symlink_to(folder / "run.journal")
    commands = [(name, link) for name, _ in COMMANDS]
    assert [code for code, _, _ in as_nobody(folder, *commands)] == [0, 0, 0]
    assert [call(folder, *command).code for command in commands] == [0, 0, 0]


def test_a_crashed_journal_through_a_link(folder: Path) -> None:
    """Killed in the middle of a checkpoint: the file is shorter than its header says, and the log completes it."""
    path = folder / "run.journal"
    child = os.fork()
    if not child:
        database = apsw.Connection(str(path))
        database.execute("PRAGMA wal_autocheckpoint = 0")
        database.execute("INSERT INTO facts VALUES ('more', zeroblob(20000))")
        os._exit(0)
    os.waitpid(child, 0)
    data = bytearray(path.read_bytes())
    pages = int.from_bytes(data[28:32], "big")
    data[28:32] = (pages + 6).to_bytes(4, "big")  # the first page was written back, the others were not
    path.write_bytes(data)
    (folder / "sub").mkdir()
    (folder / "sub" / "link.journal").symlink_to(path)
    assert call(folder, "status", "sub/link.journal").code == 0
    assert call(folder, "verify", "sub/link.journal").code == 0


def test_a_name_with_signs_that_mean_something_elsewhere(folder: Path) -> None:
    odd = folder / "a?b#c%20 d.journal"
    shutil.copy(folder / "run.journal", odd)
    odd.chmod(0o644)
    assert [code for code, _, _ in as_nobody(folder, ("verify", odd.name), ("status", odd.name))] == [0, 0]
