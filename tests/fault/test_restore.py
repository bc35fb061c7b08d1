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
from typing import Any

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
from wevent.errors import StorageFailed
from wevent.journal import SqliteJournal
from wevent.journal.user_registry import Registry
from wevent.journal.witness import read_witness

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


def restored(folder: Path, *more: str, through: int = 20, backup: str = "backup.journal") -> dict[str, Any]:
    """Restore, and return the facts that the command prints."""
    done = restore(folder, *more, "--json", through=through, backup=backup)
    assert done.code == 0, done
    facts: dict[str, Any] = json.loads(done.out)
    return facts


def import_users(folder: Path) -> None:
    """Bring the registry up to date."""
    done = call(folder, "users", "run.journal", "import", "users.csv")
    assert done.code == 0, done


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
    assert call(folder, "verify", "run.journal").code == 0


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
    assert done.out.splitlines()[-1].startswith("next: publish as before")
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
    assert (facts["backup_through"], facts["released_through"], facts["in_doubt_through"]) == (5, 30, None)
    assert any(one.endswith("live.journal.replaced-1-wal") for one in facts["put_aside"])
    assert not (folder / "live.journal-wal").exists()
    assert call(folder, "verify", "live.journal").code == 0
    assert "slot 30" in call(folder, "status", "live.journal").out


def test_without_the_witness_file_everything_after_the_backup_is_in_doubt(folder: Path) -> None:
    before = released(folder)
    (folder / "run.journal").unlink()
    (folder / "run.journal.witness").unlink()
    refused = restore(folder)
    assert refused.code == 2
    assert "--same-settings" in refused.err
    assert "--widest-window" in refused.err
    assert sorted(one.name for one in folder.glob("run.journal*")) == []
    facts = restored(folder, "--same-settings")
    assert (facts["in_doubt_through"], facts["silent_through"], facts["changes_lost"]) == (27, None, True)
    refused = publish(folder, 25)
    assert refused.code == 2
    assert "--accept-lost-changes" in refused.err
    assert released(folder) == before
    import_users(folder)
    assert_whole(folder, before)


def test_where_settings_may_be_lost_nobody_is_counted_for_the_widest_window(folder: Path) -> None:
    before = released(folder)
    (folder / "run.journal").unlink()
    (folder / "run.journal.witness").unlink()
    facts = restored(folder, "--widest-window", "12", "--accept-lost-changes")
    assert (facts["silent_through"], facts["changes_lost"]) == (32, False)
    assert_whole(folder, before)


def test_changes_after_the_backup_are_lost_although_the_witness_file_is_there(folder: Path) -> None:
    assert call(folder, "users", "run.journal", "remove", "7").code == 0
    assert publish(folder, 21).code == 0
    (folder / "run.journal").unlink()
    facts = restored(folder, through=21)
    assert (facts["in_doubt_through"], facts["silent_through"], facts["changes_lost"]) == (28, None, True)
    assert publish(folder, 25).code == 2
    assert publish(folder, 25, "--accept-lost-changes").code == 0
    assert call(folder, "verify", "run.journal").code == 0


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
    done = restore(folder, "--same-settings", through=9)
    assert done.code == 2
    assert "--released-through 10 or later" in done.err


def test_nothing_to_restore(folder: Path) -> None:
    before = {one.name: one.read_bytes() for one in folder.glob("run.journal")}
    done = restore(folder)
    assert done.code == 2
    assert "nothing to restore" in done.err
    assert {one.name: one.read_bytes() for one in folder.glob("run.journal")} == before
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
        database.execute("UPDATE slots SET payload = (SELECT payload FROM slots WHERE slot = 2) WHERE slot = 3")
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
    for backup in ("run.journal", "run.journal.witness", ".", "nowhere", "plain.journal", "users.csv"):
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
        "import os, sys; from pathlib import Path; from wevent.publishing.staleness import restore\n"
        "from wevent.settings import RestoreOptions\n"
        "at = lambda step: os.kill(os.getpid(), 9) if step == sys.argv[1] else None\n"
        "restore(Path(sys.argv[3]), Path('run.journal'), RestoreOptions(int(sys.argv[2]), 8), at)"
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
    assert restored(folder, "--same-settings", through=25)["in_doubt_through"] == 32


def test_a_plain_copy_that_was_not_settled_knows_that_it_is_one(folder: Path) -> None:
    shutil.copy(folder / "run.journal", folder / "plain.journal")
    (folder / "run.journal").unlink()
    kill_restore(folder, "moved in", 25, "plain.journal")
    (folder / "run.journal.witness").unlink()
    done = publish(folder, 25, out="fresh.ndjson")
    assert done.code == 2, done
    assert "a backup that ends with slot 20" in done.err


@pytest.mark.parametrize("witness_file", [True, False])
@pytest.mark.parametrize("step", STEPS)
def test_killed_after_any_step_it_is_refused_and_can_be_done_again(folder: Path, step: str, witness_file: bool) -> None:
    before = released(folder)
    flip(folder / "run.journal")
    if not witness_file:
        (folder / "run.journal.witness").unlink()
    kill_restore(folder, step, 20)
    if step != "settled":  # a settled journal is whole: there is nothing left to do
        refused = publish(folder, 25)
        assert refused.code == 2, refused
        assert released(folder) == before
        assert publish(folder, 25, out="fresh.ndjson").code == 2  # also where no output knows better
        facts = restored(folder, "--widest-window", "8")
        assert (facts["silent_through"], facts["changes_lost"]) == ((None, False) if witness_file else (28, True))
    if not witness_file:
        assert "--accept-lost-changes" in publish(folder, 25).err
        import_users(folder)
    assert read_witness(folder / "run.journal.witness").committed == 20
    assert_whole(folder, before)


def test_a_process_of_its_own(folder: Path) -> None:
    (folder / "run.journal").unlink()
    done = run(folder, "restore", "backup.journal", "run.journal", "--released-through", "20")
    assert done.code == 0, done
    assert done.out.splitlines()[-1].startswith("next: ")


def test_a_second_restore_of_the_same_backup_stays_silent(tmp_path: Path) -> None:
    """The version that the first one may have lost is lost again, and the witness shows it."""
    write_stream(tmp_path, 59)
    publish(tmp_path, 10)
    call(tmp_path, "backup", "run.journal", "backup.journal")
    publish(tmp_path, 11, "--reconfigure", "--declare", "30,0.5")
    publish(tmp_path, 20)
    restore = ("restore", "backup.journal", "run.journal", "--accept-lost-changes", "--json", "--released-through")
    for through, silent in ((20, 50), (22, 52)):
        (tmp_path / "run.journal").unlink()
        assert call(tmp_path, *restore, f"{through}").code == 2
        assert call(tmp_path, *restore, f"{through}", "--same-settings").code == 2
        done = call(tmp_path, *restore, f"{through}", "--widest-window", "30")
        assert json.loads(done.out)["silent_through"] == silent, done
        publish(tmp_path, through + 2)


def test_an_interrupted_restore_stays_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The witness is older than the lost slots, and the commit fails after the witness was written."""
    write_stream(tmp_path, 59)
    publish(tmp_path, 10)
    call(tmp_path, "backup", "run.journal", "backup.journal")
    publish(tmp_path, 15)
    witness = (tmp_path / "run.journal.witness").read_bytes()
    publish(tmp_path, 20, "--reconfigure", "--declare", "30,0.5")
    (tmp_path / "run.journal").unlink()
    (tmp_path / "run.journal.witness").write_bytes(witness)
    take_over = SqliteJournal._take_over

    def fail(*told: Any) -> None:
        take_over(*told)
        raise StorageFailed("No space to write.", "Make room.", path="run.journal")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteJournal, "_take_over", fail)
        assert restore(tmp_path, "--widest-window", "30").code != 0
    assert restored(tmp_path, "--widest-window", "30")["silent_through"] == 50


def test_a_version_that_came_to_no_slot_is_no_other_version(tmp_path: Path) -> None:
    write_stream(tmp_path, 30)
    publish(tmp_path, 10)
    call(tmp_path, "backup", "run.journal", "backup.journal")
    publish(tmp_path, 20)
    assert publish(tmp_path, 20, "--reconfigure", "--declare", "30,0.5").code == 0
    (tmp_path / "run.journal").unlink()
    assert restored(tmp_path)["in_doubt_through"] is None
    publish(tmp_path, 21, "--reconfigure", "--declare", "30,0.5")
    (tmp_path / "run.journal").unlink()
    refused = restore(tmp_path, "--same-settings", through=21)
    assert refused.code == 2
    assert "--widest-window" in refused.err
    assert "--same-settings" not in refused.err


@pytest.mark.parametrize(
    "stated",
    [
        ("--same-settings", "--widest-window", "30"),
        ("--widest-window", f"{2**63 - 1}"),
        ("--released-through", "1760000000", "--same-settings"),
    ],
)
def test_statements_that_cannot_be_true_are_refused(folder: Path, stated: tuple[str, ...]) -> None:
    (folder / "run.journal").unlink()
    (folder / "run.journal.witness").unlink()
    done = restore(folder, *stated)
    assert done.code == 2, done
    assert not (folder / "run.journal").exists()


def test_a_second_restore_of_the_same_backup_still_lacks_the_changes(tmp_path: Path) -> None:
    write_stream(tmp_path, 59)
    publish(tmp_path, 10)
    call(tmp_path, "backup", "run.journal", "backup.journal")
    call(tmp_path, "users", "run.journal", "erase", "7")
    for _ in range(2):
        (tmp_path / "run.journal").unlink()
        done = call(tmp_path, "restore", "backup.journal", "run.journal", "--released-through", "10", "--json")
        assert json.loads(done.out)["changes_lost"], done
        assert publish(tmp_path, 12).code == 2


def test_a_plain_copy_of_the_same_slot_without_registry_changes_is_noticed(folder: Path) -> None:
    journal = folder / "run.journal"
    copy = journal.read_bytes()
    for action in (("set", "3", "--window", "4", "--epsilon", "0.5"), ("erase", "7")):
        assert call(folder, "users", "run.journal", *action).code == 0
    journal.write_bytes(copy)
    refused = publish(folder, 25)
    assert refused.code == 2
    assert "--released-through" in refused.err
    assert call(folder, "users", "run.journal", "remove", "4").code == 2
    lost = publish(folder, 25, "--released-through", "20")
    assert lost.code == 2
    assert "--accept-lost-changes" in lost.err
    assert publish(folder, 25).code == 2  # still
    import_users(folder)
    assert publish(folder, 25).code == 0


def test_a_change_that_was_not_committed_is_not_lost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The witness shows the change; the transaction came to nothing, and the request is still queued."""

    advance = Registry.advance

    def fail(registry: Registry) -> None:
        advance(registry)
        raise StorageFailed("No space to write.", "Make room.", path="run.journal")

    with monkeypatch.context() as patch:
        patch.setattr(Registry, "advance", fail)
        assert call(folder, "users", "run.journal", "remove", "3").code != 0
    assert publish(folder, 25).code == 0


def test_a_copy_of_a_slot_that_was_settled_is_noticed(folder: Path) -> None:
    journal = folder / "run.journal"
    journal.unlink()
    restored(folder)
    copy = journal.read_bytes()
    for action in ("remove", "erase"):
        assert (
            call(folder, "users", "run.journal", action, action.replace("remove", "7").replace("erase", "9")).code == 0
        )
    journal.write_bytes(copy)
    assert publish(folder, 25).code == 2
    assert publish(folder, 25, "--released-through", "20").code == 2
    import_users(folder)
    assert publish(folder, 25).code == 0


def test_a_crash_after_a_settlement_leaves_two_ways_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two changes of the same slot are lost, and the witness is not written after the settlement."""
    journal = folder / "run.journal"
    copy = journal.read_bytes()
    for user in ("7", "9"):
        assert call(folder, "users", "run.journal", "remove", user).code == 0
    journal.write_bytes(copy)

    def fail(*told: Any, **more: Any) -> None:
        raise StorageFailed("No space to write.", "Make room.", path="run.journal.witness")

    with monkeypatch.context() as patch:
        patch.setattr("wevent.journal.sqlite.SqliteJournal.update_witness", fail)
        assert publish(folder, 25, "--released-through", "20").code != 0
    lost = publish(folder, 25)
    assert lost.code == 2
    assert "--accept-lost-changes" in lost.err
    import_users(folder)
    assert publish(folder, 25).code == 0


def test_a_copy_with_as_many_other_changes_is_noticed(folder: Path) -> None:
    journal = folder / "run.journal"
    copy = journal.read_bytes()
    assert call(folder, "users", "run.journal", "remove", "7").code == 0
    other = journal.read_bytes()
    journal.write_bytes(copy)
    assert publish(folder, 20, "--released-through", "20", "--accept-lost-changes").code == 0
    assert call(folder, "users", "run.journal", "erase", "9").code == 0
    journal.write_bytes(other)
    assert publish(folder, 25).code == 2
