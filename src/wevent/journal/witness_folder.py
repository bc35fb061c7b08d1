"""Witness of a journal in PostgreSQL: a folder with one witness file for each fencing number (spec 10).

A writer begins its own file after its fence is active, as a copy of the newest one. A commit of the writer before holds the
row of the fence until it ends, so the copy has the draw of every slot that the database may have received. Then the older
files are removed: what a fenced writer still writes into one of them never reaches the database.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from wevent.errors import StorageFailed
from wevent.file_io import destroy_file, link_whole, storage_errors, sync_path
from wevent.journal.lease import Lease
from wevent.journal.place import PostgresPlace
from wevent.journal.witness import WitnessFile, WitnessRecord, copy_name, read_witness, witness_errors


class WitnessFolder:
    """The witness files of one journal.

    Args:
        place: the journal.

    Attributes:
        witness: the writer's own, once it is begun; None for readers.
    """

    def __init__(self, place: PostgresPlace) -> None:
        self._place = place
        self._name = re.compile(rf"{re.escape(place.schema)}\.([0-9]{{1,18}})\.witness")
        self._partial = re.compile(rf"\.{re.escape(place.schema)}\.([0-9]{{1,18}})\.witness\..*\.partial")
        self._lease: Lease | None = None
        self.witness: WitnessFile | None = None

    @property
    def description(self) -> str:
        """The files, for messages."""
        return f"{self._place.schema}.….witness in {self._place.side}"

    def check_private(self) -> None:
        """Refuse a folder that others can read or write; see `PostgresPlace.private_folder`."""
        _ = self._place.private_folder

    def fences(self) -> list[int]:
        """Return the fencing numbers that have a file, ascending.

        Raises:
            InvalidJournal: if the address names no folder.
            StorageFailed: if it cannot be read.
        """
        found = [self._name.fullmatch(name) for name in self._names()]
        return sorted(int(name[1]) for name in found if name is not None)

    def files(self) -> list[Path]:
        """Return the witness files that are there."""
        return [self._path(fence) for fence in self.fences()]

    def seen(self) -> WitnessRecord:
        """Return the record of the newest file."""
        while True:
            fences = self.fences()
            record = read_witness(self._path(fences[-1])) if fences else WitnessRecord()
            if not fences or self._path(fences[-1]).exists():  # else a newer writer removed it meanwhile
                return record

    def begin(self, lease: Lease) -> None:
        """Begin the writer's own file as a copy of the newest one, and remove older ones; its fence is active.

        Raises:
            StorageFailed: if it cannot be made, or is there already: another database shares the folder.
        """
        older, path = self.fences(), self._path(lease.fence)
        with witness_errors(path):
            data = self._path(older[-1]).read_bytes() if older else b""
            try:
                link_whole(path, data, copy_name(path))
            except FileExistsError:
                raise StorageFailed(
                    f"a side folder that only this journal uses ({path.parent})",
                    f"{path.name}, which another writer made",
                    "Two databases with journals of the same name share the folder: give each its own.",
                    path=str(path),
                ) from None
            sync_path(path.parent)
            self.witness = WitnessFile(path, os.open(path, os.O_RDWR | os.O_CLOEXEC))
        self._lease = lease
        self._remove_older(lease.fence)
        self.witness.name_writer(lease.writer)

    def check_place(self) -> None:
        """Refuse to go on if another writer is known to have the journal, or the own file was taken away.

        Raises:
            JournalLocked: if another writer has it.
            StorageFailed: if the file is not where it was.
        """
        if self._lease is None or self.witness is None:
            return
        if self._lease.is_lost:
            raise self._lease.locked(None)
        with witness_errors(self.witness.path):
            if self.witness.is_in_place():
                return
        if any(fence > self._lease.fence for fence in self.fences()):  # a later writer removed it
            raise self._lease.locked(None)
        raise StorageFailed(
            f"the witness {self.witness.path} to stay in its place while the journal is published into",
            "one that was removed or replaced",
            "Nothing more was released. Put it back; or publish with --released-through SLOT, the last released slot.",
            path=str(self.witness.path),
        )

    def close(self, *, never_begun: bool) -> None:
        """Close the own file; that of a journal that was never begun is removed unless it shows earlier slots."""
        if self.witness is None:
            return
        if never_begun and self.witness.is_blank:
            self.witness.path.unlink(missing_ok=True)
        self.witness.close()

    def _remove_older(self, fence: int) -> None:
        """Remove older files, and what a crash left of one. Ids of users may be in a write-ahead record."""
        for name in self._names():
            found = self._name.fullmatch(name) or self._partial.fullmatch(name)
            if found is None or int(found[1]) > fence or name == self._path(fence).name:
                continue
            path = self._path(fence).with_name(name)
            with witness_errors(path), suppress(FileNotFoundError):  # its writer may have removed it just now
                destroy_file(path, 0, path.stat().st_size)

    def _names(self) -> list[str]:
        folder = self._place.side_folder
        remedy = "Let this user read it. A reader may leave side= out of the address."
        with storage_errors(f"to read the side folder {folder}", remedy, folder):
            return os.listdir(folder)

    def _path(self, fence: int) -> Path:
        return self._place.side_folder / f"{self._place.schema}.{fence}.witness"
