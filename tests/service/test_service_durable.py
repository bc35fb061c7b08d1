"""What is acknowledged is on disk before: the system calls of the running service, in their order, as strace saw them."""

from __future__ import annotations

import re
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tests.service.serving_process import Service, event_line
from tests.support.commands import wait_for

BATCHES = 40
SENDERS = 4
_LINE = re.compile(r"(?P<thread>\d+) +(?:<\.\.\. (?P<resumed>\w+) resumed>|(?P<name>\w+)\()(?P<rest>.*)")


class Call(NamedTuple):
    """A system call.

    Attributes:
        name: of it.
        begun, done: its places in the order of all beginnings and ends.
        text: its arguments, with the names of files.
    """

    name: str
    begun: int
    done: int
    text: str


def calls_of(record: Path) -> list[Call]:
    """All calls that succeeded; one that another thread interrupted has two lines."""
    found, open_calls = [], {}
    for place, line in enumerate(record.read_text(errors="replace").splitlines()):
        match = _LINE.match(line)
        if match is None:
            continue
        begun, text = place, match["rest"]
        if match["resumed"]:
            begun, text = open_calls.pop((match["thread"], match["resumed"]), (place, ""))
            text += match["rest"]
        elif text.endswith("<unfinished ...>"):
            open_calls[match["thread"], match["name"]] = place, text.removesuffix("<unfinished ...>")
            continue
        if not re.search(r"= -\d", text):
            found.append(Call(match["name"] or match["resumed"], begun, place, text))
    return found


def test_a_backlog_of_many_slots_needs_few_descriptors(tmp_path: Path) -> None:
    """One batch with events of 500 open slots: the service takes the batch, and the next one of another sender."""
    begun = int(time.time()) - 600
    start = datetime.fromtimestamp(begun, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    service = Service(tmp_path / "service", [("somebody", 4, 0.5)], slot="1s", grace="2h", start=start)
    headers = {"Content-Type": "application/x-ndjson"}
    backlog = b"".join(event_line("somebody", 1, begun + second) for second in range(500))
    try:
        service.start(under=("prlimit", "--nofile=128:128"))
        with service.asker(service.token("ingest")) as client:
            assert client.post("/v1/events", content=backlog, headers=headers).json() == {
                "accepted": 500,
                "rejected": {},
            }
        with service.asker(service.token("ingest")) as client:
            answer = client.post("/v1/events", content=event_line("another", 2), headers=headers)
            assert answer.json() == {"accepted": 1, "rejected": {}}
        assert service.is_ready()
        assert service.stop() == 0
        service.start(under=("prlimit", "--nofile=128:128"))
        with service.asker(service.token("ingest")) as client:
            assert client.post("/v1/events", content=backlog, headers=headers).status_code == 200
        assert service.stop() == 0
    finally:
        service.close()


def test_an_answer_comes_after_its_events_are_on_disk(tmp_path: Path) -> None:
    record, run = tmp_path / "calls", secrets.token_hex(4)
    service = Service(tmp_path / "service", [("somebody", 4, 0.5)], slot="500ms", grace="1h")
    token = service.token("ingest")
    watch = ("strace", "-D", "-f", "-q", "-y", "-s", "200000", "-o", str(record))
    try:
        service.start(under=(*watch, "-e", "trace=write,writev,sendmsg,sendto,fsync,fdatasync"))

        def send(number: int) -> None:
            """A batch that is told apart by how many events it has."""
            headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": f"{run}-{number}-"}
            lines = b"".join(event_line(f"p{place}", 1) for place in range(number))
            with service.asker(token) as client:
                assert client.post("/v1/events", content=lines, headers=headers).json()["accepted"] == number

        with ThreadPoolExecutor(SENDERS) as pool:
            list(pool.map(send, range(1, BATCHES // 2)))
            time.sleep(0.5)  # the next ones are of another slot
            list(pool.map(send, range(BATCHES // 2, BATCHES + 1)))
        assert service.stop() == 0
    finally:
        service.close()
    wait_for(lambda: "+++ exited" in record.read_text(errors="replace"), "the end of the record")
    calls = calls_of(record)
    told = [call for call in calls if re.search(r'\{\\"accepted\\":[0-9]+,', call.text)]
    assert len(told) == BATCHES
    written = [call for call in calls if call.name == "write" and re.search(r"<\S+\.events>", call.text)]
    for rank, answer in enumerate(sorted(call.begun for call in told), 1):
        assert durable_batches(calls, written, answer) >= rank, "answered before it was on disk"


def durable_batches(calls: list[Call], written: list[Call], moment: int) -> int:
    """How many batches were on disk by a moment, and the names of their files: they are encrypted, and have a magic each."""
    number = 0
    for part in written:
        path = re.search(r"<(\S+\.events)>", part.text)
        assert path is not None
        first = min(call.begun for call in written if f"<{path[1]}>" in call.text)
        forced = [call for call in calls if call.name in ("fdatasync", "fsync") and f"<{path[1]}>" in call.text]
        named = [call for call in calls if call.name == "fsync" and f"<{Path(path[1]).parent}>" in call.text]
        if any(part.done < call.begun and call.done < moment for call in forced):
            assert any(first < call.begun and call.done < moment for call in named)
            number += part.text.count("wEv1")
    return number
