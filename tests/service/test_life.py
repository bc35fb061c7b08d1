"""The life of a service, the real process: it starts, takes events, releases, streams, is stopped, goes on."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support import commands
from tests.support.commands import PATIENCE_S
from tests.support.service_process import ServiceProcess, configure, running


def now(offset_s: float = 0.0) -> str:
    return datetime.fromtimestamp(time.time() + offset_s, UTC).isoformat()


def events_of(service: ServiceProcess, after: int, number: int) -> list[dict[str, object]]:
    """The next events of the stream."""
    found: list[dict[str, object]] = []
    headers = {**service.header("read"), "Last-Event-ID": str(after)}
    with service.client.stream("GET", "/v1/releases/stream", headers=headers) as answer:
        assert answer.status_code == 200
        slot = None
        for line in answer.iter_lines():
            if line.startswith("id: "):
                slot = int(line[4:])
            elif line.startswith("data: "):
                release = json.loads(line[6:])
                assert release["slot"] == slot
                found.append(release)
                if len(found) == number:
                    break
    return found


def test_a_service_takes_events_releases_them_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    configure(tmp_path)
    with running(tmp_path) as service:
        assert service.ask("GET", "/readyz", None).json() == {"status": "ready", "role": "writer", "clock": "steady"}
        told = service.ask("PUT", "/v1/users/ann/requirement", "enrol", json={"level": "Low/Small"}).json()
        service.wait_for(told["in_force_from"])
        held = service.ask("GET", "/v1/users/ann/requirement", "enrol").json()
        assert not held["queued"]
        assert held["in_force_from"] <= told["in_force_from"] + 1

        def is_answered_alike() -> bool:
            """Of a slot that stays open meanwhile: on a busy machine a later one."""
            event = {"time": now(), "user": "ann", "cell": "north"}
            batch = [event, {**event, "cell": "nowhere"}, {"user": "ann"}], event["time"]
            first, again = service.send(*batch), service.send(*batch)
            return first == again and first["accepted"] == 1 and sum(first["rejected"].values()) == 2

        commands.wait_for(is_answered_alike, "an answer in time")
        before = service.committed()
        seen = events_of(service, 0, before + 2)  # what was, and what comes
        assert [release["slot"] for release in seen] == list(range(1, before + 3))
        code, said = service.stop(signal.SIGTERM)
    assert code == 0
    assert "Stopped as asked" in said
    assert "private: do not publish these numbers" in said
    with running(tmp_path) as service:
        again = events_of(service, 0, before + 2)
        assert again == seen
        service.wait_for(before + 4)
        listed = service.ask("GET", f"/v1/releases?to={before + 2}").json()["releases"]
        assert listed == seen
        code, said = service.stop(signal.SIGINT)
    assert code == 0, said
    assert commands.call(tmp_path, "verify", "run.journal").code == 0


def test_readers_of_the_stream_end_with_the_service(tmp_path: Path) -> None:
    configure(tmp_path, service="public = true")
    with (
        running(tmp_path) as service,
        socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE_S) as connection,
    ):
        connection.sendall(b"GET /v1/releases/stream HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200 OK")
        code, _ = service.stop()
        assert code == 0
        rest = b""
        while piece := connection.recv(4096):
            rest += piece
        assert rest.endswith(b"\r\n0\r\n\r\n")  # the end of the answer: nobody had to cut it off


def test_a_publisher_that_fails_ends_the_service_with_its_sentence(tmp_path: Path) -> None:
    configure(tmp_path)
    with running(tmp_path) as service:
        service.wait_for(1)
        (tmp_path / "run.journal").rename(tmp_path / "elsewhere")
        said = service.child.communicate(timeout=PATIENCE_S)[1]
    assert service.child.returncode == 2
    assert "Error: The journal run.journal" in said
    assert "Traceback" not in said


def test_only_one_service_has_a_journal_and_a_place(tmp_path: Path) -> None:
    configure(tmp_path)
    with running(tmp_path) as service:
        second = commands.run(tmp_path, "serve", "--config", "wevent.toml")
        assert second.code == 2
        assert "held by process" in second.err
        place = f"127.0.0.1:{service.port}"
        third = commands.run(tmp_path, "serve", "--config", "wevent.toml", "--listen", place)
        assert third.code == 2
        assert "address already in use" in third.err


@pytest.mark.parametrize(
    ("top", "said"),
    [
        ('close_slots_by = "lines"\n', "close_slots_by does not apply"),
        ("strict = true\n", "strict does not apply"),
        ('start = "auto"\n', "start does not apply"),
    ],
)
def test_what_a_service_cannot_do_is_said_before_anything_is_made(tmp_path: Path, top: str, said: str) -> None:
    configure(tmp_path, top=top)
    done = commands.call(tmp_path, "serve", "--config", "wevent.toml")
    assert done.code == 2
    assert said in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["wevent.toml"]


def test_the_last_slot_does_not_end_the_reading(tmp_path: Path) -> None:
    configure(tmp_path, top=f'start = "{now()[:19]}Z"\nend = "{now(4)[:19]}Z"\n')
    with running(tmp_path) as service:
        commands.wait_for(lambda: service.ask("GET", "/readyz", None).json()["status"] == "ended", "the last slot")
        assert service.ask("GET", "/v1/releases").json()["releases"]
        assert service.ask("GET", "/v1/about").json()["next_due"] is None
        refused = service.ask(
            "POST", "/v1/events", "ingest", content=b"", headers={"Content-Type": "application/x-ndjson"}
        )
        assert refused.status_code == 503
        code, said = service.stop()
    assert code == 0
    assert "The last slot is published" in said


def test_a_publisher_of_lines_leaves_nothing_of_what_the_service_received(tmp_path: Path) -> None:
    configure(tmp_path, slot="1s")
    events = tmp_path / "run.journal.events"

    def is_left() -> bool:
        """Unless its slot closed before the service was killed, on a busy machine."""
        with running(tmp_path) as service:
            service.wait_for(1)
            service.send([{"time": now(), "user": "needle", "cell": "north"}])
            service.stop(signal.SIGKILL)
        return any(path.suffix == ".events" and b"wEv1" in path.read_bytes() for path in events.iterdir())

    commands.wait_for(is_left, "an event in the event store")
    assert [path.name for path in events.iterdir() if b"needle" in path.read_bytes()] == [], "encrypted"
    until = ("--end", now(3)[:19] + "Z")
    lines = commands.start(tmp_path, "publish", "--config", "wevent.toml", *until, "-", stdin=subprocess.PIPE)
    # its input stays open: at the end of it, open slots would be left to the next run
    assert lines.wait(PATIENCE_S) == 0
    lines.communicate()
    assert list(events.iterdir()) == []


def test_a_kill_before_the_first_slot_moves_no_slot_under_what_was_acknowledged(tmp_path: Path) -> None:
    configure(tmp_path, slot="2s", top='grace = "1h"\n')  # slot 1 stays open
    origins = []
    for _ in range(2):
        with running(tmp_path) as service:
            origins.append(service.ask("GET", "/v1/about").json()["slot_origin"])
            if len(origins) == 1:
                assert service.send([{"time": now(), "user": "ann", "cell": "north"}], "one")["accepted"] == 1
                service.stop(signal.SIGKILL)
                time.sleep(2.5)
    assert origins[0] == origins[1]


def test_an_erased_id_is_in_no_file_after_a_clean_stop(tmp_path: Path) -> None:
    """While the process runs, pages live on in the write-ahead log: a known limitation."""
    configure(tmp_path)
    with running(tmp_path) as service:
        told = service.ask("PUT", "/v1/users/needle/requirement", "enrol", json={"level": "Low/Small"}).json()
        service.wait_for(told["in_force_from"])
        told = service.ask("DELETE", "/v1/users/needle", "enrol").json()
        service.wait_for(told["in_force_from"] + 1)
        service.stop()
    assert [path.name for path in tmp_path.iterdir() if path.is_file() and b"needle" in path.read_bytes()] == []
