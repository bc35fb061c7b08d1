"""A journal that is gone must not begin again unnoticed, and a start that fails must leave nothing behind (spec 10)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import (
    CLOCK,
    PATIENCE_S,
    PEOPLE,
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
from tests.support.synthetic import SyntheticSource, make_journal, make_terms
from wevent.errors import StaleJournal, StorageFailed
from wevent.journal import SqliteJournal
from wevent.journal.witness import read_witness
from wevent.outputs import open_output
from wevent.publishing.loop import Publication, Running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_stream(tmp_path)
    return tmp_path


@pytest.fixture
def used(folder: Path) -> Path:
    """A folder whose journal has 20 slots."""
    assert publish(folder, 20).code == 0
    return folder


def remove(journal: Path) -> None:
    journal.unlink()


def empty(journal: Path) -> None:
    os.truncate(journal, 0)


def replace(journal: Path) -> None:
    """Another journal, of the same terms, with slots of its own."""
    journal.rename(journal.with_name("old"))
    assert publish(journal.parent, 5, journal="other.journal", out="other.ndjson").code == 0
    shutil.copy(journal.with_name("other.journal"), journal)


def without_its_log(journal: Path) -> None:
    """A young journal, killed, whose write-ahead log was removed: the file itself has no tables yet."""
    for ending in ("", ".witness"):
        journal.with_name(journal.name + ending).unlink(missing_ok=True)
    journal.with_name("out.ndjson").unlink()
    child = start(journal.parent, *live("--out", "out.ndjson"), stdin=subprocess.PIPE)
    send(child, *(event(second, second % 60) for second in range(0, 120, 5)), close(120))
    wait_for(lambda: slots_of(journal.with_name("out.ndjson")) == [1, 2], "two slots")
    child.kill()
    child.communicate()
    for ending in ("-wal", "-shm"):
        journal.with_name(journal.name + ending).unlink()


LOSSES = [remove, empty, replace, without_its_log]


@pytest.mark.parametrize("lose", LOSSES)
def test_a_lost_journal_is_refused_with_the_ways_out(used: Path, lose: Callable[[Path], None]) -> None:
    lose(used / "run.journal")
    released = (used / "out.ndjson").read_bytes()
    mark = read_witness(used / "run.journal.witness")
    done = publish(used, 22)
    assert done.code == 2, done
    assert "as its witness shows" in done.err
    assert f"--released-through {mark.committed}" in done.err
    assert "--start-over" in done.err
    assert "Epsilons then add up" in done.err
    assert done.out == ""
    assert (used / "out.ndjson").read_bytes() == released
    assert publish(used, 22, out="-").code == 2
    after = read_witness(used / "run.journal.witness")
    assert (after.journal, after.committed, after.chain) == (mark.journal, mark.committed, mark.chain)


@pytest.mark.parametrize("lose", [remove, empty, replace])
def test_starting_over_says_so_and_keeps_the_mark(used: Path, lose: Callable[[Path], None]) -> None:
    mark = read_witness(used / "run.journal.witness")
    lose(used / "run.journal")
    before = (used / "out.ndjson").read_bytes()
    stated = ("--released-through", "5") if lose is replace else ()  # the other journal's witness file is not here
    done = publish(used, 22, "--start-over", *stated)
    assert done.code == 2, "the output still has the slots of the lost journal"
    assert (used / "out.ndjson").read_bytes() == before
    assert publish(used, 22, "--start-over", *stated, out="new.ndjson").code == 0, "a wrong output stored nothing"
    assert slots_of(used / "new.ndjson") == list(range(1, 23))
    statement = json.loads(run(used, "status", "run.journal", "--statement").out)
    assert statement["unsafe"] == ["started over"]
    assert json.loads(run(used, "verify", "run.journal", "--json").out)["unsafe"] == ["started over"]
    after = read_witness(used / "run.journal.witness")
    assert after.committed == 22
    assert after.earlier == ((mark.journal, 20),)
    assert publish(used, 23, out="new.ndjson").code == 0
    again = publish(used, 24, "--start-over", out="new.ndjson")
    assert again.code == 2
    assert "Leave --start-over out" in again.err


def test_nothing_lost_is_nothing_to_start_over_from(folder: Path) -> None:
    done = publish(folder, 5, "--start-over")
    assert done.code == 2
    assert "no sign of an earlier one" in done.err
    assert sorted(one.name for one in folder.iterdir()) == ["events.csv", "users.csv"]


def test_a_backup_put_in_the_place_of_a_lost_journal_goes_on(used: Path) -> None:
    assert run(used, "backup", "run.journal", "copy.journal").code == 0
    (used / "run.journal").rename(used / "gone")
    (used / "copy.journal").rename(used / "run.journal")
    assert publish(used, 25, "--released-through", "20").code == 0
    assert slots_of(used / "out.ndjson") == list(range(1, 26))


def test_released_through_is_for_a_backup_that_is_there(folder: Path) -> None:
    done = publish(folder, 5, "--released-through", "3")
    assert done.code == 2
    assert "Put the backup there first" in done.err


@pytest.mark.parametrize("fault", [("--mechanism", "pbx"), ("--user-column", "person"), ("--out", "out.xlsx")])
def test_a_failing_start_keeps_the_mark_of_an_earlier_journal(used: Path, fault: tuple[str, str]) -> None:
    (used / "run.journal").unlink()
    before = read_witness(used / "run.journal.witness")
    assert publish(used, 22, *fault).code == 2
    after = read_witness(used / "run.journal.witness")
    assert (after.journal, after.committed, after.chain) == (before.journal, before.committed, before.chain)
    assert after.committed == 20
    assert publish(used, 22).code == 2


@pytest.mark.parametrize("ending", ["ndjson", "csv", "parquet"])
def test_an_output_with_slots_is_not_for_a_new_journal(folder: Path, ending: str) -> None:
    out = f"o.{ending}"
    assert publish(folder, 5, journal="first.journal", out=out).code == 0
    before = (folder / out).read_bytes()
    done = publish(folder, 5, journal="second.journal", out=out)
    assert done.code == 2, done
    assert "ends with slot 5, and the journal is new" in done.err
    assert "epsilons then add up" in done.err
    assert (folder / out).read_bytes() == before
    assert not (folder / "second.journal").exists()
    assert publish(folder, 7, journal="first.journal", out=out).code == 0


@pytest.mark.parametrize("ending", ["ndjson", "csv", "parquet"])
def test_an_output_of_another_journal_is_refused(folder: Path, ending: str) -> None:
    out = f"o.{ending}"
    noisy = ("--mechanism", "pbu")  # draws in every slot: equal bytes of two journals are out of the question
    assert publish(folder, 5, *noisy, journal="first.journal", out=out).code == 0
    assert publish(folder, 8, *noisy, journal="second.journal", out=f"p.{ending}").code == 0
    before = (folder / out).read_bytes()
    done = publish(folder, 9, *noisy, journal="second.journal", out=out)
    assert done.code == 2, done
    assert "another journal" in done.err
    assert (folder / out).read_bytes() == before


def move_away(journal: Path) -> None:
    journal.rename(journal.with_name("elsewhere"))


def put_a_copy(journal: Path) -> None:
    shutil.copy(journal, journal.with_name("copy"))
    journal.with_name("copy").replace(journal)


def cut(journal: Path) -> None:
    os.truncate(journal, 0)


def remove_the_log(journal: Path) -> None:
    journal.with_name(journal.name + "-wal").unlink()


def remove_the_witness(journal: Path) -> None:
    journal.with_name(journal.name + ".witness").unlink()


@pytest.mark.parametrize("step", ["stepped", "committed"])
@pytest.mark.parametrize("harm", [remove, move_away, put_a_copy, cut, remove_the_log, remove_the_witness])
def test_a_journal_taken_away_under_a_run_stops_it(tmp_path: Path, harm: Callable[[Path], None], step: str) -> None:
    path = tmp_path / "run.journal"
    make_journal(path).close()
    seen: list[str] = []

    def at(reached: str) -> None:
        seen.append(reached)
        if reached == step and seen.count(step) == 5:
            harm(path)

    output = open_output(str(tmp_path / "out.ndjson"))
    with SqliteJournal(path, write=True) as journal:
        publication = Publication(journal, SyntheticSource(40), output, running=Running(last=40, at=at))
        with pytest.raises(StorageFailed, match="removed, replaced"):
            publication.run()
        if harm is not cut:
            assert journal.head().committed == (4 if step == "stepped" else 5)
    went_out = [1, 2, 3, 4] if step == "stepped" else [1, 2, 3, 4, 5]  # what is committed is in the witness too
    assert slots_of(tmp_path / "out.ndjson") == went_out


def test_a_journal_unlinked_under_a_live_run_is_exit_code_2(folder: Path) -> None:
    child = start(folder, *live("--out", "out.ndjson"), stdin=subprocess.PIPE)
    send(child, event(5, 1), close(60))
    wait_for(lambda: slots_of(folder / "out.ndjson") == [1], "slot 1")
    (folder / "run.journal").unlink()
    send(child, event(65, 1), close(120))
    assert child.wait(timeout=PATIENCE_S) == 2
    assert child.stderr is not None
    assert child.stderr.read().count("Error:") == 1
    assert slots_of(folder / "out.ndjson") == [1]


class TestFirstRun:
    def test_who_was_registered_before_slot_1_stays_registered(self, folder: Path) -> None:
        child = start(folder, *live("--strict"), stdin=subprocess.PIPE)
        wait_for(lambda: run(folder, "users", "run.journal", "list").code == 0, "the journal")
        added = run(folder, "users", "run.journal", "add", "n1", "--window", "4", "--epsilon", "0.5")
        assert added.code == 0, added
        send(child, "malformed\n")
        child.communicate(timeout=PATIENCE_S)
        assert child.returncode == 2
        assert publish(folder, 3, "--user-column", "person").code == 2
        assert publish(folder, 3).code == 0
        users = {
            row["user"]: row for row in json.loads(run(folder, "users", "run.journal", "list", "--json").out)["users"]
        }
        assert len(users) == 61
        assert users["n1"]["from"] == 1

    def test_it_binds_nobody_before_its_first_slot(self, folder: Path) -> None:
        assert publish(folder, 5, "--mechanism", "pba", "--time-column", "moment").code == 2
        child = start(folder, *live("--mechanism", "pba", "--stream", "x"), stdin=subprocess.PIPE)
        wait_for(lambda: run(folder, "users", "run.journal", "list").code == 0, "the journal")
        child.kill()
        child.communicate()
        (folder / "less.csv").write_text("user,window,epsilon\n1,3,1\n2,3,1\n")
        assert publish(folder, 5, "--requirements", "less.csv").code == 0
        statement = json.loads(run(folder, "status", "run.journal", "--statement").out)
        assert statement["stream"] == "default"
        assert [one["classes"] for one in statement["epochs"]] == [[{"window": 3, "epsilon": 1.0}]]
        assert len(json.loads(run(folder, "users", "run.journal", "list", "--json").out)["users"]) == 2
        assert run(folder, "verify", "run.journal").code == 0

    def test_a_mistake_leaves_no_file(self, folder: Path) -> None:
        assert publish(folder, 5, "--mechanism", "pbx").code == 2
        assert sorted(one.name for one in folder.iterdir()) == ["events.csv", "users.csv"]

    def test_clean_up_never_takes_the_journal_of_the_next_writer(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        """The next writer starts the moment that the lock is free."""
        from wevent.cli import main

        monkeypatch.chdir(folder)
        leave, next_writer = SqliteJournal.close, []

        def close_and_let_in(journal: SqliteJournal) -> None:
            leave(journal)
            if not next_writer:
                next_writer.append(None)
                next_writer[0] = publish(folder, 5)

        monkeypatch.setattr(SqliteJournal, "close", close_and_let_in)
        arguments = ("--journal", "run.journal", "--out", "out.ndjson", "--end", "2026-01-01T00:05:00Z")
        with pytest.raises(SystemExit) as caught:
            main(("publish", "events.csv", *CLOCK, *PEOPLE, *arguments, "--user-column", "person"))
        assert caught.value.code == 2
        assert next_writer[0].code == 0
        assert run(folder, "verify", "run.journal").code == 0
        assert publish(folder, 6).code == 0
        assert slots_of(folder / "out.ndjson") == [1, 2, 3, 4, 5, 6]
        capfd.readouterr()


@pytest.mark.parametrize("fault", [("--out", "users.csv"), ("--time-column", "moment")])
def test_a_failed_epoch_changes_nothing(used: Path, fault: tuple[str, str]) -> None:
    (used / "wide.csv").write_text((used / "users.csv").read_text() + "n1,30,1\n")
    others = ("--mechanism", "pba", "--reconfigure", "--requirements", "wide.csv", "--declare", "30,1")
    assert publish(used, 22, *others, *fault).code == 2
    assert json.loads(run(used, "status", "run.journal", "--json").out)["epoch"] == 1
    assert len(json.loads(run(used, "users", "run.journal", "list", "--json").out)["users"]) == 60
    assert publish(used, 22).code == 0
    assert publish(used, 24, *others).code == 0
    assert json.loads(run(used, "status", "run.journal", "--json").out)["epoch"] == 2
    assert len(json.loads(run(used, "users", "run.journal", "list", "--json").out)["users"]) == 61
    assert run(used, "verify", "run.journal").code == 0


def test_a_killed_epoch_changes_nothing(used: Path) -> None:
    child = start(used, *live("--mechanism", "pba", "--reconfigure"), stdin=subprocess.PIPE)
    send(child, event(20 * 60 + 1, 1))
    wait_for(lambda: json.loads(run(used, "status", "run.journal", "--json").out)["writer"] is not None, "the run")
    child.kill()
    child.communicate()
    assert publish(used, 22).code == 0
    assert json.loads(run(used, "status", "run.journal", "--json").out)["epoch"] == 1


class TestLibrary:
    def test_a_lost_journal_is_refused_without_the_command_too(self, tmp_path: Path) -> None:
        path = tmp_path / "run.journal"
        with make_journal(path) as journal:
            output = open_output(str(tmp_path / "out.ndjson"))
            Publication(journal, SyntheticSource(7), output, running=Running(last=7)).run()
            output.close()
        path.unlink()
        with pytest.raises(StaleJournal) as caught:
            make_journal(path)
        assert caught.value.facts["released"] == 7
        assert not path.exists()

    def test_an_unreadable_witness_file_beside_no_journal(self, tmp_path: Path) -> None:
        (tmp_path / "run.journal.witness").write_bytes(b"\xff" * 600)
        with pytest.raises(StaleJournal, match="some slot"):
            SqliteJournal(tmp_path / "run.journal", write=True)
        with SqliteJournal(tmp_path / "run.journal", write=True, start_over=True) as journal:
            journal.begin(make_terms())
            assert journal.head().unsafe == ("started over",)

    def test_a_witness_file_whose_text_is_none_any_more(self, used: Path) -> None:
        side = used / "run.journal.witness"
        side.write_bytes(re.sub(rb'(?<="host":").', b"\xe1", side.read_bytes()))  # in both copies
        assert not read_witness(side).is_readable
        assert publish(used, 22).code == 2, "nobody can tell whether it is the journal or a copy"
        assert publish(used, 22, "--released-through", "20").code == 0
        assert slots_of(used / "out.ndjson") == list(range(1, 23))

    def test_a_journal_that_was_never_begun_leaves_no_file(self, tmp_path: Path) -> None:
        SqliteJournal(tmp_path / "run.journal", write=True).close()
        assert list(tmp_path.iterdir()) == []
