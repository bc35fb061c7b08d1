"""What an attacker of the journal found: marks that were forgotten, and ids that stayed."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.commands import Done, call, publish, write_stream
from wevent.errors import StorageFailed
from wevent.journal import SqliteJournal
from wevent.journal.journal import Journal
from wevent.journal.record import Revision
from wevent.journal.terms import class_history
from wevent.journal.witness import WitnessFile, read_witness
from wevent.people.membership import Change
from wevent.publishing.loop import Publication


def publish_and_die(folder: Path, patching: pytest.MonkeyPatch, owner: type, name: str, *more: str) -> None:
    """Publish five slots in a process that is killed when it calls a method."""
    if os.fork() == 0:
        patching.setattr(owner, name, lambda *_, **__: os._exit(9))
        publish(folder, 5, *more)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 9


def remove_journal(folder: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        (folder / f"run.journal{ending}").unlink(missing_ok=True)


def released(folder: Path, slots: int) -> Done:
    write_stream(folder)
    return publish(folder, slots)


def test_a_journal_started_over_that_is_lost_before_its_first_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert released(tmp_path, 3).code == 0
    call(tmp_path, "backup", "run.journal", "backup")
    assert publish(tmp_path, 5).code == 0
    remove_journal(tmp_path)
    (tmp_path / "out.ndjson").unlink()
    publish_and_die(tmp_path, monkeypatch, Publication, "run", "--start-over")
    remove_journal(tmp_path)
    assert publish(tmp_path, 5).code == 2  # slots 1 to 5 went out
    assert call(tmp_path, "restore", "backup", "run.journal", "--released-through", "3").code == 2
    assert publish(tmp_path, 5, "--start-over").code == 0


def test_a_journal_without_slots_beside_a_witness_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_stream(tmp_path)
    publish_and_die(tmp_path, monkeypatch, Publication, "run")
    files = {name: tmp_path / name for name in ("run.journal", "run.journal-wal")}
    before = {name: path.read_bytes() for name, path in files.items() if path.exists()}
    assert publish(tmp_path, 5).code == 0
    remove_journal(tmp_path)
    for name, data in before.items():
        files[name].write_bytes(data)
    with (tmp_path / "run.journal.witness").open("r+b") as witness:
        for place in (20, 4116):
            witness.seek(place)
            witness.write(b"!")
    (tmp_path / "out.ndjson").unlink()
    assert publish(tmp_path, 5).code == 2


@pytest.mark.parametrize("place", [(Journal, "_store"), (WitnessFile, "clear_ahead")])
def test_ids_that_came_with_a_version_leave_the_witness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: tuple[type, str]
) -> None:
    assert released(tmp_path, 3).code == 0
    with (tmp_path / "users.csv").open("a") as users:
        users.writelines(f"someone-{number},4,0.5\n" for number in range(200))
    more = ("--reconfigure", "--mechanism", "uniform")
    publish_and_die(tmp_path, monkeypatch, *place, *more)
    witness = tmp_path / "run.journal.witness"
    assert b"someone" in witness.read_bytes()
    assert publish(tmp_path, 6, *more).code == 0
    assert read_witness(witness).committed == 6
    assert b"someone" not in witness.read_bytes()


def test_a_journal_with_more_slots_and_fewer_changes_than_its_witness(tmp_path: Path) -> None:
    assert released(tmp_path, 3).code == 0
    other = tmp_path / "other"
    other.mkdir()
    for name in ("run.journal", "run.journal.witness", "users.csv", "events.csv", "out.ndjson"):
        shutil.copy(tmp_path / name, other / name)
    assert publish(other, 4).code == 0
    assert call(tmp_path, "users", "run.journal", "remove", "7").code == 0
    remove_journal(tmp_path)
    shutil.copy(other / "run.journal", tmp_path / "run.journal")
    assert publish(tmp_path, 5).code == 2


def test_what_is_asked_after_a_fault_waits_for_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert released(tmp_path, 3).code == 0
    with SqliteJournal(tmp_path / "run.journal", write=True) as journal:
        journal.registry.ask([Change("remove", "1")])
        journal.begin(replace(journal.head().epoch.terms, mechanism="uniform"))

        def refuse(_: Revision) -> None:
            raise StorageFailed("No room.", "Make room.")

        monkeypatch.setattr(journal.registry, "_witness", refuse)
        with pytest.raises(StorageFailed):
            journal.registry.apply(4, class_history(journal.epochs()))
        asked = Change("remove", "2")
        journal.registry.ask([asked])
        assert journal._database.write(journal.registry.pop_held_requests) == [asked]


def test_a_draw_is_not_stored_under_other_terms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_stream(tmp_path)
    publish_and_die(tmp_path, monkeypatch, Publication, "run")
    files = [tmp_path / "run.journal", tmp_path / "run.journal-wal"]
    before = {path: path.read_bytes() for path in files if path.exists()}
    publish_and_die(tmp_path, monkeypatch, Journal, "_store", "--mechanism", "uniform")
    remove_journal(tmp_path)
    for path, data in before.items():
        path.write_bytes(data)
    done = publish(tmp_path, 5)
    assert done.code == 2
    assert "damaged" not in done.err
    assert "--released-through" in done.err
