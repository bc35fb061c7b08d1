"""A pair of servers: one that follows at once takes over unnoticed, one that lags behind is an old copy (spec 10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import wevent
from tests.support.postgres_server import PostgresServer
from wevent.errors import StaleJournal
from wevent.settings import RunOptions

SLOTS = 6


@pytest.fixture
def pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """A primary and a standby that follows it at once."""
    primary = PostgresServer()
    standby = primary.follower()
    try:
        yield primary, standby
    finally:
        standby.remove()
        primary.remove()


def events(folder: Path, last: int) -> Path:
    path = folder / "events.csv"
    rows = [f"2026-01-01T00:{slot:02d}:10Z,u{user},{(user + slot) % 3}" for slot in range(last) for user in range(30)]
    path.write_text("time,user,cell\n" + "\n".join(rows) + "\n")
    return path


def publish(folder: Path, address: str, last: int, **options: int) -> list[float]:
    """Publish through a slot; every value that went out."""
    done = wevent.publish(
        events(folder, last),
        slot="1min",
        start="2026-01-01T00:00:00Z",
        end=f"2026-01-01T00:{last:02d}:00Z",
        cells=3,
        mechanism="pbu",
        requirements={f"u{user}": wevent.Requirement(3, "1.0") for user in range(30)},
        journal=address,
        options=RunOptions(**options),
    )
    return list(done.releases().columns["value"])


def both(primary: PostgresServer, standby: PostgresServer, side: Path) -> str:
    """An address of both servers: whichever can be written to is used."""
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    return f"postgresql://wevent:{primary.password}@{hosts}/postgres?target_session_attrs=read-write&witness={side}&lease=2"


def test_a_standby_that_follows_at_once_takes_over_unnoticed(
    pair: tuple[PostgresServer, PostgresServer], tmp_path: Path
) -> None:
    primary, standby = pair
    address = both(*pair, tmp_path)
    before = publish(tmp_path, address, SLOTS)
    primary.kill()
    standby.run("pg_ctl", "-D", standby.data, "-w", "promote")
    standby.set_synchronous("")
    after = publish(tmp_path, address, 2 * SLOTS)
    assert after[: len(before)] == before  # nothing is drawn twice
    assert len(after) == 2 * SLOTS * 3
    assert wevent.verify_journal(address).ok


def test_a_standby_that_lacks_the_last_draw_takes_it_from_the_witness(
    pair: tuple[PostgresServer, PostgresServer], tmp_path: Path
) -> None:
    primary, standby = pair
    address = both(*pair, tmp_path)
    publish(tmp_path, address, SLOTS)
    standby.stop()
    primary.set_synchronous("")
    before = publish(tmp_path, address, SLOTS + 1)
    primary.kill()
    standby.start()
    standby.run("pg_ctl", "-D", standby.data, "-w", "promote")
    standby.set_synchronous("")
    after = publish(tmp_path, address, 2 * SLOTS)
    assert after[: len(before)] == before
    assert len(after) == 2 * SLOTS * 3
    assert wevent.verify_journal(address).ok


def test_a_standby_that_lags_behind_is_an_old_copy(pair: tuple[PostgresServer, PostgresServer], tmp_path: Path) -> None:
    primary, standby = pair
    address = both(*pair, tmp_path)
    publish(tmp_path, address, SLOTS)
    standby.stop()
    primary.set_synchronous("")  # what must not be done
    publish(tmp_path, address, SLOTS + 1)
    publish(tmp_path, address, SLOTS + 3)  # of two draws that it lacks, the witness has the last one
    primary.kill()
    standby.start()
    standby.run("pg_ctl", "-D", standby.data, "-w", "promote")
    standby.set_synchronous("")
    with pytest.raises(StaleJournal, match="released-through"):
        publish(tmp_path, address, 2 * SLOTS)
    publish(tmp_path, address, 2 * SLOTS, released_through=SLOTS + 3)
    report = wevent.verify_journal(address)
    assert report.ok
    assert report.elsewhere == [(SLOTS + 1, SLOTS + 3)]
