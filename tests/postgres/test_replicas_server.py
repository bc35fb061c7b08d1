"""PostgreSQL restarted, killed and cut off underneath two services that ingest: nothing lost, nothing twice (spec 10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres.replica_services import Load, Replicas
from tests.service.serving_process import event_line
from tests.support.commands import wait_for
from tests.support.postgres_server import PostgresServer


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    own = PostgresServer()
    yield own
    own.remove()


@pytest.fixture
def replicas(tmp_path: Path, server: PostgresServer) -> Iterator[Replicas]:
    both = Replicas(tmp_path / "both", server.url())
    yield both
    both.close()


def test_the_server_goes_and_comes_back_under_load(replicas: Replicas, server: PostgresServer) -> None:
    for service in replicas.services:
        replicas.start(service)
    load = Load(replicas)
    for end in ("cut", "immediate", "kill", "cut", "fast", "cut"):
        replicas.goes_on()
        if end == "cut":
            _cut_all(server)
        elif end == "kill":
            server.kill()
            server.start()
        else:
            server.restart(end)
        assert all(one.runs for one in replicas.services)
    replicas.goes_on()
    load.finish()


def test_nothing_is_acknowledged_while_the_database_is_away(tmp_path: Path, server: PostgresServer) -> None:
    replicas = Replicas(tmp_path / "one", server.url(), 1)
    try:
        _check_away(replicas, server)
    finally:
        replicas.close()


def _check_away(replicas: Replicas, server: PostgresServer) -> None:
    for service in replicas.services:
        replicas.start(service)
    replicas.goes_on(1)
    ingest = replicas.token("ingest")
    server.stop("immediate")
    try:
        for service in replicas.services:
            wait_for(lambda one=service: replicas.condition(one) == "away", "it to say so")  # type: ignore[misc]
            with service.asker(ingest) as client:
                headers = {"Content-Type": "application/x-ndjson"}
                answer = client.post("/v1/events", content=event_line("u0x1", 1, 1.0), headers=headers)
            assert answer.status_code == 503
            assert int(answer.headers["retry-after"]) > 0
            assert "password" not in answer.text
            assert str(server.port) not in answer.text
    finally:
        server.start()
    replicas.goes_on()
    for service in replicas.services:
        wait_for(lambda one=service: replicas.condition(one) == "ready", "it to be ready again")  # type: ignore[misc]
        assert service.stop() == 0
    assert server.password not in replicas.log
    replicas.audit()


def _cut_all(server: PostgresServer) -> None:
    """Every connection of every replica, at once."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name LIKE 'wevent%' AND pid <> pg_backend_pid()"
        )
