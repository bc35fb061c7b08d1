"""Bodies that say what people hold: a promise that can be kept, or one sentence; asked for a rehearsal, nothing is stored."""

from __future__ import annotations

import json
import re

from tests.fuzz.asking import ask, read_input, service
from tests.fuzz.oracles import MARKER
from wevent.journal import SqliteJournal

MOST_NANO = 50 * 10**9
SEEDS = (
    b'content-type: application/json\n\n{"window":4,"epsilon":1}',
    b'content-type: application/json\n\n{"window":8,"epsilon":"0.6"}',
    b'content-type: application/json\n\n{"privacy":"High","window":"Small"}',
    b'content-type: application/json\n\n{"level":"Zq7Marker"}',
    b"content-type: text/csv\n\nuser,window,epsilon\nann,4,1\nZq7Marker,8,0.6\n",
    b"content-type: application/x-ndjson\ncontent-encoding: gzip\npack: gzip\n\n"
    b'{"user":"Zq7Marker","window":3,"epsilon":0.4}\n',
)
WORDS = (b'"window":', b'"epsilon":', b'"level":', b'"privacy":', b"text/csv", b"user,window,epsilon", b"1e-9", b"null")

_ID = re.compile(rb'\A(?:user,(?s:.*)\n)?Zq7Marker,|"user":"Zq7Marker"')  # where it is somebody's id, and nothing else


def check(data: bytes) -> None:
    sent = read_input(data)
    is_file = any(value.startswith((b"text/csv", b"application/x-ndjson")) for _, value in sent.headers)
    if is_file:
        private = (MARKER,) if _ID.sub(b"", sent.plain).count(MARKER.encode()) == 0 else ()
        answer = ask("POST", "/v1/users", "enrol", sent, *private, query=b"dry_run=true")
    else:
        answer = ask("PUT", "/v1/users/ann/requirement", "enrol", sent, query=b"dry_run=true")
    if answer.status == 200 and not is_file:
        held = json.loads(answer.body)["requirement"]
        nano = round(held["epsilon"] * 10**9)
        assert 2 <= 2 * held["window"] <= nano <= MOST_NANO, "a promise that nobody can keep"
    with SqliteJournal(service().context.journal) as journal:
        assert journal.registry.pending() == 30, "a rehearsal stored something"
