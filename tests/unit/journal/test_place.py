"""Names of journals: paths and addresses, and what is shown of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from wevent.errors import InvalidJournal
from wevent.journal.connection import connect
from wevent.journal.place import PostgresPlace, file_beside, is_address, journal_file, journal_place

ADDRESS = "postgresql://ann:s3cret@db.example:5433/city?schema=bikes&side=/var/lib/wevent&sslmode=require"


def test_a_path_stays_a_path() -> None:
    assert journal_place("run.journal") == Path("run.journal")
    assert journal_place(Path("run.journal"), Path("/etc/wevent")) == Path("/etc/wevent/run.journal")
    assert not is_address("postgres.journal")
    assert not is_address("postgresql.d/run.journal")


def test_an_address_says_database_schema_and_side_folder() -> None:
    place = journal_place(ADDRESS)
    assert isinstance(place, PostgresPlace)
    assert place.conninfo == "postgresql://ann:s3cret@db.example:5433/city?sslmode=require"
    assert (place.schema, place.side, place.lease_s) == ("bikes", Path("/var/lib/wevent"), 10.0)
    assert journal_place(place) is place


def test_no_secret_is_ever_shown() -> None:
    for text in (ADDRESS, "postgresql://db/city?user=ann&password=s3cret&schema=bikes", "postgres://:s3cret@db/city"):
        place = journal_place(text)
        assert "s3cret" not in f"{place}{place!r}"
    assert str(journal_place(ADDRESS)) == "postgresql://ann@db.example:5433/city?sslmode=require&schema=bikes"


def test_a_slash_that_a_path_library_took_is_put_back() -> None:
    place = journal_place(Path("postgresql://db.example/city"))
    assert isinstance(place, PostgresPlace)
    assert place.conninfo == "postgresql://db.example/city"


def test_several_hosts_are_a_failover_pair() -> None:
    place = journal_place("postgresql://ann:s3cret@one:5432,two:5433/city?target_session_attrs=read-write")
    assert isinstance(place, PostgresPlace)
    assert place.conninfo == "postgresql://ann:s3cret@one:5432,two:5433/city?target_session_attrs=read-write"
    assert str(place) == "postgresql://ann@one:5432,two:5433/city?target_session_attrs=read-write&schema=wevent"


def test_a_relative_side_folder_starts_at_the_folder_of_the_configuration() -> None:
    place = journal_place("postgresql://db/city?side=side", Path("/etc/wevent"))
    assert isinstance(place, PostgresPlace)
    assert place.side == Path("/etc/wevent/side")


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://db:port/city",
        "postgresql://one:5432,two:port/city",
        "postgresql://db/city?schema=Robert'); DROP TABLE slots",
        "postgresql://db/city?schema=pg_catalog",
        "postgresql://db/city?schema=",
        "postgresql://db/city?lease=0",
        "postgresql://db/city?lease=nan",
        "postgresql://db/city?lease=soon",
        "postgresql://db/city?schema",
        "postgresql://[::1/city",
    ],
)
def test_an_address_that_cannot_be_one_is_refused(text: str) -> None:
    with pytest.raises(InvalidJournal) as refused:
        journal_place(text)
    assert "Traceback" not in str(refused.value)


def test_a_writer_needs_a_side_folder_that_is_there(tmp_path: Path) -> None:
    for side, what in ((None, "names no folder"), (tmp_path / "gone", "no folder")):
        with pytest.raises(InvalidJournal, match=what):
            _ = PostgresPlace("postgresql://db/city", side=side).side_folder
    assert PostgresPlace("postgresql://db/city", side=tmp_path).side_folder == tmp_path


def test_files_beside_a_journal(tmp_path: Path) -> None:
    assert file_beside(Path("a/run.journal"), "tokens") == Path("a/run.journal.tokens")
    assert file_beside(PostgresPlace("postgresql://db/city", "bikes", tmp_path), "tokens") == tmp_path / "bikes.tokens"


def test_what_only_files_can_is_refused_for_a_database() -> None:
    assert journal_file("run.journal", "wevent backup") == Path("run.journal")
    with pytest.raises(InvalidJournal, match="released-through"):
        journal_file(ADDRESS, "wevent backup")


@pytest.mark.parametrize("host", ["db..example", ".", "a" * 64 + ".example"])
def test_a_host_that_cannot_be_is_refused_without_asking_anybody(host: str) -> None:
    with pytest.raises(InvalidJournal, match="host that cannot be") as refused:
        connect(PostgresPlace(f"postgresql://ann:s3cret@{host}/city"), "reader")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o750, 0o770, 0o701])
def test_a_folder_that_others_can_enter_is_not_private(tmp_path: Path, mode: int) -> None:
    """Who writes to it could turn the mark back; tokens are as strict."""
    side = tmp_path / "side"
    side.mkdir(mode=0o700)
    place = PostgresPlace("postgresql://db/city", side=side)
    assert place.private_folder == side
    side.chmod(mode)
    assert place.side_folder == side, "who only reads may see it"
    with pytest.raises(InvalidJournal, match=f"mode 0{mode:o}. Take the rights of others away"):
        _ = place.private_folder
