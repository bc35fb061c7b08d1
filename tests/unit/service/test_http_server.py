"""Connections that send slowly, too much, or never read: each is cut off, and nobody else notices."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import uvicorn

from tests.support.commands import PATIENCE_S, wait_for
from wevent.service import server as service_server
from wevent.service.server import BoundedProtocol

TIME_S = 0.4
NEVER_S = 10 * PATIENCE_S
SENT: list[int] = []
"""Parts of an endless answer that were taken."""
ENDED: list[int] = []
"""That it turned out that nobody takes it any more."""
SERVERS: list[uvicorn.Server] = []
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def within(**limits: float) -> pytest.MarkDecorator:
    """A server with these limits; all others are such that no test comes to them."""
    return pytest.mark.parametrize("port", [limits], indirect=True, ids=[" ".join(limits)])


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answers at once, or reads the whole body first, or sends without end."""
    if scope["path"] == "/read":
        while (await receive()).get("more_body"):
            pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/endless":
        await receive()  # the request itself
        gone = asyncio.create_task(receive())
        while not gone.done():
            await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
            SENT.append(1)
        ENDED.append(1)
        return
    await send({"type": "http.response.body", "body": b"done"})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[int]:
    """Where a server listens; its limits are those of `within`."""
    given = {"HEADER_S": NEVER_S, "STALLED_S": NEVER_S, "DRAIN_S": NEVER_S, **getattr(request, "param", {})}
    keep_alive, most = given.pop("keep_alive", NEVER_S), given.pop("most", None)
    for name, limit in given.items():
        monkeypatch.setattr(service_server, name, limit)
    config = uvicorn.Config(
        application,
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        timeout_keep_alive=keep_alive,
        limit_concurrency=most,
    )
    server = uvicorn.Server(config)
    SERVERS[:] = [server]
    bound = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    wait_for(lambda: server.started, "the server")
    yield bound.getsockname()[1]
    server.should_exit = server.force_exit = True
    thread.join(PATIENCE_S)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


def answered(port: int, request: bytes) -> socket.socket:
    """A connection over which a request was answered: the first that is in time, where requests have little time."""
    found: list[socket.socket] = []

    def ask_again() -> bool:
        opened = connected(port)
        with suppress(OSError):
            opened.sendall(request)
            if b"done" in opened.recv(4096):
                found.append(opened)
                return True
        opened.close()
        return False

    wait_for(ask_again, "an answer")
    return found[0]


def rest(opened: socket.socket) -> bytes:
    """What comes until the other side closes."""
    found = b""
    with suppress(ConnectionResetError):
        while piece := opened.recv(65_536):
            found += piece
    return found


def is_cut_off(opened: socket.socket, piece: bytes) -> bool:
    """Send a piece again and again until that fails."""
    begun = time.monotonic()
    with suppress(OSError):
        while time.monotonic() - begun < PATIENCE_S:
            opened.sendall(piece)
            time.sleep(0.05)
        return False
    return True


def test_a_request_is_answered_and_the_connection_kept(port: int) -> None:
    with connected(port) as opened:
        for _ in range(3):
            opened.sendall(GET)
            assert b"done" in opened.recv(4096)


@within(keep_alive=1)
def test_a_connection_without_a_further_request_ends(port: int) -> None:
    with answered(port, GET) as opened:
        assert not rest(opened)


@within(HEADER_S=TIME_S)
def test_whoever_says_nothing_is_cut_off(port: int) -> None:
    with connected(port) as opened:
        assert not rest(opened)


@pytest.mark.slow
@within(HEADER_S=TIME_S)
def test_headers_that_trickle_are_cut_off(port: int) -> None:
    with connected(port) as opened:
        opened.sendall(b"GET / HTTP/1.1\r\n")
        assert is_cut_off(opened, b"X-Slow: 1\r\n")
    with connected(port) as opened:  # also before the first line, and after a request
        assert is_cut_off(opened, b"\r\n")
    with answered(port, GET) as opened:
        assert is_cut_off(opened, b"\r\n")


@pytest.mark.parametrize(
    "request_head",
    [
        b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 100_000,
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 70_000 + b"\r\n\r\n",
    ],
)
def test_headers_that_are_too_long_are_refused(port: int, request_head: bytes) -> None:
    with connected(port) as opened:
        opened.sendall(request_head)
        assert_problem(rest(opened), 431)


@within(HEADER_S=TIME_S)
@pytest.mark.parametrize("begin", [b"G", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_headers_that_do_not_come_are_told_so(port: int, begin: bytes) -> None:
    with connected(port) as opened:
        opened.sendall(begin)
        assert_problem(rest(opened), 408)


def test_two_hosts_are_refused(port: int) -> None:
    for hosts in (b"Host: x\r\nHost: y", b"Host: x\r\nhost: x", b"HOST: x\r\nA: b\r\nHost:"):
        with connected(port) as opened:
            opened.sendall(b"GET / HTTP/1.1\r\n" + hosts + b"\r\n\r\n")
            assert_problem(rest(opened), 400)


@pytest.mark.parametrize("path", [b"/", b"/read"])
def test_a_body_that_is_no_http_is_refused(port: int, path: bytes) -> None:
    with connected(port) as opened:
        opened.sendall(b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n")
        assert_problem(rest(opened), 400)


def test_garbage_behind_a_request_is_no_part_of_its_answer(port: int) -> None:
    with connected(port) as opened:
        opened.sendall(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        found = opened.recv(65_536)
        opened.sendall(b"no HTTP\r\n\r\n")
        found += rest(opened)
        assert found.startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 400" not in found


def assert_problem(text: bytes, status: int) -> None:
    """An answer is one whole problem document with the headers of all answers."""
    head, _, body = text.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert first.startswith(f"HTTP/1.1 {status} ")
    assert headers["content-type"] == "application/problem+json"
    assert headers["connection"] == "close"
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert int(headers["content-length"]) == len(body)
    told = json.loads(body)
    assert (told["status"], told["type"]) == (status, "about:blank")
    assert told["detail"].count(". ") == 1


def test_what_is_no_http_is_refused(port: int) -> None:
    for said in (b"hello there\r\n\r\n", b"GET / HTTP/1.1\r\nBad header\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00"):
        with connected(port) as opened:
            opened.sendall(said)
            assert_problem(rest(opened), 400)
    for smuggled in (
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    ):
        with connected(port) as opened:
            opened.sendall(smuggled)
            assert b" 200 " not in rest(opened), smuggled


@pytest.mark.slow
@within(DRAIN_S=TIME_S)
def test_what_is_left_of_a_body_has_little_time(port: int) -> None:
    with answered(port, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n") as opened:
        assert is_cut_off(opened, b"x")


def test_what_is_left_of_a_body_and_comes_in_time_keeps_the_connection(port: int) -> None:
    with answered(port, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n") as opened:
        opened.sendall(b"a body")
        opened.sendall(GET)
        assert b"done" in opened.recv(4096)


@pytest.mark.parametrize("behind", [b"0\r\nX: ", b"5;x="])
@pytest.mark.parametrize("path", [b"/", b"/read"])
def test_what_comes_beside_the_body_is_bounded(port: int, path: bytes, behind: bytes) -> None:
    with connected(port) as opened:
        opened.sendall(b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + behind)
        sent = 0
        with suppress(OSError):
            while sent < 1 << 27:
                sent += opened.send(b"x" * (1 << 16))
        assert sent < 1 << 24  # what the system keeps on both sides


def test_small_chunks_and_a_few_headers_behind_them_are_fine(port: int) -> None:
    with connected(port) as opened:
        opened.sendall(b"POST /read HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        opened.sendall(b"1;some=thing\r\nx\r\n" * 20_000 + b"0\r\nX-Sum: 1\r\n\r\n")
        assert b"done" in opened.recv(4096)


@pytest.mark.slow
@within(HEADER_S=TIME_S, STALLED_S=TIME_S, DRAIN_S=TIME_S)
def test_a_slow_body_that_is_wanted_is_not_cut_off_by_the_connection(port: int) -> None:
    def is_read() -> bool:
        """Not if the head came too late, on a busy machine."""
        with connected(port) as opened, suppress(OSError):
            opened.sendall(b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n")
            for _ in range(20):
                opened.sendall(b"x")
                time.sleep(2 * TIME_S / 20)
            return b"done" in opened.recv(4096)
        return False

    wait_for(is_read, "an answer")


@pytest.mark.slow
@within(STALLED_S=TIME_S)
def test_a_reader_that_does_not_read_is_cut_off(port: int) -> None:
    SENT.clear()
    ENDED.clear()
    with connected(port) as opened:
        opened.sendall(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for(lambda: len(ENDED) == 1, "the end of the answer")
        assert len(SENT) < 200  # 13 megabytes: what the system keeps on both sides


@within(most=3)
def test_connections_beyond_the_limit_are_refused_and_then_dropped(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_server, "MAX_REFUSED", 2)
    opened = [connected(port) for _ in range(6)]
    assert not rest(opened[5])
    opened[3].sendall(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
    head = rest(opened[3])
    assert head.startswith(b"HTTP/1.1 503 ")
    assert head.endswith(b"\r\n\r\n")
    opened[4].sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert_problem(refused := rest(opened[4]), 503)
    assert b"retry-after: 5\r\n" in refused
    for one in opened[2:]:
        one.close()
    wait_for(lambda: len(SERVERS[0].server_state.connections) == 2, "the others to go")
    assert b"200 " in ask(opened[0])
    for one in opened[:2]:
        one.close()


def ask(opened: socket.socket) -> bytes:
    opened.sendall(GET)
    return opened.recv(4096)
