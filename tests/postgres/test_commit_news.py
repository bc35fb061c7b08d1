"""What followers of a journal may show: committed slots that are known outside the database, too (spec 10)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tests.postgres.journal_parts import begun, place_at, publish
from wevent.journal.postgres_database import CommitNews


def test_a_slot_that_no_mark_knows_is_not_shown(tmp_path: Path) -> None:
    place, seen = place_at(tmp_path), []
    with begun(place) as journal, closing(CommitNews(place)) as news:

        def look(label: str) -> None:
            if label in ("committed", "marked"):
                seen.append((label, journal.head().committed, news.wait(0.0)))

        publish(journal, tmp_path / "out.ndjson", 2, at=look)
    assert seen == [("committed", 1, 0), ("marked", 1, 1), ("committed", 2, 1), ("marked", 2, 2)]


def test_the_mark_of_another_journal_says_nothing(tmp_path: Path) -> None:
    place = place_at(tmp_path)
    assert place.side is not None
    with begun(place) as journal, closing(CommitNews(place)) as news:
        publish(journal, tmp_path / "out.ndjson", 2)
        assert news.wait(0.0) == 2
        (side,) = journal.files()
        side.write_bytes(side.read_bytes().replace(journal.identity.encode(), b"0" * len(journal.identity), 1))
        assert news.wait(0.0) == 0
