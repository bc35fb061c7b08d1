"""A loss is borne from the loss on, once: after long work, and with a server that takes connections and drops them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.postgres.journal_parts import asked, begun, place_at, proxied, publish
from tests.support.cutting_proxy import CuttingProxy
from tests.support.moved_time import MovedTime
from tests.support.synthetic import make_terms
from wevent.errors import InvalidJournal, JournalUnreachable, StaleJournal
from wevent.journal import PostgresAddress
from wevent.journal import connection as connections
from wevent.journal.connection import Connection, Session, connect
from wevent.journal.lease import drop_tables, make_tables
from wevent.journal.postgres import PostgresJournal

PATIENCE_S = 0.6
LONG_S = 1.0


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[tuple[PostgresAddress, CuttingProxy]]:
    """A place behind a proxy."""
    with proxied(place_at(tmp_path)) as found:
        yield found


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> MovedTime:
    """By which a loss is borne: a busy machine, on which it takes long to connect, uses up no patience."""
    moved = MovedTime()
    monkeypatch.setattr(connections, "time", moved)
    return moved


def test_what_reads_for_long_is_read_again(
    behind: tuple[PostgresAddress, CuttingProxy], tmp_path: Path, clock: MovedTime
) -> None:
    place, proxy = behind
    begun_works = []

    def look() -> int:
        begun_works.append(1)
        if len(begun_works) == 1:
            clock.now_s += LONG_S
            proxy.cut()
        return journal.head().committed

    with begun(place, patience_s=PATIENCE_S) as journal:
        publish(journal, tmp_path / "o.ndjson", 2)
        assert journal._database.read(look) == 2
        assert len(begun_works) == 2


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_is_written_for_long_is_written_once(
    behind: tuple[PostgresAddress, CuttingProxy], tmp_path: Path, when: str, clock: MovedTime
) -> None:
    """The answer to its COMMIT is lost: whether it was stored is read, however long it took."""
    place, proxy = behind
    begun_works = []

    def work() -> str:
        begun_works.append(1)
        journal._database.execute("INSERT INTO epochs VALUES (99, 99, 'x')")
        if len(begun_works) == 1:
            clock.now_s += LONG_S
            proxy.cut_at(b"COMMIT", when)  # type: ignore[arg-type]
        return "stored"

    with begun(place, patience_s=PATIENCE_S) as journal:
        publish(journal, tmp_path / "o.ndjson", 2)
        assert journal._database.write(work) == "stored"
        assert len(begun_works) == (2 if when == "before" else 1)
        with asked(place) as database:
            assert database.execute("SELECT count(*) FROM epochs WHERE number = 99").fetchone() == (1,)


def test_what_the_event_store_does_for_long_is_done_again(
    behind: tuple[PostgresAddress, CuttingProxy], clock: MovedTime
) -> None:
    place, proxy = behind
    begun_works = []

    def look(connection: Connection) -> object:
        begun_works.append(1)
        if len(begun_works) == 1:
            clock.now_s += LONG_S
            proxy.cut()
        return connection.execute("SELECT 1").fetchone()

    with closing(Session(place, "test", setting="SELECT 1", patience_s=PATIENCE_S)) as session:
        assert session.repeat(look) == (1,)
        assert len(begun_works) == 2


def test_the_event_store_does_not_ask_a_server_that_drops_everything_for_ever(
    behind: tuple[PostgresAddress, CuttingProxy], clock: MovedTime
) -> None:
    place, proxy = behind

    def look(connection: Connection) -> object:
        proxy.cut()
        return connection.execute("SELECT 1").fetchone()

    begun_s = clock.now_s
    with (
        closing(Session(place, "test", setting="SELECT 1", patience_s=PATIENCE_S)) as session,
        pytest.raises(JournalUnreachable),
    ):
        session.repeat(look)
    assert clock.now_s - begun_s < PATIENCE_S + 1


def test_the_event_store_waits_for_a_standby_that_is_promoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def is_standby(_: Connection, __: PostgresAddress) -> bool:
        looks.append(1)
        return len(looks) < 3

    monkeypatch.setattr(connections, "is_standby", is_standby)
    with closing(Session(place_at(tmp_path), "test", setting="SELECT 1", patience_s=10.0)) as session:
        assert session.repeat(lambda connection: connection.execute("SELECT 1").fetchone()) == (1,)
    assert len(looks) > 2


def note(journal: PostgresJournal) -> None:
    journal.note_unsafe(("start auto",))


@pytest.mark.parametrize("call", [PostgresJournal.head, PostgresJournal.load, note])
def test_a_server_that_drops_every_look_is_given_up(
    behind: tuple[PostgresAddress, CuttingProxy],
    tmp_path: Path,
    call: Callable[[PostgresJournal], object],
    clock: MovedTime,
) -> None:
    """After a loss it is looked whether all that was committed is there: over one connection after the other, not deeper
    and deeper, and with one patience.
    """
    place, proxy = behind
    depths, deepest = [0], [0]
    with begun(place, patience_s=PATIENCE_S) as journal:
        publish(journal, tmp_path / "o.ndjson", 2)
        session = journal._database.session
        look = session.regained

        def dropped() -> None:
            depths.append(depths[-1] + 1)
            deepest.append(depths[-1])
            proxy.cut_at(b"SELECT chain FROM slots", "before")
            try:
                look()
            finally:
                depths.pop()

        session.regained = dropped
        proxy.cut()
        begun_s = clock.now_s
        with pytest.raises(JournalUnreachable, match="What is committed is intact"):
            call(journal)
        assert clock.now_s - begun_s < PATIENCE_S + 1
        assert len(deepest) > 2, "it was tried more than once"
        assert max(deepest) == 1
        session.regained = look
        assert journal.head().committed == 2


def test_a_database_that_lacks_what_was_committed_is_refused_again_and_again(
    behind: tuple[PostgresAddress, CuttingProxy], tmp_path: Path
) -> None:
    place, proxy = behind
    with begun(place) as journal:
        publish(journal, tmp_path / "o.ndjson", 3)
        with asked(place) as database:
            database.execute("DELETE FROM slots WHERE slot = 3")
        proxy.cut()
        for _ in range(2):
            with pytest.raises(StaleJournal, match="committed slot 3 here"):
                journal.head()


def test_a_journal_whose_beginning_was_stored_keeps_its_tables(behind: tuple[PostgresAddress, CuttingProxy]) -> None:
    """Patience ran out before the answer to COMMIT was known: closing takes nothing of a journal that was begun."""
    place, proxy = behind
    journal = PostgresJournal(place, write=True, patience_s=0.3)
    proxy.refuse(True)
    proxy.cut_at(b"COMMIT", "after")
    with pytest.raises(JournalUnreachable):
        journal.begin(make_terms())
    assert journal.is_new, "as far as it knows"
    fence = journal._lease.fence
    journal.close()
    proxy.refuse(False)
    with asked(place) as database:
        assert database.execute("SELECT fence FROM writer, lease").fetchone() == (fence,)
    with PostgresJournal(place, write=True) as again:
        assert not again.is_new
        assert again._lease.fence == fence + 1


def test_a_beginning_that_is_still_being_stored_is_waited_for(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    with closing(connect(place, "test")) as guard, asked(place) as other:
        make_tables(guard, place.schema)
        other.execute("BEGIN; UPDATE writer SET fence = fence", prepare=False)
        other.execute("CREATE TABLE head (x bigint); CREATE TABLE facts (x bigint)", prepare=False)
        dropping = threading.Thread(target=drop_tables, args=(guard, place.schema, ""), kwargs={"whole": True})
        dropping.start()
        dropping.join(0.5)
        assert dropping.is_alive()
        other.execute("COMMIT")
        dropping.join()
        assert other.execute("SELECT fence FROM writer, lease").fetchone() == (0,)


def test_tables_that_another_writer_has_taken_are_left(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    with closing(connect(place, "test")) as guard, asked(place) as other:
        make_tables(guard, place.schema)
        other.execute("UPDATE lease SET instance = 'another'")
        drop_tables(guard, place.schema, "one", whole=True)
        assert other.execute("SELECT fence FROM writer, lease").fetchone() == (0,)


def test_a_schema_with_tables_of_somebody_else_is_left_as_it_was(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    with asked(place) as database:
        database.execute(f"CREATE SCHEMA {place.schema}")
        database.execute("CREATE TABLE head (whatever text)")
        with pytest.raises(InvalidJournal, match="untouched"):
            PostgresJournal(place, write=True)
        query = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
        assert database.execute(query, (place.schema,)).fetchall() == [("head",)]
