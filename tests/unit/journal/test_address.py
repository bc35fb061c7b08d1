"""Names of journals: paths and addresses, and what is shown of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from wevent.errors import InvalidJournal
from wevent.journal.address import PostgresAddress, file_beside, is_address, journal_file, parse_address
from wevent.journal.connection import connect

ADDRESS = "postgresql://ann:s3cret@db.example:5433/city?schema=bikes&witness=/var/lib/wevent&sslmode=require"


def test_a_path_stays_a_path() -> None:
    assert parse_address("run.journal") == Path("run.journal")
    assert parse_address(Path("run.journal"), Path("/etc/wevent")) == Path("/etc/wevent/run.journal")
    assert not is_address("postgres.journal")
    assert not is_address("postgresql.d/run.journal")


def test_an_address_says_database_schema_and_side_folder() -> None:
    place = parse_address(ADDRESS)
    assert isinstance(place, PostgresAddress)
    assert place.conninfo == "postgresql://ann:s3cret@db.example:5433/city?sslmode=require"
    assert (place.schema, place.folder, place.lease_s) == ("bikes", Path("/var/lib/wevent"), 10.0)
    assert parse_address(place) is place


def test_no_secret_is_ever_shown() -> None:
    for text in (ADDRESS, "postgresql://db/city?user=ann&password=s3cret&schema=bikes", "postgres://:s3cret@db/city"):
        place = parse_address(text)
        assert "s3cret" not in f"{place}{place!r}"
    assert str(parse_address(ADDRESS)) == "postgresql://ann@db.example:5433/city?sslmode=require&schema=bikes"


def test_a_slash_that_a_path_library_took_is_put_back() -> None:
    place = parse_address(Path("postgresql://db.example/city"))
    assert isinstance(place, PostgresAddress)
    assert place.conninfo == "postgresql://db.example/city"


def test_several_hosts_are_a_failover_pair() -> None:
    place = parse_address("postgresql://ann:s3cret@one:5432,two:5433/city?target_session_attrs=read-write")
    assert isinstance(place, PostgresAddress)
    assert place.conninfo == "postgresql://ann:s3cret@one:5432,two:5433/city?target_session_attrs=read-write"
    assert str(place) == "postgresql://ann@one:5432,two:5433/city?target_session_attrs=read-write&schema=wevent"


def test_a_relative_side_folder_starts_at_the_folder_of_the_configuration() -> None:
    place = parse_address("postgresql://db/city?witness=side", Path("/etc/wevent"))
    assert isinstance(place, PostgresAddress)
    assert place.folder == Path("/etc/wevent/side")


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
        parse_address(text)
    assert "Traceback" not in str(refused.value)


def test_a_writer_needs_a_side_folder_that_is_there(tmp_path: Path) -> None:
    for side, what in ((None, "names no folder"), (tmp_path / "gone", "no folder")):
        with pytest.raises(InvalidJournal, match=what):
            _ = PostgresAddress("postgresql://db/city", folder=side).existing_folder
    assert PostgresAddress("postgresql://db/city", folder=tmp_path).existing_folder == tmp_path


def test_files_beside_a_journal(tmp_path: Path) -> None:
    assert file_beside(Path("a/run.journal"), "tokens") == Path("a/run.journal.tokens")
    assert (
        file_beside(PostgresAddress("postgresql://db/city", "bikes", tmp_path), "tokens") == tmp_path / "bikes.tokens"
    )


def test_what_only_files_can_is_refused_for_a_database() -> None:
    assert journal_file("run.journal", "wevent backup") == Path("run.journal")
    with pytest.raises(InvalidJournal, match="released-through"):
        journal_file(ADDRESS, "wevent backup")


@pytest.mark.parametrize("host", ["db..example", ".", "a" * 64 + ".example"])
def test_a_host_that_cannot_be_is_refused_without_asking_anybody(host: str) -> None:
    with pytest.raises(InvalidJournal, match="host that cannot be") as refused:
        connect(PostgresAddress(f"postgresql://ann:s3cret@{host}/city"), "reader")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o750, 0o770, 0o701])
def test_a_folder_that_others_can_enter_is_not_private(tmp_path: Path, mode: int) -> None:
    """Who writes to it could turn the mark back; tokens are as strict."""
    side = tmp_path / "side"
    side.mkdir(mode=0o700)
    place = PostgresAddress("postgresql://db/city", folder=side)
    assert place.private_folder == side
    side.chmod(mode)
    assert place.existing_folder == side, "who only reads may see it"
    with pytest.raises(InvalidJournal, match=f"mode 0{mode:o}. Take the rights of others away"):
        _ = place.private_folder
