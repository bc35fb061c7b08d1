"""What is PostgreSQL's own in a journal: its address, roles and encodings, many people at once, and who shares it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgres.journal_parts import asked, begun, place_at
from tests.support.odd_ids import ODD_IDS
from tests.support.postgres_server import own_schema, shared_url
from tests.support.publications import publish
from tests.support.synthetic import CLASSES, make_terms
from wevent.counting.string_column import StringColumn
from wevent.errors import InvalidJournal, JournalLocked, JournalUnreachable, StorageFailed
from wevent.journal import PostgresAddress, is_begun, open_journal, parse_address
from wevent.journal.connection import connect
from wevent.journal.postgres import PostgresJournal
from wevent.journal.terms import class_history
from wevent.people.membership import Change, Enrolment, KeyColumn
from wevent.publishing.event_stores import ReplicaStores


def test_open_journal_takes_an_address(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    assert not is_begun(place)
    with open_journal(place, write=True) as journal:
        assert isinstance(journal, PostgresJournal)
        journal.begin(make_terms())
        assert journal.size() > 0
    assert is_begun(place)
    with open_journal(f"{place.conninfo}?schema={place.schema}") as reader:  # readers need no witness folder
        assert reader.epochs()[0].terms == make_terms()
        assert reader.files() == []
        with pytest.raises(InvalidJournal, match="witness=FOLDER"):
            reader.witnessed()


def test_a_writer_needs_a_folder_outside(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    for side, said in ((None, "witness=FOLDER"), (tmp_path / "nowhere", "Make it first")):
        with pytest.raises(InvalidJournal, match=said):
            PostgresJournal(PostgresAddress(place.conninfo, place.schema, side, 3), write=True)
    with asked(place) as database:
        assert database.execute("SELECT to_regnamespace(%s)", (place.schema,)).fetchone() == (None,)


def test_a_folder_that_others_can_use_is_refused(tmp_path: Path) -> None:
    """To whoever writes, and to replicas, which keep keys in it; reading goes on."""
    place = place_at(tmp_path)
    with begun(place):
        pass
    assert place.folder is not None
    place.folder.chmod(0o777)
    with pytest.raises(InvalidJournal, match="Others can read or write"):
        open_journal(place, write=True)
    with pytest.raises(InvalidJournal, match="Others can read or write"):
        ReplicaStores(place)
    with open_journal(place) as journal:
        assert journal.head().committed == 0


def test_no_journal_is_no_journal(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    with pytest.raises(InvalidJournal, match="There is no journal"):
        PostgresJournal(place)
    with asked(place) as database:
        database.execute(f"CREATE SCHEMA {place.schema}")
        database.execute("CREATE TABLE slots (whatever text)")
    for write in (False, True):
        with pytest.raises(InvalidJournal, match=r"other tables under the same names.*untouched"):
            PostgresJournal(place, write=write)
        with asked(place) as database:
            tables = database.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = %s", (place.schema,)
            ).fetchall()
        assert tables == [("slots",)]


def test_a_newer_journal_is_left_alone(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    with begun(place):
        pass
    with asked(place) as database:
        database.execute("UPDATE facts SET value = '99' WHERE name = 'format'")
    for write in (False, True):
        with pytest.raises(InvalidJournal, match="format 99, from a newer wevent"):
            PostgresJournal(place, write=write)
    with asked(place) as database:
        assert database.execute("SELECT to_regclass('writer') IS NOT NULL").fetchone() == (True,)


def test_another_encoding_is_refused(tmp_path: Path) -> None:
    name = own_schema()
    with psycopg.connect(shared_url(), autocommit=True) as database:
        database.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
        try:
            place = place_at(tmp_path, shared_url().replace("/postgres", f"/{name}"))
            with pytest.raises(InvalidJournal, match="encoding LATIN1"):
                PostgresJournal(place)
        finally:
            database.execute(f"DROP DATABASE {name}")


def test_a_role_without_rights_is_told_so(tmp_path: Path) -> None:
    place, role = place_at(tmp_path), own_schema()
    with begun(place), asked(place) as database:
        database.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    other = PostgresAddress(place.conninfo.replace("//wevent:", f"//{role}:", 1), place.schema, place.folder, 3)
    password = place.conninfo.partition("//wevent:")[2].partition("@")[0]
    other = PostgresAddress(other.conninfo.replace(password, "x"), place.schema, place.folder, 3)
    try:
        for write in (False, True):
            with pytest.raises(StorageFailed, match="may not use the schema"):
                PostgresJournal(other, write=write)
    finally:
        with asked(place) as database:
            database.execute(f"DROP ROLE {role}")


def test_a_password_is_in_no_message(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    secret = "open sesame/%"
    port = shared_url().rpartition(":")[2].partition("/")[0]
    wrong = [
        f"postgresql://wevent:open%20sesame%2F%25@127.0.0.1:{port}/postgres",
        f"postgresql://wevent@127.0.0.1:{port}/postgres?password=open%20sesame%2F%25",
        "postgresql://wevent:open%20sesame%2F%25@127.0.0.1:1/postgres",
        "postgresql://wevent:open%20sesame%2F%25@nowhere.invalid/postgres",
        "postgresql://wevent:open%20sesame%2F%25@127.0.0.1:1/postgres?nonsense=1",
    ]
    for address in wrong:
        place = parse_address(f"{address}{'&' if '?' in address else '?'}witness={tmp_path}")
        assert isinstance(place, PostgresAddress)
        for act in (lambda p=place: connect(p, "test"), lambda p=place: PostgresJournal(p, write=True)):
            with pytest.raises((JournalUnreachable, InvalidJournal)) as caught:
                act()
            told = [str(caught.value), repr(caught.value), str(caught.value.facts), str(place), repr(place)]
            told += [str(one) for one in (caught.value.__cause__, caught.value.__context__) if one is not None]
            for text in (*told, caplog.text):
                assert "sesame" not in text
                assert secret not in text


def test_many_people_are_stored_as_they_are(tmp_path: Path) -> None:
    users = [*ODD_IDS, *(f"u{user}" for user in range(3000))]
    keys = [CLASSES[number % 3] for number in range(len(users))]
    words: list[Any] = [None if number % 2 else f"Wört\t{number % 5}\\" for number in range(len(users))]
    with PostgresJournal(place_at(tmp_path), write=True) as journal:
        journal.begin(make_terms(), changes=Enrolment(StringColumn.from_texts(users), KeyColumn.of(keys), words))
        assert journal.registry.pending() == 0
        members = {member.user: (member.key, member.level, member.first) for member in journal.registry.members()}
        wanted = {user: (key, word, 1) for user, key, word in zip(users, keys, words, strict=True)}
        assert members == wanted
        journal.registry.check()
        journal.registry.rows()  # as they were enrolled
        again = journal.registry.rows()
        assert again.users.texts() == sorted(users, key=str.encode)
        assert list(again.keys) == [wanted[user][0] for user in again.users.texts()]


def test_no_wish_is_lost_between_those_who_ask_and_the_writer(tmp_path: Path) -> None:
    place, each = place_at(tmp_path), 40
    with begun(place, 0) as journal:

        def ask(name: str) -> None:
            with PostgresJournal(place) as reader:
                for number in range(each):
                    reader.registry.ask([Change("set", f"{name}{number}", CLASSES[0])], by_request=True)

        asking = [threading.Thread(target=ask, args=(name,)) for name in "abc"]
        for thread in asking:
            thread.start()
        applied, slot = 0, 0
        while any(thread.is_alive() for thread in asking) or journal.registry.pending():
            slot += 1
            applied += journal.registry.apply(slot, class_history(journal.epochs()))
        assert applied == 3 * each
        assert len(journal.registry.members()) == 3 * each
        assert len(journal.registry.joined_by_request()) == 3 * each
        journal.registry.check()


def test_two_databases_cannot_share_a_witness(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    with begun(place) as journal:
        publish(journal, tmp_path / "o.ndjson", 2)
        (own,) = journal.files()
        own.rename(own.with_suffix(".away"))
        with pytest.raises(StorageFailed, match="removed or replaced"):
            publish(journal, tmp_path / "o.ndjson", 3)
        own.with_suffix(".away").rename(own)
        publish(journal, tmp_path / "o.ndjson", 3)
        newer = own.with_name(f"{place.schema}.9.witness")
        own.rename(newer)  # another writer came later, and removed the older file
        with pytest.raises(JournalLocked):
            publish(journal, tmp_path / "o.ndjson", 4)
        assert journal.head().committed == 3
