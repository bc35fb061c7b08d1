"""Batches that are acknowledged: durable, counted once, and gone from every file with their slot's commit."""

from __future__ import annotations

import json
import os
import shutil
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from wevent.counting.labels import Cells
from wevent.counting.roster import Roster
from wevent.errors import BatchConflict, ServiceStopping, StorageFailed
from wevent.events import segment_log
from wevent.events.live_source import LiveSource
from wevent.events.receiver import BatchReceiver
from wevent.events.records import RecordCodec
from wevent.events.segment_log import SegmentLog
from wevent.publishing.event_stores import open_sweeper
from wevent.schemas import BatchResult
from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock

SECOND = 1_000_000
CLOCK = SlotClock(0, 10 * SECOND)


class Clock:
    """A wall clock that tests move."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def __call__(self) -> int:
        return int(self.seconds * SECOND)


def settings(**changes: Any) -> StreamSettings:
    fields: dict[str, Any] = {"inputs": ("-",), "cells": Cells.of(["north", "south"]), "slot_us": 10 * SECOND}
    return StreamSettings(**{**fields, **changes})


class Batches:
    """A service over a folder: what takes batches in, and what counts them."""

    def __init__(
        self, folder: Path, now: Clock, last: int | None = None, clock: SlotClock = CLOCK, **changes: Any
    ) -> None:
        chosen = settings(**changes)
        self.log = SegmentLog(folder, RecordCodec(chosen.cells, clock).stream)
        self.source = LiveSource(chosen, clock, last, store=self.log, now_us=now)
        self.receiver = BatchReceiver(chosen, clock, last, intake=self.log, now_us=now)
        self.receive, self.count, self.forget = self.receiver.receive, self.source.count, self.source.forget

    def totals(self) -> dict[str, int]:
        counted = self.source.totals()
        return {name: number + counted[name] for name, number in self.receiver.totals().items()}

    def close(self) -> None:
        self.receiver.close()
        self.source.close()


def opened(folder: Path, now: Clock, last: int | None = None, committed: int = 0, **changes: Any) -> Batches:
    batches = Batches(folder / "spool", now, last, **changes)
    batches.source.resume({"slot": committed, "time_unit": "s"})
    return batches


def of_people(people: list[Any]) -> Roster:
    return Roster.from_columns(people, [4] * len(people), ["1.0"] * len(people))


def roster(people: int = 1000) -> Roster:
    return of_people(list(range(people)))


def lines(*events: tuple[float, Any, Any]) -> bytes:
    rows = ({"time": seconds, "user": user, "cell": cell} for seconds, user, cell in events)
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def counted(source: Batches, first: int, most: int = 1, people: int = 1000) -> list[list[int]]:
    return [slot.counts.matrix[0].tolist() for slot in source.count(roster(people), first, most)]


def files(folder: Path, ending: str = "") -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "spool").iterdir()) if path.name.endswith(ending)}


def segments(folder: Path) -> list[Path]:
    return sorted((folder / "spool").glob("*.events"))


def open_files(folder: Path) -> list[str]:
    """The files in a folder that this process holds open."""
    paths = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # another thread's, closed meanwhile
            paths.append(os.readlink(descriptor))
    return [path for path in paths if path.startswith(f"{folder}/") and ".witness" not in path]


def test_a_batch_is_counted_when_its_slot_closes_and_leaves_no_byte_behind(tmp_path: Path) -> None:
    now = Clock(3)
    source = opened(tmp_path, now)
    answer = source.receive("a", "1", lines((1, 7, "north"), (2, 8, "south"), (2.5, 7, "south")))
    assert (answer.accepted, answer.rejected) == (3, {})
    assert list(files(tmp_path)) == ["0000000001.events", "1.key"]
    now.seconds = 10
    assert counted(source, 1) == [[0, 2]]
    assert list(files(tmp_path)) == ["0000000001.events", "1.key"], "until it is committed"
    source.source.destroy(1)
    assert list(files(tmp_path)) == ["0000000001.events"]
    source.forget(1)
    assert files(tmp_path) == {}


def test_every_event_that_is_not_accepted_has_one_reason(tmp_path: Path) -> None:
    now = Clock(25)
    source = opened(tmp_path, now, last=4, grace_us=3 * SECOND)
    told = source.receive(
        "a",
        None,
        lines((-1, 1, "north"), (5, 1, "north"), (15, 1, "north"), (21, 1, "north"), (35, 1, "north"), (22, 1, "west"))
        + b'{"time":22,"user":1}\n{"time":22,"cell":"north"}\nnonsense\n'
        + b'{"time":"2026-01-01T00:00:00","user":1,"cell":"north"}\n'
        + b'{"time":"never","user":1,"cell":"north"}\n',
    )
    assert told.accepted == 1
    assert told.rejected == {
        "before": 1,
        "late": 2,
        "after": 1,
        "unknown_cell": 1,
        "no_record": 3,
        "no_offset": 1,
        "no_time": 1,
    }
    totals = source.totals()
    assert (totals["events"], totals["late"], totals["malformed"], totals["unknown_cell"]) == (6, 2, 5, 1)


def test_an_answer_is_the_same_for_members_strangers_and_whatever_came_before(tmp_path: Path) -> None:
    answers = []
    for number, earlier in enumerate(
        (b"", lines((1, 7, "north")), lines(*[(2, user, "south") for user in range(500)]))
    ):
        (tmp_path / str(number)).mkdir()
        source = opened(tmp_path / str(number), Clock(4))
        if earlier:
            source.receive("b", "x", earlier)
        answers.append(source.receive("a", "x", lines((1, 7, "north"), (3, "a stranger", "north"))))
    assert answers[0] == answers[1] == answers[2]


def test_the_same_batch_again_gets_the_same_answer_and_is_written_once(tmp_path: Path) -> None:
    now = Clock(3)
    source = opened(tmp_path, now)
    body = lines((1, 7, "north"), (30, 7, "north"))
    first = source.receive("a", "1", body)
    size = sum(map(len, files(tmp_path).values()))
    assert source.receive("a", "1", body) == first
    assert sum(map(len, files(tmp_path).values())) == size
    with pytest.raises(BatchConflict):
        source.receive("a", "1", lines((1, 8, "north")))
    assert source.receive("another", "1", lines((1, 8, "north"))).accepted == 1, "ids are per sender"
    assert source.totals()["events"] == 3


def test_without_an_id_the_content_is_the_id(tmp_path: Path) -> None:
    source = opened(tmp_path, Clock(3))
    for _ in range(3):
        assert source.receive("a", None, lines((1, 7, "north"))).accepted == 1
    assert source.totals()["events"] == 1


def test_an_id_goes_with_the_slot_in_which_it_came(tmp_path: Path) -> None:
    now = Clock(3)
    source = opened(tmp_path, now)
    source.receive("a", "1", lines((1, 7, "north")))
    now.seconds = 11
    counted(source, 1)
    source.forget(1)
    again = source.receive("a", "1", lines((1, 7, "north")))
    assert (again.accepted, again.rejected) == (0, {"late": 1}), "never counted twice"
    assert source.receive("a", "2", lines((11, 7, "north"))).accepted == 1


def test_a_slot_closes_by_the_clock_alone_and_never_reopens(tmp_path: Path) -> None:
    now = Clock(12)
    source = opened(tmp_path, now, grace_us=3 * SECOND)
    assert source.receive("a", "1", lines((9, 7, "north"), (11, 8, "south"))).accepted == 2
    assert sorted(files(tmp_path, ".key")) == ["1.key", "2.key"]
    now.seconds = 13
    assert source.receive("a", "2", lines((9, 9, "north"))).rejected == {"late": 1}
    now.seconds = 5  # a clock that is set back opens nothing
    assert source.receive("a", "3", lines((9, 9, "north"))).rejected == {"late": 1}
    assert source.receive("a", "4", lines((9e9, 9, "north"))).rejected == {"after": 1}
    now.seconds = 24
    assert counted(source, 1, 2) == [[1, 0], [0, 1]]


def test_what_was_acknowledged_survives_and_is_counted_once(tmp_path: Path) -> None:
    now = Clock(12)
    first = opened(tmp_path, now, grace_us=5 * SECOND)
    batch = lines((9, 7, "north"), (11, "a text", "south"), (11, 8, "south"))
    told = first.receive("a", "1", batch)
    now.seconds = 14
    second = opened(tmp_path, now, grace_us=5 * SECOND)  # the first one was killed
    assert second.receive("a", "1", batch) == told, "the answer survives, too"
    with pytest.raises(BatchConflict):
        second.receive("a", "1", lines((11, 8, "north")))
    now.seconds = 26
    people = of_people(["7", "8", "a text"])
    assert [slot.counts.matrix[0].tolist() for slot in second.count(people, 1, 2)] == [[1, 0], [0, 2]]


def test_a_crash_inside_a_batch_of_two_slots_leaves_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = Clock(12)
    source = opened(tmp_path, now, grace_us=5 * SECOND)
    source.receive("a", "0", lines((9, 6, "north")))
    batch = lines((9, 7, "north"), (11, 8, "south"))
    write = os.write

    def half(file: int, data: bytes) -> int:
        if len(data) > 600:
            return write(file, data[:-600])
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", half)
        patched.setattr(SegmentLog, "_discard_end", SegmentLog._end_segment)
        with pytest.raises(KeyboardInterrupt):
            source.receive("a", "1", batch)
    survivor = opened(tmp_path, now, grace_us=5 * SECOND)
    assert survivor.receive("a", "1", batch).accepted == 2
    now.seconds = 26
    assert counted(survivor, 1, 2) == [[2, 0], [0, 1]]


@pytest.mark.parametrize("zeros", [0, 1, 8, 16, 4096], ids=lambda zeros: f"{zeros} zeros")
@pytest.mark.parametrize("cut", [1, 9, 30, 10_000])
def test_a_torn_end_was_acknowledged_to_nobody_and_is_cut_off(tmp_path: Path, cut: int, zeros: int) -> None:
    now = Clock(3)
    source = opened(tmp_path, now)
    source.receive("a", "1", lines((1, 7, "north")))
    (path,) = segments(tmp_path)
    whole = path.read_bytes()
    source.receive("a", "2", lines((1, 8, "north")))
    os.truncate(path, max(len(whole), path.stat().st_size - cut))
    os.truncate(path, path.stat().st_size + zeros)  # a power failure may leave some
    again = opened(tmp_path, now)
    assert path.read_bytes() == whole
    assert again.receive("a", "2", lines((1, 8, "north"))).accepted == 1
    now.seconds = 10
    assert counted(again, 1) == [[2, 0]]


def test_what_a_killed_run_did_not_force_is_forced_before_it_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """As SIGKILL between writing and forcing."""

    def kill(file: int) -> None:
        raise Killed

    batch = lines((1, 7, "north"))
    killed = opened(tmp_path, Clock(3))
    killed.receive("a", "0", lines((1, 6, "north")))
    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", kill)
        patched.setattr(SegmentLog, "_discard_end", SegmentLog._end_segment)
        with pytest.raises(Killed):
            killed.receive("a", "1", batch)
    forced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda file: forced.append(os.readlink(f"/proc/self/fd/{file}")))
    again = opened(tmp_path, Clock(3))
    assert again.receive("a", "1", batch).accepted == 1
    assert str(segments(tmp_path)[0]) in forced
    assert len(segments(tmp_path)) == 1, "it was found"


def test_files_of_committed_slots_are_removed_at_the_start(tmp_path: Path) -> None:
    now = Clock(3)
    opened(tmp_path, now).receive("a", "1", lines((1, 7, "north")))
    now.seconds = 11
    opened(tmp_path, now, committed=1)
    assert files(tmp_path) == {}


def test_a_file_of_another_clock_is_of_another_stream(tmp_path: Path) -> None:
    now = Clock(33)
    first = opened(tmp_path, now, committed=2)
    assert first.receive("a", "1", lines((31, 7, "north"))).accepted == 1
    assert list(files(tmp_path, ".key")) == ["4.key"]
    later = SlotClock(30 * SECOND, 10 * SECOND)  # the journal was taken away, and another one begun
    source = Batches(tmp_path / "spool", now, clock=later)
    assert segments(tmp_path) == []
    now.seconds = 71
    assert counted(source, 1, 4) == [[0, 0]] * 4


def test_a_full_disk_refuses_the_batch_and_keeps_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = Clock(3)
    source = opened(tmp_path, now)
    source.receive("a", "1", lines((1, 7, "north")))
    write = os.write

    def half(file: int, data: bytes) -> int:
        if len(data) > 10:
            return write(file, data[:10])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", half)
        with pytest.raises(StorageFailed):
            source.receive("a", "2", lines((1, 8, "north")))
    assert source.receive("a", "2", lines((1, 8, "north"))).accepted == 1
    now.seconds = 10
    assert counted(opened(tmp_path, now), 1) == [[2, 0]]


def test_a_disk_that_is_full_when_a_slot_begins_costs_neither_files_nor_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = opened(tmp_path, Clock(3))

    def refuse(file: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", refuse)
        for number in range(10):
            with pytest.raises(StorageFailed):
                source.receive("a", str(number), lines((1, 7, "north")))
    assert open_files(tmp_path) == []
    assert segments(tmp_path) == []
    assert source.receive("a", "1", lines((1, 7, "north"))).accepted == 1


def test_a_folder_that_was_taken_away_is_told_in_a_sentence(tmp_path: Path) -> None:
    now = Clock(3)
    source = opened(tmp_path, now)
    source.receive("a", "1", lines((1, 7, "north")))
    shutil.rmtree(tmp_path / "spool")
    now.seconds = 11
    with pytest.raises(StorageFailed):
        source.receive("a", "2", lines((11, 7, "north")))
    assert counted(source, 1) == [[1, 0]]
    with pytest.raises(StorageFailed):
        source.forget(1)


def refuse(file: int) -> None:
    """A sync that fails."""
    raise OSError(5, "Input/output error")


def test_a_disk_that_does_not_force_refuses_batches_until_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = opened(tmp_path, now := Clock(3))
    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", refuse)
        for number in ("1", "1", "2"):
            with pytest.raises(StorageFailed) as caught:
                source.receive("a", number, lines((1, int(number), "north")))
            assert caught.value.passing
    for number in ("1", "2"):
        assert source.receive("a", number, lines((1, int(number), "north"))).accepted == 1
    now.seconds = 10
    assert counted(source, 1) == [[2, 0]]


@pytest.mark.parametrize("durable", [0, 1])
@pytest.mark.parametrize("lost", ["data", "name"])
def test_what_a_failed_sync_may_have_lost_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: int, lost: str
) -> None:
    """The kernel drops what it could not write and reports that once: the next sync of the same pages proves nothing."""
    source, path = opened(tmp_path, now := Clock(3)), tmp_path / "spool" / "0000000001.events"
    for number in range(durable):
        source.receive("a", str(number), lines((1, number, "north")))
    kept = path.stat().st_size if durable else 0

    def drop(file: int) -> None:
        """Fail as a disk does: what was written since the last success is zeros when it is read again."""
        if lost == "name" and not durable and path.exists():
            path.unlink()
        os.truncate(f"/proc/self/fd/{file}", kept)
        os.truncate(f"/proc/self/fd/{file}", kept + 64)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", drop)
        with pytest.raises(StorageFailed):
            source.receive("a", "lost", lines((1, 7, "south")))
    assert source.receive("a", "later", lines((1, 8, "south"))).accepted == 1
    assert source.receive("a", "lost", lines((1, 7, "south"))).accepted == 1
    again = opened(tmp_path, now)  # as after a kill
    now.seconds = 10
    assert counted(again, 1) == [[durable, 2]]


def test_events_of_a_committed_slot_are_removed_once_the_disk_lets_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = opened(tmp_path, now := Clock(3))
    source.receive("a", "1", lines((1, 7, "north")))
    now.seconds = 10
    assert counted(source, 1) == [[1, 0]]
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", lambda path, missing_ok=False: refuse(0))
        with pytest.raises(StorageFailed):
            source.forget(1)
    source.forget(1)
    assert list((tmp_path / "spool").iterdir()) == []


@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_a_damaged_record_takes_no_other_with_it_and_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damaged: int
) -> None:
    source, path, ends = opened(tmp_path, now := Clock(3)), tmp_path / "spool" / "0000000001.events", []
    for user in range(3):
        source.receive("a", str(user), lines((1, user, "north")))
        ends.append(path.stat().st_size)
    source.close()
    data = bytearray(path.read_bytes())
    data[ends[damaged] - 3] ^= 1
    path.write_bytes(data)
    again = opened(tmp_path, now)
    assert again.receive("a", "later", lines((1, 7, "south"))).accepted == 1
    again.close()
    is_end = damaged == 2  # which looks like the end that a crash has torn
    assert ("acknowledged events cannot be read" in caplog.text) != is_end
    last = opened(tmp_path, now)
    now.seconds = 10
    assert counted(last, 1) == [[2, 1]]


def test_a_probe_leaves_nothing_and_tells_whether_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = opened(tmp_path, Clock(3))
    source.log.probe()
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StorageFailed) as caught:
        source.log.probe()
    assert caught.value.passing
    assert list((tmp_path / "spool").iterdir()) == []


def test_with_a_clock_behind_what_is_committed_an_event_has_one_reason_still(tmp_path: Path) -> None:
    source = opened(tmp_path, Clock(3), committed=4)
    told = source.receive("a", "1", lines((35, 7, "north"), (-20, 7, "north"), (55, 7, "north")))
    assert (told.accepted, told.rejected) == (0, {"before": 1, "late": 1, "after": 1})


def test_nobody_is_acknowledged_after_the_end(tmp_path: Path) -> None:
    source = opened(tmp_path, Clock(3))
    source.receive("a", "1", lines((1, 7, "north")))
    source.receiver.close()
    with pytest.raises(ServiceStopping):
        source.receive("a", "2", lines((1, 7, "north")))
    source.source.stop()
    assert counted(source, 1) == []
    assert source.source.idle(3600), "nothing is waited for: the next run counts it again"


def test_many_senders_at_once_lose_nothing(tmp_path: Path) -> None:
    now = Clock(3)
    source = opened(tmp_path, now)

    def send(sender: int) -> None:
        for batch in range(20):
            users = range(sender * 200 + batch * 10, sender * 200 + batch * 10 + 10)
            body = lines(*[(1, user, "north") for user in users])
            for _ in range(2):
                assert source.receive(str(sender), str(batch), body).accepted == 10

    threads = [threading.Thread(target=send, args=(sender,)) for sender in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert source.totals()["events"] == 1000
    now.seconds = 10
    assert counted(source, 1) == [[1000, 0]]
    assert counted(opened(tmp_path, now), 1) == [[1000, 0]]


def test_only_the_owner_may_read_the_spool(tmp_path: Path) -> None:
    opened(tmp_path, Clock(3)).receive("a", "1", lines((1, 7, "north")))
    assert (tmp_path / "spool").stat().st_mode & 0o777 == 0o700
    for path in (tmp_path / "spool").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_line_that_is_too_long_is_no_record_however_it_comes(tmp_path: Path) -> None:
    source = opened(tmp_path, Clock(5.0))
    padded = json.dumps({"time": 1, "user": 1, "cell": "north", "more": "x" * (1 << 20)}).encode() + b"\n"
    answer = source.receive("platform", None, padded + lines((1, 2, "south")))
    assert answer == BatchResult(1, {"no_record": 1})


def test_another_publisher_of_the_journal_leaves_nothing_of_what_it_commits(tmp_path: Path) -> None:
    folder = tmp_path / "run.journal.events"

    def sweep(through: int) -> None:
        with ExitStack() as stack:
            open_sweeper(tmp_path / "run.journal", stack, is_live=False, is_service=False)(through)

    sweep(5)  # no service ever ran
    assert not folder.exists()
    source = Batches(folder, Clock(12), grace_us=5 * SECOND)
    source.receive("a", "1", lines((9, 7, "north")))
    source.receive("a", "2", lines((11, 8, "south")))
    source.close()
    (folder / "x.key").touch()  # not one of ours
    sweep(1)
    assert sorted(path.name for path in folder.glob("*.key")) == ["2.key", "x.key"]
    sweep(2)
    assert sorted(path.name for path in folder.iterdir()) == ["x.key"]


def test_an_old_copy_of_the_keys_opens_no_later_slot(tmp_path: Path) -> None:
    now, copy = Clock(3), tmp_path / "copy"
    source = opened(tmp_path, now)
    source.receive("a", "1", lines((1, 7, "north")))
    copy.mkdir()
    shutil.copytree(tmp_path / "spool", copy / "spool")
    now.seconds = 10_003
    assert source.receive("a", "2", lines((10_001, 7, "north"))).accepted == 1
    for path in segments(tmp_path):
        shutil.copy(path, copy / "spool")
    now.seconds = 10_010
    assert counted(opened(copy, now), 1) == [[1, 0]], "the copy has the key of this one"
    assert counted(opened(copy, now, committed=1000), 1001) == [[0, 0]]
    assert counted(source, 1001) == [[1, 0]]


def test_every_slot_that_is_counted_has_a_key_with_and_without_events(tmp_path: Path) -> None:
    source = opened(tmp_path, now := Clock(13))
    source.receive("a", "1", lines((11, 7, "north")))
    now.seconds = 30
    assert counted(source, 1, 3) == [[0, 0], [1, 0], [0, 0]]
    assert sorted(files(tmp_path, ".key")) == ["1.key", "2.key", "3.key"]


def test_thousands_of_open_slots_take_few_files_and_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_log, "_SEGMENT_BYTES", 100_000)
    source = opened(tmp_path, now := Clock(49_995), grace_us=60_000 * SECOND)
    for number in range(3):
        batch = lines(*[(10 * slot + number, slot, "north") for slot in range(5000)])
        assert source.receive("a", str(number), batch).accepted == 5000
    assert len(segments(tmp_path)) == 3
    assert len(open_files(tmp_path)) <= 20
    now.seconds = 110_000
    assert counted(source, 1, 2) == [[1, 0], [1, 0]]
