"""A connection is lost, before or after the server got the COMMIT: what was drawn is drawn and stored once (spec 10)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.postgres.journal_parts import asked, begun, check_once, place_at, proxied
from tests.support.commands import wait_for
from tests.support.cutting_proxy import CuttingProxy
from tests.support.moved_time import MovedTime
from tests.support.publications import publish
from tests.support.synthetic import CLASSES, make_terms
from wevent.counting.string_column import StringColumn
from wevent.errors import JournalUnreachable
from wevent.journal import Batch, Head, PostgresAddress
from wevent.journal import connection as sessions
from wevent.journal.postgres import PostgresJournal
from wevent.journal.terms import class_history
from wevent.people.membership import Change, Enrolment, KeyColumn
from wevent.publishing.staleness import settle_stale
from wevent.settings import RestoreOptions

STEPS = ("written ahead", "began", "slots stored", "version stored", "position stored")
CUTS = (*STEPS, "COMMIT is not received", "COMMIT is received and its answer lost")


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[tuple[PostgresAddress, CuttingProxy]]:
    """A place behind a proxy."""
    with proxied(place_at(tmp_path)) as found:
        yield found


def cutting(proxy: CuttingProxy, cut: str, labels: list[str]) -> Callable[[str], None]:
    """A hook that cuts within the second slot that is committed, and remembers every label."""

    def at(label: str) -> None:
        labels.append(label)
        if labels.count("stepped") == 2 and labels.count(label) == 2:
            if label == cut:
                proxy.cut()
            if label == "position stored" and cut.startswith("COMMIT"):
                proxy.cut_at(b"COMMIT", "before" if cut == CUTS[-2] else "after")

    return at


@pytest.mark.parametrize("cut", CUTS)
def test_a_slot_is_drawn_once_and_stored_once(
    behind: tuple[PostgresAddress, CuttingProxy], tmp_path: Path, cut: str
) -> None:
    place, proxy = behind
    out, labels = tmp_path / "o.ndjson", list[str]()
    with begun(place) as journal:
        publish(journal, out, 2)
        publish(journal, out, 5, at=cutting(proxy, cut, labels))
        assert proxy.cuts >= 1
        assert labels.count("stepped") == 3  # each slot was drawn once
        once = cut in (STEPS[0], CUTS[-1])  # before the transaction, or it was there already
        assert labels.count("began") == (3 if once else 4)  # else it is stored again
        check_once(journal, place, out, 5)
        assert not journal._lease.is_lost


def ask(journal: PostgresJournal) -> None:
    journal.registry.ask([Change("set", f"v{user}", CLASSES[0]) for user in range(3)], by_request=True)


def put_in_force(journal: PostgresJournal) -> None:
    journal.registry.apply(4, class_history(journal.epochs()))


def keep_position(journal: PostgresJournal) -> None:
    journal.commit(Batch((), {"file": 7}, b"a state", 3))


def drop_slots(journal: PostgresJournal) -> None:
    journal.commit(Batch((), None, b"a state", 3))
    journal.compact(1)


def note(journal: PostgresJournal) -> None:
    journal.note_unsafe(("start auto",))


def import_file(journal: PostgresJournal) -> None:
    journal.note_imported(b"a file")


WRITES = [ask, put_in_force, keep_position, note, import_file]


def everything(journal: PostgresJournal) -> tuple[object, ...]:
    head: Head = journal.head()
    registry = journal.registry
    registry.check()
    return (
        head.committed,
        head.position,
        head.unsafe,
        journal.load().state,
        journal.imported(),
        registry.queued(),
        sorted(registry.members()),
        len(registry.joined_by_request()),
        registry.revision().number,
    )


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("write", WRITES)
def test_whatever_is_written_is_written_once(
    behind: tuple[PostgresAddress, CuttingProxy], tmp_path: Path, write: Callable[[PostgresJournal], None], when: str
) -> None:
    place, proxy = behind
    found = []
    for one in (place, place_at(tmp_path)):  # the second one loses nothing
        with begun(one) as journal:
            publish(journal, tmp_path / f"{one.schema}.ndjson", 3)
            journal.registry.ask([Change("remove", "u0"), Change("set", "u1", CLASSES[1])])
            if one is place:
                proxy.cut_at(b"COMMIT", when)  # type: ignore[arg-type]
            write(journal)
            found.append(everything(journal))
    assert proxy.cuts == 1
    assert found[0] == found[1]


@pytest.mark.parametrize("when", ["before", "after"])
def test_who_is_not_the_writer_asks_once(
    behind: tuple[PostgresAddress, CuttingProxy], tmp_path: Path, when: str
) -> None:
    place, proxy = behind
    with begun(place_at(tmp_path), 0) as journal:
        reading = PostgresAddress(place.conninfo, journal._place.schema, place.folder, place.lease_s)
        with PostgresJournal(reading) as reader:
            proxy.cut_at(b"COMMIT", when)  # type: ignore[arg-type]
            ask(reader)
            assert proxy.cuts == 1
        assert [change.user for change in journal.registry.queued()] == ["v0", "v1", "v2"]


def test_a_request_that_stands_still_is_ended(
    behind: tuple[PostgresAddress, CuttingProxy], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica stopped inside a request holds the lock of the journal: the server ends its session, the writer goes on."""
    monkeypatch.setattr("wevent.journal.connection._LEAST_IDLE_S", 0.0)
    place, proxy = behind
    with begun(place_at(tmp_path), 0) as journal:
        reading = PostgresAddress(place.conninfo, journal._place.schema, place.folder, 1.0)
        with PostgresJournal(reading) as reader, asked(place_at(tmp_path)) as database:
            attempts = []

            def stand_still(_: object) -> None:
                session = reader._database.session.connection.info.backend_pid
                attempts.append(session)
                if len(attempts) == 1:
                    proxy.freeze()
                    alive = "SELECT FROM pg_stat_activity WHERE pid = %s"
                    wait_for(lambda: not database.execute(alive, (session,)).fetchall(), "the end of the session")
                    publish(journal, tmp_path / "o.ndjson", 1)
                    proxy.thaw()

            monkeypatch.setattr(reader.registry, "_note_by_request", stand_still)
            ask(reader)
            assert len(attempts) == 2
        assert [change.user for change in journal.registry.queued()] == ["v0", "v1", "v2"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_everybody_is_enrolled_once(behind: tuple[PostgresAddress, CuttingProxy], when: str) -> None:
    place, proxy = behind
    with PostgresJournal(place, write=True) as journal:
        proxy.cut_at(b"COMMIT", when)  # type: ignore[arg-type]
        users = [f"u{user}" for user in range(500)]
        journal.begin(make_terms(), changes=Enrolment(StringColumn.from_texts(users), KeyColumn.of([CLASSES[0]] * 500)))
        assert proxy.cuts == 1
        assert len(journal.registry.members()) == 500
        assert len(journal.epochs()) == 1
        journal.registry.check()


def test_a_writer_may_think_inside_a_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What becomes of millions of members takes a while: the server must not take it for one that stands still."""
    monkeypatch.setattr("wevent.journal.connection._LEAST_IDLE_S", 0.0)
    begun_works = []

    def think() -> int:
        begun_works.append(time.monotonic())
        time.sleep(1.5)  # more than its lease
        return int(journal._database.execute("SELECT committed FROM head").fetchone()[0])

    with begun(place_at(tmp_path, lease_s=1)) as journal:
        publish(journal, tmp_path / "o.ndjson", 2)
        assert journal._database.write(think) == 2
        assert len(begun_works) == 1, "not interrupted, and done again"


def test_reading_goes_on(behind: tuple[PostgresAddress, CuttingProxy], tmp_path: Path) -> None:
    place, proxy = behind
    with begun(place) as journal:
        publish(journal, tmp_path / "o.ndjson", 70)
    with PostgresJournal(place) as reader:
        asked: list[Callable[[], object]] = [
            lambda: reader.head().committed,
            lambda: len(reader.load().since),
            lambda: len(list(reader.releases())),
            lambda: len(reader.registry.members()),
            lambda: len(reader.registry.rows().users),
            lambda: reader.registry.check(),
            lambda: reader.writer(),
            lambda: settle_stale(reader, RestoreOptions()),
        ]
        before = [one() for one in asked]
        after = []
        for one in asked:
            proxy.cut()
            after.append(one())
        assert after == before
        slots = []
        for record in reader.releases():
            slots.append(record.slot)
            if record.slot == 10:
                proxy.cut()
        assert slots == list(range(1, 71))
    assert proxy.cuts == len(asked) + 1


def test_a_database_that_stays_away_is_reported(
    behind: tuple[PostgresAddress, CuttingProxy], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, (place, proxy) = MovedTime(), behind
    monkeypatch.setattr(sessions, "time", clock)
    with begun(place, patience_s=0.5) as journal:
        publish(journal, tmp_path / "o.ndjson", 2)
        proxy.refuse(True)
        proxy.cut()
        for call in (journal.head, journal.load, lambda: note(journal)):
            begun_s = clock.now_s
            with pytest.raises(JournalUnreachable, match="What is committed is intact"):
                call()
            assert clock.now_s - begun_s < 1
        proxy.refuse(False)
        assert journal.head().committed == 2


def test_a_database_that_comes_back_is_waited_for(behind: tuple[PostgresAddress, CuttingProxy], tmp_path: Path) -> None:
    place, proxy = behind
    with begun(place) as journal:
        publish(journal, tmp_path / "o.ndjson", 2)
        proxy.refuse(True)
        proxy.cut()
        back = threading.Timer(1.0, proxy.refuse, (False,))
        back.start()
        publish(journal, tmp_path / "o.ndjson", 4)
        check_once(journal, place, tmp_path / "o.ndjson", 4)
        back.join()
