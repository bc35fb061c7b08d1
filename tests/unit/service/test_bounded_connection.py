"""Connections that send slowly, too much, or never read: each is cut off, and nobody else notices."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import uvicorn

from wevent.service import bounded_connection
from wevent.service.bounded_connection import BoundedProtocol

TIME_S = 0.4
SENT: list[float] = []
"""When a part of an endless answer was taken."""
ENDED: list[float] = []
"""When it turned out that nobody takes it any more."""


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
            SENT.append(time.monotonic())
        ENDED.append(time.monotonic())
        return
    await send({"type": "http.response.body", "body": b"done"})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[int]:
    """Where a server listens whose times are short; a parameter limits its connections."""
    for name in ("HEADER_S", "STALLED_S", "DRAIN_S"):
        monkeypatch.setattr(bounded_connection, name, TIME_S)
    config = uvicorn.Config(
        application,
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        timeout_keep_alive=1,
        limit_concurrency=getattr(request, "param", None),
    )
    server = uvicorn.Server(config)
    bound = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield bound.getsockname()[1]
    server.should_exit = server.force_exit = True
    thread.join(5)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def rest(opened: socket.socket) -> tuple[bytes, float]:
    """What comes until the other side closes, and how long that takes."""
    begun, found = time.monotonic(), b""
    try:
        while piece := opened.recv(65_536):
            found += piece
    except ConnectionResetError:
        pass
    return found, time.monotonic() - begun


def trickle(opened: socket.socket, piece: bytes, seconds: float = 5.0) -> float:
    """Send a piece again and again; how long until that fails."""
    begun = time.monotonic()
    try:
        while time.monotonic() - begun < seconds:
            opened.sendall(piece)
            time.sleep(0.05)
    except OSError:
        pass
    return time.monotonic() - begun


def test_a_request_is_answered_and_the_connection_kept(port: int) -> None:
    with connected(port) as opened:
        for _ in range(3):
            opened.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"done" in opened.recv(4096)
        found, seconds = rest(opened)
        assert not found
        assert seconds < 3  # the keep-alive ends


def test_whoever_says_nothing_is_cut_off(port: int) -> None:
    with connected(port) as opened:
        found, seconds = rest(opened)
        assert not found
        assert seconds < 2


@pytest.mark.slow
def test_headers_that_trickle_are_cut_off(port: int) -> None:
    with connected(port) as opened:
        opened.sendall(b"GET / HTTP/1.1\r\n")
        assert trickle(opened, b"X-Slow: 1\r\n") < 3
    with connected(port) as opened:  # also before the first line, and after a request
        assert trickle(opened, b"\r\n") < 3
    with connected(port) as opened:
        opened.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"done" in opened.recv(4096)
        assert trickle(opened, b"\r\n") < 3


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
        assert rest(opened)[0].startswith(b"HTTP/1.1 431 ")


def test_what_is_no_http_is_refused(port: int) -> None:
    for said in (b"hello there\r\n\r\n", b"GET / HTTP/1.1\r\nBad header\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00"):
        with connected(port) as opened:
            opened.sendall(said)
            assert rest(opened)[0].startswith(b"HTTP/1.1 400 "), said
    for smuggled in (
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    ):
        with connected(port) as opened:
            opened.sendall(smuggled)
            assert b" 200 " not in rest(opened)[0], smuggled


@pytest.mark.slow
def test_what_is_left_of_a_body_has_little_time(port: int) -> None:
    with connected(port) as opened:
        opened.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
        assert b"done" in opened.recv(4096)
        assert trickle(opened, b"x") < 3
    with connected(port) as opened:  # one that comes to its end in time keeps the connection
        opened.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n")
        assert b"done" in opened.recv(4096)
        opened.sendall(b"a body")
        opened.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
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
def test_a_slow_body_that_is_wanted_is_not_cut_off_by_the_connection(port: int) -> None:
    with connected(port) as opened:
        opened.sendall(b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n")
        for _ in range(20):
            opened.sendall(b"x")
            time.sleep(2 * TIME_S / 20)
        assert b"done" in opened.recv(4096)


@pytest.mark.slow
def test_a_reader_that_does_not_read_is_cut_off(port: int) -> None:
    SENT.clear()
    ENDED.clear()
    with connected(port) as opened:
        opened.sendall(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(6 * TIME_S)
        assert len(SENT) < 200  # 13 megabytes: what the system keeps on both sides
        assert len(ENDED) == 1


@pytest.mark.parametrize("port", [3], indirect=True)
def test_connections_beyond_the_limit_are_refused_and_then_dropped(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_connection, "MOST_REFUSED", 2)
    monkeypatch.setattr(bounded_connection, "HEADER_S", 5.0)
    opened = [connected(port) for _ in range(6)]
    time.sleep(0.2)
    assert rest(opened[5]) < (b"", 2.0)
    assert b"503 " in ask(opened[4])
    for one in opened[2:]:
        one.close()
    time.sleep(0.2)
    assert b"200 " in ask(opened[0])
    for one in opened[:2]:
        one.close()


def ask(opened: socket.socket) -> bytes:
    opened.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    return opened.recv(4096)
