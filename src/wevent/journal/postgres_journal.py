"""The journal in a schema of PostgreSQL: every commit forced to disk, one writer, fenced; its witness outside (spec 10).

The witness is a folder with one witness file for each fencing number. A writer begins its own file after its fence is
active, as a copy of the newest one. A commit of the writer before holds the row of the fence until it ends, so the copy has
the draw of every slot that the database may have received. Then the older files are removed: what a fenced writer still
writes into one of them never reaches the database.
"""

from __future__ import annotations

import os
import re
import secrets
from contextlib import ExitStack, suppress
from pathlib import Path

from wevent.errors import InvalidJournal, StorageFailed
from wevent.file_io import destroy_file, link_whole, storage_errors, sync_path
from wevent.journal.connection import no_journal
from wevent.journal.database import only_row
from wevent.journal.journal import Journal
from wevent.journal.lease import Lease, current_writer
from wevent.journal.place import PostgresPlace
from wevent.journal.postgres_database import PostgresDatabase
from wevent.journal.record import Writer
from wevent.journal.witness import WitnessFile, WitnessRecord, check_lost, read_witness, witness_errors


class PostgresJournal(Journal):
    """A journal in a database; see `wevent.journal.journal.Journal`. Arguments and errors: `wevent.journal.open_journal`."""

    def __init__(
        self,
        place: PostgresPlace,
        *,
        write: bool = False,
        start_over: bool = False,
        released_through: int | None = None,
        patience_s: float | None = None,
    ) -> None:
        schema = JournalSchema(place, write=write, start_over=start_over, patience_s=patience_s)
        with ExitStack() as undo:
            undo.callback(schema.close)
            super().__init__(schema, started_over=start_over, released_through=released_through)
            schema.database.session.regained = self.check_end
            undo.pop_all()


class JournalSchema:
    """The schema of a journal and its witness files; see `wevent.journal.journal.Storage`. Args: as `PostgresJournal`.

    Attributes:
        witness: the writer's own file, once it is begun; None for readers.
    """

    def __init__(self, place: PostgresPlace, *, write: bool, start_over: bool, patience_s: float | None) -> None:
        self._place, self.witness_name = place, f"{place.schema}.….witness in {place.side}"
        self._name = re.compile(rf"{re.escape(place.schema)}\.([0-9]{{1,18}})\.witness")
        self._partial = re.compile(rf"\.{re.escape(place.schema)}\.([0-9]{{1,18}})\.witness\..*\.partial")
        self.is_new = self._is_closed = False
        self.witness: WitnessFile | None = None
        with ExitStack() as undo:
            if write:
                _ = place.private_folder
            newest = max(self._fences(), default=0) if write else 0  # a database put back may know less
            self._lease = Lease(place, above=newest) if write else None
            undo.callback(self._let_go)
            self.database = PostgresDatabase(place, self._lease, patience_s=patience_s)
            self.create_tables = self.database.create_tables
            undo.callback(self.database.close)
            self._open(start_over)
            undo.pop_all()

    def _open(self, start_over: bool) -> None:
        """Refuse a schema without a journal, and another journal than the witness shows; the writer begins its witness."""
        place, restoring = str(self._place), "of the database, with its own tools; then publish with"
        try:
            self.is_new = not self.database.has_journal()
        except InvalidJournal:
            self.is_new = self._lease is not None and self._lease.before is None  # what was made for it goes again
            raise
        if self._lease is not None:
            check_lost(self.seen(), None if self.is_new else self.database, place, restoring, start_over=start_over)
            self._begin_witness(self._lease)
        elif self.is_new:
            if self._place.side is not None and self._place.side.is_dir() and (record := self.seen()).is_readable:
                check_lost(record, None, place, restoring)
            raise no_journal(self._place)

    def _begin_witness(self, lease: Lease) -> None:
        """Begin the writer's own file as a copy of the newest one, and remove older ones; its fence is active."""
        older, path = self._fences(), self._path(lease.fence)
        with witness_errors(path):
            data = self._path(older[-1]).read_bytes() if older else b""
            try:
                link_whole(path, data, path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial"))
            except FileExistsError:
                raise StorageFailed(
                    f"Another writer made {path.name} in the side folder {path.parent}.",
                    "Two databases with journals of the same name share the folder: give each its own.",
                    path=str(path),
                ) from None
            sync_path(path.parent)
            self.witness = WitnessFile(path, os.open(path, os.O_RDWR | os.O_CLOEXEC))
        self._remove_older(lease.fence)
        self.witness.name_writer(lease.writer)

    def _remove_older(self, fence: int) -> None:
        """Remove older files, and what a crash left of one. Ids of users may be in a write-ahead record."""
        for name in self._names():
            found = self._name.fullmatch(name) or self._partial.fullmatch(name)
            if found is None or int(found[1]) > fence or name == self._path(fence).name:
                continue
            path = self._path(fence).with_name(name)
            with witness_errors(path), suppress(FileNotFoundError):  # its writer may have removed it just now
                destroy_file(path, 0, path.stat().st_size)

    def check_place(self) -> None:
        """See `Storage.check_place`. Raises `JournalLocked` if another writer is known to have the journal."""
        if self._lease is None or self.witness is None:
            return
        if self._lease.is_lost:
            raise self._lease.locked(None)
        if self.witness.is_in_place():
            return
        if any(fence > self._lease.fence for fence in self._fences()):  # a later writer removed it
            raise self._lease.locked(None)
        raise StorageFailed(
            f"The witness {self.witness.path} was removed or replaced while the journal was published into.",
            "Nothing more was released. Put it back; or publish with --released-through SLOT, the last released slot.",
            path=str(self.witness.path),
        )

    def seen(self) -> WitnessRecord:
        """Return the record of the newest file."""
        while True:
            fences = self._fences()
            record = read_witness(self._path(fences[-1])) if fences else WitnessRecord()
            if not fences or self._path(fences[-1]).exists():  # else a newer writer removed it meanwhile
                return record

    def check_pages(self) -> None:
        """Leave that to the server."""

    def files(self) -> list[Path]:
        return [] if self._place.side is None else [self._path(fence) for fence in self._fences()]

    def size(self) -> int:
        """Return the bytes of all tables of the schema but those that tell how many events came."""
        query = (
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
            " WHERE relnamespace = to_regnamespace(?)::oid AND relkind IN ('r', 'm')"
            " AND relname <> 'events'"
        )
        return int(only_row(self.database, query, (self._place.schema,))[0])

    def writer(self) -> Writer | None:
        return self.database.session.repeat(current_writer)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self.database.close()
            self._let_go()

    def _let_go(self) -> None:
        """Let the next writer in, last of all; a journal that was never begun leaves nothing but earlier slots' witness."""
        if self.witness is not None:
            if self.is_new and self.witness.is_blank:
                self.witness.path.unlink(missing_ok=True)
            self.witness.close()
        if self._lease is not None:
            self._lease.close(never_begun=self.is_new)

    def _fences(self) -> list[int]:
        """Return the fencing numbers that have a file, ascending."""
        found = [self._name.fullmatch(name) for name in self._names()]
        return sorted(int(name[1]) for name in found if name is not None)

    def _names(self) -> list[str]:
        folder = self._place.side_folder
        fix = "Let this user read it. A reader may leave side= out of the address."
        with storage_errors(f"to read the side folder {folder}", fix, folder):
            return os.listdir(folder)

    def _path(self, fence: int) -> Path:
        return self._place.side_folder / f"{self._place.schema}.{fence}.witness"
