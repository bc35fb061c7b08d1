"""What replicas say of their roles, and what becomes of another command beside them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import wevent
from tests.postgres.journal_parts import bear_silence
from tests.postgres.replica_services import Replicas
from tests.service.serving_process import Service, event_line
from tests.support.commands import PATIENCE_S, call, wait_for
from tests.support.postgres_server import PostgresServer, shared_url


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    both = Replicas(tmp_path / "both", shared_url())
    yield both
    both.close()


def test_each_change_of_a_role_is_a_line(replicas: Replicas) -> None:
    first, second = replicas.services
    replicas.start(first)
    replicas.goes_on(1)
    replicas.start(second)
    wait_for(lambda: f"stands by: process {first.pid} on" in second.log, "the standby to say who writes")
    time.sleep(1.2)  # it looks several times meanwhile
    assert first.stop() == 0
    assert replicas.writer() is second
    replicas.goes_on(2)
    told = _roles(second)
    assert told[0].startswith(f"stands by: process {first.pid} on")
    assert told[1].startswith("writes from slot ")
    assert len(told) == 2, "each is said once"
    assert _roles(first) == ["writes from slot 1 on"]


def test_the_last_line_says_what_a_replica_did(replicas: Replicas) -> None:
    first, second = replicas.services
    replicas.start(first)
    replicas.goes_on(2)
    replicas.start(second)
    first.freeze()
    assert replicas.replaced(first) is second
    replicas.goes_on(2)
    first.thaw()
    wait_for(lambda: f"stands by: process {second.pid} on" in first.log, "the loser to stand by")
    assert first.stop() == 0
    assert second.stop() == 0
    assert "Published slots 1 to " in first.log
    assert "as the writer, then stood by: slot " in first.log
    assert "Published slots " in second.log
    assert "stood by" not in second.log.partition("Published")[2]


def test_one_that_never_wrote_says_so(replicas: Replicas) -> None:
    first, second = replicas.services
    replicas.start(first)
    replicas.start(second)
    replicas.goes_on(1)
    assert second.stop() == 0
    assert "Published no slot itself: slot " in second.log


def test_a_database_that_goes_and_comes_back_is_two_lines(tmp_path: Path) -> None:
    server = PostgresServer()
    replicas = Replicas(tmp_path / "one", server.url(), 1)
    (service,) = replicas.services
    try:
        replicas.start(service)
        replicas.goes_on(1)
        server.stop("immediate")
        wait_for(lambda: "the database is away" in service.log, "it to say so")
        time.sleep(1.2)  # it is asked several times meanwhile
        server.start()
        wait_for(lambda: "the database answers again" in service.log, "it to say so")
        replicas.goes_on(1)
        assert service.log.count("the database is away") == 1
        assert service.stop() == 0
    finally:
        replicas.close()
        server.remove()


def test_a_command_beside_a_writing_replica_is_refused(replicas: Replicas) -> None:
    first, second = replicas.services
    replicas.start(first)
    replicas.goes_on(1)
    done = call(second.folder, "publish", "-", "--config", "wevent.toml")
    assert done.code == 2
    assert f"held by process {first.pid} on" in done.err
    assert replicas.role(first) == "writer"
    replicas.goes_on(1)


def test_a_command_that_writes_keeps_events_out_of_replicas(replicas: Replicas) -> None:
    first, second = replicas.services
    for service in replicas.services:  # a command offers no levels unless it is told to
        with (service.folder / "wevent.toml").open("a") as file:
            file.write("[levels.privacy]\nLow = 0.9\n[levels.window]\nSmall = 4\n")
    replicas.start(first)
    replicas.goes_on(1)
    assert first.stop() == 0
    publishing = _publish(second)
    try:
        wait_for(lambda: _writer(replicas) == publishing.pid, "the command to write")
        bear_silence(replicas.place)
        replicas.start(first)
        assert replicas.role(first) == "standby"
        assert _send(replicas, first) == 503
    finally:
        publishing.terminate()
        publishing.wait(PATIENCE_S)
    wait_for(lambda: replicas.role(first) == "writer", "the replica to take over")
    assert _send(replicas, first) == 200
    replicas.audit()


def _publish(service: Service) -> subprocess.Popen[bytes]:
    """`wevent publish -` on the journal, which counts its standard input."""
    with (service.folder / "publish.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "wevent.cli", "publish", "-", "--config", "wevent.toml"],
            cwd=service.folder,
            env={**os.environ, "PYTHONPATH": str(Path(wevent.__file__).parents[1])},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
        )


def _writer(replicas: Replicas) -> int | None:
    writer = json.loads(replicas.command("status", "--json").out)["writer"]
    return None if writer is None else int(writer["pid"])


def _send(replicas: Replicas, service: Service) -> int:
    with service.asker(replicas.token("ingest")) as client:
        headers = {"Content-Type": "application/x-ndjson"}
        return client.post("/v1/events", content=event_line("u0x1", 1), headers=headers).status_code


def _roles(service: Service) -> list[str]:
    lines = (line.partition("wevent.service.role: ") for line in service.log.splitlines())
    return [said for _, found, said in lines if found]
