"""A real HTTP server on loopback that answers as a test scripts it: also by hanging up."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def plain(self) -> bytes:
        """The body without its compression."""
        return gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body


@dataclass(frozen=True)
class Answer:
    """What comes back; `hang_up`: nothing, or nothing more than the pieces given."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    pieces: Sequence[bytes] = ()
    hang_up: bool = False

    @staticmethod
    def json(value: Any, status: int = 200, **headers: str) -> Answer:
        kind = "application/json" if status < 400 else "application/problem+json"
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return Answer(status, json.dumps(value).encode(), {"content-type": kind, **named})

    @staticmethod
    def problem(status: int, detail: str, **headers: str) -> Answer:
        problem = {"type": "about:blank", "title": "A title", "status": status, "detail": detail}
        return Answer.json(problem, status, **headers)


HANG_UP = Answer(hang_up=True)


class ScriptedServer:
    """Answers one request after another from a list; the last answer stays.

    Attributes:
        asked: every request, in order.
    """

    def __init__(self, answers: Sequence[Answer] | Callable[[Asked], Answer]) -> None:
        self._left = list(answers) if not callable(answers) else []
        self._choose = answers if callable(answers) else None
        self._lock = threading.Lock()
        self.asked: list[Asked] = []
        self.url = ""

    def answer(self, asked: Asked) -> Answer:
        with self._lock:
            self.asked.append(asked)
            if self._choose is not None:
                return self._choose(asked)
            return self._left.pop(0) if len(self._left) > 1 else self._left[0]


@contextmanager
def scripted(*answers: Answer, choose: Callable[[Asked], Answer] | None = None) -> Iterator[ScriptedServer]:
    """A server with these answers, for the time of a block."""
    script = ScriptedServer(choose or answers)
    server = _Server(("127.0.0.1", 0), _handler(script))
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a client may still hold its connection

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is none of ours."""


def _handler(script: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = script.answer(Asked(self.command, self.path, headers, body))
            if answer.hang_up and not answer.pieces:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.pieces:
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                for piece in answer.pieces:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
                if answer.hang_up:
                    self.close_connection = True
                else:
                    self.wfile.write(b"0\r\n\r\n")
            else:
                self.send_header("content-length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

        def log_message(self, *args: Any) -> None:
            pass

    for method in ("GET", "POST", "PUT", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.handle_any)
    return Handler
