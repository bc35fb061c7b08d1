"""Reading a journal file while its writer goes on or ends, at any moment of the reading."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.support.publications import publish
from tests.support.synthetic import make_journal
from wevent.errors import InvalidJournal, StorageFailed
from wevent.journal import Batch, SqliteJournal

LAST = 40


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a journal most of whose slots are in the write-ahead log: the file is shorter than it will be."""
    folder = tmp_path_factory.mktemp("used")
    with make_journal(folder / "run.journal") as journal:
        publish(journal, folder / "o.ndjson", LAST, batch=7)
        journal.commit(Batch((), None, b"a state", LAST))
        return Path(shutil.copytree(folder, folder / "copy"))


@pytest.fixture
def whole(used: Path, tmp_path: Path) -> Path:
    """A journal that nobody uses: a file without a log."""
    folder = shutil.copytree(used, tmp_path / "whole")
    SqliteJournal(folder / "run.journal", write=True).close()
    assert not (folder / "run.journal-wal").exists()
    return folder / "run.journal"


def go_on(writer: SqliteJournal) -> None:
    """Commit another slot, and drop old ones."""
    (last,) = writer.releases(LAST)
    writer.commit(Batch([replace(last, slot=LAST + 1)], None, b"a state", LAST))
    assert writer.compact(11) > 1


def go_on_and_close(writer: SqliteJournal) -> None:
    go_on(writer)
    writer.close()


def empty_log(writer: SqliteJournal) -> None:
    """Put the log into the file, if the reader is in no transaction."""
    writer.connection.set_busy_timeout(0)
    writer._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


class Moment:
    """Does something once, after a reader has looked at files or rows for the nth time."""

    def __init__(self, number: int, act: Callable[[], None]) -> None:
        self._left, self._act = number, act
        self.came = False

    def __call__(self, frame: object, event: str, called: Any) -> None:
        """Count the calls of the operating system and of SQLite; see `sys.setprofile`."""
        if event != "c_return" or not (called.__module__ == "posix" or type(called.__self__).__module__ == "apsw"):
            return
        if self._left == 0:
            sys.setprofile(None)
            self.came = True
            self._act()
        self._left -= 1


def read(path: Path, moment: Moment) -> list[int]:
    """Read as a service does; `moment` comes meanwhile."""
    sys.setprofile(moment)
    try:
        with SqliteJournal(path) as journal:
            committed = journal.head().committed
            journal.load()
            return [record.slot for record in journal.releases(LAST - 4) if record.slot <= min(committed, LAST)]
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("act", [SqliteJournal.close, go_on, go_on_and_close, empty_log], ids=lambda act: act.__name__)
def test_a_writer_may_go_on_or_end_at_any_moment(
    used: Path, tmp_path: Path, act: Callable[[SqliteJournal], None]
) -> None:
    number = 0
    while True:
        folder = Path(shutil.copytree(used, tmp_path / str(number)))
        with SqliteJournal(folder / "run.journal", write=True) as writer:
            moment = Moment(number, lambda act=act, writer=writer: act(writer))  # type: ignore[misc]
            assert read(folder / "run.journal", moment) == list(range(LAST - 4, LAST + 1)), number
        shutil.rmtree(folder)
        if not moment.came:
            break
        number += 1
    assert number > 50


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("cut", [1, 4095, 4096, 4097])
def test_a_file_that_was_cut_is_refused(whole: Path, cut: int, write: bool) -> None:
    """Also within its last page, which SQLite alone would read as one that ends with zeros."""
    data = whole.read_bytes()[:-cut]
    whole.write_bytes(data)
    with pytest.raises(InvalidJournal, match="damaged"):
        SqliteJournal(whole, write=write)
    assert whole.read_bytes() == data


@pytest.mark.parametrize("write", [False, True])
def test_a_file_of_one_byte_is_no_empty_journal(tmp_path: Path, write: bool) -> None:
    path = tmp_path / "run.journal"
    path.write_bytes(b"\n")
    with pytest.raises(InvalidJournal, match="another kind of file"):
        SqliteJournal(path, write=write)
    assert path.read_bytes() == b"\n"


def test_a_file_that_may_not_be_read_is_named(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(StorageFailed, match="read permission"):
        SqliteJournal(whole)


def test_an_error_of_the_disk_is_no_damage(whole: Path) -> None:
    """SQLite ends a transaction over it, as it ends here."""
    with SqliteJournal(whole) as journal:

        def fail() -> None:
            journal._database.execute("ROLLBACK")
            raise apsw.IOError("disk I/O error")

        with pytest.raises(StorageFailed, match="input/output error"), journal._database.readable():
            journal._database.read(fail)
