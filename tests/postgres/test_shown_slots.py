"""Who reads a journal in a database is shown a slot once it is known outside (spec 10).

A slot that only the database knows may be lost with it, and would be drawn again: both draws would have been seen.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.postgres.journal_parts import asked, begun, check_once, place_at, publish
from tests.support.commands import Done, call, start, wait_for
from tests.support.journals import copy_schema
from tests.support.postgres_server import own_schema
from wevent.errors import InvalidJournal, StorageFailed
from wevent.journal import PostgresPlace, open_journal
from wevent.journal.postgres.postgres_journal import PostgresJournal
from wevent.outputs.lines import ndjson_line
from wevent.outputs.release_table import read_releases
from wevent.publishing import loop
from wevent.publishing.staleness import Stated, settle_stale
from wevent.publishing.views import BudgetView, read_budgets


class Died(BaseException):
    """The writer, between its commit and its mark."""


def die(step: str) -> None:
    if step == "committed":
        raise Died


def address(place: PostgresPlace, *, side: Path | None) -> str:
    """As somebody writes it who reads."""
    return f"{place.conninfo}?schema={place.schema}" + ("" if side is None else f"&side={side}")


@pytest.fixture
def died(tmp_path: Path) -> PostgresPlace:
    """A journal whose writer died when slot 4 was committed and not marked."""
    place = place_at(tmp_path)
    with begun(place) as journal:
        publish(journal, tmp_path / "o.ndjson", 3)
    with suppress(Died), PostgresJournal(place, write=True) as journal:
        publish(journal, tmp_path / "o.ndjson", 4, at=die)
    with asked(place) as database:
        assert database.execute("SELECT committed, emitted FROM head").fetchone() == (4, 3)
    return place


def slots(text: str) -> list[int]:
    return [json.loads(line)["slot"] for line in text.splitlines()]


SIDES: dict[str, Callable[[PostgresPlace], Path | None]] = {
    "with": lambda place: place.side,
    "without": lambda place: None,
}


@pytest.mark.parametrize("side", SIDES)
class TestTheWriterDiedBetweenCommitAndMark:
    def test_no_command_shows_the_slot(self, died: PostgresPlace, tmp_path: Path, side: str) -> None:
        named = address(died, side=SIDES[side](died))
        assert slots(call(tmp_path, "releases", named).out) == [1, 2, 3]
        assert slots(call(tmp_path, "releases", named, "--from", "4").out) == []
        assert "4" not in {
            line.split(",")[0] for line in call(tmp_path, "releases", named, "--format", "csv").out.split()
        }
        assert call(tmp_path, "releases", named, "--out", "again.ndjson").code == 0
        assert slots((tmp_path / "again.ndjson").read_text()) == [1, 2, 3]
        assert call(tmp_path, "releases", named, "--out", "again.parquet").code == 0
        assert set(read_releases(tmp_path / "again.parquet").columns["slot"]) == {1, 2, 3}
        assert set(read_releases(named).columns["slot"]) == {1, 2, 3}
        assert call(tmp_path, "plot", named, "--html", "page.html").code == 0
        status = json.loads(call(tmp_path, "status", named, "--json").out)
        assert (status["slot"], status["unshown_slots"], status["recent_slots"]) == (3, 1, 3)
        assert "1 more slot is committed and not shown yet" in call(tmp_path, "status", named).out

    def test_nor_what_it_cost(self, died: PostgresPlace, side: str) -> None:
        """Whether it was fresh is a draw, too."""
        place = replace(died, side=SIDES[side](died))
        with open_journal(place) as journal:
            view = BudgetView()
            assert [view.read(journal).slot for _ in range(2)] == [3, 3]
            head = journal.head()
            assert (head.committed, head.unshown, head.next_slot) == (3, 1, 5)
            assert head.digest == journal.chain_at(3)
            assert [record.slot for record in journal.releases(2)] == [2, 3]
            assert list(journal.releases(4)) == []

    def test_a_damaged_slot_that_is_not_shown_says_nothing(self, died: PostgresPlace, side: str) -> None:
        with asked(died) as database:
            database.execute("UPDATE slots SET link = 'x' WHERE slot = 4")
        with open_journal(replace(died, side=SIDES[side](died))) as journal:
            assert [record.slot for record in journal.releases()] == [1, 2, 3]

    def test_the_next_writer_has_it_shown_unchanged(self, died: PostgresPlace, tmp_path: Path, side: str) -> None:
        with PostgresJournal(died, write=True) as journal:
            stored = b"".join(map(ndjson_line, journal.releases()))
            publish(journal, tmp_path / "o.ndjson", 4)
        named = address(died, side=SIDES[side](died))
        assert call(tmp_path, "releases", named).out.encode() == stored == (tmp_path / "o.ndjson").read_bytes()


def test_a_slot_is_shown_from_its_mark_on(tmp_path: Path) -> None:
    """With the side folder at once; without it when it is known to have gone out, one slot later."""
    place, seen = place_at(tmp_path), []
    with begun(place) as journal:

        def look(step: str) -> None:
            if step in ("committed", "marked"):
                for named in (place, replace(place, side=None)):
                    with open_journal(named) as reader:
                        seen.append((step, [record.slot for record in reader.releases()]))

        publish(journal, tmp_path / "o.ndjson", 2, at=look)
    first = [("committed", []), ("committed", []), ("marked", [1]), ("marked", [])]
    assert seen == [*first, ("committed", [1]), ("committed", [1]), ("marked", [1, 2]), ("marked", [1])]
    with open_journal(replace(place, side=None)) as reader:
        assert reader.head().committed == 2, "a run that ended in order leaves nothing behind"


def test_budgets_are_known_when_a_state_was_stored_with_the_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a reader begins with is the state before."""
    monkeypatch.setattr(loop, "state_interval", lambda publisher: 3)
    place = place_at(tmp_path)
    with begun(place) as journal:
        publish(journal, tmp_path / "o.ndjson", 8)
        expected = read_budgets(journal.load(), journal.epochs()).classes
    with suppress(Died), PostgresJournal(place, write=True) as journal:
        publish(journal, tmp_path / "o.ndjson", 9, at=die)
    with asked(place) as database:
        assert database.execute("SELECT slot FROM states ORDER BY slot").fetchall() == [(6,), (9,)]
    for named in (place, replace(place, side=None)):
        with open_journal(named) as reader:
            loaded = reader.load()
            assert (loaded.head.committed, [record.slot for record in loaded.since]) == (8, [7, 8])
            assert read_budgets(loaded, reader.epochs()).classes == expected
    with PostgresJournal(place, write=True) as journal:
        assert journal.load().head.committed == 9
        publish(journal, tmp_path / "o.ndjson", 12)
    with asked(place) as database:
        assert database.execute("SELECT slot FROM states ORDER BY slot").fetchall() == [(9,), (12,)]


@pytest.mark.parametrize("has_side", [True, False])
def test_a_release_that_was_followed_is_not_drawn_again(tmp_path: Path, has_side: bool) -> None:
    """`releases --follow` runs while the writer dies between commit and mark; then the database is put back."""
    place = place_at(tmp_path)
    with begun(place) as journal:
        publish(journal, tmp_path / "o.ndjson", 3)
    backup = own_schema()
    copy_schema(place, place.schema, backup)
    with following(tmp_path, address(place, side=place.side if has_side else None)) as seen:
        wait_for(lambda: slots(seen()) == [1, 2, 3], "what went out")
        with suppress(Died), PostgresJournal(place, write=True) as journal:
            publish(journal, tmp_path / "o.ndjson", 4, at=die)
        (drawn,) = journal_draws(place, 4)
        time.sleep(1)  # five looks
        assert slots(seen()) == [1, 2, 3]
        copy_schema(place, backup, place.schema)
    with PostgresJournal(place, write=True) as journal:
        assert settle_stale(journal, Stated()) == 0, "nobody saw slot 4, and it has its draw: that was written down"
        assert journal_draws(place, 4) == [drawn]
        publish(journal, tmp_path / "o.ndjson", 5)
        check_once(journal, place, tmp_path / "o.ndjson", 5)


def journal_draws(place: PostgresPlace, slot: int) -> list[bytes]:
    with asked(place) as database:
        return [link for (link,) in database.execute("SELECT link FROM slots WHERE slot = %s", (slot,)).fetchall()]


@contextmanager
def following(folder: Path, named: str) -> Iterator[Callable[[], str]]:
    """`wevent releases --follow`; what it has printed."""
    out = folder / f"seen-{time.monotonic_ns()}"
    with out.open("wb") as file:
        process = start(folder, "releases", named, "--follow", stdout=file)
        try:
            yield out.read_text
        finally:
            process.terminate()
            process.wait()


class TestASideFolderThatDoesNotTell:
    """Then a reader is told, and shown nothing that may be lost."""

    @staticmethod
    def refused(place: PostgresPlace, folder: Path) -> Done:
        for question in (lambda journal: journal.head(), lambda journal: list(journal.releases())):
            with open_journal(place) as journal, pytest.raises((StorageFailed, InvalidJournal)):
                question(journal)
        done = call(folder, "releases", address(place, side=place.side))
        assert (done.code, done.out) == (2, "")
        assert call(folder, "status", address(place, side=place.side)).code == 2
        return done

    def test_of_another_journal(self, died: PostgresPlace, tmp_path: Path) -> None:
        (tmp_path / "other").mkdir()
        other = replace(died, side=tmp_path / "other")
        known = next(iter(open_side(died)))
        text = known.read_bytes()
        with open_journal(died) as journal:
            identity = journal.identity.encode()
        (tmp_path / "other" / known.name).write_bytes(text.replace(identity, b"0" * len(identity), 1))
        assert (
            "received that of another journal. Name the folder that its publisher uses"
            in self.refused(other, tmp_path).err
        )

    def test_that_is_empty(self, died: PostgresPlace, tmp_path: Path) -> None:
        (tmp_path / "other").mkdir()
        assert "received none." in self.refused(replace(died, side=tmp_path / "other"), tmp_path).err

    def test_that_is_not_there(self, died: PostgresPlace, tmp_path: Path) -> None:
        assert "no folder at" in self.refused(replace(died, side=tmp_path / "other"), tmp_path).err

    def test_that_cannot_be_read(self, died: PostgresPlace, tmp_path: Path) -> None:
        next(iter(open_side(died))).write_bytes(b"\0" * 4096)
        assert "received one that cannot be read." in self.refused(died, tmp_path).err

    def test_what_went_out_is_shown_without_it(self, died: PostgresPlace, tmp_path: Path) -> None:
        assert slots(call(tmp_path, "releases", address(died, side=None)).out) == [1, 2, 3]

    def test_a_mark_from_the_future_shows_what_there_is(self, died: PostgresPlace, tmp_path: Path) -> None:
        """It says that the database is an old copy; its slots went out."""
        known = next(iter(open_side(died)))
        known.write_bytes(known.read_bytes().replace(b'"committed":3', b'"committed":9', 1))
        assert slots(call(tmp_path, "releases", address(died, side=died.side)).out) == [1, 2, 3, 4]


def open_side(place: PostgresPlace) -> list[Path]:
    assert place.side is not None
    return sorted(place.side.glob("*.side"))
