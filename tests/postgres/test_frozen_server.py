"""A database server that stands still with its connections open: whoever waits for it can be stopped (spec 10)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import wevent
from tests.postgres.journal_parts import asked, begun, check_once, place_at, publish, take_over
from tests.postgres.replica_services import Load, Replicas
from tests.support.commands import PATIENCE_S, wait_for
from tests.support.postgres_server import PostgresServer, _children
from wevent.errors import JournalLocked
from wevent.journal import share_journal
from wevent.journal.postgres import PostgresJournal
from wevent.publishing import shutdown
from wevent.verification import verify_journal


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    own = PostgresServer()
    yield own
    own.remove()


@contextmanager
def frozen(server: PostgresServer) -> Iterator[None]:
    """Every process of it stands still, the main one first: it makes no more of them."""
    os.kill(server.pid(), signal.SIGSTOP)
    processes = [server.pid(), *_children(server.pid())]
    _signal_all(processes, signal.SIGSTOP)
    try:
        yield
    finally:
        _signal_all(processes, signal.SIGCONT)


@contextmanager
def stopped(journal: PostgresJournal, *purposes: str) -> Iterator[list[int]]:
    """The server processes of some of a writer's connections stand still, each between two statements."""
    processes: list[int] = []
    try:
        processes.extend(_stopped(journal, purpose) for purpose in purposes)  # each is known as soon as it stands still
        yield processes
    finally:
        _signal_all(processes, signal.SIGCONT)


def _stopped(journal: PostgresJournal, purpose: str) -> int:
    query = "SELECT pid, state FROM pg_stat_activity WHERE application_name = %s"
    name = f"wevent {journal._lease.instance} {purpose}"
    with asked(journal._place) as database:
        while True:
            ((process, _),) = database.execute(query, (name,)).fetchall()
            os.kill(process, signal.SIGSTOP)
            wait_for(lambda one=process: _is_stopped(one), "a standstill")  # type: ignore[misc]
            ((_, state),) = database.execute(query, (name,)).fetchall()
            if state.startswith("idle"):
                return int(process)
            os.kill(process, signal.SIGCONT)


def _is_stopped(process: int) -> bool:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def is_told_to_end(process: int) -> bool:
    """Whether a process that stands still will end when it goes on."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    pending = [int(line.split()[1], 16) for line in lines if line.startswith(("SigPnd", "ShdPnd"))]
    return any(signals & 1 << signal.SIGTERM - 1 for signals in pending)


def _signal_all(processes: list[int], number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):  # one whose connection was just closed
            os.kill(process, number)


def test_a_replica_ends_when_it_is_asked_twice(tmp_path: Path, server: PostgresServer) -> None:
    """Nothing is lost, nothing is drawn twice: whoever is started next reads what became of the last slot."""
    replicas = Replicas(tmp_path / "both", server.url())
    try:
        for service in replicas.services:
            replicas.start(service)
        load = Load(replicas)
        load.is_counted()
        with frozen(server):
            for service in replicas.services:
                wait_for(lambda one=service: replicas.condition(one) == "away", "it to say so")  # type: ignore[misc]
                os.kill(service.pid, signal.SIGTERM)
            for service in replicas.services:
                with pytest.raises(subprocess.TimeoutExpired):
                    service._child.wait(1)  # type: ignore[union-attr]
                os.kill(service.pid, signal.SIGTERM)
                assert service._child.wait(PATIENCE_S) == 75  # type: ignore[union-attr]
                assert "The database of the journal does not answer" in service.log
        for service in replicas.services:
            replicas.start(service)
        replicas.goes_on()
        load.finish()
    finally:
        replicas.close()


def test_a_command_ends_too(tmp_path: Path, server: PostgresServer) -> None:
    replicas = Replicas(tmp_path / "one", server.url(), 1)
    (service,) = replicas.services
    publishing = subprocess.Popen(
        [sys.executable, "-m", "wevent.cli", "publish", "-", "--config", "wevent.toml"],
        cwd=service.folder,
        env={**os.environ, "PYTHONPATH": str(Path(wevent.__file__).parents[1])},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        wait_for(lambda: replicas.committed() >= 1, "a slot")
        with frozen(server):
            publishing.send_signal(signal.SIGTERM)
            assert publishing.wait(PATIENCE_S) == 75
        assert publishing.stderr is not None
        assert b"ended as asked without it" in publishing.stderr.read()
        replicas.audit()
    finally:
        publishing.kill()
        publishing.communicate()
        replicas.close()


def test_a_server_that_stands_still_past_the_lease_ends_no_writer(tmp_path: Path, server: PostgresServer) -> None:
    place, out, labels = place_at(tmp_path, server.url(), lease_s=1), tmp_path / "o.ndjson", list[str]()
    is_frozen = threading.Event()

    def stand_still() -> None:
        with frozen(server):
            is_frozen.set()
            time.sleep(2.5)

    standstill = threading.Thread(target=stand_still)

    def at(label: str) -> None:
        labels.append(label)
        if label == "position stored" and labels.count(label) == 2:
            standstill.start()
            assert is_frozen.wait(PATIENCE_S)

    with begun(place) as journal:
        publish(journal, out, 2)
        publish(journal, out, 5, at=at)
        standstill.join()
        assert labels.count("stepped") == 3, "drawn once each"
        check_once(journal, place, out, 5)
        assert not journal._lease.is_lost


def test_a_writer_whose_lease_is_not_renewed_by_the_server_is_replaced(tmp_path: Path, server: PostgresServer) -> None:
    """The server process of its lease stands still: the writer runs, and its transactions would go through."""
    place, out = place_at(tmp_path, server.url(), lease_s=1), tmp_path / "o.ndjson"
    with begun(place) as journal:
        publish(journal, out, 2)
        with stopped(journal, "lease"), take_over(place, prepare=lambda place: None) as other:
            publish(other, out, 4)
            with pytest.raises(JournalLocked):
                publish(journal, tmp_path / "lost.ndjson", 5)
            check_once(other, place, out, 4)
        wait_for(lambda: journal._lease.is_lost, "it to learn that")


def test_a_transaction_whose_server_process_stands_still_is_stored_once(tmp_path: Path, server: PostgresServer) -> None:
    """Past the lease, and it cannot be ended: whoever takes over waits for it, and nothing is drawn again."""
    place, out, is_inside = place_at(tmp_path, server.url(), lease_s=1), tmp_path / "o.ndjson", threading.Event()
    goes_on = threading.Event()

    def at(label: str) -> None:
        if label == "position stored":
            is_inside.set()
            assert goes_on.wait(PATIENCE_S)

    with begun(place) as journal, ThreadPoolExecutor(2) as beside:
        publish(journal, out, 2)
        first = beside.submit(publish, journal, tmp_path / "first.ndjson", 3, at=at)
        assert is_inside.wait(PATIENCE_S)
        with stopped(journal, "lease", "writing") as processes:
            goes_on.set()  # to a COMMIT that nobody reads
            second = beside.submit(take_over, place, lambda place: None)
            wait_for(lambda: all(map(is_told_to_end, processes)), "the end of its lease")
            assert not second.done()
            # on a busy machine it would have its lease again before the other one looks
            journal._lease._closing.set()
        with second.result(PATIENCE_S) as other:
            assert other.head().committed == 3, "stored, or written down and stored by this one"
            with suppress(JournalLocked):
                first.result(PATIENCE_S)
            drawn: list[str] = []
            publish(other, tmp_path / "second.ndjson", 5, at=drawn.append)
            assert drawn.count("stepped") == 2
            assert [record.slot for record in other.releases()] == [1, 2, 3, 4, 5]
            assert verify_journal(place).ok


def test_a_run_that_the_database_answers_is_let_finish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes: a slot that is being drawn must not be ended by a timeout."""
    place, asked, ended = place_at(tmp_path), threading.Event(), threading.Event()
    monkeypatch.setattr(shutdown, "END_S", 0.01)
    monkeypatch.setattr(shutdown.ForcedShutdown, "_end", lambda self: ended.set())
    answers = type(share_journal(place)).answers

    def answered(self: object, within_s: float) -> bool:
        found = bool(answers(self, within_s))  # type: ignore[arg-type]
        asked.set()
        return found

    monkeypatch.setattr(type(share_journal(place)), "answers", answered)
    with shutdown.ForcedShutdown(place) as watched:
        watched.request()
        for _ in range(3):
            assert asked.wait(PATIENCE_S)
            asked.clear()
        assert not ended.is_set()


def test_a_server_that_stands_still_does_not_answer(tmp_path: Path, server: PostgresServer) -> None:
    shared = share_journal(place_at(tmp_path, server.url()))
    assert shared.answers(PATIENCE_S)
    with frozen(server):
        assert not shared.answers(0.5)
