"""`wevent backup`: nothing is replaced unasked, and the copy is for its owner only."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from tests.support.commands import publish, run, write_stream
from wevent.errors import InvalidOutput, StorageFailed
from wevent.journal import SqliteJournal, back_up
from wevent.verification import verify_journal

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_stream(tmp_path)
    assert publish(tmp_path, 5).code == 0
    return tmp_path


@pytest.mark.parametrize("content", [b"a text\n", b"", None])
def test_a_file_that_is_there_stays_without_force(folder: Path, content: bytes | None) -> None:
    if content is None:  # another stream's journal
        assert publish(folder, 3, journal="copy.journal", out="other.ndjson").code == 0
    else:
        (folder / "copy.journal").write_bytes(content)
    before = (folder / "copy.journal").read_bytes()
    done = run(folder, "backup", "run.journal", "copy.journal")
    assert done.code == 2
    assert "there already" in done.err
    assert "--force" in done.err
    assert (folder / "copy.journal").read_bytes() == before
    assert run(folder, "backup", "run.journal", "copy.journal", "--force").code == 0
    assert apsw.Connection(str(folder / "copy.journal")).execute("SELECT committed, copied FROM head").fetchall() == [
        (5, 1)
    ]
    assert verify_journal(folder / "copy.journal").ok


def test_a_dangling_link_is_there_too(folder: Path) -> None:
    (folder / "copy.journal").symlink_to(folder / "nowhere")
    assert run(folder, "backup", "run.journal", "copy.journal").code == 2


@pytest.mark.parametrize(
    "target",
    ["run.journal", "./run.journal", "link.journal", "run.journal.witness", "run.journal-wal", "run.journal-shm"],
)
def test_the_journal_itself_is_never_replaced(folder: Path, target: str) -> None:
    (folder / "link.journal").symlink_to("run.journal")
    with SqliteJournal(folder / "run.journal", write=True):
        before = (folder / "run.journal").read_bytes()
        done = run(folder, "backup", "run.journal", target, "--force")
        assert done.code == 2
        assert "the journal's own" in done.err
        assert (folder / "run.journal").read_bytes() == before
    assert publish(folder, 6).code == 0


def test_a_hard_link_of_the_journal_is_the_journal(folder: Path) -> None:
    os.link(folder / "run.journal", folder / "hard.journal")
    assert run(folder, "backup", "run.journal", "hard.journal", "--force").code == 2


@pytest.mark.parametrize("force", [False, True])
def test_the_copy_is_for_its_owner_only(folder: Path, force: bool) -> None:
    target = folder / "copy.journal"
    if force:
        target.write_text("anything")
        target.chmod(0o666)
    modes = []

    def look(function: object, event: str, argument: object) -> None:
        modes.extend(stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if ".partial" in str(path))

    before = os.umask(0)
    sys.setprofile(look)  # at every call: the modes while it is being made
    try:
        back_up(folder / "run.journal", target, replace=force)
    finally:
        sys.setprofile(None)
        os.umask(before)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert modes
    assert set(modes) == {0o700, 0o600}  # a folder, and what is in it
    assert not [one.name for one in folder.iterdir() if ".partial" in one.name]


def test_a_folder_is_no_target(folder: Path) -> None:
    (folder / "place").mkdir()
    done = run(folder, "backup", "run.journal", "place", "--force")
    assert done.code == 2
    assert "a folder" in done.err


def test_a_failure_replaces_nothing_and_leaves_nothing(folder: Path) -> None:
    (folder / "copy.journal").write_text("precious")
    assert publish(folder, 5, "--end", "2026-01-01T10:00:00Z").code == 0
    assert (folder / "run.journal").stat().st_size > 40960
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40960, 40960)); "
        "from wevent.cli import main; main(['backup', 'run.journal', 'copy.journal', '--force'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 75, done
    assert done.stderr.count("Error:") == 1
    assert "copy.journal" in done.stderr
    assert (folder / "copy.journal").read_text() == "precious"
    assert not [one.name for one in folder.iterdir() if ".partial" in one.name]


def test_a_place_that_is_not_there(folder: Path) -> None:
    done = run(folder, "backup", "run.journal", "no/folder/copy.journal")
    assert done.code == 2
    assert done.err.count("Error:") == 1


def test_the_library_refuses_too(folder: Path) -> None:
    journal = folder / "run.journal"
    back_up(journal, folder / "copy.journal")
    with pytest.raises(InvalidOutput):
        back_up(journal, folder / "copy.journal")
    with pytest.raises(StorageFailed):
        back_up(journal, folder / "no" / "folder")
