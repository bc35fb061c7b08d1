"""The servers that tests use: what another process of the run does at the same time breaks none of them."""

from __future__ import annotations

import socket

import psycopg
import pytest

from tests.support import postgres_server
from tests.support.postgres_server import PostgresServer


def test_a_port_that_somebody_takes_meanwhile_is_left_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = int(other.getsockname()[1])
        found = [taken, postgres_server._free_port()]
        monkeypatch.setattr(postgres_server, "_free_port", lambda: found.pop(0))
        server = PostgresServer()
        try:
            assert server.port != taken
            server.restart("fast")
            with psycopg.connect(server.url()) as connection:
                assert connection.execute("SHOW port").fetchone() == (str(server.port),)
        finally:
            server.remove()


def test_a_server_that_cannot_start_for_another_reason_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    free = postgres_server._free_port
    asked: list[int] = []
    monkeypatch.setattr(postgres_server, "_free_port", lambda: asked.append(1) or free())  # type: ignore[func-returns-value]
    with pytest.raises(RuntimeError, match="pg_ctl failed"):
        PostgresServer({"shared_buffers": "nonsense"})
    assert len(asked) == 1
