"""One writer at a time: the lease and the fence, and writers that were paused, killed or cut off (spec 10)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.postgres.journal_parts import (
    asked,
    bear_silence,
    beats_on,
    begun,
    check_once,
    place_at,
    proxied,
    silence,
    take_over,
)
from tests.support.commands import PATIENCE_S, wait_for
from tests.support.cutting_proxy import Cut
from tests.support.publications import publish
from tests.support.synthetic import make_terms
from wevent.errors import JournalLocked
from wevent.journal import Batch, PostgresAddress
from wevent.journal import lease as lease_module
from wevent.journal.lease import Lease, current_writer, read_holder
from wevent.journal.postgres import PostgresJournal
from wevent.journal.record import Writer
from wevent.verification import verify_journal

URL = "{0.conninfo}?schema={0.schema}&witness={0.folder}&lease={0.lease_s}"


@contextmanager
def paused(place: PostgresAddress, out: Path, step: str) -> Iterator[subprocess.Popen[str]]:
    """A writer in another process that has stopped itself at a step of its first commit."""
    command = [sys.executable, "-m", "tests.postgres.paused_writer", URL.format(place), str(out), step]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "paused\n"
        stat = Path(f"/proc/{process.pid}/stat")
        wait_for(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "a standstill")
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def show_life_often(place: PostgresAddress) -> PostgresAddress:
    """A place whose writer beats three times a second; `bear_silence` keeps others from taking it for dead."""
    return replace(place, lease_s=1)


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    with begun(place) as journal:
        with pytest.raises(JournalLocked, match=f"process {os.getpid()} on") as caught:
            PostgresJournal(place, write=True)
        assert caught.value.facts["holder"]["pid"] == os.getpid()
        writer = journal.writer()
        assert writer is not None
        assert caught.value.facts["holder"] == writer._asdict()
    with PostgresJournal(place) as reader:
        assert reader.writer() is None


def test_every_writer_has_a_larger_number(tmp_path: Path) -> None:
    place, fences = place_at(tmp_path), []
    for _ in range(3):
        lease = Lease(place)
        fences.append(lease.fence)
        lease.close()
    assert fences == [1, 2, 3]
    lease = Lease(place, above=40)
    assert lease.fence == 41
    lease.close()


@pytest.mark.parametrize("step", ["stepped", "began"])
def test_a_paused_writer_loses(tmp_path: Path, step: str) -> None:
    place, out = place_at(tmp_path), tmp_path / "o.ndjson"
    with begun(place) as journal:
        publish(journal, out, 2)
    with paused(place, out, step) as process:
        with take_over(place) as journal:
            publish(journal, out, 5)
            os.kill(process.pid, signal.SIGCONT)
            said = process.communicate(timeout=PATIENCE_S)[0]
            assert said.startswith("JournalLocked ")
            assert "this draw is discarded" in said
            check_once(journal, place, out, 5)
        assert [file.name for file in (tmp_path / "side").iterdir()] == [f"{place.schema}.3.witness"]


@pytest.mark.parametrize("step", ["position stored", "committed"])
def test_what_a_paused_writer_had_sent_or_committed_is_not_drawn_again(tmp_path: Path, step: str) -> None:
    """The draw is that of its slot: the next writer stores it, and the paused one finds it in the output already."""
    place, out = place_at(tmp_path), tmp_path / "o.ndjson"
    with begun(place) as journal:
        publish(journal, out, 2)
    with paused(place, out, step) as process, take_over(place) as journal:
        assert journal.head().committed == 3
        publish(journal, out, 4)
        os.kill(process.pid, signal.SIGCONT)
        assert process.communicate(timeout=PATIENCE_S)[0].startswith(("JournalLocked ", "InvalidOutput "))
        check_once(journal, place, out, 4)


def test_a_killed_writer_blocks_nobody(tmp_path: Path) -> None:
    place, out = place_at(tmp_path), tmp_path / "o.ndjson"
    with begun(place) as journal:
        publish(journal, out, 2)
    with paused(place, out, "position stored") as process:
        process.kill()
        process.wait()
        with take_over(place, prepare=lambda place: None) as journal:  # long before its lease is over
            publish(journal, out, 3)
            check_once(journal, place, out, 3)


def test_a_process_that_was_started_again_does_not_wait_for_itself(tmp_path: Path) -> None:
    """As in a container: the same host, the same number."""
    place = place_at(tmp_path)
    lease = Lease(place)
    lease._closing.set()
    lease._renewing.join()
    lease_module._here.clear()
    lease._session.connection.close()
    again = Lease(place)
    assert again.fence == 2
    again.close()


def test_the_fence_alone_keeps_a_writer_out_that_knows_nothing(tmp_path: Path) -> None:
    """The lease told it nothing: the number is compared within the transaction."""
    place = place_at(tmp_path)
    with begun(place) as journal:
        publish(journal, tmp_path / "o.ndjson", 3)
        (last,) = journal.releases(3)
        with asked(place) as database:
            database.execute("UPDATE writer SET fence = fence + 1, instance = 'another', pid = 77")
        assert not journal._lease.is_lost
        before = journal.head()
        with pytest.raises(JournalLocked, match="process 77"):
            publish(journal, tmp_path / "o.ndjson", 4)
        with pytest.raises(JournalLocked):
            journal.note_unsafe(("start auto",))
        with pytest.raises(JournalLocked):
            journal.begin(make_terms(mechanism="pba"))
        assert journal._lease.is_lost
        assert journal.head() == before
        assert last.slot == 3


def test_a_number_that_another_writer_had_before_is_not_enough(tmp_path: Path) -> None:
    """A schema that was made anew begins at 1 again."""
    place = place_at(tmp_path)
    with begun(place) as journal:
        with asked(place) as database:
            database.execute("UPDATE writer SET instance = 'another'")
        with pytest.raises(JournalLocked):
            journal.note_unsafe(("start auto",))


def test_a_lease_is_renewed_over_a_new_connection(tmp_path: Path) -> None:
    with proxied(place_at(tmp_path)) as (place, proxy):
        lease = Lease(show_life_often(place))
        bear_silence(place)
        proxy.cut()
        beats_on(place)
        with asked(place) as database:
            wait_for(lambda: current_writer(database) is not None, "a connection")
            holder = read_holder(database)
            assert holder is not None
            assert (holder.fence, lease.is_lost) == (1, False)
            with pytest.raises(JournalLocked):
                Lease(place)
        lease.close()


def test_a_writer_that_is_cut_off_for_long_loses(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    with proxied(place) as (behind, proxy), ThreadPoolExecutor(1) as beside:
        lease = Lease(show_life_often(behind))
        bear_silence(place)
        proxy.refuse(True)
        proxy.cut()
        taking = beside.submit(Lease, place)
        with pytest.raises(TimeoutError):  # it waits: the first one may be about to connect again
            taking.result(0.5)
        silence(place)
        other = taking.result(PATIENCE_S)
        assert other.fence == 2
        assert not lease.is_lost  # how should it know
        proxy.refuse(False)
        wait_for(lambda: lease.is_lost, "the first one to learn it")
        lease.close()
        assert not other.is_lost
        other.close()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_writer_that_was_replaced_learns_what_became_of_its_commit(tmp_path: Path, when: Cut) -> None:
    """The answer to its COMMIT is lost, and another writer has the journal before it can ask, and has stored the draw if it
    was not: it was written down, and the slots have no other one.
    """
    place = place_at(tmp_path)
    with proxied(place) as (behind, proxy), begun(behind) as journal:
        publish(journal, tmp_path / "o.ndjson", 2)
        (last,) = journal.releases(2)
        repeat = replace(last, kind="repeated", publication=0 * last.publication)
        drawn = Batch([replace(repeat, slot=3), replace(repeat, slot=4)], None, None, 2)
        others: list[PostgresJournal] = []

        def others_turn() -> None:
            wait_for(lambda: proxy.cuts > 0, "a cut")
            proxy.cut()
            others.append(take_over(place))
            publish(others[0], tmp_path / "p.ndjson", 6)
            proxy.refuse(False)

        def at(label: str) -> None:
            if label == "position stored":
                proxy.cut_at(b"COMMIT", when)
                proxy.refuse(True)

        turn = threading.Thread(target=others_turn)
        turn.start()
        journal.commit(drawn, at)  # it stands
        turn.join()
        with pytest.raises(JournalLocked):
            journal.update_witness()  # and nothing more is stored from here
        kept = [record.entry() for record in others[0].releases(3)][:2]
        assert kept == [record.entry() for record in drawn.records]
        assert others[0].head().committed == 6
        assert verify_journal(place).ok
        others[0].close()


def test_a_long_transaction_delays_no_renewal(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    with begun(show_life_often(place)) as journal:
        bear_silence(place)

        def slowly(step: str) -> None:
            if step == "position stored":
                beats_on(place)
                with pytest.raises(JournalLocked):
                    Lease(place)

        publish(journal, tmp_path / "o.ndjson", 1, at=slowly)
        assert journal.head().committed == 1


def test_writers_of_other_journals_do_not_matter(tmp_path: Path) -> None:
    with begun(place_at(tmp_path)) as one, begun(place_at(tmp_path)) as another:
        publish(one, tmp_path / "1.ndjson", 2)
        publish(another, tmp_path / "2.ndjson", 3)
        assert (one.head().committed, another.head().committed) == (2, 3)


def test_a_closed_writer_leaves_no_session(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    with begun(place) as journal:
        instance = journal._lease.instance
    with asked(place) as database:
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE %s"
        wait_for(lambda: database.execute(query, (f"wevent {instance}%",)).fetchone() == (0,), "its sessions to end")
        holder = read_holder(database)
        assert holder is not None
        assert holder.left_s is None
        assert isinstance(holder.writer, Writer)
