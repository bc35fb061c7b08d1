"""What a disk changed by itself is named and never sent: slots of the journal, lines of an output (spec 10)."""

from __future__ import annotations

import gc
import os
import subprocess
import warnings
from pathlib import Path
from random import Random

import apsw
import pytest

from tests.support import commands
from tests.support.commands import (
    PATIENCE_S,
    Done,
    call,
    close,
    event,
    live,
    run,
    send,
    slots_of,
    start,
    wait_for,
    write_stream,
)
from tests.support.stored_slots import change_blob, change_entry, read_blob, read_entry, stored_slots

SLOT = 6


def publish(folder: Path, minutes: int, mechanism: str = "pbu", out: str = "out.ndjson") -> Done:
    """Every slot of pbu is fresh."""
    return commands.publish(folder, minutes, "--mechanism", mechanism, out=out)


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """A folder whose journal has 20 slots."""
    write_stream(tmp_path)
    assert publish(tmp_path, 20).code == 0
    return tmp_path


def change(folder: Path, statement: str) -> None:
    database = apsw.Connection(str(folder / "run.journal"))
    database.execute(statement)
    database.close()


def change_histogram(folder: Path, shown_from: int = SLOT) -> None:
    """Change a value of the first histogram that was first shown in a slot or later."""
    from wevent.journal.record import decode_shown, encode_shown

    path = folder / "run.journal"
    entries = (read_entry(path, slot) for slot in stored_slots(path))
    entry = next(entry for entry in entries if entry["shown"] >= shown_from)
    shown = decode_shown(entry["shown"], read_blob(path, entry["histogram"]))
    shown.values[0] += 1
    change_blob(path, entry["histogram"], encode_shown(shown))


def assert_damaged(done: Done) -> None:
    assert done.code == 2, done
    assert "damaged" in done.err
    assert done.err.count("Error:") == 1


class TestWhatIsSentAgain:
    """`publish` compares with the hash chain before it sends a stored slot."""

    def test_a_changed_slot_is_not_sent_to_a_file_that_lost_it(self, used: Path) -> None:
        change_histogram(used)
        lines = (used / "out.ndjson").read_bytes().splitlines(keepends=True)
        (used / "out.ndjson").write_bytes(b"".join(lines[: SLOT - 2]))
        assert_damaged(publish(used, 20))
        assert_damaged(publish(used, 22))

    def test_a_changed_threshold_is_not_sent(self, used: Path) -> None:
        threshold = read_entry(used / "run.journal", SLOT)["threshold"]
        change_entry(used / "run.journal", SLOT, threshold=(threshold or 0) + 1)
        (used / "out.ndjson").unlink()
        assert_damaged(publish(used, 22))

    def test_nor_to_standard_output(self, used: Path) -> None:
        change(used, "UPDATE head SET emitted = 2")
        change_histogram(used)
        done = publish(used, 20, out="-")
        assert_damaged(done)
        assert done.out.count("\n") == 0

    def test_nor_into_a_parquet_file(self, used: Path) -> None:
        change_histogram(used)
        assert_damaged(publish(used, 20, out="out.parquet"))
        assert not (used / "out.parquet").exists()

    @pytest.mark.parametrize("more", [(), ("--format", "csv"), ("--out", "again.csv"), ("--out", "again.parquet")])
    def test_nor_exported(self, used: Path, more: tuple[str, ...]) -> None:
        change_histogram(used)
        assert_damaged(call(used, "releases", "run.journal", *more))

    @pytest.mark.parametrize("name", ["again.csv", "again.ndjson"])
    def test_a_refused_export_leaves_no_file_open(self, used: Path, name: str) -> None:
        change_histogram(used)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", ResourceWarning)
            assert_damaged(call(used, "releases", "run.journal", "--out", name))
            gc.collect()
        assert [str(one.message) for one in warned if name in str(one.message)] == []

    def test_a_histogram_that_later_slots_repeat_is_checked_with_the_slot_that_made_it(self, tmp_path: Path) -> None:
        write_stream(tmp_path)
        assert publish(tmp_path, 20, "sample").code == 0  # fresh at 1, 9 and 17
        change_histogram(tmp_path, 9)
        assert_damaged(call(tmp_path, "releases", "run.journal", "--from", "12"))

    def test_also_after_that_slot_was_dropped(self, tmp_path: Path) -> None:
        write_stream(tmp_path)
        assert publish(tmp_path, 20, "sample").code == 0
        from wevent.journal import SqliteJournal

        with SqliteJournal(tmp_path / "run.journal", write=True) as journal:
            journal.commit(journal_batch(journal))
            first = journal.compact(9)
            assert 9 < first <= 12
        assert call(tmp_path, "releases", "run.journal", "--from", "12").code == 0
        change_histogram(tmp_path, 9)
        assert_damaged(call(tmp_path, "releases", "run.journal", "--from", "12"))
        (tmp_path / "out.ndjson").unlink()
        assert_damaged(publish(tmp_path, 22, "sample"))


def journal_batch(journal):  # type: ignore[no-untyped-def]
    """Stores a state, so that slots before it may be dropped."""
    from wevent.journal.rebuild import rebuild_publisher
    from wevent.journal.record import Batch

    state = rebuild_publisher(journal.load(), journal.epochs(), None).state()
    return Batch((), None, state, journal.head().committed)


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "not noted"])
@pytest.mark.parametrize("ending", ["ndjson", "csv"])
class TestOutputs:
    """All of an output is compared, not its end alone: rewritten from the journal if it was noted, else refused."""

    def prepare(self, folder: Path, ending: str, noted: bool) -> tuple[str, Path]:
        out = f"out.{ending}"
        assert publish(folder, 20, out=out).code == 0
        if not noted:
            with (folder / "run.journal.witness").open("r+b") as side:
                side.seek(2 * 4096)
                side.write(bytes(4096))
        return out, folder / out

    def check(self, folder: Path, path: Path, whole: bytes, noted: bool, said: str) -> None:
        """Publish more slots than the whole file has."""
        before = path.read_bytes()
        done = publish(folder, 22, out=path.name)
        if noted:
            assert done.code == 0, done
            assert "sent again" in done.err
            assert path.read_bytes().startswith(whole)
        else:
            assert done.code == 2, done
            assert said in done.err
            assert path.read_bytes() == before
            assert call(folder, "releases", "run.journal", "--out", path.name).code == 2

    def lines(self, path: Path) -> list[bytes]:
        return path.read_bytes().splitlines(keepends=True)

    def test_an_edited_line_in_the_middle(self, used: Path, ending: str, noted: bool) -> None:
        _, path = self.prepare(used, ending, noted)
        whole, lines = path.read_bytes(), self.lines(path)
        middle = len(lines) // 2
        slot = middle + 1 if ending == "ndjson" else (middle - 1) // 4 + 1
        lines[middle] = lines[middle].replace(b"pbu", b"pbx")
        path.write_bytes(b"".join(lines))
        self.check(used, path, whole, noted, f"another release of slot {slot}, or none")

    def test_a_line_in_the_middle_that_is_none(self, used: Path, ending: str, noted: bool) -> None:
        _, path = self.prepare(used, ending, noted)
        whole, lines = path.read_bytes(), self.lines(path)
        lines[len(lines) // 2] = bytes(len(lines[len(lines) // 2]))  # as after a power cut
        path.write_bytes(b"".join(lines))
        said = "something other than releases" if ending == "ndjson" else "another release of slot 10, or none"
        self.check(used, path, whole, noted, said)

    def test_a_missing_line_in_the_middle(self, used: Path, ending: str, noted: bool) -> None:
        _, path = self.prepare(used, ending, noted)
        whole, lines = path.read_bytes(), self.lines(path)
        first = 7 if ending == "ndjson" else 1 + 7 * 4
        path.write_bytes(b"".join(lines[:first] + lines[first + (1 if ending == "ndjson" else 4) :]))
        self.check(used, path, whole, noted, "another release of slot 8, or none")

    def test_a_repeated_line(self, used: Path, ending: str, noted: bool) -> None:
        _, path = self.prepare(used, ending, noted)
        whole, lines = path.read_bytes(), self.lines(path)
        path.write_bytes(b"".join([*lines, lines[-1]]))
        self.check(used, path, whole, noted, "another release of slot 20, or none")

    @pytest.mark.parametrize("kept", [0, 1, 9, 14])
    def test_a_missing_end_is_sent_again(self, used: Path, ending: str, noted: bool, kept: int) -> None:
        out, path = self.prepare(used, ending, noted)
        before, lines = path.read_bytes(), self.lines(path)
        path.write_bytes(b"".join(lines[:kept]) + (lines[kept][:20] if kept else b""))
        done = publish(used, 20, out=out)
        assert done.code == 0, done
        assert "sent again" in done.err
        assert path.read_bytes() == before

    def test_cut_and_gone_on(self, used: Path, ending: str, noted: bool) -> None:
        _, path = self.prepare(used, ending, noted)
        whole, lines = path.read_bytes(), self.lines(path)
        header = lines[:1] if ending == "csv" else []
        path.write_bytes(b"".join(header + lines[-4:]))
        self.check(used, path, whole, noted, "another release of slot 1, or none")

    def test_an_untouched_file_goes_on(self, used: Path, ending: str, noted: bool) -> None:
        out, path = self.prepare(used, ending, noted)
        before = path.read_bytes()
        done = publish(used, 24, out=out)
        assert done.code == 0, done
        assert "sent again" not in done.err
        assert path.read_bytes().startswith(before)
        assert call(used, "releases", "run.journal", "--out", out).code == 0


def test_an_output_cut_under_a_run_stops_it(used: Path) -> None:
    arguments = live("--out", "live.ndjson", journal="live.journal")
    with start(used, *arguments, stdin=subprocess.PIPE) as child:
        send(child, *(event(60 * slot + 5, slot) + close(60 * slot + 60) for slot in range(3)))
        wait_for(lambda: slots_of(used / "live.ndjson")[-1:] == [3], "slot 3")
        os.truncate(used / "live.ndjson", 0)
        _, err = child.communicate(event(200, 1) + close(240), timeout=PATIENCE_S)
    assert child.returncode == 2, err
    assert "Another program replaced, cut or wrote to" in err
    assert (used / "live.ndjson").stat().st_size == 0
    again = run(used, *arguments)
    assert again.code == 0, again
    assert slots_of(used / "live.ndjson") == [1, 2, 3, 4]


COMMANDS = (
    ("status", "run.journal"),
    ("status", "run.journal", "--statement"),
    ("releases", "run.journal"),
    ("users", "run.journal", "list"),
    ("users", "run.journal", "export"),
    ("users", "run.journal", "set", "9", "--window", "4", "--epsilon", "0.5", "--dry-run"),
    ("levels", "run.journal"),
    ("users", "run.journal", "set", "8", "--window", "4", "--epsilon", "0.5"),
    ("verify", "run.journal"),
    ("backup", "run.journal", "copy.journal", "--force"),
)


def test_flipped_bits_end_in_one_sentence(used: Path) -> None:
    whole = (used / "run.journal").read_bytes()
    random = Random(20260101)
    codes = set()
    for turn in range(400):
        damaged = bytearray(whole)
        for _ in range(random.choice((1, 1, 3, 40))):
            damaged[random.randrange(len(whole))] ^= 1 << random.randrange(8)
        for leftover in used.glob("run.journal-*"):
            leftover.unlink()
        (used / "run.journal").write_bytes(damaged)
        command = COMMANDS[turn % len(COMMANDS)]
        done = call(used, *command)  # a traceback would fail here
        codes.add(done.code)
        assert done.err.count("Error:") == (1 if done.code == 2 else 0), done
        assert done.code in ((0, 1, 2) if command[0] == "verify" else (0, 2)), done
    assert {0, 2} <= codes


@pytest.mark.parametrize("command", COMMANDS[3:5] + COMMANDS[6:7])
def test_a_registry_that_does_not_add_up_is_not_listed(used: Path, command: tuple[str, ...]) -> None:
    change(used, "UPDATE members SET nano = nano + 4000000 WHERE user = '7'")
    assert_damaged(call(used, *command))


def test_a_layout_that_is_not_ours(used: Path) -> None:
    change(used, "ALTER TABLE members RENAME COLUMN nano TO nbno")
    assert_damaged(call(used, "status", "run.journal"))


@pytest.mark.parametrize(
    ("name", "value"), [("registry chain", "8de5caf4:39ca679"), ("registry chain", "8de5"), ("revision", -1)]
)
def test_a_revision_that_means_nothing(used: Path, name: str, value: object) -> None:
    change(used, f"UPDATE facts SET value = CAST({value!r} AS BLOB) WHERE name = '{name}'")
    assert_damaged(publish(used, 22))
