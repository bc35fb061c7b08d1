"""`wevent restore`: a backup back in place, whatever was left there and wherever it is killed (spec 10)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

import wevent
from tests.support.commands import (
    Done,
    call,
    close,
    event,
    live,
    publish,
    run,
    send,
    slots_of,
    start,
    wait_for,
    write_stream,
)
from wevent.journal.tables.side_mark import read_mark

STEPS = ("copied", "checked", "announced", "put aside", "moved in", "settled")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A backup at slot 10, a journal and an output that went on to slot 20."""
    write_stream(tmp_path)
    assert publish(tmp_path, 10).code == 0
    assert call(tmp_path, "backup", "run.journal", "backup.journal").code == 0
    assert publish(tmp_path, 20).code == 0
    return tmp_path


def restore(folder: Path, *more: str, through: int | None = 20, backup: str = "backup.journal") -> Done:
    stated = () if through is None else ("--released-through", str(through))
    return call(folder, "restore", backup, "run.journal", *stated, *more)


def flip(path: Path) -> None:
    """Damage a page in the middle of a file."""
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 2000] = os.urandom(2000)
    path.write_bytes(data)


def released(folder: Path) -> list[bytes]:
    return (folder / "out.ndjson").read_bytes().splitlines()


def assert_whole(folder: Path, before: list[bytes]) -> None:
    """Slots 1 to 20 keep their bytes, 21 to 25 follow, and the audit finds nothing."""
    done = publish(folder, 25)
    assert done.code == 0, done
    assert released(folder)[:20] == before
    assert slots_of(folder / "out.ndjson") == list(range(1, 26))
    assert call(folder, "audit", "run.journal").code == 0


def missing(journal: Path) -> None:
    journal.unlink()


def emptied(journal: Path) -> None:
    journal.write_bytes(b"")


def foreign(journal: Path) -> None:
    journal.write_bytes(b"something else entirely" * 300)


@pytest.mark.parametrize("loss", [missing, emptied, flip, foreign])
def test_a_lost_journal_comes_back_and_draws_nothing_again(folder: Path, loss: Callable[[Path], None]) -> None:
    before, backup = released(folder), (folder / "backup.journal").read_bytes()
    loss(folder / "run.journal")
    assert publish(folder, 25).code == 2
    done = restore(folder)
    assert done.code == 0, done
    assert "restored from backup.journal through slot 10" in done.out
    assert "slots 11 to 20 were released elsewhere" in done.out
    assert "none of 60 members has to wait" in done.out
    assert ("run.journal.replaced-1" in done.out) == (loss is not missing)
    assert (folder / "backup.journal").read_bytes() == backup
    assert stat.S_IMODE((folder / "run.journal").stat().st_mode) == 0o600
    assert not list(folder.glob(".run.journal*"))
    assert_whole(folder, before)


def test_a_left_over_write_ahead_log_is_not_replayed_over_the_backup(folder: Path) -> None:
    with start(folder, *live("--out", "live.ndjson", journal="live.journal"), stdin=subprocess.PIPE) as child:
        send(child, *(event(60 * slot + 5, slot) + close(60 * slot + 60) for slot in range(5)))
        wait_for(lambda: slots_of(folder / "live.ndjson")[-1:] == [5], "slot 5")
        assert call(folder, "backup", "live.journal", "live-backup.journal").code == 0
        send(child, *(event(60 * slot + 5, slot) + close(60 * slot + 60) for slot in range(5, 30)))
        wait_for(lambda: slots_of(folder / "live.ndjson")[-1:] == [30], "slot 30")
        child.send_signal(signal.SIGKILL)
    assert (folder / "live.journal-wal").stat().st_size > 0
    (folder / "live.journal").unlink()
    done = call(folder, "restore", "live-backup.journal", "live.journal", "--released-through", "30", "--json")
    assert done.code == 0, done
    facts = json.loads(done.out)
    assert (facts["backup_through"], facts["released_through"], facts["waiting"]) == (5, 30, 0)
    assert any(one.endswith("live.journal.replaced-1-wal") for one in facts["put_aside"])
    assert not (folder / "live.journal-wal").exists()
    assert call(folder, "audit", "live.journal").code == 0
    assert "slot 30" in call(folder, "status", "live.journal").out


def test_without_the_side_file_the_widest_window_is_needed_and_everybody_waits(folder: Path) -> None:
    (folder / "run.journal").unlink()
    (folder / "run.journal.lock").unlink()
    refused = restore(folder)
    assert refused.code == 2
    assert "--widest-window" in refused.err
    assert sorted(one.name for one in folder.glob("run.journal*")) == []
    done = restore(folder, "--widest-window", "12")
    assert done.code == 0, done
    assert "60 of 60 members wait, until slot 32 at the latest" in done.out


def test_it_needs_the_last_slot_and_says_where_to_find_it(folder: Path) -> None:
    (folder / "run.journal").unlink()
    done = restore(folder, through=None)
    assert done.code == 2
    assert "slot 20" in done.err
    assert "--released-through" in done.err
    assert restore(folder, through=15).code == 2
    assert not (folder / "run.journal").exists()


def test_a_backup_that_knows_more_than_is_stated(folder: Path) -> None:
    for one in folder.glob("run.journal*"):
        one.unlink()
    done = restore(folder, "--widest-window", "8", through=9)
    assert done.code == 2
    assert "--released-through 10 or later" in done.err


def test_nothing_to_restore(folder: Path) -> None:
    before = {one.name: one.read_bytes() for one in folder.glob("run.journal")}
    done = restore(folder)
    assert done.code == 2
    assert "nothing to restore" in done.err
    assert {one.name: one.read_bytes() for one in folder.glob("run.journal*") if "lock" not in one.name} == before
    assert publish(folder, 21).code == 0


def test_an_older_journal_is_replaced_by_a_newer_backup(folder: Path) -> None:
    before = released(folder)
    shutil.copy(folder / "run.journal", folder / "later")
    assert call(folder, "backup", "later", "later-backup.journal").code == 0
    shutil.copy(folder / "backup.journal", folder / "run.journal")
    done = restore(folder, backup="later-backup.journal")
    assert done.code == 0, done
    assert "no slot was released after the backup" in done.out
    assert_whole(folder, before)


def test_a_backup_of_another_journal_is_refused(folder: Path) -> None:
    assert publish(folder, 5, journal="other.journal", out="other.ndjson").code == 0
    assert call(folder, "backup", "other.journal", "other-backup.journal").code == 0
    (folder / "run.journal").unlink()
    done = restore(folder, backup="other-backup.journal")
    assert done.code == 2
    assert "another journal" in done.err
    assert not (folder / "run.journal").exists()


def test_a_damaged_backup_is_refused(folder: Path) -> None:
    with apsw.Connection(str(folder / "backup.journal")) as database:
        database.execute("UPDATE members SET nano = nano + 4000000 WHERE user = '7'")
    (folder / "run.journal").unlink()
    done = restore(folder)
    assert done.code == 2
    assert "damaged" in done.err
    assert not (folder / "run.journal").exists()


def test_a_slot_that_was_changed_in_the_backup_is_noticed(folder: Path) -> None:
    with apsw.Connection(str(folder / "backup.journal")) as database:
        database.execute("UPDATE slots SET threshold = coalesce(threshold, 0) + 1 WHERE slot = 3")
    (folder / "run.journal").unlink()
    done = restore(folder)
    assert done.code == 2
    assert "damaged" in done.err


def test_a_backup_from_a_newer_wevent_is_refused(folder: Path) -> None:
    with apsw.Connection(str(folder / "backup.journal")) as database:
        database.execute("PRAGMA user_version = 99")
    (folder / "run.journal").unlink()
    done = restore(folder)
    assert done.code == 2
    assert "format 99" in done.err


def test_the_journal_itself_a_folder_and_a_file_with_a_log_are_no_backups(folder: Path) -> None:
    (folder / "plain.journal").write_bytes((folder / "backup.journal").read_bytes())
    (folder / "plain.journal-wal").write_bytes(b"frames")
    for backup in ("run.journal", "run.journal.lock", ".", "nowhere", "plain.journal", "users.csv"):
        done = restore(folder, backup=backup)
        assert done.code == 2, done
        assert done.err.count("Error:") == 1, done
    assert publish(folder, 21).code == 0


def test_it_is_refused_while_somebody_publishes(folder: Path) -> None:
    with start(folder, *live("--out", "live.ndjson", journal="live.journal"), stdin=subprocess.PIPE) as child:
        send(child, event(5, 1), close(60))
        wait_for(lambda: slots_of(folder / "live.ndjson") == [1], "slot 1")
        done = call(folder, "restore", "backup.journal", "live.journal", "--released-through", "20")
        assert done.code == 2
        assert f"process {child.pid}" in done.err
        child.send_signal(signal.SIGTERM)


def test_a_plain_copy_can_be_restored_too(folder: Path) -> None:
    before = released(folder)
    shutil.copy(folder / "run.journal", folder / "plain.journal")
    assert publish(folder, 25).code == 0
    (folder / "run.journal").unlink()
    done = restore(folder, backup="plain.journal", through=25)
    assert done.code == 0, done
    assert publish(folder, 27).code == 0
    assert released(folder)[:20] == before


def kill_restore(folder: Path, step: str, through: int, backup: str = "backup.journal") -> None:
    """A restore that is killed after a step."""
    program = (
        "import os, sys; from pathlib import Path; from wevent.publishing.restoring import Stated, restore\n"
        "at = lambda step: os.kill(os.getpid(), 9) if step == sys.argv[1] else None\n"
        "restore(Path(sys.argv[3]), Path('run.journal'), Stated(int(sys.argv[2]), 8), at)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(wevent.__file__).parents[1])}
    command = [sys.executable, "-c", program, step, str(through), backup]
    killed = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True)
    assert killed.returncode == -9, killed.stderr


def test_killed_it_leaves_nothing_that_proves_a_later_slot(folder: Path) -> None:
    (folder / "run.journal").unlink()
    kill_restore(folder, "announced", 25)
    done = restore(folder, through=25)
    assert done.code == 2, done
    assert "--widest-window" in done.err
    assert "60 of 60 members wait" in restore(folder, "--widest-window", "8", through=25).out


def test_a_plain_copy_that_was_not_settled_knows_that_it_is_one(folder: Path) -> None:
    shutil.copy(folder / "run.journal", folder / "plain.journal")
    (folder / "run.journal").unlink()
    kill_restore(folder, "moved in", 25, "plain.journal")
    (folder / "run.journal.lock").unlink()
    done = publish(folder, 25, out="fresh.ndjson")
    assert done.code == 2, done
    assert "a backup that ends with slot 20" in done.err


@pytest.mark.parametrize("side_file", [True, False])
@pytest.mark.parametrize("step", STEPS)
def test_killed_after_any_step_it_is_refused_and_can_be_done_again(folder: Path, step: str, side_file: bool) -> None:
    before = released(folder)
    flip(folder / "run.journal")
    if not side_file:
        (folder / "run.journal.lock").unlink()
    kill_restore(folder, step, 20)
    if step != "settled":  # a settled journal is whole: there is nothing left to do
        refused = publish(folder, 25)
        assert refused.code == 2, refused
        assert released(folder) == before
        assert publish(folder, 25, out="fresh.ndjson").code == 2  # also where no output knows better
        again = restore(folder, "--widest-window", "8")
        assert again.code == 0, again
        assert ("none of 60" in again.out) == side_file
    assert read_mark(folder / "run.journal.lock").committed == 20
    assert_whole(folder, before)


def test_a_process_of_its_own(folder: Path) -> None:
    (folder / "run.journal").unlink()
    done = run(folder, "restore", "backup.journal", "run.journal", "--released-through", "20")
    assert done.code == 0, done
    assert done.out.splitlines()[-1].startswith("next: ")
