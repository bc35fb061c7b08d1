"""Faults of storage that pass: a service stays up, readiness follows the fault, and what was acknowledged is counted once.

The limit of the size of files (RLIMIT_FSIZE) of a running process makes every write to its disk fail, and no other process
notices; strace makes syncs fail.
"""

from __future__ import annotations

import json
import re
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from tests.service.serving_process import Service, event_line
from tests.support.commands import slots_of, wait_for

HEADERS = {"Content-Type": "application/x-ndjson"}
USERS = 2000  # more than a slow machine sends until every kind of sync has failed


class Sent:
    """Batches that were answered, each with users of its own: how many events each slot has."""

    def __init__(self, service: Service) -> None:
        self._service, self._token = service, service.token("ingest")
        self._number = 0
        self.accepted = 0
        self.statuses: list[int] = []

    def send(self) -> int:
        """Send one event of a new user until it is answered, whatever the answer; the status."""
        line = event_line(f"user-{self._number}", 1)
        self._number += 1
        with self._service.asker(self._token) as client:
            answer = client.post("/v1/events", content=line, headers=HEADERS)
        self.statuses.append(answer.status_code)
        if answer.status_code == 507:
            assert int(answer.headers["Retry-After"]) > 0
        if answer.status_code == 200:
            self.accepted += answer.json()["accepted"]
        return answer.status_code


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    # A budget so large that the noise is far below one event.
    users = [(f"user-{number}", 1, 50.0) for number in range(USERS)]
    one = Service(tmp_path / "service", users, slot="500ms", grace="500ms", mechanism="uniform")
    with (one.folder / "wevent.toml").open("a") as file:
        file.write("[levels.privacy]\nP = 50\n[levels.window]\nW = 1\n")
    try:
        yield one
    finally:
        one.close()


def limit_files(service: Service, size: int) -> None:
    hard = resource.prlimit(service.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (size, hard))


@contextmanager
def full_disk(service: Service) -> Iterator[None]:
    """No write to a file of the service succeeds."""
    before = resource.prlimit(service.pid, resource.RLIMIT_FSIZE)[0]
    limit_files(service, 0)
    try:
        yield
    finally:
        limit_files(service, before)


def readiness(service: Service) -> tuple[int, str]:
    answer = httpx.get(service.url + "/readyz", timeout=30)
    return answer.status_code, answer.json()["status"]


def gauge(service: Service, token: str) -> str:
    with service.asker(token) as client:
        text = client.get("/metrics").raise_for_status().text
    found = re.search(r"^wevent_can_store_batches (\S+)$", text, re.MULTILINE)
    assert found is not None
    return found[1]


def released(service: Service) -> float:
    """The sum of all releases: the number of events that were counted, since there is hardly any noise."""
    lines = (service.folder / "out.ndjson").read_text().splitlines()
    return sum(sum(json.loads(line)["histogram"]) for line in lines)


def said(service: Service, level: str) -> list[str]:
    return [line for line in service.log.splitlines() if f"{level} " in line]


def test_a_full_disk_is_waited_out(service: Service) -> None:
    admin = service.token("admin")
    sent = Sent(service.start(piped=True))
    assert sent.send() == 200
    service.wait_until_committed(2, admin)
    with full_disk(service):
        wait_for(lambda: readiness(service) == (503, "unwritable"), "readiness that tells it")
        before = service.committed(admin)
        assert gauge(service, admin) == "0"
        for _ in range(3):
            assert sent.send() == 507
        wait_for(lambda: "publishing waits" in service.log, "a slot that cannot be stored")
        assert service.committed(admin) <= before + 1
        assert service.runs
    wait_for(lambda: readiness(service) == (200, "ready"), "readiness")
    assert gauge(service, admin) == "1"
    assert sent.send() == 200
    service.wait_until_committed(service.committed(admin) + 4, admin)
    assert service.stop() == 0
    warnings = said(service, "WARNING")
    assert sum("batches cannot be stored" in line for line in warnings) == 1
    assert sum("publishing waits" in line for line in warnings) == 1
    assert_once(service, sent)
    assert round(released(service)) == 2


def test_failed_syncs_are_waited_out(service: Service, tmp_path: Path) -> None:
    """Three syncs of every thread fail, one after the other: of the journal, and of the event files."""
    admin = service.token("admin")
    calls = tmp_path / "calls"
    watch = ("strace", "-D", "-f", "-q", "-y", "-o", str(calls), "-e", "trace=fdatasync")
    sent = Sent(service.start(under=(*watch, "-e", "inject=fdatasync:error=EIO:when=15..17")))

    def failed(name: str) -> bool:
        return re.search(rf"fdatasync\(\d+<\S*{name}>\) += -1 EIO", calls.read_text(errors="replace")) is not None

    def sending() -> bool:
        sent.send()
        return failed(r"\.events") and failed("run.journal-wal") and sent.statuses[-1] == 200

    wait_for(sending, "failed syncs")
    assert set(sent.statuses) == {200, 507}
    wait_for(lambda: readiness(service) == (200, "ready"), "readiness")
    service.wait_until_committed(service.committed(admin) + 4, admin)
    assert service.stop() == 0
    assert_once(service, sent)


@pytest.mark.parametrize("limit", [64, 256, 1024, 4096, 20_000])
def test_few_descriptors_end_nothing(service: Service, limit: int) -> None:
    """More connections than the service has descriptors: it stays, and takes batches again when they are gone."""
    admin = service.token("admin")
    sent = Sent(service.start("--log", "info", under=("prlimit", f"--nofile={limit}:{limit}")))
    port = int(service.url.rpartition(":")[2])
    assert sent.send() == 200
    with ExitStack() as held:
        for _ in range(min(limit, 300)):
            connection = socket.socket()
            connection.settimeout(0.5)
            held.callback(connection.close)
            with suppress(OSError):
                connection.connect(("127.0.0.1", port))
        time.sleep(3)  # several slots
        assert service.runs
    wait_for(lambda: is_answered(service) and readiness(service) == (200, "ready"), "readiness")
    assert sent.send() == 200
    service.wait_until_committed(service.committed(admin) + 4, admin)
    assert service.stop() == 0
    assert "removed, replaced" not in service.log
    assert_once(service, sent)


def is_answered(service: Service) -> bool:
    try:
        return httpx.get(service.url + "/healthz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def assert_once(service: Service, sent: Sent) -> None:
    """Every slot is released once, and every event that was acknowledged is counted once."""
    slots = slots_of(service.folder / "out.ndjson")
    assert slots == list(range(1, slots[-1] + 1))
    assert sent.accepted <= round(released(service)) <= sent.accepted + sent.statuses.count(507)
    assert service.command("verify", "run.journal").code == 0
