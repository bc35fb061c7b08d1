"""A standby takes over under a writer that goes on: with everything it is not noticed, without it is stale (spec 10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres.journal_parts import begun, check_once
from tests.support.postgres_server import PostgresServer, own_schema
from tests.support.publications import publish
from wevent.errors import StaleJournal
from wevent.journal import PostgresAddress, parse_address


@pytest.fixture
def pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """A primary and a standby that follows it at once."""
    primary = PostgresServer()
    standby = primary.follower()
    yield primary, standby
    standby.remove()
    primary.remove()


def take_over(primary: PostgresServer, standby: PostgresServer) -> None:
    """The primary is gone, and the standby takes its place."""
    primary.kill()
    standby.run("pg_ctl", "-D", standby.data, "-w", "promote")
    standby.set_synchronous("")


def address(primary: PostgresServer, standby: PostgresServer, folder: Path) -> PostgresAddress:
    """Both servers in one address."""
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    place = parse_address(
        f"postgresql://wevent:{primary.password}@{hosts}/postgres?schema={own_schema()}&witness={folder}"
    )
    assert isinstance(place, PostgresAddress)
    return place


def test_a_writer_goes_on_with_a_standby_that_has_everything(
    pair: tuple[PostgresServer, PostgresServer], tmp_path: Path
) -> None:
    place, out, labels = address(*pair, tmp_path), tmp_path / "o.ndjson", list[str]()

    def at(label: str) -> None:
        labels.append(label)
        if label == "position stored" and labels.count(label) == 3:
            take_over(*pair)

    with begun(place) as journal:
        publish(journal, out, 2)
        publish(journal, out, 7, at=at)
        assert (labels.count("stepped"), labels.count("began")) == (5, 6)  # drawn once each; one was stored again
        check_once(journal, place, out, 7)
        assert not journal._lease.is_lost


def test_a_writer_stops_before_anything_goes_out_of_one_that_lacks_slots(
    pair: tuple[PostgresServer, PostgresServer], tmp_path: Path
) -> None:
    primary, standby = pair
    place, out = address(*pair, tmp_path), tmp_path / "o.ndjson"
    with begun(place) as journal:
        publish(journal, out, 3)
        standby.stop()
        primary.set_synchronous("")  # what must not be done
        publish(journal, out, 6)
        primary.kill()
        standby.start()
        standby.run("pg_ctl", "-D", standby.data, "-w", "promote")
        with pytest.raises(StaleJournal, match="committed slot 6 here"):
            publish(journal, out, 7)
    assert len(out.read_bytes().splitlines()) == 6
