"""Faults that replicas wait out: no database at the start, a database or a witness folder that cannot be written."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.postgres.replica_services import Replicas
from tests.service.serving_process import Service, event_line
from tests.support.commands import run, wait_for
from tests.support.postgres_server import PostgresServer

HEADERS = {"Content-Type": "application/x-ndjson"}


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


def warnings(service: Service, text: str) -> int:
    return sum("WARNING" in line and text in line for line in service.log.splitlines())


@pytest.mark.parametrize("begun", [False, True])
def test_a_replica_that_starts_without_its_database_waits(
    replicas: Replicas, server: PostgresServer, begun: bool
) -> None:
    first, second = replicas.services
    if begun:
        first.start()
        replicas.goes_on(1)
        assert first.stop() == 0
    server.stop("immediate")
    try:
        second.start(ready=False)
        wait_for(lambda: replicas.condition(second) == "away", "readiness that tells it")
        assert httpx.get(second.url + "/healthz", timeout=30).status_code == 200
        with second.asker(replicas.token("read")) as client:
            assert client.get("/v1/releases").status_code == 503
        time.sleep(2)  # several attempts
        assert second.runs
        assert warnings(second, "the database is away") == 1
    finally:
        server.start()
    wait_for(lambda: replicas.condition(second) == "ready", "readiness")
    replicas.goes_on(1)
    with second.asker(replicas.token("read")) as client:
        wait_for(lambda: client.get("/v1/releases").raise_for_status().json()["releases"] != [], "releases")
    assert second.log.count("WARNING") == 1
    assert second.stop() == 0


def test_a_replica_that_waits_for_its_database_can_be_stopped(replicas: Replicas, server: PostgresServer) -> None:
    server.stop("immediate")
    try:
        replicas.services[0].start(ready=False)
        assert replicas.services[0].stop() == 0
    finally:
        server.start()


@pytest.mark.parametrize("wrong", ["password", "database", "host"])
@pytest.mark.parametrize("command", ["serve", "publish"])
def test_an_address_that_is_wrong_needs_a_person(
    tmp_path: Path, server: PostgresServer, wrong: str, command: str
) -> None:
    url = server.url(database="nowhere" if wrong == "database" else "postgres")
    url = url.replace(server.password, "wrong") if wrong == "password" else url
    url = url.replace("127.0.0.1", "nowhere.invalid") if wrong == "host" else url
    assert refused(tmp_path, command, url) == 2


def test_a_database_that_is_away_ends_a_command_for_now(tmp_path: Path, server: PostgresServer) -> None:
    server.stop("immediate")
    try:
        assert refused(tmp_path, "publish", server.url()) == 75
    finally:
        server.start()


def refused(folder: Path, command: str, url: str) -> int:
    (folder / "side").mkdir(mode=0o700)
    (folder / "users.csv").write_text("user,window,epsilon\none,4,0.5\n")
    more = ("--listen", "127.0.0.1:0") if command == "serve" else ("-",)
    settings = ("--slot", "1s", "--cells", "2", "--requirements", "users.csv", "--journal", f"{url}?witness=side")
    done = run(folder, command, *more, *settings)
    assert "Traceback" not in done.err
    assert "wrong" not in done.err
    return done.code


@contextmanager
def read_only(replicas: Replicas, server: PostgresServer) -> Iterator[None]:
    """No transaction of the event store can write; what names itself a write, as the writer's do, still can."""

    def reset(text: str) -> None:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only TO off")
            connection.execute(f"ALTER SYSTEM {text}")  # type: ignore[call-overload]
            connection.execute("SELECT pg_reload_conf()")

    reset("SET default_transaction_read_only TO on")
    try:
        yield
    finally:
        reset("RESET default_transaction_read_only")


@contextmanager
def full_side_folder(replicas: Replicas, server: PostgresServer) -> Iterator[None]:
    """No replica can write to a file."""
    for service in replicas.services:
        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        for service in replicas.services:
            resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@pytest.mark.parametrize("fault", [read_only, full_side_folder])
def test_readiness_tells_that_batches_cannot_be_stored(
    replicas: Replicas, server: PostgresServer, fault: Callable[..., Iterator[None]]
) -> None:
    ingest, admin = replicas.token("ingest"), replicas.token("admin")
    for service in replicas.services:
        service.start(piped=True)

    def send(service: Service) -> int:
        with service.asker(ingest) as client:
            return client.post("/v1/events", content=event_line("u0x1", 1), headers=HEADERS).status_code

    def gauge(service: Service) -> str:
        with service.asker(admin) as client:
            lines = client.get("/metrics").raise_for_status().text.splitlines()
        return next(line for line in lines if line.startswith("wevent_can_store_batches"))

    replicas.goes_on(1)
    with fault(replicas, server):  # type: ignore[attr-defined]
        for service in replicas.services:
            wait_for(lambda one=service: replicas.condition(one) == "unwritable", "readiness")  # type: ignore[misc]
            assert gauge(service) == "wevent_can_store_batches 0"
            wait_for(lambda one=service: send(one) == 507, "a refusal")  # type: ignore[misc]
            assert service.runs
    for service in replicas.services:
        wait_for(lambda one=service: replicas.condition(one) == "ready", "readiness")  # type: ignore[misc]
        assert gauge(service) == "wevent_can_store_batches 1"
        assert send(service) == 200
        assert warnings(service, "batches cannot be stored") == 1
        assert service.log.count("batches can be stored again") == 1
    replicas.goes_on()
    for service in replicas.services:
        assert service.stop() == 0
    replicas.audit()
