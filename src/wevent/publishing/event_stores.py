"""Event stores of a journal, and the sources over them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from wevent.errors import InvalidSettings, WeventError
from wevent.events.live_source import PipeInbox, PipeSource, standard_input
from wevent.events.records import RecordCodec, SlotKeys
from wevent.events.segment_log import SegmentLog
from wevent.journal import JournalAddress, PostgresAddress, share_journal
from wevent.journal.address import file_beside, psycopg_needed
from wevent.settings import Settings
from wevent.streams import FileSource, SlotClock, Source

if TYPE_CHECKING:
    from wevent.events.postgres_store import PostgresStore


def open_input(settings: Settings, clock: SlotClock, last: int | None) -> Source:
    """Open the input of a stream: files, or lines on standard input."""
    if not settings.is_live:
        assert last is not None, "files have an end"
        if settings.engine == "spark":
            fix = "Use the command, `wevent publish --engine spark`, or wevent.spark with DataFrames."
            raise InvalidSettings("This function has no engine spark.", fix, key="engine")
        return FileSource(settings, clock, last)
    pipe = standard_input()
    log = open_event_log(settings, clock)
    return PipeSource(settings, clock, last, inbox=PipeInbox(pipe), store=log)


def open_event_log(settings: Settings, clock: SlotClock) -> SegmentLog:
    """Open the event store in files beside a journal."""
    assert settings.journal is not None
    return SegmentLog(events_folder(settings.journal), RecordCodec(settings.cells, clock).stream)


def events_folder(place: JournalAddress) -> Path:
    """Return the folder of an event store in files."""
    return file_beside(place, "events")


def open_sweeper(place: JournalAddress, stack: ExitStack, *, is_live: bool, is_service: bool) -> Callable[[int], None]:
    """Return a function that destroys the events of committed slots that an earlier run left and this one does not count.

    The stack closes stores at the end of the run. A service counts the events of all replicas.
    """
    folder = events_folder(place)
    sweepers: list[Callable[[int], None]] = []
    counts_log = is_live and (isinstance(place, Path) or not is_service)
    if not counts_log and folder.is_dir():
        log = stack.enter_context(closing(SegmentLog(folder)))
        sweepers.append(log.forget)
    if isinstance(place, PostgresAddress) and not is_service:
        store = ReplicaStores(place).open_left()
        if store is not None:
            stack.enter_context(closing(store))
            store.keep_out()  # standby replicas accept nothing meanwhile: it would not be counted
            sweepers.append(store.forget)

    def sweep(through: int) -> None:
        for forget in sweepers:
            forget(through)

    return sweep


class ReplicaStores:
    """Event stores of a journal in PostgreSQL, for one process: all of them have the same keys, and lose them together.

    Raises:
        InvalidJournal: if the address names no witness folder, or psycopg is missing.
    """

    def __init__(self, place: PostgresAddress) -> None:
        self.shared = share_journal(place)
        self._place = place
        self._key_folder = place.private_folder / "keys"
        self._keys: dict[str, SlotKeys] = {}

    def open(self, purpose: str, patience_s: float | None = None, *, is_writers: bool = False) -> PostgresStore:
        """Open a store over a connection of its own, with this name on the server; for one thread, which closes it.

        Args:
            patience_s: time to wait for a database that does not answer.
            is_writers: whether the writer of the journal uses it: its witness folder is then the one that all must use.
        """
        with psycopg_needed(self._place):
            from wevent.events.postgres_store import SETTING, UNDERSTOOD, PostgresStore
        session = self.shared.session(purpose, setting=SETTING, understood=UNDERSTOOD, patience_s=patience_s)
        return PostgresStore(session, self._find_keys, self.shared.own_instances, is_writers=is_writers)

    def _find_keys(self, store: str) -> SlotKeys:
        """Return the keys of the store with this id; from any thread."""
        opened = SlotKeys(self._key_folder, f"{self._place.schema}.{store}.")
        return self._keys.setdefault(store, opened)  # in one step: two objects would not lose their keys together

    def open_left(self) -> PostgresStore | None:
        """Open the store that replicas left, for a writer that is none of them; None if there never was one."""
        with psycopg_needed(self._place):
            from wevent.events.postgres_store import has_tables
        with ExitStack() as undo:
            store = undo.enter_context(closing(self.open("sweeping", is_writers=True)))
            if store.session.repeat(has_tables):
                undo.pop_all()
                return store
        return None

    def announce(self, store: PostgresStore) -> None:
        """Tell other replicas over a store's connection that a slot is committed; they find out without it, later."""
        with suppress(WeventError):
            store.session.once(self.shared.announce)

    def join(self) -> int:
        """Check that the journal, which another replica began, can be shared; return its last slot that may be shown.

        The keys of committed slots are destroyed: the writer that committed them may have died before.

        Raises:
            StorageFailed: if the other replicas use another witness folder.
            JournalUnreachable: if the database does not answer.
        """
        with closing(self.open("joining")) as store, closing(self.shared.news()) as news:
            store.open_keys()
            committed = news.wait(0.0)
            store.destroy(committed)
        return committed
