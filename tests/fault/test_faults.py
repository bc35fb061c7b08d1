"""Faults that are no crash of the process: each ends in one clear sentence, and the journal stays intact."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.commands import PATIENCE_S
from tests.support.synthetic import CLASSES, SyntheticSource, make_journal, make_terms
from tests.support.window_checker import violated_windows
from wevent.errors import InvalidJournal, InvalidOutput, JournalLocked, StaleJournal, StorageFailed
from wevent.journal import SqliteJournal, back_up
from wevent.journal.witness import read_witness, witness_path
from wevent.outputs import open_output
from wevent.outputs.lines import csv_lines, ndjson_line
from wevent.outputs.output import unwritable
from wevent.outputs.text_output import FileOutput
from wevent.publishing import loop
from wevent.publishing.loop import DueMoments, Publication, Running
from wevent.publishing.shutdown import Stop
from wevent.publishing.staleness import settle_stale
from wevent.settings import RestoreOptions
from wevent.streams.clock import SlotClock
from wevent.verification import verify_journal


@pytest.fixture(autouse=True)
def _whole_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions hold as many slots as they may, on a slow machine too."""
    monkeypatch.setattr(loop, "_BATCH_S", PATIENCE_S)


def publish(path: Path, end: int, out: str = "out.ndjson", released: int | None = None, **running: Any) -> Any:
    with SqliteJournal(path, write=True) as journal:
        settle_stale(journal, RestoreOptions(released, same_settings=True))
        output = open_output(str(path.parent / out))
        publication = Publication(journal, SyntheticSource(end), output, running=Running(last=end, **running))
        with Stop() as stop:
            summary = publication.run(stop)
        output.close()
        return summary


@pytest.fixture
def path(tmp_path: Path) -> Path:
    make_journal(tmp_path / "run.journal").close()
    publish(tmp_path / "run.journal", 12, batch=5)
    return tmp_path / "run.journal"


class TestTwoWriters:
    def test_the_second_is_refused_and_told_who_holds_it(self, path: Path) -> None:
        with SqliteJournal(path, write=True), pytest.raises(JournalLocked) as caught:
            SqliteJournal(path, write=True)
        assert f"process {os.getpid()} on " in str(caught.value)
        assert caught.value.facts["holder"]["pid"] == os.getpid()

    def test_another_name_of_the_journal_is_no_way_around(self, path: Path) -> None:
        link = path.with_name("link.journal")
        link.symlink_to(path)
        with SqliteJournal(path, write=True), pytest.raises(JournalLocked):
            SqliteJournal(link, write=True)

    def test_a_dead_holder_blocks_nobody(self, path: Path) -> None:
        code = (
            "import sys, time; from wevent.journal import SqliteJournal; "
            "journal = SqliteJournal(sys.argv[1], write=True); print('held', flush=True); time.sleep(3600)"
        )
        with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            with pytest.raises(JournalLocked, match=f"process {child.pid}"):
                SqliteJournal(path, write=True)
            child.send_signal(signal.SIGKILL)
            child.wait()
        assert publish(path, 14).last == 14

    def test_readers_need_no_lock(self, path: Path) -> None:
        with SqliteJournal(path, write=True), SqliteJournal(path) as reader:
            assert reader.head().committed == 12


class TestDisk:
    def test_a_full_disk_keeps_the_journal_intact(self, path: Path) -> None:
        journal = SqliteJournal(path, write=True)
        journal._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        pages = journal._database.connection.pragma("page_count")
        journal._database.execute(f"PRAGMA max_page_count = {pages}").fetchall()
        output = open_output(str(path.with_name("out.ndjson")))
        with pytest.raises(StorageFailed, match=r"is full.* make room and run the same command again"):
            Publication(journal, SyntheticSource(4000), output, running=Running(last=4000, batch=400)).run()
        drawn = read_witness(witness_path(path)).committed  # how many depends on how many one transaction gathered
        assert drawn > journal.head().committed, "the last draw waits in the witness"
        end = drawn + 48
        journal.close()
        output.close()
        assert verify_journal(path).ok
        publish(path, end)
        assert_once(path, end)

    def test_a_file_that_may_not_grow_keeps_the_journal_intact(self, path: Path) -> None:
        child = os.fork()
        if not child:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            size = path.stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 8192, size + 8192))
            try:
                publish(path, 4000, batch=400)
            except StorageFailed:
                os._exit(3)
            finally:
                os._exit(70)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        assert verify_journal(path).ok
        publish(path, 600)
        assert_once(path, 600)

    def test_a_live_run_keeps_its_draw_until_the_disk_has_room(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Every slot is drawn once, whatever its commit meets."""
        due = DueMoments(SlotClock(0, 1000), 0)
        with SqliteJournal(path, write=True) as journal:
            database = journal._database
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

            def fill() -> None:
                database.execute(f"PRAGMA max_page_count = {database.connection.pragma('page_count')}").fetchall()

            class Freed(SyntheticSource):
                waits = 0

                def closed_through(self) -> int:  # type: ignore[override]
                    return self.end

                def idle(self, wait_s: float) -> bool:
                    self.waits += wait_s == loop._AGAIN_S
                    if self.waits % 3 == 2:
                        database.execute("PRAGMA max_page_count = 1000000").fetchall()
                    return False

            source, output = Freed(112), open_output(str(path.with_name("out.ndjson")))
            running = Running(last=112, due=due, progress=lambda slot, last: fill())
            publication = Publication(journal, source, output, running=running)
            drawn: list[int] = []
            step = publication.publisher.step
            monkeypatch.setattr(publication.publisher, "step", lambda counts: (drawn.append(1), step(counts))[1])
            monkeypatch.setattr(loop, "_BEHIND", 10)
            fill()
            assert publication.run().last == 112
            output.close()
        assert source.waits >= 2
        assert len(drawn) == 100
        assert_once(path, 112)

    def test_a_live_run_completes_an_output_whose_disk_was_full(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        writes = FileOutput._write

        def torn(output: FileOutput, text: bytes, slot: int) -> None:
            """Half a line is written before the disk is full."""
            if slot == 15 and not failed:
                failed.append(slot)
                assert output._file is not None
                output._file.write(text[:20])
                raise unwritable(output.path, "No space left on device", passing=True)
            writes(output, text, slot)

        failed: list[int] = []
        monkeypatch.setattr(FileOutput, "_write", torn)
        publish(path, 20, due=DueMoments(SlotClock(0, 1000), 0))
        assert failed
        assert_once(path, 20)

    def test_a_place_that_cannot_be_written(self) -> None:
        with pytest.raises(StorageFailed, match="make the folder writable"):
            SqliteJournal(Path("/proc/run.journal"), write=True)

    def test_an_output_that_cannot_be_written(self, path: Path) -> None:
        with pytest.raises(StorageFailed, match="safe in the journal"):
            publish(path, 14, out=f"{'x' * 300}.ndjson")
        with pytest.raises(StorageFailed, match="Make the folder first"):
            publish(path, 14, out="no/folder/out.ndjson")
        assert verify_journal(path).ok


class TestDamage:
    def test_a_corrupted_page(self, path: Path) -> None:
        publish(path, 400, batch=100)
        data = bytearray(path.read_bytes())
        for page in range(4096, len(data), 4096):
            data[page : page + 8] = b"\xff" * 8
        path.write_bytes(data)
        with pytest.raises(InvalidJournal, match="is damaged"):
            publish(path, 401)
        with pytest.raises(InvalidJournal):
            verify_journal(path)

    def test_a_flipped_bit_in_a_stored_slot_is_no_longer_published_from(self, path: Path) -> None:
        with SqliteJournal(path) as journal:
            link = journal.chain_at(12)
        assert link is not None
        data = path.read_bytes()
        assert link in data
        path.write_bytes(data.replace(link, bytes([link[0] ^ 1]) + link[1:]))
        with pytest.raises(InvalidJournal, match="is damaged"):
            publish(path, 13)
        assert not verify_journal(path).ok

    def test_a_flipped_bit_in_a_stored_text(self, path: Path) -> None:
        with SqliteJournal(path) as journal:
            identity = journal.identity.encode()
        data = path.read_bytes()
        assert identity in data
        path.write_bytes(data.replace(identity, identity[:-1] + bytes([identity[-1] ^ 0x80])))
        with pytest.raises(InvalidJournal, match="is damaged"):
            publish(path, 13)

    def test_a_truncated_file(self, path: Path) -> None:
        os.truncate(path, path.stat().st_size - 4096)
        with pytest.raises(InvalidJournal, match="is damaged"):
            publish(path, 13)

    @pytest.mark.parametrize("content", [b"time,user,cell\n", b"SQLite format 3\0" + b"\1" * 200])
    def test_a_foreign_file(self, tmp_path: Path, content: bytes) -> None:
        other = tmp_path / "other.journal"
        other.write_bytes(content)
        with pytest.raises(InvalidJournal):
            SqliteJournal(other, write=True)
        assert other.read_bytes() == content

    def test_another_format(self, path: Path) -> None:
        with SqliteJournal(path, write=True) as journal:
            journal._database.execute("PRAGMA user_version = 99")
        with pytest.raises(InvalidJournal, match="newer wevent") as caught:
            publish(path, 13)
        assert caught.value.facts["format"] == 99


class TestTornOutput:
    @pytest.mark.parametrize("cut", [1, 2, 40, 399])
    @pytest.mark.parametrize("ending", ["ndjson", "csv"])
    def test_it_is_completed_and_nothing_is_doubled(self, path: Path, ending: str, cut: int) -> None:
        publish(path, 12, out=f"o.{ending}")
        out = path.with_name(f"o.{ending}")
        whole = out.read_bytes()
        os.truncate(out, len(whole) - cut)
        publish(path, 12, out=out.name)
        assert out.read_bytes() == whole

    def test_every_cut_is_repaired(self, path: Path) -> None:
        publish(path, 12, out="o.csv")
        out = path.with_name("o.csv")
        whole = out.read_bytes()
        with SqliteJournal(path) as journal:
            for length in range(0, len(whole), 7):
                out.write_bytes(whole[:length])
                output = open_output(str(out))
                output.repair(journal, 12, 12)
                output.close()
                assert out.read_bytes() == whole

    def test_a_lost_output_is_written_again(self, path: Path) -> None:
        out = path.with_name("out.ndjson")
        whole = out.read_bytes()
        out.unlink()
        assert publish(path, 12).sent_again == 12
        assert out.read_bytes() == whole

    def test_a_foreign_output_is_left_alone(self, path: Path) -> None:
        out = path.with_name("out.ndjson")
        out.write_bytes(b"something else\n")
        with pytest.raises(InvalidOutput, match="something other than releases"):
            publish(path, 13)
        assert out.read_bytes() == b"something else\n"

    def test_the_output_of_another_journal_is_refused(self, path: Path) -> None:
        out = path.with_name("out.ndjson")
        lines = out.read_bytes().splitlines(keepends=True)
        out.write_bytes(b"".join(lines[:-1]) + lines[-1].replace(b'"slot":12', b'"slot":12 '))
        with pytest.raises(InvalidOutput, match="another journal"):
            publish(path, 13)


class TestStaleBackup:
    def backup(self, path: Path) -> Path:
        copy = path.with_name("backup.journal")
        assert back_up(path, copy) == 12
        publish(path, 20)
        return copy

    def test_a_backup_is_not_published_from_unasked(self, path: Path) -> None:
        copy = self.backup(path)
        with pytest.raises(StaleJournal, match="--released-through"):
            publish(copy, 25, out="other.ndjson")
        assert verify_journal(copy).ok

    def test_slots_released_elsewhere_are_charged_and_never_drawn(self, path: Path) -> None:
        copy = self.backup(path)
        publish(copy, 40, released=20)
        assert verify_journal(copy).ok
        with SqliteJournal(copy) as journal:
            records = list(journal.releases())
            kinds = [record.kind for record in records]
            assert kinds[12:20] == ["elsewhere"] * 8
            assert "elsewhere" not in kinds[:12] + kinds[20:]
            assert records[19].publication.all()
            with SqliteJournal(path) as original:
                truth = list(original.releases())
        lines = path.with_name("out.ndjson").read_bytes().splitlines(keepends=True)
        expected = truth + records[20:]
        assert lines == [ndjson_line(record) for record in expected]  # the file goes on after slot 20
        assert not violated_windows([charges(record) for record in expected])  # what people really lost

    def test_what_was_said_once_need_not_be_said_again(self, path: Path) -> None:
        copy = self.backup(path)
        publish(copy, 22, released=20)
        assert publish(copy, 24).last == 24

    def test_an_old_copy_put_back_in_place_is_noticed(self, path: Path) -> None:
        copy = path.with_name("copy")
        shutil.copy(path, copy)
        publish(path, 20)
        shutil.copy(copy, path)
        with pytest.raises(StaleJournal, match="shows slot 20") as caught:
            publish(path, 25, out="new.ndjson")
        assert (caught.value.facts["committed"], caught.value.facts["released"]) == (12, 20)
        with pytest.raises(StaleJournal, match="20 or later"):
            publish(path, 25, released=19)
        assert publish(path, 25, released=20).first == 21

    def test_an_output_ahead_of_the_journal_is_noticed(self, path: Path) -> None:
        copy = path.with_name("copy.journal")
        shutil.copy(path, copy)
        shutil.copy(witness_path(path), witness_path(copy))
        publish(path, 20)
        with pytest.raises(StaleJournal, match="ends with slot 20, and the journal with slot 12"):
            publish(copy, 25)

    def test_a_copy_that_went_on_by_itself_is_noticed(self, path: Path) -> None:
        copy = path.with_name("copy")
        shutil.copy(path, copy)
        shutil.copy(witness_path(path), witness_path(copy))
        publish(path, 14)
        publish(copy, 30, out="b.ndjson")
        shutil.copy(copy, path)
        with pytest.raises(StaleJournal, match="went on by itself"):
            publish(path, 40)

    @pytest.mark.parametrize("seed", range(12))
    def test_no_window_of_what_people_lost_is_overspent(self, tmp_path: Path, seed: int) -> None:
        """Whatever the other copy did, its charges and those after the restore stay within every window together."""
        chance = np.random.default_rng(seed)
        mechanism = ["pbd", "pba", "pbu", "sample", "ba", "uniform"][seed % 6]
        path, copy = tmp_path / "a.journal", tmp_path / "b.journal"
        make_journal(path, mechanism=mechanism).close()
        known, through = int(chance.integers(1, 14)), int(chance.integers(15, 30))
        publish(path, known)
        back_up(path, copy)
        publish(path, through)
        publish(copy, through + 40, out="c.ndjson", released=through)
        with SqliteJournal(path) as original, SqliteJournal(copy) as restored:
            lived = [charges(record) for record in original.releases()]
            lived += [charges(record) for record in restored.releases(through + 1)]
        assert len(lived) == through + 40
        assert not violated_windows(lived)
        assert verify_journal(copy).ok


class TestSignals:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_the_open_transaction_is_finished(self, path: Path, number: signal.Signals) -> None:
        def at(step: str) -> None:
            if step == "slots stored":
                os.kill(os.getpid(), number)

        summary = publish(path, 100, batch=3, at=at)
        assert summary.interrupted
        assert summary.last == 15
        assert_once(path, 15)
        assert publish(path, 30).first == 16
        assert_once(path, 30)

    def test_waiting_for_input_ends_at_once(self, path: Path) -> None:
        told = threading.Event()

        class Waiting(SyntheticSource):
            def stop(self) -> None:
                told.set()

            def count(self, roster: Any, first: int, most: int) -> Any:
                yield from super().count(roster, first, min(most, 1))
                os.kill(os.getpid(), signal.SIGTERM)
                assert told.wait(PATIENCE_S)

        with SqliteJournal(path, write=True) as journal, Stop() as stop:
            output = open_output(str(path.with_name("out.ndjson")))
            summary = Publication(journal, Waiting(99), output, running=Running(batch=2)).run(stop)
        assert summary.interrupted
        assert summary.last == 13
        assert_once(path, 13)


class TestClock:
    def test_a_live_clock_that_jumps_neither_repeats_nor_reopens_a_slot(self, tmp_path: Path) -> None:
        from tests.support.live_events import pipe_source
        from wevent.counting.labels import Cells
        from wevent.streams import SlotClock, StreamSettings

        minute = 60_000_000
        times = iter([0, 3 * minute, minute, 2 * minute, 90 * minute, 5 * minute, 91 * minute])
        now = [0]

        class Inbox:
            def get(self, timeout_s: float) -> bytes | None:
                now[0] = next(times, now[0] + minute)
                return None

            def waiting(self) -> int:
                return 0

        settings = StreamSettings(inputs=("-",), cells=Cells.of(["north", "south", "west"]), slot_us=minute)
        source = pipe_source(settings, SlotClock(0, minute), None, inbox=Inbox(), now_us=lambda: now[0])
        path = tmp_path / "live.journal"
        with make_journal(path, origin_us=0) as journal:
            output = open_output(str(tmp_path / "out.ndjson"))
            Publication(journal, source, output, running=Running(last=90)).run()
            output.close()
        assert_once(path, 90)

    def test_a_live_publisher_that_is_behind_commits_closed_slots_together(self, tmp_path: Path) -> None:
        from tests.support.live_events import ScriptedPipeSource, pipe_source
        from wevent.counting.labels import Cells
        from wevent.streams import SlotClock, StreamSettings

        minute = 60_000_000
        now = [1_000 * minute]

        class Inbox:
            def get(self, timeout_s: float) -> bytes | None:
                now[0] += minute
                return None

            def waiting(self) -> int:
                return 0

        class Watched(ScriptedPipeSource):
            open_when_counted = 0

            def count(self, roster: Any, first: int, most: int) -> Any:
                if most > 1:  # none of the slots of one transaction waits for another to close
                    self.open_when_counted += first + most - 1 > self.closed_through()
                return super().count(roster, first, most)

        settings = StreamSettings(inputs=("-",), cells=Cells.of(["north", "south", "west"]), slot_us=minute)
        source = pipe_source(settings, SlotClock(0, minute), None, inbox=Inbox(), now_us=lambda: now[0], source=Watched)
        assert isinstance(source, Watched)
        steps: list[str] = []
        path = tmp_path / "live.journal"
        with make_journal(path, origin_us=0) as journal:
            output = open_output(str(tmp_path / "out.ndjson"))
            Publication(journal, source, output, running=Running(last=1_010, at=steps.append)).run()
            output.close()
        assert_once(path, 1_010)
        assert source.open_when_counted == 0
        assert 10 < steps.count("committed") < 500  # the last ones, which close one by one, have their own
        order = [step for step in steps if step in ("committed", "emitted")]
        assert order == ["committed", "emitted"] * (len(order) // 2)


def test_an_input_that_goes_backwards_is_refused(path: Path) -> None:
    class Backwards(SyntheticSource):
        def count(self, roster: Any, first: int, most: int) -> Any:
            return super().count(roster, first - 1, most)

    with SqliteJournal(path, write=True) as journal, pytest.raises(ValueError, match="instead of slot 13"):
        Publication(journal, Backwards(99), open_output(str(path.with_name("out.ndjson")))).run()


def assert_once(path: Path, end: int) -> None:
    """The output has every slot once, as the journal has it, and the audit is clean."""
    with SqliteJournal(path) as journal:
        expected = b"".join(ndjson_line(record) for record in journal.releases())
        assert [record.slot for record in journal.releases()] == list(range(1, end + 1))
        assert all(csv_lines(record) for record in journal.releases())
    assert path.with_name("out.ndjson").read_bytes() == expected
    assert verify_journal(path).ok


def charges(record: Any) -> dict[tuple[int, int], tuple[int, int]]:
    keys = [(one.window, one.nano) for one in record.group.population.classes]
    return dict(zip(keys, zip(record.probe.tolist(), record.publication.tolist(), strict=True), strict=True))


def test_the_terms_of_these_tests_are_those_of_the_classes() -> None:
    assert make_terms().declared == sorted(CLASSES)
