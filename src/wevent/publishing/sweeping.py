"""What a service left of slots that another command commits: only a service reads it, and it goes with their commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from wevent.journal import Journal, JournalPlace, share_journal
from wevent.publishing.loop import Progress
from wevent.streams.live.spool import spool_folder, sweep

_Sweeper = Callable[[int], None]


@contextmanager
def sweeping(journal: Journal, place: JournalPlace, progress: Progress) -> Iterator[Progress]:
    """Progress that leaves nothing of committed slots where a service kept their events.

    Args:
        journal: opened for writing, by a command that is no service.
        place: where it is.
        progress: who is told besides.
    """
    with _of_file(place) if isinstance(place, Path) else _of_database(place) as sweeper:
        if sweeper is None:
            yield progress
            return
        sweeper(0 if journal.is_new else journal.head().committed)

        def swept(slot: int, last: int | None) -> None:
            sweeper(slot)
            progress(slot, last)

        yield swept


@contextmanager
def _of_file(journal: Path) -> Iterator[_Sweeper | None]:
    folder = spool_folder(journal)
    yield (lambda through: sweep(folder, through)) if folder.is_dir() else None


@contextmanager
def _of_database(place: JournalPlace) -> Iterator[_Sweeper | None]:
    """Replicas that stand by take nothing in meanwhile: nobody would count it."""
    assert not isinstance(place, Path)
    events = share_journal(place).left_events()
    if events is None:
        yield None
        return
    with closing(events):
        events.keep_out()
        yield events.forget
