"""Bodies: bounded as sent and unpacked, in time, and split into lines without being looked into."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
import zlib

import msgspec
import pytest
from fastapi import Request

from wevent.schemas import RequirementBody
from wevent.service import request_body
from wevent.service.problems import RequestError
from wevent.service.request_body import (
    JSON,
    NDJSON,
    MemoryBudget,
    decoded,
    event_lines,
    media_type,
    read_body,
    unpacked,
)


def request(*pieces: bytes, wait_s: float = 0.0, **headers: str) -> Request:
    """A request whose body comes in pieces."""
    left = list(pieces)

    async def receive() -> dict[str, object]:
        await asyncio.sleep(wait_s)
        return {"type": "http.request", "body": left.pop(0) if left else b"", "more_body": bool(left)}

    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": named}, receive)


def read(asked: Request, *limits: int) -> bytes:
    return asyncio.run(read_body(asked, *limits))


def refusal(call: object) -> int:
    with pytest.raises(RequestError) as refused:
        call()  # type: ignore[operator]
    return refused.value.status


def test_a_body_is_put_together() -> None:
    assert read(request(b"one ", b"two")) == b"one two"
    assert read(request()) == b""
    assert read(request(gzip.compress(b"packed"), content_encoding="GZIP")) == b"packed"
    assert read(request(b"plain", content_encoding="identity")) == b"plain"


def test_one_that_is_too_long_is_not_read_to_its_end() -> None:
    limits = 10, 100
    assert refusal(lambda: read(request(b"x" * 6, b"x" * 6), *limits)) == 413
    assert refusal(lambda: read(request(b"never read", content_length="11"), *limits)) == 413
    assert refusal(lambda: read(request(b"", content_length="9" * 5000), *limits)) == 413
    assert read(request(b"x" * 10, content_length="10"), *limits) == b"x" * 10


def test_all_bodies_share_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_body, "BODY_BYTES", 100)
    memory = MemoryBudget()

    async def act() -> list[int]:
        found = []
        with memory.allocation() as take:
            await read_body(request(b"x" * 60), 1000, 1000, take)
            for body in (b"x" * 60, b"x" * 40):
                with memory.allocation() as other:
                    try:
                        found.append(len(await read_body(request(body), 1000, 1000, other)))
                    except RequestError as refused:
                        found.append(refused.status)
        with memory.allocation() as take:  # it is free again
            packed = request(gzip.compress(b"x" * 60), content_encoding="gzip")
            found.append(len(await read_body(packed, 1000, 1000, take)))
        return found

    assert asyncio.run(act()) == [503, 40, 60]


def test_one_that_comes_too_slowly_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_body, "BODY_S", 0.1)
    slow = request(*[b"x"] * 100, wait_s=0.02)
    assert refusal(lambda: read(slow)) == 408


def test_a_packing_is_stated_and_is_gzip() -> None:
    with pytest.raises(RequestError, match="Send Content-Encoding: gzip with it"):
        read(request(gzip.compress(b"packed")))
    for encoding in ("br", "deflate", "gzip, gzip", "zstd"):
        assert refusal(lambda: read(request(b"x", content_encoding=encoding))) == 415  # noqa: B023


def test_a_bomb_is_never_unpacked_beyond_the_limit() -> None:
    bomb = gzip.compress(b"0" * 50_000_000)
    tracemalloc.start()
    try:
        assert refusal(lambda: unpacked(bomb, 1000)) == 413
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert refusal(lambda: unpacked(gzip.compress(b"0" * 800) * 2, 1000)) == 413
    assert unpacked(gzip.compress(b"0" * 500) * 2, 1000) == b"0" * 1000


def test_what_is_no_gzip_is_refused() -> None:
    good = gzip.compress(b"events")
    for bad in (b"plain", good[:-1], good[:-4] + b"0000", good + b"rest", zlib.compress(b"x"), gzip.compress(b"") * 65):
        assert refusal(lambda: unpacked(bad, 1000)) == 400  # noqa: B023


def test_every_element_of_an_array_becomes_a_line() -> None:
    events = [{"user": "a\nb", "cell": [1, 2]}, 5, "text", None, {"x": {"y": "ä"}}]
    for indent in (None, 2):
        lines = event_lines(json.dumps(events, indent=indent).encode(), JSON)
        assert [json.loads(line) for line in lines.splitlines()] == events
        assert lines.count(b"\n") == len(events)
    assert event_lines(b"[]", JSON) == b""


def test_a_body_that_is_no_array_is_refused() -> None:
    for bad in (b"", b"{}", b"[1", b"[1] 2", b"[" * 100_000, b'[{"a":' * 5000, b"\xff", b'["]'):
        assert refusal(lambda: event_lines(bad, JSON)) == 400  # noqa: B023


def test_a_small_body_means_what_it_says_or_is_refused() -> None:
    assert decoded(b'{"level":"High/Small"}', RequirementBody).level == "High/Small"
    for bad in (b"", b"[]", b'{"levle":"x"}', b'{"level":5}', b'{"window":[]}', b'{"epsilon":1e999}', b"[" * 50_000):
        assert refusal(lambda: decoded(bad, RequirementBody)) == 400  # noqa: B023
    assert msgspec.json.encode(RequirementBody()) == b"{}"


def test_the_type_of_a_body_is_said() -> None:
    assert media_type({"content-type": "Application/JSON; charset=utf-8"}, NDJSON, JSON) == JSON
    for headers in ({}, {"content-type": ""}, {"content-type": "text/plain"}):
        assert refusal(lambda: media_type(headers, JSON)) == 415  # noqa: B023
