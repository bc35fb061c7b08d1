"""Limits per caller and ends of access, in a real service: places in the stream, revoked tokens, addresses."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.service.raw_requests import connect
from tests.service.serving_process import Service
from tests.support.commands import wait_for
from wevent.service.feed import MAX_READERS_OF_CALLER

PATIENCE_S = 90.0  # a heartbeat comes every 15 seconds
PEOPLE = [(f"person-{number}", 4, 0.5) for number in range(20)]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path / "service", PEOPLE, slot="1s", service={"public": True})
    yield made
    made.close()


def open_stream(service: Service, token: str | None = None) -> tuple[socket.socket, int]:
    """A connection that asked for the stream, and the status of the answer."""
    opened = connect(service)
    opened.settimeout(PATIENCE_S)
    sent = f"Authorization: Bearer {token}\r\n" if token else ""
    opened.sendall(f"GET /v1/releases/stream HTTP/1.1\r\nHost: x\r\n{sent}\r\n".encode())
    return opened, int(opened.recv(65_536).split()[1])


def test_one_caller_leaves_places_to_others(service: Service) -> None:
    service.start()
    greedy, other = service.token("read"), service.token("read")
    with ExitStack() as stack:
        streams = [open_stream(service, greedy) for _ in range(MAX_READERS_OF_CALLER + 1)]
        for opened, _ in streams:
            stack.enter_context(opened)
        assert [status for _, status in streams] == [200] * MAX_READERS_OF_CALLER + [429]
        for token in (other, None):
            opened, status = open_stream(service, token)
            stack.enter_context(opened)
            assert status == 200
        streams[0][0].close()

        def has_place() -> bool:
            opened, status = open_stream(service, greedy)
            stack.enter_context(opened)
            return status == 200

        wait_for(has_place, "the place of a stream that was closed")


def test_a_stream_ends_when_its_token_is_revoked_or_its_link_is_ended(service: Service) -> None:
    service.start()
    made, link = service.tokens.create(["read"]), service.link("person-1")
    streams = [open_stream(service, text)[0] for text in (made.text, link)]
    kept, _ = open_stream(service)
    service.tokens.revoke(made.record.id)
    service.tokens.end_links("person-1")
    with kept:
        for opened in streams:
            with opened:
                assert is_ended(opened)
        assert kept.recv(65_536), "nobody else's stream ends"


def is_ended(opened: socket.socket) -> bool:
    """Whether the other side closes a connection within some time, whatever it sends until then."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if not opened.recv(65_536):
            return True
    return False


@pytest.mark.parametrize("environment", ["*", "127.0.0.0/8"])
def test_the_environment_does_not_say_whose_addresses_are_believed(tmp_path: Path, environment: str) -> None:
    limits = {"public": True, "requests_per_minute": 5}
    service = Service(tmp_path / "service", PEOPLE, slot="1h", service=limits)
    service.start(told={"FORWARDED_ALLOW_IPS": environment})
    try:
        assert 429 in {ask_as(service, "127.0.0.2", f"10.0.0.{number}") for number in range(30)}
        assert {ask_as(service, "127.0.0.1", f"10.0.0.{number}") for number in range(30)} == {200}
    finally:
        service.close()


def ask_as(service: Service, address: str, forwarded: str) -> int:
    """The status of a call from an address of this machine that says to come for another one."""
    place = urlsplit(service.url)
    asking = http.client.HTTPConnection(place.hostname, place.port, timeout=60, source_address=(address, 0))
    try:
        asking.request("GET", "/v1/about", headers={"X-Forwarded-For": forwarded})
        return asking.getresponse().status
    finally:
        asking.close()
