"""Bodies of POST /v1/events: what reaches the source is what was sent, element for element, or nothing of it."""

from __future__ import annotations

import json

from tests.fuzz.asking import LIMITS, Sent, ask, read_input, service
from tests.fuzz.oracles import MARKER

SEEDS = (
    b'content-type: application/x-ndjson\nidempotency-key: one\n\n{"user":"Zq7Marker","cell":2}\n{"user":"2","cell":0}',
    b'content-type: application/json\n\n[{"user":"1","cell":2},{"user":"Zq7Marker",\n"cell":0}]',
    b"content-type: application/json; charset=utf-8\ncontent-encoding: gzip\npack: gzip\n\n"
    b'[{"a":\0\0"\\ud800"}, 1.50, "\\n"]',
    b"content-type: application/x-ndjson\ncontent-encoding: gzip\npack: gzip\npiece: 7\n\n{}\n\0\0{}\n",
    b"content-type: application/x-ndjson\ncontent-encoding: br\ncontent-length: 99999999999999999999\n\nx",
    b"content-type: application/json\ncontent-encoding: gzip\n\n\x1f\x8b\x08\0\0\0\0\0",
)
WORDS = (
    b"content-type: ",
    b"application/json",
    b"application/x-ndjson",
    b"content-encoding: gzip",
    b"pack: gzip",
    b"[]",
    b'"\\u',
)


def check(data: bytes) -> None:
    sent = read_input(data)
    batches = service().receiving.batches
    batches.clear()
    answer = ask("POST", "/v1/events", "ingest", sent, MARKER)
    if answer.status != 200:
        assert not batches, "a part of what was refused was taken"
        return
    ((_, batch, lines),) = batches
    keys = [value for name, value in sent.headers if name == b"idempotency-key"]
    assert [batch] == ([key.decode() for key in keys] or [None])
    assert len(sent.body) <= LIMITS["max_body_bytes"]
    assert len(sent.plain) <= LIMITS["max_batch_bytes"]
    _check_lines(sent, lines)


def _check_lines(sent: Sent, lines: bytes) -> None:
    types = [value for name, value in sent.headers if name == b"content-type"]
    if not types[0].lower().startswith(b"application/json"):
        assert lines == (sent.plain + b"\n" if sent.plain and not sent.plain.endswith(b"\n") else sent.plain)
        return
    assert lines.endswith(b"\n") or not lines
    array = b"[" + lines[:-1].replace(b"\n", b",") + b"]"
    assert array.translate(None, b" \t\r\n\0") == sent.plain.translate(None, b" \t\r\n\0"), "something was lost"
    try:
        wanted = json.loads(sent.plain, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError):
        return  # an element that cannot be decoded is refused as an event when it is read
    found = [json.loads(line, parse_float=str, parse_int=str, parse_constant=str) for line in lines.splitlines()]
    assert found == wanted, "other elements were taken"
