"""Whatever is sent, the answer is a refusal or a closed connection, before any time is over: no error of the service, no room
taken, and whoever asks next is served."""

from __future__ import annotations

import functools
import gzip
import json
import re
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.service.raw_requests import Outcome, chunks, connect, exchange, head
from tests.service.serving_process import WITNESSED, Service, event_line
from tests.support.commands import PATIENCE_S

HASTE_S = 1.0  # instead of the 10 and 30 seconds that headers and bodies have
NEVER_S = 10 * PATIENCE_S  # no refusal is due to a time that is over
BODY, BATCH = 1 << 20, 4 << 20  # the limits
JSON, NDJSON = "application/json", "application/x-ndjson"
MIB = 1 << 20


class Target(NamedTuple):
    """A service, and a token for everything."""

    service: Service
    token: str


def served(folder: Path, within_s: float) -> Iterator[Target]:
    """A service whose connections have so much time for everything."""
    people = [(f"person-{number}", 4, 0.5) for number in range(50)]
    limits = {"max_body_bytes": BODY, "max_batch_bytes": BATCH}
    service = Service(folder / "service", people, slot="1h", service=limits)
    token = service.token("admin")
    service.start("--log", "debug", module=WITNESSED, told={"WEVENT_HASTE": str(within_s)})
    yield Target(service, token)
    service.close()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    yield from served(tmp_path_factory.mktemp("hostile"), NEVER_S)


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    yield from served(tmp_path_factory.mktemp("hasty"), HASTE_S)


@pytest.fixture(autouse=True)
def _stays_well(request: pytest.FixtureRequest) -> Iterator[None]:
    """After every test: alive, no error in the log, no more memory than before."""
    target: Target = request.getfixturevalue("hasty" if "hasty" in request.fixturenames else "target")
    before = target.service.memory_kib()
    yield
    assert httpx.get(target.service.url + "/healthz", timeout=PATIENCE_S).json() == {"status": "ok"}
    log = target.service.log
    assert "Traceback" not in log
    assert " failed, " not in log
    assert not re.search(r"wevent\.service: .* 5\d\d$", log, re.MULTILINE)
    assert target.service.memory_kib() - before < 160 * 1024
    assert target.service.memory_kib("VmHWM") < 400 * 1024


def is_refused(outcome: Outcome, *statuses: int) -> bool:
    """A refusal, or a closed connection."""
    wanted = statuses or range(400, 500)
    return all(status in wanted for status in outcome.statuses) if outcome.statuses else outcome.is_closed


def post(target: Target, body: Any, kind: str = NDJSON, **headers: str) -> httpx.Response:
    """A batch of events."""
    with target.service.asker(target.token) as client:
        return client.post("/v1/events", content=body, headers={"Content-Type": kind, **headers})


def event(**changes: object) -> bytes:
    return event_line("person-1", 1, **changes)  # type: ignore[arg-type]


@functools.cache
def bomb() -> bytes:
    """Much in little; made when it is needed."""
    return gzip.compress(bytes(128 * MIB), 9)


BODIES: dict[str, tuple[int, Any, str, dict[str, str]]] = {
    "declared too long": (413, b"x" * (BODY + 1), NDJSON, {}),
    "too long in chunks": (413, [b"x" * 65_536] * 40, NDJSON, {}),
    "many lines that are no events": (200, b"{}\n" * 300_000, NDJSON, {}),
    "many elements that are no events": (200, b"[" + b"1," * 500_000 + b"1]", JSON, {}),
    "a comma bomb": (200, b"[" + b"," * 500_000 + b"]", JSON, {}),
    "a bomb": (413, bomb, NDJSON, {"Content-Encoding": "gzip"}),
    "a bomb in a bomb": (200, lambda: gzip.compress(bomb()), NDJSON, {"Content-Encoding": "gzip"}),
    "many bombs": (413, gzip.compress(bytes(MIB)) * 60, NDJSON, {"Content-Encoding": "gzip"}),
    "many parts": (400, gzip.compress(b"") * 100, NDJSON, {"Content-Encoding": "gzip"}),
    "a bomb of lines": (200, gzip.compress(b"\n" * BATCH), NDJSON, {"Content-Encoding": "gzip"}),
    "deep": (400, b"[" * 900_000, JSON, {}),
    "deep and whole": (200, b"[" * 200_000 + b"]" * 200_000, JSON, {}),
    "deep in an event": (200, b'[{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}]", JSON, {}),
    "deep, over lines": (200, b"[\n" + b"[" * 200_000 + b"]" * 200_000 + b"]", JSON, {}),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name: str, target: Target) -> None:
    status, body, kind, headers = BODIES[name]
    made = body() if callable(body) else iter(body) if isinstance(body, list) else body
    answer = post(target, made, kind, **headers)
    assert answer.status_code == status, answer.text
    if status != 200:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == status
        assert re.fullmatch(r"[^.]+\. .+\.", answer.json()["detail"])


LINES = {
    b"[" * 900_000: "no_record",
    b'{"a":' * 150_000: "no_record",
    b'{"time":1,"user":1,"cell":1,"x":' + b"[" * 100 + b"]" * 100 + b"}": "no_record",
    b"\x00": "no_record",
    b"\xff\xfe": "no_record",
    b'"text"': "no_record",
    b'{"time":%d,"user":"\\ud800","cell":1}': "no_record",
    b'{"time":%d,"user":"\\u0000","cell":1}': "no_user",
    b'{"time":%d,"user":"' + b"x" * 300 + b'","cell":1}': "no_user",
    b'{"time":%d,"user":"' + "ü".encode() * 200 + b'","cell":1}': "no_user",
    b'{"time":%d,"user":"","cell":1}': "no_user",
    b'{"time":%d,"user":{},"cell":1}': "no_record",
    b'{"time":%d,"user":1,"cell":"' + b"x" * 300 + b'"}': "no_cell",
    b'{"time":%d,"user":1,"cell":1e400}': "no_record",
    b'{"time":%d,"user":1,"cell":99999999999999999999}': "unknown_cell",
    b'{"time":1e308,"user":1,"cell":1}': "no_time",
    b'{"time":99999999999999999999,"user":1,"cell":1}': "after",
    b'{"time":-99999999999999999999,"user":1,"cell":1}': "before",
    b'{"time":"yesterday","user":1,"cell":1}': "no_time",
    b'{"time":NaN,"user":1,"cell":1}': "no_record",
}


ELEMENTS = {
    **{line: reason for line, reason in LINES.items() if line.count(b"[") == line.count(b"]") and b'"a":' not in line},
    b'{"time":NaN,"user":"a\nb","cell":1}': "no_record",
    b'{"time":%d,"user":"a\tb","cell":1}': "no_record",
    b'{"time":%d,"user":"' + b"," * 500_000 + b'","cell":1}': "no_user",
    b'{"time":%d,"user":' + b"[" * 1000 + b"]" * 1000 + b',"cell":1}': "no_record",
    b'{"time":Infinity,"user":1,"cell":1}': "no_record",
    b'{"time":%d,"user":"\xff","cell":1}': "no_record",
    b"null": "no_record",
    b"17": "no_record",
    b"{]": "no_record",
}
"""What is one rejected record in a JSON array; there, quotes and brackets must balance."""


def test_elements(target: Target) -> None:
    """In an array an element that cannot be decoded is one rejected record, and the others are taken."""
    for element, reason in ELEMENTS.items():
        made = element.replace(b"%d", b"%d" % time.time())
        body = b"[" + event(extra=1).strip() + b",\n " + made + b", " + event(extra=2).strip() + b"]"
        answer = post(target, body, JSON)
        assert answer.json() == {"accepted": 2, "rejected": {reason: 1}}, element[:80]


def test_millions_of_elements_are_cheap(target: Target) -> None:
    """A few kilobytes that stand for 1.6 million numbers take no more room than any other batch of these bytes."""
    before = target.service.memory_kib("VmHWM")
    packed = gzip.compress(b"[" + b",".join([b"1"] * 1_600_000) + b"]", 9)
    for _ in range(3):
        answer = post(target, packed, JSON, **{"Content-Encoding": "gzip"})
        assert answer.json() == {"accepted": 0, "rejected": {"no_record": 1_600_000}}
    assert target.service.memory_kib("VmHWM") - before < 96 * 1024


def test_lines(target: Target) -> None:
    """Each is one event that is not accepted, for its reason; those around it are."""
    for line, reason in LINES.items():
        made = line.replace(b"%d", b"%d" % time.time())
        answer = post(target, event(extra=1) + made + b"\n" + event(extra=2))
        assert answer.json() == {"accepted": 2, "rejected": {reason: 1}}, line[:80]
    odd = ("😀", "\u202e", "a\tb", "../../etc", "' OR 1=1 --", "<script>", "0" * 200, 10**40)
    answer = post(target, b"".join(event_line(user, 1) for user in odd))
    assert answer.json() == {"accepted": len(odd), "rejected": {}}


HEADS = {
    "nothing": b"\r\n" * 100 + b"\x00",
    "no HTTP": b"hello\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/9": b"GET /healthz HTTP/9.9\r\n\r\n",
    "two lengths": b"POST /v1/events HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    "a length and chunks": b"POST /v1/events HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a length below 0": b"POST /v1/events HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    "a length beyond all": b"POST /v1/events HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    "a length with a sign": b"POST /v1/events HTTP/1.1\r\nContent-Length: +5\r\n\r\nhello",
    "chunks of no number": b"POST /v1/events HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    "a chunk beyond all": b"POST /v1/events HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n",
    "another transfer": b"POST /v1/events HTTP/1.1\r\nTransfer-Encoding: gzip, identity\r\n\r\n",
    "a header without a colon": b"GET /v1/about HTTP/1.1\r\nHost\r\n\r\n",
    "a folded header": b"GET /v1/about HTTP/1.1\r\nHost: x\r\n y\r\n\r\n",
    "a NUL in a header": b"GET /v1/about HTTP/1.1\r\nHost: x\0y\r\n\r\n",
    "a bare return": b"GET /v1/about HTTP/1.1\rHost: x\r\n\r\n",
    "many headers": b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 500 + b"\r\n",
    "a long header": b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
    "a header without end": b"GET /healthz HTTP/1.1\r\nX: " + b"x" * (4 * MIB),
    "a path without end": b"GET /" + b"x" * (4 * MIB),
    "another method": b"BREW /v1/about HTTP/1.1\r\nHost: x\r\n\r\n",
    "a tunnel": b"CONNECT elsewhere:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    "two hosts": b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    "two tokens": b"GET /v1/about HTTP/1.1\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
}


@pytest.mark.parametrize("name", HEADS)
def test_heads(name: str, target: Target) -> None:
    outcome = exchange(target.service, HEADS[name])
    assert is_refused(outcome, 400, 401, 405, 431)
    assert len(outcome.statuses) <= 1
    assert not outcome.statuses or b"content-type: application/problem+json\r\n" in outcome.text


PATHS = (
    *("/%2e%2e/run.journal", "/..%2frun.journal", "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py"),
    *(
        "/static/%2e%2e%2f%2e%2e%2fapp.py",
        "/static/..%5capp.py",
        "/static//etc/passwd",
        "/static/%00",
        "/static/a%00.js",
    ),
    *("/static/" + "a" * 5000, "//v1/about", "/v1//about", "/v1/about/", "/V1/ABOUT", "/v1/about%00", "/v1/%61bout/x"),
    *("/run.journal", "/run.journal.tokens", "/wevent.toml", "/v1/users//requirement", "/v1/users/a/b/requirement"),
    *(
        "/v1/users/%00/requirement",
        "/v1/users/%ff",
        "/v1/users/%ed%a0%80",
        "/v1/users/..",
        "/v1/users/%2e%2e/requirement",
    ),
    *("/v1/users/" + "a" * 4000, "/v1/users/%F0%9F%98%80", "/v1/users/person-1%2Frequirement", "/v1/admin/../me"),
    *("/v1/releases?from=-1", "/v1/releases?from=%00", "/v1/releases?from=1&to=x", "/v1/releases?limit=0"),
    *("/v1/releases?limit=1e9", "/v1/releases?cells=%00", "/v1/releases?cells=nowhere", "/v1/releases/stream?after=x"),
    *(
        "/v1/releases?from=2&to=1",
        "/v1/releases?from=9999-99-99",
        "/v1/releases?from=" + "9" * 90 + "T",
        "*",
        "http://",
    ),
    *("/v1/releases?from=" + "%31" * 200, "/metrics/", "/openapi.json/", "/v1/about\xe9"),
)


def test_paths(target: Target) -> None:
    service, token = target
    for path in PATHS:
        outcome = exchange(service, head("GET", path, token))
        assert is_refused(outcome, 400, 403, 404), (path, outcome.statuses)
        assert b"wev_" not in outcome.text
    absolute = exchange(service, head("GET", "http://elsewhere/v1/users/nobody", token))
    assert absolute.statuses == [404]
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
        assert is_refused(exchange(service, head(method, "/v1/about", token)), 405), method
    for path in ("/", "/healthz", "/v1/about", "/v1/releases", "/v1/releases/stream"):
        outcome = exchange(service, head("HEAD", path, token), wanted=2)
        assert outcome.statuses == [200], path
        assert outcome.text.endswith(b"\r\n\r\n")
        assert outcome.is_closed


def test_odd_headers_are_read_as_one_would(target: Target) -> None:
    service, token = target
    taken = head(
        "POST", "/v1/events", token, "Content-Type: APPLICATION/X-NDJSON; charset=utf-8", "Expect: 100-continue"
    )
    body = event()
    assert exchange(service, taken[:-2] + b"Content-Length: %d\r\n\r\n" % len(body), body).statuses == [200]
    twice = head("POST", "/v1/events", token, "Content-Type: application/x-ndjson", *["Idempotency-Key: a"] * 2)
    assert exchange(service, twice[:-2] + b"Content-Length: 0\r\n\r\n").statuses == [400]
    for accept in (
        "*/*;q=nan",
        ",,,;;;q=,",
        "a/b;q=" + "9" * 400,
        "text/html, */*;q=0.1",
        "text/csv;q=2" + ",x/y" * 500,
    ):
        outcome = exchange(service, head("GET", "/v1/releases", token, f"Accept: {accept}"))
        assert outcome.statuses[0] in (200, 406), accept
    upgrade = head("GET", "/v1/about", token, "Upgrade: websocket", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")
    assert exchange(service, upgrade).statuses == [200]  # no upgrade


def test_headers_behind_a_body_take_no_room(target: Target) -> None:
    begin = b"POST /v1/events HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: "
    assert is_refused(exchange(target.service, begin, *[b"x" * MIB] * 64, wanted=2))


def test_slow_senders_are_cut_off(hasty: Target) -> None:
    service, token = hasty
    started = head("POST", "/v1/events", token, f"Content-Type: {NDJSON}")[:-2]
    slow = {
        "nothing at all": b"",
        "half a first line": b"GET /heal",
        "half a head": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ",
        "half a body": started + b"Content-Length: 1000\r\n\r\n{",
        "half a chunk": started + b"Transfer-Encoding: chunked\r\n\r\nff\r\n{",
        "no token and half a body": b"POST /v1/events HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{",
    }

    def is_cut_off(begin: bytes, drip: bytes) -> bool:
        """Whether a connection ends that gets a byte now and then."""
        begun = time.monotonic()
        with connect(service) as opened, suppress(ConnectionError):
            opened.sendall(begin)
            opened.settimeout(0.1)
            while time.monotonic() - begun < PATIENCE_S:
                with suppress(TimeoutError):
                    if drip:
                        opened.sendall(drip)
                    if not opened.recv(4096):
                        return True
            return False
        return True

    with ThreadPoolExecutor(20) as pool:
        ends = {
            (name, drip): pool.submit(is_cut_off, begin, drip) for name, begin in slow.items() for drip in (b"", b"x")
        }
        assert [name for name, end in ends.items() if not end.result()] == []


def idle(target: Target, stack: ExitStack) -> list[socket.socket]:
    """Connections that say nothing, or begin a request."""
    opened = [stack.enter_context(connect(target.service)) for _ in range(300)]
    for number, one in enumerate(opened):
        one.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " if number % 2 else b"")
    return opened


def test_idle_connections_keep_nobody_out(target: Target) -> None:
    with ExitStack() as stack:
        idle(target, stack)
        assert post(target, event(extra=secrets.token_hex(4))).status_code == 200


def test_idle_connections_are_cut_off(hasty: Target) -> None:
    with ExitStack() as stack:
        for one in idle(hasty, stack):
            with suppress(ConnectionError):
                while one.recv(4096):  # until it is closed
                    pass


def test_half_closed_connections_are_answered_or_closed(target: Target) -> None:
    service, token = target
    begun = head("POST", "/v1/events", token, f"Content-Type: {NDJSON}")[:-2]
    assert exchange(service, head("GET", "/healthz"), half_close=True).statuses == [200]
    for cut in (b"", b"GET /hea", head("GET", "/healthz")[:-2], begun + b"Content-Length: 100\r\n\r\n{"):
        assert is_refused(exchange(service, cut, half_close=True))


def test_pipelined_requests_are_answered_in_order(target: Target) -> None:
    service, token = target
    alternating = [head("GET", "/healthz"), head("GET", "/nowhere")] * 50
    kept = b"".join(alternating).replace(b"Connection: close\r\n", b"")
    assert exchange(service, kept, wanted=100).statuses == [200, 404] * 50
    smuggled = head("POST", "/v1/events", token, f"Content-Type: {NDJSON}").replace(b"Connection: close\r\n", b"")
    body = event(extra="p")
    parts = smuggled[:-2] + b"Content-Length: %d\r\n\r\n" % len(body) + body + head("GET", "/v1/me", token)
    assert exchange(service, parts, wanted=2).statuses == [200, 403]
    assert is_refused(exchange(service, b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n" * 5000, wanted=5000))


def test_bodies_that_nobody_reads_are_let_go(target: Target) -> None:
    """A refusal comes before the body is there; the rest of it is thrown away, for a while."""
    service = target.service
    large = b"x" * (16 * MIB)
    length = b"Content-Length: %d\r\n\r\n" % len(large)
    assert is_refused(exchange(service, head("POST", "/v1/events", "wev_no")[:-2] + length, large), 401)
    assert is_refused(exchange(service, head("DELETE", "/v1/me", target.token)[:-2] + length, large), 403)
    endless = head("POST", "/v1/users", target.token, "Content-Type: text/csv", "Transfer-Encoding: chunked")
    assert is_refused(exchange(service, endless, *chunks([b"x" * 65_536] * 64)), 413)


def test_many_bombs_at_once_take_no_more_than_a_few(target: Target) -> None:
    def sent(_: int) -> int:
        return post(target, bomb(), **{"Content-Encoding": "gzip"}).status_code

    most = [target.service.memory_kib("VmHWM")]
    with ThreadPoolExecutor(16) as pool:
        for _ in range(2):
            assert set(pool.map(sent, range(32))) == {413}
            most.append(target.service.memory_kib("VmHWM"))
    assert most[1] - most[0] < 160 * 1024
    assert most[2] - most[1] < 48 * 1024


def test_a_request_that_is_broken_off_leaves_nothing_behind(target: Target) -> None:
    service, token = target
    begun = head("POST", "/v1/events", token, f"Content-Type: {NDJSON}")[:-2] + b"Content-Length: 100000\r\n\r\n"

    def broken_off(number: int) -> None:
        with connect(service) as opened:
            opened.sendall(begun + b"x" * (number * 500))

    threads = [threading.Thread(target=broken_off, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert json.loads(post(target, event(extra="after")).text)["accepted"] == 1
