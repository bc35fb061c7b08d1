"""A writer that stands still past its lease loses the journal: its draw is stored by nobody, and it stands by (spec 10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres.replica_parts import key_slots
from tests.postgres.replica_services import Load, Replicas, freeze_soon
from tests.support.commands import wait_for
from tests.support.postgres_server import shared_url


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    both = Replicas(tmp_path / "both", shared_url())
    yield both
    both.close()


def test_a_writer_that_stood_still_has_lost(replicas: Replicas) -> None:
    for service in replicas.services:
        replicas.start(service)
    load, losers = Load(replicas), set()
    for step in ("due", "position stored", "locked"):  # drawn; inside the commit; with the intake lock
        writer = replicas.writer()
        freeze_soon(replicas, writer, step)
        losers.add(writer.pid)
        other = replicas.replaced(writer)
        replicas.goes_on()
        writer.thaw()
        wait_for(lambda one=writer: replicas.role(one) == "standby", "it to stand by")  # type: ignore[misc]
        assert writer.runs
        assert replicas.role(other) == "writer", "it does not take the journal back"
        replicas.goes_on()
    load.finish(losers)


def test_the_key_is_gone_before_the_release_is_out(tmp_path: Path) -> None:
    one = Replicas(tmp_path / "one", shared_url(), 1)
    try:
        one.start(one.services[0])
        load = Load(one)
        load.is_counted()
        freeze_soon(one, one.services[0], "emitted")
        assert [slot for slot in key_slots(one.place) if slot <= one.committed()] == []
        load.stop()
    finally:
        one.close()


def test_what_was_said_for_a_restored_database_keeps_no_standby_from_writing(replicas: Replicas) -> None:
    """Started by the same unit again, after another one has settled and gone on: there is nothing to settle."""
    first, second = replicas.services
    replicas.start(first)
    replicas.goes_on()
    second.start("--released-through", "1")
    first.kill()
    assert replicas.writer() is second, second.log
    replicas.goes_on()
    replicas.audit()
