"""The server itself: restarted and killed under a writer, set up so that it forgets, or read by somebody else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.postgres.journal_parts import asked, begun, check_once, place_at
from tests.postgres.replica_parts import Clock, lines, replicas
from tests.support.postgres_server import PostgresServer
from tests.support.publications import publish
from tests.support.synthetic import CLASSES
from wevent.errors import StorageFailed
from wevent.journal.postgres import PostgresJournal
from wevent.people.membership import Change
from wevent.publishing.event_stores import ReplicaStores

MARKED = b"a person who was there"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server that these tests may break, one after the other."""
    found = PostgresServer({"wal_compression": "off"})
    yield found
    found.remove()


@pytest.mark.parametrize("mode", ["fast", "immediate", "killed"])
def test_a_server_that_ends_and_starts_again_loses_nothing(tmp_path: Path, server: PostgresServer, mode: str) -> None:
    place, out, labels = place_at(tmp_path, server.url()), tmp_path / "o.ndjson", list[str]()

    def at(label: str) -> None:
        labels.append(label)
        if label == "position stored" and labels.count(label) == 2:
            if mode == "killed":
                server.kill()
                server.start()
            else:
                server.restart(mode)

    with begun(place) as journal:
        publish(journal, out, 2)
        publish(journal, out, 6, at=at)
        assert (labels.count("stepped"), labels.count("began")) == (4, 5)  # drawn once each; one was stored again
        check_once(journal, place, out, 6)
        assert not journal._lease.is_lost


def test_nothing_of_events_can_be_read_in_the_files_of_the_server(tmp_path: Path, server: PostgresServer) -> None:
    place = place_at(tmp_path, server.url())

    def held(text: bytes) -> bool:
        with asked(place) as database:
            database.execute("CHECKPOINT")
        return any(text in file.read_bytes() for file in server.data.rglob("*") if file.is_file())

    with begun(place, 0) as journal:
        journal.registry.ask([Change("set", "an id that may be found", CLASSES[0])])
        publish(journal, tmp_path / "o.ndjson", 2)
        with closing(ReplicaStores(place).open("test")) as store:
            store.let_in()
        with replicas(place, now := Clock(3), 1) as (one,):
            event = lines((1, MARKED.decode(), "north"))
            assert one.receiver.receive("a", "1", event).accepted == 1
            assert held(b"an id that may be found")  # this is how it would look
            assert not held(MARKED)
            (key,) = (place.folder / "keys").glob("*.key")
            assert not held(key.read_bytes())
            now.seconds = 10
            one.store.close_slot(1)
            assert len(one.store.read(1, list)) == 1
            one.store.destroy(1)
            assert not key.exists()


@pytest.mark.parametrize(
    ("setting", "value"), [("fsync", "off"), ("full_page_writes", "off"), ("synchronous_commit", "off")]
)
def test_a_server_that_may_forget_is_not_written_to(
    tmp_path: Path, server: PostgresServer, setting: str, value: str
) -> None:
    place = place_at(tmp_path, server.url())
    with begun(place) as journal:
        publish(journal, tmp_path / "o.ndjson", 2)
    try:
        server.set(setting, value)
        with pytest.raises(StorageFailed, match=rf"{setting} = {value}"):
            PostgresJournal(place, write=True)
        with PostgresJournal(place) as reader:  # reading is no problem
            assert reader.head().committed == 2
    finally:
        server.set(setting, None)


@pytest.mark.parametrize("value", ["off", "local", "remote_write"])
@pytest.mark.parametrize("where", ["role", "address"])
def test_nor_where_the_role_or_the_address_say_so(
    tmp_path: Path, server: PostgresServer, value: str, where: str
) -> None:
    said = {"options": f"-csynchronous_commit%3D{value}"} if where == "address" else {}
    place = place_at(tmp_path, server.url(), **said)
    with asked(place) as database:
        if where == "role":
            database.execute(f"ALTER ROLE wevent SET synchronous_commit = {value}")
    try:
        with pytest.raises(StorageFailed, match=f"synchronous_commit = {value}"):
            PostgresJournal(place, write=True)
    finally:
        with asked(place) as database:
            database.execute("ALTER ROLE wevent RESET synchronous_commit")


def test_what_is_changed_under_a_writer_does_not_matter_to_it(tmp_path: Path, server: PostgresServer) -> None:
    place = place_at(tmp_path, server.url())
    with begun(place) as journal:
        try:
            server.set("synchronous_commit", "off")
            publish(journal, tmp_path / "o.ndjson", 2)
            found = journal._database.execute("SHOW synchronous_commit").fetchone()
            assert found == ("on",)
        finally:
            server.set("synchronous_commit", None)


def test_a_standby_is_read_and_not_written(tmp_path: Path, server: PostgresServer) -> None:
    place = place_at(tmp_path, server.url())
    with begun(place) as journal:
        publish(journal, tmp_path / "o.ndjson", 2)
    server.stop()
    (server.data / "standby.signal").touch()
    server.start()
    try:
        with pytest.raises(StorageFailed, match="a standby"):
            PostgresJournal(place, write=True)
        with PostgresJournal(place) as reader:
            assert [record.slot for record in reader.releases()] == [1, 2]
            with pytest.raises(StorageFailed, match="a standby"):
                reader.registry.ask([Change("remove", "u0")])
    finally:
        server.run("pg_ctl", "-D", server.data, "-w", "promote")
