"""What every journal does, whatever it is made of; a new implementation adds itself to JOURNALS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.synthetic import CLASSES, SyntheticSource, make_terms, register
from wevent.auditing import audit_journal
from wevent.errors import JournalLocked
from wevent.journal import Batch, SqliteJournal
from wevent.journal.rebuild import holdout_of, rebuild_publisher
from wevent.outputs import open_output
from wevent.outputs.lines import ndjson_line
from wevent.people.membership import Change
from wevent.publishing import loop
from wevent.publishing.loop import Publication, Running

JOURNALS: dict[str, Callable[[Path], Any]] = {"sqlite": lambda folder: SqliteJournal(folder / "j.journal", write=True)}


@pytest.fixture(params=JOURNALS)
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    return lambda: JOURNALS[request.param](tmp_path)


def publish(journal: Any, out: Path, end: int, **running: Any) -> Publication:
    output = open_output(str(out))
    publication = Publication(journal, SyntheticSource(end), output, running=Running(last=end, **running))
    publication.run()
    output.close()
    return publication


@pytest.fixture
def fresh(reopen: Callable[[], Any]) -> Any:
    journal = reopen()
    journal.begin(make_terms())
    register(journal, 90)
    return journal


def test_what_was_committed_is_read_again(fresh: Any, reopen: Callable[[], Any], tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 20, batch=3)
    before = [ndjson_line(record) for record in fresh.releases()]
    fresh.close()
    journal = reopen()
    assert [ndjson_line(record) for record in journal.releases()] == before
    assert (tmp_path / "o.ndjson").read_bytes() == b"".join(before)
    assert [record.slot for record in journal.releases(15)] == list(range(15, 21))
    journal.close()


@pytest.mark.parametrize("named", ["pbd", "pba", "bd", "ba", "uniform", "pbu", "sample", "lbu", "plbu"])
@pytest.mark.parametrize("interval", [7, 1000])
def test_a_rebuilt_publisher_has_the_same_state(
    reopen: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, interval: int
) -> None:
    monkeypatch.setattr(loop, "state_interval", lambda publisher: interval)
    journal = reopen()
    journal.begin(make_terms(mechanism=named))
    register(journal, 90)
    stepped = publish(journal, tmp_path / "o.ndjson", 30, batch=4).publisher
    journal.registry.ask([Change("set", "u0", CLASSES[1]), Change("remove", "u1")])
    stepped = publish(journal, tmp_path / "o.ndjson", 60, batch=4).publisher
    loaded = journal.load()
    assert (loaded.state is None) == (interval == 1000)
    assert 0 < len(loaded.since) <= 60
    rebuilt = rebuild_publisher(loaded, journal.epochs(), None)
    assert rebuilt.state() == stepped.state()
    journal.close()


def test_a_commit_is_whole_or_not_at_all(fresh: Any, reopen: Callable[[], Any], tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 5)
    head = fresh.head()

    class Fault(Exception):
        pass

    for step in ("began", "charges stored", "releases stored", "position stored"):

        def fail(reached: str, step: str = step) -> None:
            if reached == step:
                raise Fault

        with pytest.raises(Fault):
            publish(fresh, tmp_path / "o.ndjson", 9, batch=2, at=fail)
        assert fresh.head() == head
    publish(fresh, tmp_path / "o.ndjson", 9)
    assert fresh.head().committed == 9
    fresh.close()


def test_a_slot_is_committed_once(fresh: Any, tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 3)
    again = list(fresh.releases(3))
    with pytest.raises(JournalLocked, match="discarded"):
        fresh.commit(Batch(again, None, None, 0))
    assert fresh.head().committed == 3
    fresh.close()


def test_position_and_pending_events_come_back(fresh: Any, reopen: Callable[[], Any], tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 3)
    fresh.commit(Batch((), {"file": 2}, None, 3, b"events of open slots"))
    fresh.close()
    journal = reopen()
    assert journal.head().position == {"file": 2}
    assert journal.load().pending == b"events of open slots"
    journal.commit(Batch((), None, None, 3))
    assert journal.load().pending == b""
    assert journal.head().emitted == 3
    journal.close()


def test_changes_wait_for_the_slot_boundary(fresh: Any) -> None:
    assert fresh.registry.members() == []
    assert fresh.registry.pending() == 90
    rule = holdout_of(fresh.epochs(), ())
    assert fresh.registry.apply(1, rule) == 90
    assert {one.first for one in fresh.registry.members()} == {1}
    assert fresh.registry.ask([Change("set", "u0", CLASSES[1])]) == 1
    fresh.registry.apply(5, rule)
    (moved,) = [one for one in fresh.registry.members() if one.user == "u0"]
    assert moved.first == 4 + 8  # last membership slot 4, the larger window 8
    fresh.close()


def test_the_same_counts_leave_no_trace_of_themselves(tmp_path: Path) -> None:
    """A slot whose counts are not read stores the same bytes whatever they are: nothing but public numbers goes in."""
    stored = []
    for cells in (0, 7):
        journal = SqliteJournal(tmp_path / f"{cells}.journal", write=True)
        journal.begin(make_terms(mechanism="sample"))
        register(journal, 90)
        source = SyntheticSource(1)
        output = open_output(str(tmp_path / f"{cells}.ndjson"))
        Publication(journal, source, output, running=Running(last=1)).run()
        source.end, source.shift = 4, cells
        output.close()
        Publication(journal, source, output, running=Running(last=4)).run()  # slots 2 to 4 are not due
        stored.append(
            journal._database.execute(
                "SELECT slot, kind, population, probe, publication, threshold, dissimilarity, shown FROM slots"
                " WHERE slot > 1"
            ).fetchall()
        )
        output.close()
        journal.close()
    assert stored[0] == stored[1]


def test_a_run_that_keeps_few_slots_goes_on_as_before(
    reopen: Callable[[], Any], fresh: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "state_interval", lambda publisher: 16)
    publish(fresh, tmp_path / "o.ndjson", 600, batch=32, keep=20)
    assert 1 < fresh.head().first <= 600 - 20 + 1
    assert len((tmp_path / "o.ndjson").read_bytes().splitlines()) == 600
    fresh.close()
    journal = reopen()
    publish(journal, tmp_path / "o.ndjson", 700, batch=32, keep=20)
    assert len((tmp_path / "o.ndjson").read_bytes().splitlines()) == 700
    assert audit_journal(journal.path).ok
    journal.close()
