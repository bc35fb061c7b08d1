"""A publication over every journal, whatever it is made of: what is committed stays, and is continued from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.journals import Kept
from tests.support.publications import publish
from tests.support.synthetic import CLASSES, make_terms, register
from tests.support.window_checker import violated_windows
from wevent.errors import JournalLocked
from wevent.journal import Journal
from wevent.journal.rebuild import rebuild_publisher
from wevent.journal.terms import privacy_statement
from wevent.outputs.lines import ndjson_line
from wevent.people.membership import Change
from wevent.publishing import loop


def test_what_was_committed_is_read_again(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 20, batch=3)
    before = [ndjson_line(record) for record in fresh.releases()]
    fresh.close()
    with kept.open() as journal:
        assert [ndjson_line(record) for record in journal.releases()] == before
        assert (tmp_path / "o.ndjson").read_bytes() == b"".join(before)
        assert [record.slot for record in journal.releases(15)] == list(range(15, 21))


@pytest.mark.parametrize("named", ["pbd", "pba", "bd", "ba", "uniform", "pbu", "sample", "lbu", "plbu"])
@pytest.mark.parametrize("interval", [7, 1000])
def test_a_rebuilt_publisher_has_the_same_state(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, interval: int
) -> None:
    monkeypatch.setattr(loop, "state_interval", lambda publisher: interval)
    with kept.open() as journal:
        journal.begin(make_terms(mechanism=named))
        register(journal, 90)
        publish(journal, tmp_path / "o.ndjson", 30, batch=4)
        journal.registry.ask([Change("set", "u0", CLASSES[1]), Change("remove", "u1")])
        stepped = publish(journal, tmp_path / "o.ndjson", 60, batch=4).publisher
        loaded = journal.load()
        assert (loaded.state is None) == (interval == 1000)
        assert 0 < len(loaded.since) <= 60
        rebuilt = rebuild_publisher(loaded, journal.epochs(), None)
        assert rebuilt.state() == stepped.state()


def test_no_window_of_any_class_holds_more_than_its_epsilon(fresh: Journal, tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 40, batch=4)
    charged = []
    for record in fresh.releases():
        both = zip(record.probe.tolist(), record.publication.tolist(), strict=True)
        classes = [(held.window, held.nano) for held in record.group.population.classes]
        charged.append(dict(zip(classes, both, strict=True)))
    assert len(charged) == 40
    assert any(sum(charges) for charges in charged[0].values())
    assert not violated_windows(charged)


def test_a_run_that_keeps_few_slots_goes_on_as_before(
    kept: Kept, fresh: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "state_interval", lambda publisher: 16)
    publish(fresh, tmp_path / "o.ndjson", 600, batch=32, keep=20)
    assert 1 < fresh.head().first <= 600 - 20 + 1
    assert len((tmp_path / "o.ndjson").read_bytes().splitlines()) == 600
    fresh.close()
    with kept.open() as journal:
        publish(journal, tmp_path / "o.ndjson", 700, batch=32, keep=20)
        assert len((tmp_path / "o.ndjson").read_bytes().splitlines()) == 700
        assert [record.slot for record in journal.releases()] == list(range(journal.head().first, 701))


def test_there_is_one_writer_and_any_number_of_readers(fresh: Journal, kept: Kept, tmp_path: Path) -> None:
    publish(fresh, tmp_path / "o.ndjson", 3)
    writer = fresh.writer()
    assert writer is not None
    assert writer.pid
    with pytest.raises(JournalLocked):
        kept.open()
    with kept.open(write=False) as reader:
        assert reader.head() == fresh.head()
        assert reader.writer() == writer
        assert privacy_statement(reader)["slots"] == 3
    fresh.close()
    with kept.open(write=False) as reader:
        assert reader.writer() is None


def test_a_journal_that_was_never_begun_leaves_nothing(kept: Kept, tmp_path: Path) -> None:
    with kept.open() as journal:
        assert journal.is_new
    assert list(tmp_path.iterdir()) == []
    with kept.open() as journal:
        assert journal.is_new
