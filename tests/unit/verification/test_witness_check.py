"""The end of a journal against its witness: a tail that was cut off leaves no other trace."""

from __future__ import annotations

import json
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import call
from tests.support.stored_slots import cut_end
from tests.support.synthetic import SyntheticSource, make_journal
from wevent.journal import SqliteJournal, back_up
from wevent.journal.record import Hook, no_hook
from wevent.outputs import open_output
from wevent.publishing.loop import Publication, Running
from wevent.verification import verify_journal


class Crash(Exception):
    """A crash at a labelled step."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of 12 slots."""
    with make_journal(tmp_path / "a.journal") as journal:
        publish(journal, tmp_path / "o.ndjson", 12)
    return tmp_path / "a.journal"


@pytest.fixture
def crashed(path: Path) -> Path:
    """A journal of 12 slots whose witness has slots 13 to 15 as a write-ahead record."""

    def crash(step: str) -> None:
        if step == "written ahead":
            raise Crash

    with SqliteJournal(path, write=True) as journal, pytest.raises(Crash):
        publish(journal, path.with_name("o.ndjson"), 15, crash)
    return path


def publish(journal: SqliteJournal, out: Path, last: int, at: Hook = no_hook) -> None:
    running = Running(last=last, batch=3, at=at)
    Publication(journal, SyntheticSource(last), open_output(str(out)), running=running).run()


def witness(path: Path) -> Path:
    return path.with_name(f"{path.name}.witness")


def change_record(path: Path, **changes: Any) -> None:
    """Change both copies of the record, with a right checksum."""
    data = bytearray(witness(path).read_bytes())
    for start in (0, 4096):
        record = json.loads(data[start + 9 : start + 4096].partition(b"\n")[0].strip(b"\0") or b"{}")
        text = json.dumps({**record, **changes}).encode()
        data[start : start + 4096] = (b"%08x %s\n" % (zlib.crc32(text), text)).ljust(4096)
    witness(path).write_bytes(data)


def ends(path: Path) -> tuple[bool, int | None, str | None, int | None]:
    report = verify_journal(path)
    return report.ok, report.witness_slot, report.witness_problem, report.write_ahead_slot


def problems(path: Path) -> list[tuple[int, str]]:
    return [(one["slot"], one["problem"]) for one in verify_journal(path).violations]


def test_the_whole_journal_reaches_its_witness(path: Path) -> None:
    assert ends(path) == (True, 12, None, None)


def test_a_tail_that_was_cut_off_consistently_is_found(path: Path) -> None:
    cut_end(path, 7)
    found = f"{witness(path)} shows slot 12, and the journal ends with 7: its end is missing, or it is an old copy"
    assert problems(path) == [(8, found)]
    done = call(path.parent, "verify", path.name)
    assert done.code == 1
    assert "VIOLATION in slot 8: a.journal.witness shows slot 12" in done.out


def test_a_cut_journal_that_went_on_is_found(path: Path) -> None:
    text = witness(path).read_bytes()
    cut_end(path, 7)
    witness(path).unlink()
    with SqliteJournal(path, write=True) as journal:
        journal.update_witness()
        publish(journal, path.with_name("p.ndjson"), 12)
    witness(path).write_bytes(text)
    assert problems(path) == [(12, f"{witness(path)} shows another release of the slot: two copies went on")]


def test_the_witness_of_another_journal_is_found(path: Path) -> None:
    change_record(path, journal="f" * 32)
    assert problems(path) == [(13, f"{witness(path)} shows slot 12 of another journal")]
    assert ends(path) == (False, None, f"{witness(path)} is of another journal", None)


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"\0" * 8192,
        b"{",
        b"00000000 {}",
        b"[" * 8192,
        b'a282ead8 {"journal": "x", "committed": 1e400}',
    ],
)
def test_a_missing_witness_is_reported(path: Path, content: bytes | None) -> None:
    """A journal that was copied without its witness may be whole."""
    cut_end(path, 7)
    witness(path).unlink()
    if content is not None:
        witness(path).write_bytes(content)
    ok, slot, problem, _ = ends(path)
    assert (ok, slot) == (True, None)
    assert str(witness(path)) in str(problem)
    done = call(path.parent, "verify", path.name)
    assert done.code == 0
    assert "the end of the journal was not checked against a witness" in done.out
    assert json.loads(call(path.parent, "verify", str(path), "--json").out)["witness_problem"] == problem


@pytest.mark.parametrize("damaged", [0, 1])
def test_the_newest_copy_that_is_whole_counts(path: Path, damaged: int) -> None:
    data = bytearray(witness(path).read_bytes())
    data[4096 * damaged + 40] ^= 1
    witness(path).write_bytes(data)
    ok, slot, problem, _ = ends(path)
    assert (ok, problem) == (True, None)
    assert slot in (9, 12)


def test_a_link_leads_to_the_witness_of_the_file_it_names(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link.journal").symlink_to(path)
    assert verify_journal(tmp_path / "link.journal").witness_slot == 12


class TestWriteAheadRecord:
    """Slots that the witness alone has: the next writer stores them."""

    def test_no_finding_while_it_is_whole(self, crashed: Path) -> None:
        assert ends(crashed) == (True, 15, None, 15)
        said = "slots through 15 are in the write-ahead record only: the next writer stores them"
        assert said in call(crashed.parent, "verify", crashed.name).out
        with SqliteJournal(crashed, write=True):
            pass
        assert ends(crashed) == (True, 15, None, None)
        assert verify_journal(crashed).slots == 15

    @pytest.mark.parametrize("way", ["flipped", "cut"])
    def test_damage_is_found(self, crashed: Path, way: str) -> None:
        data = bytearray(witness(crashed).read_bytes())
        data[16384 + 20] ^= 1
        witness(crashed).write_bytes(data if way == "flipped" else data[: 16384 + 20])
        found = f"the write-ahead record in {witness(crashed)} is damaged: slots through 15 are lost"
        assert problems(crashed) == [(13, found)]

    def test_an_older_copy_of_the_journal_is_found(self, crashed: Path) -> None:
        cut_end(crashed, 9)
        assert [slot for slot, _ in problems(crashed)] == [10]

    def test_a_backup_stores_none(self, crashed: Path) -> None:
        backup = crashed.with_name("b.journal")
        back_up(crashed, backup)
        shutil.copy(witness(crashed), witness(backup))
        assert [slot for slot, _ in problems(backup)] == [13]

    def test_a_journal_with_another_registry_stores_none(self, crashed: Path) -> None:
        change_record(crashed, revision=[7, "0" * 64])
        assert [slot for slot, _ in problems(crashed)] == [13]
