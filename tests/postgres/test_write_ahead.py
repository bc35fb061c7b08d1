"""A slot has one draw, ever: a database keeps what it was given, also of transactions that came to nothing (spec 10)."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from tests.postgres.journal_parts import asked, check_once, place_at, publish
from tests.support.journals import copy_schema
from tests.support.synthetic import make_terms, register
from wevent.errors import InvalidMembership, StaleJournal, StorageFailed
from wevent.journal import PostgresAddress
from wevent.journal.postgres import PostgresJournal
from wevent.journal.witness import RECORD_SIZE, WitnessRecord, read_witness
from wevent.people.membership import Change
from wevent.publishing.registrations import Requested, apply_changes, choose
from wevent.publishing.resolve import ResolvedRun
from wevent.publishing.session import RunCallbacks
from wevent.publishing.staleness import settle_stale
from wevent.service import publishing_thread
from wevent.settings import RestoreOptions, RunOptions
from wevent.verification import verify_journal

LATE = (4, 1_000_000_000)
AHEAD_AT = 4 * RECORD_SIZE
STEPS = ("written ahead", "began", "slots stored", "version stored", "position stored")


class Died(BaseException):
    """The process is gone."""


@pytest.fixture
def place(tmp_path: Path) -> PostgresAddress:
    """A journal with two slots, each of them drawn."""
    made = place_at(tmp_path)
    with PostgresJournal(made, write=True) as journal:
        journal.begin(make_terms(mechanism="pbu"))
        register(journal, 3000)
        publish(journal, tmp_path / "out.ndjson", 2)
    return made


def witness_of(place: PostgresAddress) -> Path:
    """The one witness file."""
    assert place.folder is not None
    (found,) = place.folder.glob("*.witness")
    return found


@contextmanager
def dying(place: PostgresAddress) -> Iterator[PostgresJournal]:
    """A writer that is gone at the end of the block: nothing of what it left is tidied up."""
    journal = PostgresJournal(place, write=True)
    try:
        with suppress(Died):
            yield journal
    finally:
        journal.session.close()
        assert journal._lease is not None
        journal._lease.close()


def dies_when(step: str) -> Callable[[str], None]:
    def die(now: str) -> None:
        if now == step:
            raise Died

    return die


def dies_at(place: PostgresAddress, out: Path, end: int, step: str) -> None:
    with dying(place) as journal:
        publish(journal, out, end, at=dies_when(step))
        raise AssertionError("it lived")


def draws(place: PostgresAddress, slot: int) -> set[bytes]:
    """All that the pages of the database ever had as the entry of a slot, committed or not."""
    with asked(place) as connection:
        connection.execute(
            "SELECT pg_advisory_xact_lock(1);"  # other tests may make it at the same time
            "CREATE EXTENSION IF NOT EXISTS pageinspect SCHEMA public; SET search_path TO public"
        )
        table = f"{place.schema}.slots"
        rows = connection.execute(
            "SELECT t_attrs[1], t_attrs[2] FROM generate_series(0, pg_relation_size(%(table)s::regclass) / 8192 - 1) AS page,"
            " heap_page_item_attrs(get_raw_page(%(table)s::text, page::int), %(table)s::regclass)",
            {"table": table},
        ).fetchall()
    return {bytes(data) for number, data in rows if number and int.from_bytes(number, "little") == slot}


@pytest.mark.parametrize("step", STEPS)
def test_the_draw_of_a_writer_that_died_is_the_one_that_goes_out(
    place: PostgresAddress, tmp_path: Path, step: str
) -> None:
    out = tmp_path / "out.ndjson"
    dies_at(place, out, 3, step)
    kept = witness_of(place).read_bytes()
    with PostgresJournal(place, write=True) as journal:
        assert journal.head().committed == 3, "stored by whoever came next, before anything else"
        (record,) = journal.releases(3)
        assert record.shown is not None
        assert record.shown.data in kept
        publish(journal, out, 5)
        check_once(journal, place, out, 5)


def test_however_often_writers_die_the_database_sees_one_draw(place: PostgresAddress, tmp_path: Path) -> None:
    out = tmp_path / "out.ndjson"
    dies_at(place, out, 3, "position stored")
    for _ in range(3):  # and those who come next die over the very same draw
        with asked(place) as connection:
            connection.execute(FULL)
        with pytest.raises(StorageFailed):
            PostgresJournal(place, write=True)
        with asked(place) as connection:
            connection.execute(ROOM)
    with PostgresJournal(place, write=True) as journal:
        publish(journal, out, 4)
        check_once(journal, place, out, 4)
    assert len(draws(place, 3)) == 1
    assert len(draws(place, 4)) == 1


FULL = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
CREATE CONSTRAINT TRIGGER full_disk AFTER INSERT ON slots DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION full_disk();
"""  # at COMMIT: the rows are on their pages by then
ROOM = "DROP TRIGGER full_disk ON slots; DROP FUNCTION full_disk()"


def test_a_full_disk_is_no_reason_to_draw_again(place: PostgresAddress, tmp_path: Path) -> None:
    out = tmp_path / "out.ndjson"
    for _ in range(3):
        with asked(place) as connection:
            connection.execute(FULL)
        with pytest.raises(StorageFailed), PostgresJournal(place, write=True) as journal:
            publish(journal, out, 3)
        with asked(place) as connection:
            connection.execute(ROOM)
    assert len(draws(place, 3)) == 1
    with PostgresJournal(place, write=True) as journal:
        assert journal.head().committed == 3
        publish(journal, out, 4)
        check_once(journal, place, out, 4)
    assert len(draws(place, 3)) == 1


def test_an_epoch_that_began_with_the_draw_begins_all_the_same(place: PostgresAddress, tmp_path: Path) -> None:
    out = tmp_path / "out.ndjson"

    def die(now: str) -> None:
        if now == "position stored":
            raise Died

    with dying(place) as journal:
        journal.registry.ask([Change("set", "before", LATE)])
        journal.begin(make_terms(mechanism="pba"), changes=[Change("remove", "u0")])
        journal.registry.ask([Change("set", "since", LATE)])
        publish(journal, out, 3, at=die)
    with PostgresJournal(place, write=True) as journal:
        assert [epoch.terms.mechanism for epoch in journal.epochs()] == ["pbu", "pba"]
        assert journal.head().committed == 3
        assert [change.user for change in journal.registry.queued()] == ["since", "u0"]
        publish(journal, out, 5)
        members = {member.user for member in journal.registry.members()}
        assert {"before", "since"} <= members
        assert "u0" not in members
        check_once(journal, place, out, 5)


def test_ids_that_a_version_brought_do_not_stay_in_the_witness(place: PostgresAddress, tmp_path: Path) -> None:
    with PostgresJournal(place, write=True) as journal:
        journal.begin(make_terms(mechanism="pba"), changes=[Change("set", "somebody-new", LATE)])
        publish(journal, tmp_path / "out.ndjson", 3)
        assert b"somebody-new" not in witness_of(place).read_bytes()


@pytest.mark.parametrize("step", ["position stored", "committed"])
def test_ids_that_a_version_brought_go_from_the_witness_although_its_writer_died(
    place: PostgresAddress, tmp_path: Path, step: str
) -> None:
    with dying(place) as journal:
        journal.begin(make_terms(mechanism="pba"), changes=[Change("set", "somebody-new", LATE)])
        if step == "committed":
            journal._witness.clear_ahead = Mock(side_effect=Died)  # type: ignore[method-assign, union-attr]
        publish(journal, tmp_path / "out.ndjson", 3, at=dies_when(step))
        raise AssertionError("it lived")
    assert b"somebody-new" in witness_of(place).read_bytes()
    with PostgresJournal(place, write=True):
        assert b"somebody-new" not in witness_of(place).read_bytes()


def test_a_request_is_not_refused_while_the_publisher_draws_on(
    place: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    def draw_on(journal: PostgresJournal) -> WitnessRecord:
        """Return a record that is one slot later with every look."""
        shown, ahead = read_witness(witness_of(place)), len(looks)
        looks.append(ahead)
        return (
            replace(shown, committed=shown.committed + ahead, chain=f"{ahead:064}", before=shown.chain)
            if ahead
            else shown
        )

    monkeypatch.setattr(PostgresJournal, "_read_witness", draw_on)
    with PostgresJournal(place, write=True):
        looks.clear()
        choose(place, "somebody", Requested("4", "1.0"), due_through=lambda: 0)
    assert looks


def test_a_write_ahead_record_that_is_damaged_is_no_draw_that_can_be_stored(
    place: PostgresAddress, tmp_path: Path
) -> None:
    """Its slot may have been sent to the database: the operator says what was released."""
    out = tmp_path / "out.ndjson"
    dies_at(place, out, 3, "began")
    left = witness_of(place)
    whole = left.read_bytes()
    left.write_bytes(whole[: AHEAD_AT + 200] + bytes(100) + whole[AHEAD_AT + 300 :])
    with PostgresJournal(place, write=True) as journal:
        assert journal.head().committed == 2
        with pytest.raises(StaleJournal, match="shows slot 3"):
            settle_stale(journal, RestoreOptions())
        settle_stale(journal, RestoreOptions(3, same_settings=True))
        publish(journal, out, 5)
        assert [record.slot for record in journal.releases() if record.kind == "elsewhere"] == [3]


def test_a_record_that_is_torn_leaves_the_one_before(place: PostgresAddress, tmp_path: Path) -> None:
    """The newer copy of two is torn: its draw was never sent, for that comes after it is durable."""
    out = tmp_path / "out.ndjson"
    dies_at(place, out, 3, "written ahead")
    left = witness_of(place)
    newest = read_witness(left).number % 2 * RECORD_SIZE
    whole = left.read_bytes()
    left.write_bytes(whole[: newest + 50] + bytes(60) + whole[newest + 110 :])
    with PostgresJournal(place, write=True) as journal:
        assert journal.head().committed == 2
        publish(journal, out, 4)
        check_once(journal, place, out, 4)


def test_a_draw_is_not_stored_in_a_database_that_lacks_slots(place: PostgresAddress, tmp_path: Path) -> None:
    """It was put back: what became of the slots that went out has to be said first."""
    out, before = tmp_path / "out.ndjson", f"{place.schema}_before"
    copy_schema(place, place.schema, before)
    with PostgresJournal(place, write=True) as journal:
        publish(journal, out, 3)
    dies_at(place, out, 4, "position stored")
    copy_schema(place, before, place.schema)
    with PostgresJournal(place, write=True) as journal:
        assert journal.head().committed == 2
        for too_early in (None, 3):
            with pytest.raises(StaleJournal, match="4"):  # that one may have been sent
                settle_stale(journal, RestoreOptions(too_early))
        assert settle_stale(journal, RestoreOptions(4, same_settings=True)) == 2
        publish(journal, out, 5)
        assert [record.slot for record in journal.releases() if record.kind == "elsewhere"] == [3, 4]


@pytest.mark.parametrize("wish_is_lost", [False, True])
def test_nobody_counts_under_a_membership_that_the_database_lost(
    place: PostgresAddress, tmp_path: Path, wish_is_lost: bool
) -> None:
    """Put back to between two slots: who joined since is not there, and could join with a looser requirement."""
    out, before = tmp_path / "out.ndjson", f"{place.schema}_before"

    def put_back(now: str) -> None:
        if now == "stepped":
            copy_schema(place, before, place.schema)

    with PostgresJournal(place, write=True) as journal:
        publish(journal, out, 3)
        journal.registry.ask([Change("set", "late", LATE)])
        copy_schema(place, place.schema, before)
        with asked(place) as connection:
            connection.execute(f"DELETE FROM {before}.changes WHERE %s", (wish_is_lost,))
        with pytest.raises(StaleJournal, match="memberships"):
            publish(journal, out, 4, at=put_back)
    assert read_witness(witness_of(place)).committed == 3, "nothing of it was sent"
    with PostgresJournal(place, write=True) as journal:
        assert journal.head().committed == 3, "nothing that was counted under it went out, or will"
        publish(journal, out, 6)
        assert ("late" in {member.user for member in journal.registry.members()}) is not wish_is_lost
        check_once(journal, place, out, 6)


def test_a_draw_that_was_sent_under_lost_memberships_is_charged_whoever_comes_first(
    place: PostgresAddress, tmp_path: Path
) -> None:
    """Not only who publishes: whoever changes people would let the draft go, and the slot be drawn again."""
    out, before = tmp_path / "out.ndjson", f"{place.schema}_before"
    copy_schema(place, place.schema, before)
    with PostgresJournal(place, write=True) as journal:
        journal.registry.ask([Change("set", "late", LATE)])
    dies_at(place, out, 3, "position stored")
    (first,) = draws(place, 3)
    copy_schema(place, before, place.schema)
    with pytest.raises(StaleJournal, match="shows slot 3"):
        choose(place, "late", Requested("8", "0.6"))
    with pytest.raises(StaleJournal, match="shows slot 3"):
        apply_changes(place)
    PostgresJournal(place, write=True).close()
    assert read_witness(witness_of(place)).committed == 3, "it waits for what the operator says"
    with PostgresJournal(place, write=True, released_through=3) as journal:
        settle_stale(journal, RestoreOptions(3, same_settings=True))
        publish(journal, out, 6)
        assert [record.slot for record in journal.releases() if record.kind == "elsewhere"] == [3]
        assert verify_journal(place).ok
    (again,) = draws(place, 3)
    assert again != first, "the entry of a slot that was released elsewhere, without a histogram"


def test_the_first_slot_of_a_journal_that_is_gone_is_not_drawn_again_unnoticed(tmp_path: Path) -> None:
    place, out = place_at(tmp_path), tmp_path / "out.ndjson"
    with dying(place) as journal:
        journal.begin(make_terms(mechanism="pbu"))
        register(journal, 30)
    dies_at(place, out, 1, "position stored")
    with asked(place) as connection:
        connection.execute(f"DROP SCHEMA {place.schema} CASCADE")
    with pytest.raises(StaleJournal, match="slot 1"):
        PostgresJournal(place, write=True)
    with PostgresJournal(place, write=True, start_over=True) as journal:
        journal.begin(make_terms(mechanism="pbu"))
        register(journal, 30)
        publish(journal, tmp_path / "other.ndjson", 2)


def test_a_slot_that_was_released_elsewhere_is_not_stored_from_the_witness(
    place: PostgresAddress, tmp_path: Path
) -> None:
    """The operator says so: another copy went on, and two releases of one slot would be out."""
    out = tmp_path / "out.ndjson"
    dies_at(place, out, 3, "position stored")
    with PostgresJournal(place, write=True, released_through=4) as journal:
        assert journal.head().committed == 2
        settle_stale(journal, RestoreOptions(4, same_settings=True))
        publish(journal, out, 5)
        assert [record.slot for record in journal.releases() if record.kind == "elsewhere"] == [3, 4]
        assert verify_journal(place).ok


def test_a_new_epoch_with_an_id_that_cannot_be_is_refused_before_anything_is_drawn(
    place: PostgresAddress, tmp_path: Path
) -> None:
    with PostgresJournal(place, write=True) as journal:
        with pytest.raises(InvalidMembership, match="erased"):
            journal.begin(make_terms(mechanism="pba"), changes=[Change("set", "erased:zz", LATE)])
        publish(journal, tmp_path / "out.ndjson", 3)
        check_once(journal, place, tmp_path / "out.ndjson", 3)


def test_room_for_a_draw_is_taken_before_it_is_drawn(place: PostgresAddress, tmp_path: Path) -> None:
    """Whether there is room must not depend on what was drawn: a draw that did not fit would be drawn again."""
    rooms: list[tuple[str, int]] = []
    (tmp_path / "many").mkdir()

    def look(now: str) -> None:
        rooms.append((now, witness_of(place).stat().st_blocks * 512))

    with PostgresJournal(place, write=True) as journal:
        publish(journal, tmp_path / "out.ndjson", 4, at=look)
    assert len({room for _, room in rooms}) == 1
    many = place_at(tmp_path / "many")
    with PostgresJournal(many, write=True) as journal:
        journal.begin(make_terms(mechanism="pbu", cells=100_000))
        assert witness_of(many).stat().st_blocks * 512 > 64 * 100_000
    assert {"stepped", "written ahead", "emitted"} <= {step for step, _ in rooms}


def test_a_draw_that_cannot_be_written_ahead_is_not_sent(
    place: PostgresAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PostgresJournal(place, write=True) as journal:

        def fails(file: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr("wevent.journal.witness._force", fails)
        with pytest.raises(StorageFailed, match=r"witness: Input/output error"):
            publish(journal, tmp_path / "out.ndjson", 3)
        monkeypatch.undo()
    assert not draws(place, 3)
    assert read_witness(witness_of(place)).committed == 2


def test_a_witness_that_was_taken_away_stops_the_writer_before_anything_is_sent(
    place: PostgresAddress, tmp_path: Path
) -> None:
    with PostgresJournal(place, write=True) as journal:
        witness_of(place).unlink()
        with pytest.raises(StorageFailed, match="was removed"):
            publish(journal, tmp_path / "out.ndjson", 3)
    assert not draws(place, 3)


@pytest.mark.parametrize(("stated", "kept"), [(2, None), (4, 4)])
def test_a_replica_keeps_what_the_operator_said_until_somebody_settled_it(
    place: PostgresAddress, monkeypatch: pytest.MonkeyPatch, stated: int, kept: int | None
) -> None:
    """It found the lock held, by a command perhaps that settles nothing: what was said is still to be done."""
    monkeypatch.setattr(publishing_thread, "resolve", lambda *_, **__: ResolvedRun(*[None] * 5))  # type: ignore[arg-type]
    replica = object.__new__(publishing_thread.ReplicaThread)
    replica._place, replica._settings = place, None  # type: ignore[assignment]
    replica._options = RunOptions(released_through=stated, widest_window=8)
    replica._stores = SimpleNamespace(join=lambda: 2)  # type: ignore[assignment]
    replica._watch = RunCallbacks()
    replica._take_part = lambda committed: None  # type: ignore[method-assign]
    replica._join()
    assert replica._options.released_through == kept
