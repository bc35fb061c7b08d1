"""How far one record reaches, by hand: what random records did not find and people did (spec 1)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.live_events import pipe_source
from tests.support.streams import DAY, MEMORY, SECOND, ScriptedInbox, Wall, plain, roster, settings
from tests.support.synthetic import CLASSES, SyntheticSource, make_journal, make_terms
from wevent import Population, Publisher, Requirement, SeededNoise
from wevent.core.ledger import Ledger
from wevent.core.permit import PermitMisused
from wevent.counting.labels import Labels
from wevent.counting.string_column import StringColumn
from wevent.errors import InvalidJournal, StaleJournal, StorageFailed
from wevent.events import live_source
from wevent.events.live_source import LiveSource, SlotBuffer
from wevent.journal import SqliteJournal
from wevent.journal.terms import Epoch, class_history
from wevent.journal.witness import read_witness, witness_path
from wevent.people.membership import KeyColumn, MemberColumns, Rosters
from wevent.publishing.staleness import settle_stale
from wevent.settings import RestoreOptions
from wevent.streams.clock import SlotClock
from wevent.streams.decoding import EventColumns
from wevent.streams.file_source import FileSource

CLOCK = SlotClock(DAY, 60 * SECOND)


def line(user: Any, cell: Any = 1, second: float = 5.0, **more: Any) -> bytes:
    return json.dumps({"time": DAY / SECOND + second, "user": user, "cell": cell, **more}).encode() + b"\n"


def live(*pieces: bytes | float, grace: int = 0, close_slots_by: str = "clock") -> LiveSource:
    chosen = settings(close_slots_by=close_slots_by, grace_us=grace * SECOND)
    return pipe_source(chosen, CLOCK, 3, inbox=ScriptedInbox(pieces, wall := Wall(DAY)), now_us=wall)


class TestParquet:
    """A value that is no time, id or cell spoils its row, whatever its column's type."""

    def count(self, folder: Path, memory: str, **columns: Any) -> list[Any]:
        path = folder / f"{memory}.parquet"
        pq.write_table(pa.table(columns), path)
        source = FileSource(settings([path], timezone_us=0), CLOCK, 1)
        with MEMORY[memory]():
            return plain(source.count(roster([1, 2, 3]), 1, 1))[0][1]

    @pytest.mark.parametrize("memory", MEMORY)
    @pytest.mark.parametrize("column", ["time", "user", "cell"])
    def test_not_a_number(self, tmp_path: Path, memory: str, column: str) -> None:
        start = DAY / SECOND
        rows = {"time": [start] * 3, "user": [1.0, 2.0, 3.0], "cell": [1.0, 1.0, 1.0]}
        without = self.count(tmp_path, memory, **{name: values[:2] for name, values in rows.items()})
        rows[column][2] = float("nan")
        assert self.count(tmp_path, memory, **rows) == without

    @pytest.mark.parametrize("memory", MEMORY)
    def test_days_beyond_any_clock(self, tmp_path: Path, memory: str) -> None:
        days = pa.array([DAY // (86_400 * SECOND)] * 2 + [2**31 - 1], type=pa.int32()).cast(pa.date32())
        rows = {"user": pa.array([1, 2, 3]), "cell": pa.array([1, 1, 1])}
        found = self.count(tmp_path, memory, time=days, **rows)
        assert np.array(found).sum(axis=0).tolist() == [0, 2, 0, 0]


class TestLive:
    """Volume, depth, marks and close lines of one sender."""

    def test_compacting_an_open_slot_changes_nothing(self) -> None:
        """Unregistered users in undeclared cells take no place of those in declared ones, however many events there are."""
        classes = class_history([Epoch(1, 1, make_terms(unknown_users=3))])
        registered = MemberColumns(StringColumn.from_texts(["f"]), KeyColumn.of([CLASSES[0]]))
        people = Rosters(registered, classes=classes, limit=3).at(1)
        users = [*(f"a{number}" for number in range(3)), *(f"b{number}" for number in range(3)), "f"]
        cells = np.array([-1, -1, -1, 0, 0, 0, 1])
        batch = EventColumns(np.arange(7), Labels.of(users), cells)
        found = []
        for room in (100, 1):
            with patch.object(live_source, "_COMPACT_ABOVE", room):
                opened = SlotBuffer(1, people)
                opened.add(batch)
                opened.add(EventColumns(np.array([9]), Labels.of(["f"]), np.array([1])))
            found.append(opened.count(2).matrix.sum(axis=0).tolist())
        assert found[0] == found[1] == [3, 1]

    def test_depth_is_a_matter_of_its_own_line(self) -> None:
        deep = line(1, extra=0).replace(b"0}", b"[" * 100 + b"]" * 100 + b"}")
        for others in (b"", b"x\n" * 40, b"\n" * 300):
            source = live(others + deep + line(2), 70.0)
            assert np.array(plain(source.count(roster(), 1, 1))[0][1]).sum() == 1

    def test_a_byte_order_mark_stands_before_any_line_or_none(self) -> None:
        for before in (b"", line(2)):
            source = live(before + b"\xef\xbb\xbf" + line(1), 70.0)
            assert np.array(plain(source.count(roster([1]), 1, 1))[0][1]).sum() == 1

    def test_a_spoiled_line_closes_nothing(self) -> None:
        closing = json.dumps({"close": DAY / SECOND + 120}).encode() + b"\n"
        source = live(line(1), b"\r" + closing, close_slots_by="lines")
        assert list(source.count(roster(), 1, 3)) == []
        assert source.totals()["malformed"] == 1
        assert len(list(live(line(1), closing, close_slots_by="lines").count(roster(), 1, 3))) == 2

    @pytest.mark.parametrize("pending", [True, False])
    def test_what_has_begun_is_kept_with_and_without_events(self, pending: bool) -> None:
        half = json.dumps({"close": DAY / SECOND + 90}).encode() + b"\n"
        source = live(half, line(1, second=95) if pending else b"", close_slots_by="lines", grace=45)
        (first,) = list(source.count(roster(), 1, 1))
        list(source.count(roster(), 2, 1))
        after = live(
            line(2, second=130),
            json.dumps({"close": DAY / SECOND + 180}).encode() + b"\n",
            close_slots_by="lines",
            grace=45,
        )
        after.resume(first.position)
        slots = plain(after.count(roster(), 2, 2))
        assert np.array(slots[1][1]).sum() == 1


class TestGate:
    """What a policy is handed cannot be used to spend."""

    def test_a_policy_gets_numbers_not_the_ledger(self) -> None:
        ledger = Ledger(Population({Requirement(5, 1): 3}))
        view = ledger.view()
        for name in ("commit", "reserve", "replay", "load"):
            assert not hasattr(view, name)
        for name in ("windows", "epsilons", "halves", "shares", "sizes", "publication_spent"):
            with pytest.raises(ValueError, match="WRITEABLE"):
                getattr(view, name).setflags(write=True)
        with pytest.raises(AttributeError):
            view.epsilons = np.array([10**12])

    def test_a_permit_dies_with_its_slot(self) -> None:
        ledger = Ledger(Population({Requirement(5, 1): 3}))
        reservation = ledger.reserve(None, np.array([100], dtype=np.int64))
        ledger.commit(reservation, np.array([0], dtype=np.int64))
        assert reservation.publication is not None
        with pytest.raises(PermitMisused):
            reservation.publication.for_weighting()

    def test_publishing_goes_on(self) -> None:
        publisher = Publisher(Population({Requirement(5, 1): 30}), 2, "pft", noise=SeededNoise(1))
        assert [release.slot for release in publisher.run([[[1, 2]]] * 3)] == [1, 2, 3]


class TestOneJournal:
    """A journal has one name, one place, and the witness file that knows it."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        from wevent.outputs import open_output
        from wevent.publishing.loop import Publication, Running

        path = tmp_path / "run.journal"
        with make_journal(path) as journal:
            output = open_output(str(tmp_path / "out.ndjson"))
            Publication(journal, SyntheticSource(5), output, running=Running(last=5)).run()
            output.close()
        return path

    def test_a_second_name_is_refused(self, path: Path) -> None:
        os.link(path, path.with_name("link.journal"))
        for name in ("run.journal", "link.journal"):
            with pytest.raises(InvalidJournal, match="hard links"):
                SqliteJournal(path.with_name(name), write=True)

    def test_a_second_name_stops_a_running_publisher(self, path: Path) -> None:
        with SqliteJournal(path, write=True) as journal:
            os.link(path, path.with_name("link.journal"))
            with pytest.raises(StorageFailed, match="second name"):
                journal.update_witness()

    def test_without_its_witness_it_stays_closed(self, path: Path) -> None:
        witness_path(path).unlink()
        with SqliteJournal(path, write=True) as journal:
            with pytest.raises(StaleJournal, match="witness of this journal"):
                settle_stale(journal, RestoreOptions())
            settle_stale(journal, RestoreOptions(5))
        with SqliteJournal(path, write=True) as journal:
            settle_stale(journal, RestoreOptions())

    def test_a_witness_that_was_wiped_is_not_an_empty_one(self, path: Path) -> None:
        witness = witness_path(path)
        witness.write_bytes(bytes(8192) + witness.read_bytes()[8192:])
        assert not read_witness(witness).is_readable
        path.unlink()
        with pytest.raises(StaleJournal):
            SqliteJournal(path, write=True)
