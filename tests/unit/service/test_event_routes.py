"""POST /v1/events: what reaches the source, and how everything else is refused before anything is read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.service.service_parts import Service, make_service, write_journal
from wevent.errors import BatchConflict, JournalUnreachable, ServiceStopping, StorageFailed

NDJSON = {"Content-Type": "application/x-ndjson"}
EVENTS = b'{"user":"1","cell":2}\n{"user":"2","cell":0}\n'


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_journal(tmp_path_factory.mktemp("journal"))


@pytest.fixture
def service(tmp_path: Path, journal: Path) -> Service:
    return make_service(tmp_path, journal, max_body_bytes=2000, max_batch_bytes=5000)


def send(service: Service, content: bytes, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
    return service.ask("POST", "/v1/events", "ingest", content=content, headers={**NDJSON, **(headers or {})}, **more)


def test_lines_reach_the_source_as_they_are(service: Service) -> None:
    answer = send(service, EVENTS, {"Idempotency-Key": "batch-1"})
    assert answer.status_code == 200
    assert answer.json() == {"accepted": 2, "rejected": {}}
    sender = service.tokens["ingest"].split("_")[1]
    assert service.receiving.batches == [(sender, "batch-1", EVENTS)]
    send(service, EVENTS[:-1])
    assert service.receiving.batches[1] == (sender, None, EVENTS)


def test_packed_and_arrays_reach_it_as_lines(service: Service) -> None:
    send(service, gzip.compress(EVENTS), {"Content-Encoding": "gzip"})
    events = [json.loads(line) for line in EVENTS.splitlines()]
    send(service, json.dumps(events).encode(), {"Content-Type": "application/json"})
    packed = gzip.compress(json.dumps(events, indent=1).encode())
    send(service, packed, {"Content-Type": "application/json; charset=utf-8", "Content-Encoding": "gzip"})
    for _, _, lines in service.receiving.batches:
        assert [json.loads(line) for line in lines.splitlines()] == events


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (EVENTS, {"Content-Type": "text/plain"}, 415),
        (EVENTS, {"Content-Type": "application/x-ndjsonx"}, 415),
        (EVENTS, {"Content-Type": "multipart/form-data; boundary=x"}, 415),
        (EVENTS, {"Content-Type": ""}, 415),
        (EVENTS, {"Content-Encoding": "br"}, 415),
        (EVENTS, {"Content-Encoding": "gzip"}, 400),
        (EVENTS, {"Content-Type": "application/json"}, 400),
        (b"[" * 1500, {"Content-Type": "application/json"}, 400),
        (b"x" * 2001, {}, 413),
        (gzip.compress(b" " * 1_000_000), {"Content-Encoding": "gzip"}, 413),
        (EVENTS, {"Idempotency-Key": ""}, 400),
        (EVENTS, {"Idempotency-Key": "x" * 201}, 400),
        (EVENTS, {"Idempotency-Key": "two words"}, 400),
    ],
)
def test_what_is_no_batch_is_refused(service: Service, content: bytes, headers: dict[str, str], status: int) -> None:
    answer = send(service, content, headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert not service.receiving.batches


def test_two_ids_are_refused(service: Service) -> None:
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b"), *NDJSON.items(), *service.header("ingest").items()]
    answer = service.during(lambda client: client.post("/v1/events", content=EVENTS, headers=headers))
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BatchConflict("Known id.", "Use another."), 409),
        (ServiceStopping("The service stops.", "Send it again."), 503),
        (StorageFailed("No room (/secret/path).", "Make room.", path="/secret/path"), 507),
        (JournalUnreachable("No answer (secret.example).", "Start it.", path="secret.example"), 503),
    ],
)
def test_what_the_source_refuses_is_told(service: Service, error: Exception, status: int) -> None:
    service.receiving.error = error
    answer = send(service, EVENTS)
    assert answer.status_code == status
    assert "secret" not in answer.text
    assert ("retry-after" in answer.headers) == (status in (503, 507))


def test_nothing_is_taken_while_nobody_publishes(service: Service) -> None:
    for phase in ("starting", "ended", "failed"):
        service.state.phase = phase  # type: ignore[assignment]
        answer = send(service, EVENTS)
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
    assert not service.receiving.batches


def test_who_may_not_send_is_refused_before_a_byte_is_read(service: Service) -> None:
    async def never() -> Any:
        raise AssertionError("the body was read")
        yield b""

    for role, status in (("read", 403), ("enrol", 403), (None, 401)):
        headers = {**NDJSON, **(service.header(role) if role else {})}
        answer = service.during(
            lambda client, sent=headers: client.post("/v1/events", content=never(), headers=sent)  # type: ignore[misc]
        )
        assert answer.status_code == status


def test_events_per_minute_are_counted_before_they_are_taken(tmp_path: Path, journal: Path) -> None:
    service = make_service(tmp_path, journal, events_per_minute=3)
    assert send(service, EVENTS).status_code == 200
    refused = send(service, EVENTS)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 0
    assert len(service.receiving.batches) == 1
