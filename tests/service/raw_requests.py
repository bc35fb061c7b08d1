"""Requests as bytes, for what no HTTP library would send."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from tests.service.serving_process import Service
from tests.support.commands import PATIENCE_S


class Outcome(NamedTuple):
    """What became of a connection.

    Attributes:
        statuses: of the answers that came.
        text: all that came.
        is_closed: whether the other side closed it.
    """

    statuses: list[int]
    text: bytes
    is_closed: bool


def connect(service: Service) -> socket.socket:
    """A connection."""
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE_S)


def exchange(service: Service, *parts: bytes, half_close: bool = False, wanted: int = 1) -> Outcome:
    """Send bytes, then read until the other side closes, or so many answers have come."""
    sent = False
    with connect(service) as opened:
        with suppress(ConnectionError):  # closed before all of it was sent
            for part in parts:
                opened.sendall(part)
            sent = True
        if half_close and sent:
            with suppress(OSError):
                opened.shutdown(socket.SHUT_WR)
        text, is_closed = b"", False
        try:
            while len(answers(text)) < wanted:
                piece = opened.recv(1 << 16)
                is_closed = not piece
                if is_closed:
                    break
                text += piece
        except ConnectionError:
            is_closed = True
        return Outcome(answers(text), text, is_closed)


def answers(text: bytes) -> list[int]:
    """The statuses of answers whose heads are whole, without those that only say to go on."""
    heads = re.findall(rb"HTTP/1\.1 (\d{3})[^\r]*\r\n(?:[^\r]+\r\n)*\r\n", text)
    return [int(status) for status in heads if status != b"100"]


def head(method: str, target: str, token: str | None = None, *more: str) -> bytes:
    """The head of a request; the connection is closed after its answer."""
    lines = [f"{method} {target} HTTP/1.1", "Host: service", "Connection: close", *more]
    if token is not None:
        lines.append(f"Authorization: Bearer {token}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def chunks(pieces: Iterable[bytes]) -> list[bytes]:
    """A body in chunks."""
    return [*(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces), b"0\r\n\r\n"]
