"""Events of open slots in a database: taken in by any replica, counted once by one, and gone with their slot's commit."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgres.replica_parts import (
    Clock,
    Replica,
    asked,
    be_writer,
    cut_off,
    key_slots,
    lines,
    new_place,
    replicas,
    stored_slots,
)
from tests.support.commands import wait_for
from tests.support.moved_time import MovedTime
from wevent.errors import (
    BatchConflict,
    InvalidJournal,
    JournalLocked,
    JournalUnreachable,
    ServiceStopping,
    StorageFailed,
)
from wevent.events import postgres_store
from wevent.events.postgres_store import IntakeLock, PostgresStore
from wevent.journal import connection as sessions
from wevent.journal.address import PostgresAddress
from wevent.journal.connection import Connection
from wevent.publishing.event_stores import ReplicaStores, open_sweeper
from wevent.schemas import BatchResult


@pytest.fixture
def place(tmp_path: Path) -> PostgresAddress:
    return new_place(tmp_path)


def test_what_any_replica_takes_in_is_counted_by_the_one_that_closes(place: PostgresAddress) -> None:
    now = Clock(3)
    with replicas(place, now) as (first, second):
        assert first.receiver.receive("a", "1", lines((1, 7, "north"), (2, 8, "south"))) == BatchResult(2, {})
        assert second.receiver.receive("a", "2", lines((2.5, 7, "south"), (2.6, 9, "nowhere"))).accepted == 1
        now.seconds = 10
        assert second.counted(1) == [[0, 2]], "the last event of a person wins, whoever took it in"


def test_keys_and_events_go_with_the_commit(place: PostgresAddress) -> None:
    now = Clock(3)
    with replicas(place, now, 1) as (one,):
        one.receiver.receive("a", "1", lines((1, 7, "north")))
        assert key_slots(place) == [1]
        assert 1 in stored_slots(place)
        now.seconds = 12
        one.receiver.receive("a", "2", lines((11, 7, "north")))
        one.counted(1)
        assert key_slots(place) == [1, 2], "counted, not committed"
        one.store.destroy(1)  # what is done before anything is emitted
        assert key_slots(place) == [2]
        (keys,) = one.stores._keys.values()
        assert list(keys._known) == [2], "nor does what takes events in have it any more"
        one.source.forget(1)
        assert 1 not in stored_slots(place)
        now.seconds = 20
        assert one.counted(2) == [[1, 0]]


def test_what_a_dead_writer_left_of_committed_slots_goes_before_anything_is_sent_again(place: PostgresAddress) -> None:
    now = Clock(3)
    with replicas(place, now) as (first, second):
        first.receiver.receive("a", "1", lines((1, 7, "north")))
        now.seconds = 10
        first.counted(1)  # … and commits, and dies
        second.source.resume({"slot": 1, "time_unit": "s"})
        assert key_slots(place) == []
        assert 1 not in stored_slots(place)
        answer = first.receiver.receive("a", "2", lines((2, 7, "north")))
        assert answer == BatchResult(0, {"late": 1})


def test_a_batch_sent_again_to_another_replica_is_known(place: PostgresAddress) -> None:
    now = Clock(9)
    events = lines((8, 7, "north"), (11, 8, "south"))
    with replicas(place, now, grace_us=5_000_000) as (first, second):
        told = first.receiver.receive("a", "1", events)
        assert told == BatchResult(1, {"after": 1})
        now.seconds = 12  # slot 2 has begun: a new batch would be answered otherwise
        assert second.receiver.receive("a", "1", events) == told
        assert second.receiver.receive("b", "1", events) == BatchResult(2, {}), "ids are each sender's own"
        with pytest.raises(BatchConflict):
            second.receiver.receive("a", "1", lines((8, 7, "south")))
        now.seconds = 15
        assert second.counted(1) == [[1, 0]]


def test_a_batch_that_two_replicas_get_at_once_is_there_once(place: PostgresAddress) -> None:
    now, events = Clock(3), lines((1, 7, "north"))
    with replicas(place, now) as (first, second):
        find, told = second.intake.find, []

        def found_before(wanted: Any) -> Any:
            found = find(wanted)
            if not told:
                told.append(first.receiver.receive("a", "1", events))
            return found

        second.intake.find = found_before  # type: ignore[method-assign]
        assert second.receiver.receive("a", "1", events) == told[0] == BatchResult(1, {})
        assert len(_rows(place)) == 1


def test_whoever_is_slow_finds_the_slot_closed_and_says_late(place: PostgresAddress) -> None:
    behind, now = Clock(3), Clock(30)
    first, second = Replica(place, behind), Replica(place, now)
    try:
        first.receiver.receive("a", "1", lines((1, 7, "north")))
        assert second.counted(1) == [[1, 0]]
        assert first.receiver.receive("a", "2", lines((1, 8, "north"))) == BatchResult(0, {"late": 1})
        assert second.store.read(1, lambda records: len(list(records))) == 1
    finally:
        first.close()
        second.close()


def test_slots_close_on_acknowledged_events_alone_while_all_ingest(place: PostgresAddress) -> None:
    """Many senders at two replicas, each batch to both of them now and then, while slots close as fast as they can."""
    now, over = Clock(1), threading.Event()
    told: dict[int, list[tuple[int, int]]] = {}
    failures: list[BaseException] = []
    with replicas(place, now, 2) as both:

        def send(number: int) -> None:
            try:
                for batch in range(10_000):
                    if over.is_set():
                        return
                    user, slot = number * 10_000 + batch, int(now.seconds // 10) + 1
                    moment = now.seconds
                    for one in both if batch % 5 == 0 else [both[batch % 2]]:
                        answer = one.receiver.receive(str(number), str(batch), lines((moment, user, "north")))
                        if answer.accepted:
                            told.setdefault(slot, []).append((user, batch))
            except BaseException as error:  # noqa: BLE001  told to the test
                failures.append(error)

        senders = [threading.Thread(target=send, args=(number,)) for number in range(6)]
        for sender in senders:
            sender.start()
        counted = {}
        for slot in range(1, 9):
            wait_for(lambda slot=slot: len(told.get(slot, ())) > 5 or bool(failures), "batches")  # type: ignore[misc]
            now.seconds = slot * 10 + 1
            one = both[slot % 2]
            one.store.close_slot(slot)
            parts = map(one.source._codec.decode, one.store.read(slot, list))
            counted[slot] = [user for events in parts for user in events.users.values()]  # type: ignore[union-attr]
            one.source.forget(slot)
        over.set()
        for sender in senders:
            sender.join()
    assert not failures, failures
    for slot, users in counted.items():
        assert len(users) == len(set(users)), "kept twice"
        acknowledged = {user for user, _ in told.get(slot, [])}
        assert acknowledged, "slots went by without an event: nothing was shown"
        assert acknowledged <= set(users), "acknowledged and not there when the slot closed"


@pytest.mark.parametrize("stored", [False, True], ids=["before the commit", "after the commit"])
def test_a_lost_report_is_resolved_by_reading(
    place: PostgresAddress, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    copied, cuts = PostgresStore._copy, []

    def cut(self: PostgresStore, connection: Connection, rows: Any) -> bool:
        if cuts:
            return copied(self, connection, rows)
        cuts.append(1)
        if stored:
            copied(self, connection, rows)
        cut_off(place, connection)
        return copied(self, connection, list(rows))

    monkeypatch.setattr(PostgresStore, "_copy", cut)
    now = Clock(3)
    with replicas(place, now, 1) as (one,):
        assert one.receiver.receive("a", "1", lines((1, 7, "north"))) == BatchResult(1, {})
        assert cuts
        assert len(_rows(place)) == 1
        now.seconds = 10
        assert one.counted(1) == [[1, 0]]


def test_a_connection_that_is_cut_while_a_slot_is_read(place: PostgresAddress) -> None:
    now = Clock(3)
    with replicas(place, now, 1) as (one,):
        for user in range(50):
            one.receiver.receive("a", str(user), lines((1, user, "north")))
        now.seconds = 10
        one.store.close_slot(1)
        cuts: list[int] = []

        def use(records: Any) -> int:
            number = 0
            for _ in records:
                number += 1
                if not cuts:
                    cuts.append(1)
                    assert one.store.session._connection is not None
                    cut_off(place, one.store.session._connection)
                    raise psycopg.OperationalError("the connection is lost")
            return number

        assert one.store.read(1, use) == 50


def test_a_replica_that_stands_still_does_not_keep_slots_open(
    place: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "STANDSTILL_S", 1)
    now = Clock(3)
    with replicas(place, now, 1) as (one,), suppress(psycopg.OperationalError), asked(place) as stuck:
        one.receiver.receive("a", "1", lines((1, 7, "north")))
        stuck.execute("SET idle_in_transaction_session_timeout TO '1h'")  # of a test that would fail
        stuck.execute("BEGIN")
        IntakeLock(place.schema, str(place)).shared(stuck)
        stuck.execute("INSERT INTO events VALUES (1, 'x', 'y')")
        now.seconds = 10
        begun = time.monotonic()
        assert one.counted(1) == [[1, 0]]
        assert time.monotonic() - begun > 0.5
        assert len(_rows(place)) == 1, "what it had not committed is not there"


def test_a_backup_that_reads_everything_delays_nothing(place: PostgresAddress) -> None:
    now = Clock(3)
    with replicas(place, now, 1) as (one,), asked(place) as backup:
        one.receiver.receive("a", "1", lines((1, 7, "north")))
        backup.execute("BEGIN")
        backup.execute("LOCK TABLE events, intake IN ACCESS SHARE MODE")
        for slot in range(1, 5):
            now.seconds = slot * 10
            assert one.counted(slot) == [[1, 0]]
            one.source.forget(slot)
            assert key_slots(place) == [], "nobody can read them"
            one.receiver.receive("a", f"of {slot + 1}", lines((slot * 10, 7, "north")))
            assert stored_slots(place) == [slot + 1]
        backup.execute("COMMIT")


def test_a_database_that_is_away_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = MovedTime()
    monkeypatch.setattr(sessions, "time", clock)
    side = tmp_path / "side"
    side.mkdir(mode=0o700)
    place = PostgresAddress("postgresql://nobody:secret@127.0.0.1:9/none", "j", side)
    replica = Replica(place, Clock(3), patience_s=0.5)
    try:
        with pytest.raises(JournalUnreachable) as told:
            replica.receiver.receive("a", "1", lines((1, 7, "north")))
        assert "secret" not in str(told.value)
        assert clock.pauses
        clock.pauses = 0
        with pytest.raises(JournalUnreachable):
            replica.receiver.receive("a", "2", lines((1, 7, "north")))
        assert not clock.pauses, "nobody waits again for a database that is known to be away"
    finally:
        replica.close()
    with pytest.raises(ServiceStopping):
        replica.receiver.receive("a", "3", lines((1, 7, "north")))


def test_nothing_is_taken_in_that_nobody_would_count(place: PostgresAddress) -> None:
    """A command that is no service has the journal: what replicas acknowledged would be lost."""
    with replicas(place, Clock(3), 1) as (one,):
        left = ReplicaStores(place).open_left()
        assert left is not None
        left.keep_out()
        with pytest.raises(JournalLocked):
            one.receiver.receive("a", "1", lines((1, 7, "north")))
        with asked(place) as connection:
            connection.execute("UPDATE writer SET fence = fence + 1")  # a service takes over
        assert one.receiver.receive("a", "1", lines((1, 7, "north"))) == BatchResult(1, {})
        left.close()


def test_who_lost_the_journal_has_no_say_in_what_is_taken_in(place: PostgresAddress) -> None:
    """Also where the process that took it has the number and the host of this one, in another container."""
    with asked(place) as connection:

        def is_paused() -> bool:
            return bool(connection.execute("SELECT paused = fence FROM intake, writer").fetchall()[0][0])

        be_writer(place, is_other=True)
        with closing(ReplicaStores(place).open("test")) as left:
            left.keep_out()
        assert not is_paused(), "the next writer is a service: all would be refused for good"
        be_writer(place)
        with closing(ReplicaStores(place).open("test")) as left:
            left.keep_out()
            assert is_paused()
            connection.execute("UPDATE writer SET instance = 'of another container'")
            left.let_in()
        assert is_paused(), "the next writer is a command: what is taken in would be counted by nobody"


def test_a_command_that_sweeps_leaves_no_connection(place: PostgresAddress) -> None:
    """The server is shared with other tests, whose connections come and go meanwhile: each is known by its process."""
    with asked(place) as connection:

        def open_now() -> set[int]:
            asking = "SELECT pid FROM pg_stat_activity WHERE application_name = 'wevent sweeping'"
            return {row[0] for row in connection.execute(asking).fetchall()}

        before = open_now()
        with ExitStack() as stack:
            open_sweeper(place, stack, is_live=False, is_service=False)(1)
            opened = open_now() - before
            assert opened
        wait_for(lambda: not opened & open_now(), "the connection to end")


def test_a_folder_that_the_others_do_not_see_is_refused(place: PostgresAddress, tmp_path: Path) -> None:
    """Its keys would open nothing: what is acknowledged under them would be lost."""
    now, elsewhere = Clock(3), tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    with replicas(place, now, 1) as (one,):
        one.receiver.receive("a", "1", lines((1, 7, "north")))
        other = replace(place, folder=elsewhere)
        with pytest.raises(StorageFailed, match="The other replicas of the journal use another witness folder"):
            _check(ReplicaStores(other).open("test"))
        stray = Replica(other, now)
        with pytest.raises(StorageFailed):
            stray.receiver.receive("a", "2", lines((1, 8, "north")))
        stray.close()
        _check(
            ReplicaStores(other).open("test", is_writers=True)
        )  # the writer has another one now: the mark in it was found right
        with pytest.raises(StorageFailed):
            one.receiver.receive("a", "3", lines((1, 9, "north")))
        assert len(_rows(place)) == 1


def test_a_side_folder_is_needed(place: PostgresAddress) -> None:
    with pytest.raises(InvalidJournal, match="folder outside the database"):
        ReplicaStores(PostgresAddress(place.conninfo, place.schema))


def test_who_has_no_key_counts_nothing_and_says_so(place: PostgresAddress, caplog: pytest.LogCaptureFixture) -> None:
    now = Clock(3)
    with replicas(place, now, 2) as (first, second):
        first.receiver.receive("a", "1", lines((1, 7, "north")))
        assert place.folder is not None
        for path in (place.folder / "keys").glob("*.key"):
            path.unlink()
        now.seconds = 10
        assert second.counted(1) == [[0, 0]]
        assert "their key is gone" in caplog.text


def _check(events: PostgresStore) -> None:
    with closing(events):
        events.open_keys()


def _rows(place: PostgresAddress) -> list[Any]:
    with asked(place) as connection:
        return connection.execute("SELECT slot, key FROM events").fetchall()
