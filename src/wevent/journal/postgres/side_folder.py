"""What is kept of a journal outside its database: a folder with one side file for each fencing number (spec 10).

A side file says what that of a journal file says: how far its writer came, the keys of events of open slots, how an output
was left, and which memberships changed. Only the writer with that number writes it, so one that was paused and goes on
later cannot turn back what is known. A writer begins its own as a copy of the newest, after its number is in force: what
the writer before stored was noted before, so nothing that counts is missing. Once its own mark is on disk it destroys the
keys in older files and removes them.

What is known outside is the newest file's mark, and never less than the largest slot in any of them.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from wevent.errors import StorageFailed
from wevent.file_io import link_whole, storage_errors, sync_path
from wevent.journal.place import PostgresPlace
from wevent.journal.postgres.lease import Lease
from wevent.journal.tables.mark_file import MarkFile, side_errors
from wevent.journal.tables.side_mark import Mark, read_mark

_LOOKS = 5
_PAUSE_S = 0.02


class SideFolder:
    """The side files of one journal; see `wevent.journal.tables.marking.Outside`.

    Args:
        place: the journal.

    Attributes:
        side: the writer's own, once it is begun; None for readers.
    """

    def __init__(self, place: PostgresPlace) -> None:
        self._place = place
        self._name = re.compile(rf"{re.escape(place.schema)}\.([0-9]{{1,18}})\.side")
        self._partial = re.compile(rf"\.{re.escape(place.schema)}\.([0-9]{{1,18}})\.side\..*\.partial")
        self._lease: Lease | None = None
        self.side: MarkFile | None = None
        self._begun: tuple[int, int, int] = (0, 0, 0)  # the own file, and how often it was written when it was begun

    @property
    def _folder(self) -> Path:
        """Where they are; raises if the address does not say."""
        return self._place.side_folder

    def check_private(self) -> None:
        """Refuse a folder that others can read or write; see `PostgresPlace.private_folder`."""
        _ = self._place.private_folder

    def fences(self) -> list[int]:
        """The fencing numbers that have a file, ascending.

        Raises:
            InvalidJournal: if the address names no folder.
            StorageFailed: if it cannot be read.
        """
        found = [self._name.fullmatch(name) for name in self._names()]
        return sorted(int(name[1]) for name in found if name is not None)

    def files(self) -> list[Path]:
        """The side files that are there."""
        return [self._path(fence) for fence in self.fences()]

    def seen(self) -> Mark:
        """What is known outside now: the newest mark; if another one of this journal knows a later slot, that one.

        The registry and the versions of that slot are then unknown.
        """
        while True:
            files = self.files()
            marks = [read_mark(path) for path in files]
            if all(path.exists() for path in files):
                break  # none was removed meanwhile: a file that is not there says nothing, and not that nothing is known
        if not marks or not marks[-1].readable:
            return marks[-1] if marks else Mark()
        newest = marks[-1]
        latest = max((mark for mark in marks if mark.journal == newest.journal), key=lambda mark: mark.committed)
        if latest.committed <= newest.committed:
            return newest
        return replace(newest, committed=latest.committed, link=latest.link, revision=-1, chain="", versions="")

    def known_slot(self, journal: str) -> int:
        """The last slot that is known outside of a journal with this id, for whoever shows nothing else.

        Raises:
            InvalidJournal: if there is no such folder.
            StorageFailed: if it cannot be read, or does not know the journal.
        """
        for _ in range(_LOOKS):
            mark = self.seen()
            if mark.readable and mark.journal == journal:
                return mark.committed
            time.sleep(_PAUSE_S)  # a text that is being written may look like none
        found = (
            "one that cannot be read" if not mark.readable else "that of another journal" if mark.journal else "none"
        )
        raise StorageFailed(
            f"the mark of the journal in the side folder ({self._folder}): a slot is shown once it is known there",
            found,
            "Name the folder that its publisher uses, as a user who may read it. Or leave side= out of the address: then "
            "slots are shown that are known to have gone out, the last one later.",
            path=str(self._folder),
        )

    def begin(self, lease: Lease) -> None:
        """The writer's own file, as a copy of the newest one; its fencing number is in force.

        Raises:
            StorageFailed: if it cannot be made, or is there already: another database shares the folder.
        """
        known, older, path = self.seen(), self.files(), self._path(lease.fence)
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
        with side_errors(path):
            try:
                link_whole(path, older[-1].read_bytes() if older else b"", unfinished)
            except FileExistsError:
                raise StorageFailed(
                    f"a side folder that only this journal uses ({self._folder})",
                    f"{path.name}, which another writer made",
                    "Two databases with journals of the same name share the folder: give each its own.",
                    path=str(path),
                ) from None
            sync_path(self._folder)
            file = os.open(path, os.O_RDWR)
        self._lease, self.side = lease, MarkFile(path, file, known)
        self.side.name_writer(lease.writer)
        made = os.fstat(file)
        self._begun = made.st_dev, made.st_ino, self.side.writes

    def check_place(self) -> None:
        """Refuse to go on when another writer is known to have the journal, or the own side file was taken away.

        Raises:
            JournalLocked: if another writer has it.
            StorageFailed: if the file is not where it was.
        """
        if self._lease is None or self.side is None:
            return
        self._lease.check()
        found = None
        with side_errors(self.side.path), suppress(FileNotFoundError):  # another error does not tell that it is gone
            found = os.stat(self.side.path)
        if found is not None and (found.st_dev, found.st_ino) == self._begun[:2]:
            return
        if any(fence > self._lease.fence for fence in self.fences()):  # whoever came later removed it
            self._lease.lose()
            raise self._lease.locked(None)
        raise StorageFailed(
            f"the side file {self.side.path} to stay in its place while the journal is published into",
            "one that was removed or replaced",
            "Nothing more went out. Put it back; or publish with --released-through SLOT, the last slot that went out.",
            path=str(self.side.path),
        )

    def drop_older(self) -> None:
        """Destroy the keys in older files, and in what a crash left of one, and remove them; the own mark is on disk."""
        assert self._lease is not None
        for fence in self.fences():
            if fence < self._lease.fence:
                _destroy(self._path(fence))
        for name in self._names():
            left = self._partial.fullmatch(name)
            if (
                left is not None and int(left[1]) <= self._lease.fence
            ):  # a later one is being made: this writer has lost
                _destroy(self._folder / name)

    def close(self) -> None:
        """Close the own file; one that says nothing but what it was copied from goes."""
        if self.side is None:
            return
        if self.side.writes == self._begun[2]:
            self.side.path.unlink(missing_ok=True)
        self.side.release()

    def _names(self) -> list[str]:
        remedy = (
            "Let this user read it. Who only reads the journal may leave side= out of the address: then slots are shown "
            "that are known to have gone out."
        )
        with storage_errors(f"to read the side folder {self._folder}", remedy, self._folder):
            return os.listdir(self._folder)

    def _path(self, fence: int) -> Path:
        return self._folder / f"{self._place.schema}.{fence}.side"


def _destroy(path: Path) -> None:
    with side_errors(path):
        path.unlink(missing_ok=True)
