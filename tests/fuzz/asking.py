"""A service without a process, asked with raw bytes: one loop for all calls, and the answer as it went out."""

from __future__ import annotations

import asyncio
import functools
import gzip
import json
from typing import Any, NamedTuple

from tests.fuzz.oracles import check_sentence, own_folder
from tests.support.synthetic import make_journal
from tests.unit.service.service_parts import WALL, Service, make_service
from wevent.service import publishing_thread

HEADERS = ("content-type", "content-encoding", "content-length", "idempotency-key", "accept")
LIMITS = {"max_body_bytes": 2000, "max_batch_bytes": 5000}


class Sent(NamedTuple):
    """What an input asks for: headers, the body as it is sent, and what it was made of."""

    headers: list[tuple[bytes, bytes]]
    body: bytes
    plain: bytes
    piece: int


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


@functools.cache
def service() -> Service:
    folder = own_folder()
    make_journal(folder / "run.journal", users=30).close()
    publishing_thread.wall_clock_us = WALL  # type: ignore[assignment]
    made = make_service(folder, folder / "run.journal", **LIMITS)
    _runner().run(made.context.feed.open())
    return made


@functools.cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner()


def read_input(data: bytes) -> Sent:
    """Lines `name: value`, an empty one, the body; `pack: gzip` packs it, `piece: 7` sends it in pieces."""
    head, _, plain = data.partition(b"\n\n")
    headers, body, piece = [], plain, 4096
    for line in head.split(b"\n"):
        name, _, value = line.partition(b":")
        name, value = name.strip().lower(), value.strip()
        if name == b"pack":
            body = b"".join(gzip.compress(part, 1, mtime=0) for part in plain.split(b"\0\0"))
            plain = plain.replace(b"\0\0", b"")
        elif name == b"piece" and value.isdigit():
            piece = max(1, int(value[:4]))
        elif name.decode("latin-1") in HEADERS and b"\r" not in value and b"\0" not in value:
            headers.append((name, value))
    return Sent(headers, body, plain, piece)


def ask(method: str, path: str, role: str, sent: Sent, *private: str, query: bytes = b"") -> Answer:
    """One call; the status of every refusal is one that is documented, and says one sentence."""
    token = service().tokens[role].encode()
    headers = [*sent.headers, (b"authorization", b"Bearer " + token)]
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    answer = _runner().run(_asked(scope, sent))
    assert answer.status in (200, 400, 404, 413, 415), f"status {answer.status}"
    if answer.status != 200:
        assert answer.headers["content-type"] == "application/problem+json"
        check_sentence(json.loads(answer.body)["detail"], *private)
        assert not any(text.encode() in answer.body for text in private)
    return answer


async def _asked(scope: dict[str, Any], sent: Sent) -> Answer:
    pieces = [sent.body[start : start + sent.piece] for start in range(0, len(sent.body), sent.piece)] or [b""]
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    messages.append({"type": "http.request", "body": b"", "more_body": False})
    waiting, got = iter(messages), []

    async def receive() -> Any:
        return next(waiting, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        got.append(message)

    await service().app(scope, receive, send)
    headers = {name.decode(): value.decode("latin-1") for name, value in got[0]["headers"]}
    return Answer(got[0]["status"], headers, b"".join(message.get("body", b"") for message in got[1:]))
