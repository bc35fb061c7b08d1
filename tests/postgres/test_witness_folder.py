"""The witness folder: a database that was put back, lags behind or was lost is noticed by what is known outside (spec 10)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.postgres.journal_parts import Restorable, asked, begun, check_once
from tests.support.commands import call
from tests.support.journals import copy_schema
from tests.support.publications import publish
from tests.support.synthetic import CLASSES, make_terms, register
from wevent.errors import InvalidJournal, InvalidOption, StaleJournal
from wevent.journal import Batch, PostgresAddress, open_journal, witness
from wevent.journal.lease import Lease
from wevent.journal.postgres import PostgresJournal
from wevent.journal.witness import read_witness
from wevent.people.membership import Change
from wevent.publishing.staleness import refuse_lost_changes, settle_stale
from wevent.settings import RestoreOptions
from wevent.verification import verify_journal


@pytest.fixture
def kept(tmp_path: Path) -> Restorable:
    """A journal of five slots, remembered, which went on to slot 9."""
    (tmp_path / "kept").mkdir()
    kept = Restorable(tmp_path / "kept")
    with begun(kept.place) as journal:
        publish(journal, tmp_path / "o.ndjson", 5)
    kept.remember()
    with PostgresJournal(kept.place, write=True) as journal:
        journal.registry.ask([Change("set", "u0", CLASSES[1])])
        publish(journal, tmp_path / "o.ndjson", 9)
    return kept


def witness_files(place: PostgresAddress) -> list[str]:
    assert place.folder is not None
    return sorted(path.name.removeprefix(f"{place.schema}.") for path in place.folder.iterdir())


def test_a_database_that_was_put_back_is_stale(kept: Restorable, tmp_path: Path) -> None:
    kept.put_back()
    with PostgresJournal(kept.place, write=True) as journal:
        with pytest.raises(StaleJournal, match="shows slot 9, but the journal ends with slot 5") as told:
            settle_stale(journal, RestoreOptions())
        assert "wevent restore" not in str(told.value), "which is for files"
        assert "to publish or serve" in str(told.value)
        with pytest.raises(StaleJournal, match="--released-through 9 or later"):
            settle_stale(journal, RestoreOptions(8))
    with PostgresJournal(kept.place, write=True) as journal:
        assert settle_stale(journal, RestoreOptions(9)) == 4
        assert journal.changes_lost, "the witness shows a later state of the registry: u0 changed"
        with pytest.raises(StaleJournal, match="--accept-lost-changes"):
            refuse_lost_changes(journal)
        (restore,) = journal.registry.restores()
        assert restore == (9, 0, tuple(sorted(CLASSES)))
        settle_stale(journal, RestoreOptions(accept_lost_changes=True))
        refuse_lost_changes(journal)
        publish(journal, tmp_path / "new.ndjson", 12)
        assert [record.kind for record in journal.releases()][5:9] == ["elsewhere"] * 4
    report = verify_journal(kept.place)
    assert (report.ok, report.slots, report.elsewhere) == (True, 12, [(6, 9)])


def test_status_says_that_a_database_was_put_back(kept: Restorable, tmp_path: Path) -> None:
    """As long as the address names the witness folder, and that can be read."""
    place, side = kept.place, f"&witness={kept.place.folder}"
    address = f"{place.conninfo}?schema={place.schema}"
    assert json.loads(call(tmp_path, "status", address + side, "--json").out)["noted_slot"] is None
    kept.put_back()
    told = json.loads(call(tmp_path, "status", address + side, "--json").out)
    assert (told["slot"], told["noted_slot"]) == (5, 9)
    assert "behind: slot 9 is noted outside the journal" in call(tmp_path, "status", address + side).out
    assert json.loads(call(tmp_path, "status", address, "--json").out)["noted_slot"] is None


def test_one_that_was_put_back_under_a_writer_stops_it(kept: Restorable, tmp_path: Path) -> None:
    with PostgresJournal(kept.place, write=True) as journal:
        publish(journal, tmp_path / "o.ndjson", 10)
        kept.remember()
        publish(journal, tmp_path / "o.ndjson", 12)
        kept.put_back()
        with pytest.raises(StaleJournal, match="committed slot 12 here"):
            journal.commit(Batch((), None, None, 12))
        with pytest.raises(StaleJournal, match="committed slot 12 here"):
            journal.check_end()
        journal.session.connection.close()
        with pytest.raises(StaleJournal, match="committed slot 12 here"):
            journal.head()


def test_without_its_witness_folder_nobody_can_tell(kept: Restorable, tmp_path: Path) -> None:
    assert kept.place.folder is not None
    shutil.rmtree(kept.place.folder)
    with pytest.raises(InvalidJournal, match="no folder at"):
        PostgresJournal(kept.place, write=True)
    kept.place.folder.mkdir(mode=0o700)
    for _ in range(2):
        with (
            PostgresJournal(kept.place, write=True) as journal,
            pytest.raises(StaleJournal, match="no witness"),
        ):
            settle_stale(journal, RestoreOptions())
    with PostgresJournal(kept.place, write=True) as journal:
        assert settle_stale(journal, RestoreOptions(9)) == 0
        publish(journal, tmp_path / "o.ndjson", 10)
        check_once(journal, kept.place, tmp_path / "o.ndjson", 10)
    with PostgresJournal(kept.place, write=True) as journal:
        assert settle_stale(journal, RestoreOptions()) == 0


@pytest.mark.parametrize("how", ["schema dropped", "tables dropped"])
def test_a_lost_journal_does_not_begin_anew(kept: Restorable, tmp_path: Path, how: str) -> None:
    with asked(kept.place) as database:
        database.execute(f"DROP SCHEMA {kept.place.schema} CASCADE")
        if how == "tables dropped":
            database.execute(f"CREATE SCHEMA {kept.place.schema}")
    for write in (False, True):
        with pytest.raises(StaleJournal, match=r"committed slot 9 .*--start-over"):
            PostgresJournal(kept.place, write=write)
    with PostgresJournal(kept.place, write=True, start_over=True) as journal:
        journal.begin(make_terms())
        register(journal, 5)
        publish(journal, tmp_path / "new.ndjson", 2)
        assert journal.head().unsafe == ("started over",)
        (own,) = journal.files()
        assert [slot for _, slot in read_witness(own).earlier] == [9]
    with PostgresJournal(kept.place, write=True) as journal:
        publish(journal, tmp_path / "new.ndjson", 3)
    with pytest.raises(InvalidOption, match="was not lost"):
        PostgresJournal(kept.place, write=True, start_over=True)


def test_another_journal_beside_the_witness_is_not_taken_for_it(kept: Restorable, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Restorable(tmp_path / "other")
    with begun(other.place) as journal:
        publish(journal, tmp_path / "p.ndjson", 12)
    copy_schema(kept.place, other.place.schema, kept.place.schema)
    with pytest.raises(StaleJournal, match="another journal"):
        PostgresJournal(kept.place, write=True)


def test_the_newest_writer_has_the_only_witness(kept: Restorable) -> None:
    assert witness_files(kept.place) == ["2.witness"]
    with PostgresJournal(kept.place, write=True) as journal:
        assert witness_files(kept.place) == ["3.witness"]
        assert journal.witnessed().committed == 9, "it is a copy of the one before"
    assert witness_files(kept.place) == ["3.witness"]


def test_what_a_crash_left_of_a_copy_is_destroyed_too(kept: Restorable) -> None:
    assert kept.place.folder is not None
    left = kept.place.folder / f".{kept.place.schema}.3.witness.x7.partial"
    left.write_bytes((kept.place.folder / f"{kept.place.schema}.2.witness").read_bytes())
    others = kept.place.folder / ".other.3.witness.x7.partial"
    others.touch()
    with left.open("rb") as still_open, PostgresJournal(kept.place, write=True):
        assert witness_files(kept.place) == [others.name, "3.witness"]
        assert not any(still_open.read())


def test_a_copy_that_a_later_writer_is_making_is_left_alone(kept: Restorable) -> None:
    """This writer stood still before it began, and another one takes its place: that one would find its copy gone."""
    assert kept.place.folder is not None
    making = kept.place.folder / f".{kept.place.schema}.4.witness.x7.partial"
    making.write_bytes((kept.place.folder / f"{kept.place.schema}.2.witness").read_bytes())
    whole = making.read_bytes()
    PostgresJournal(kept.place, write=True).close()
    assert making.read_bytes() == whole


def test_an_older_writer_does_not_turn_the_witness_back(kept: Restorable, tmp_path: Path) -> None:
    first = PostgresJournal(kept.place, write=True)
    publish(first, tmp_path / "o.ndjson", 10)
    first.session.close()
    first._lease._closing.set()  # as if it was paused from here on
    first._lease._session.connection.close()
    with asked(kept.place) as database:
        database.execute("UPDATE lease SET expires = '-infinity'")
    with PostgresJournal(kept.place, write=True) as journal:
        publish(journal, tmp_path / "o.ndjson", 12)
        first._witness.update(committed=10, chain="", versions="")
        with open_journal(kept.place) as reader:
            assert reader.witnessed().committed == 12
    first._witness.close()


def test_a_database_that_knows_a_smaller_number_does_not_reuse_one(kept: Restorable) -> None:
    for _ in range(3):
        Lease(kept.place).close()
    with PostgresJournal(kept.place, write=True) as journal:
        fence = journal._lease.fence
    kept.put_back()  # it was 1 then
    with PostgresJournal(kept.place, write=True) as journal:
        assert journal._lease.fence == fence + 1


def test_a_draw_is_on_disk_before_its_slot_is_sent(
    kept: Restorable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine may fall together with the database's: a standby of that, elsewhere, may know less than what went out."""
    forced: list[int] = []
    sync = witness._force
    with PostgresJournal(kept.place, write=True) as journal:
        (own,) = journal.files()

        def noted(file: int) -> None:
            sync(file)
            forced.append(read_witness(own).committed)

        def look(label: str) -> None:
            if label == "began":
                assert forced[-1] == journal.head().committed + 1

        monkeypatch.setattr(witness, "_force", noted)
        publish(journal, tmp_path / "o.ndjson", 12, at=look)
    assert sorted(set(forced[-6:])) == [9, 10, 11, 12][-len(set(forced[-6:])) :]
