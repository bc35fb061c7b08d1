"""Base class of outputs, standard output, and errors about the files of outputs."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from wevent.errors import InvalidOutput, ReaderGone, StaleJournal, StorageFailed, may_pass
from wevent.file_io import storage_errors
from wevent.journal.record import Emitted, Record
from wevent.outputs.lines import ndjson_line, released_records

_REMEDY = "Releases are safe in the journal: make room or the folder writable, and run the same command again."


class Output:
    """A receiver of releases. By default it does nothing."""

    def check(self, journal: Emitted, committed: int) -> None:
        """Refuse a file that is not this journal's, before anything is written.

        Args:
            journal: source of the releases; not read when nothing is committed.
            committed: its last committed slot, or a later one that is about to be stored as released elsewhere.
        """

    def repair(self, journal: Emitted, committed: int, emitted: int) -> int:
        """Bring the output up to the last committed slot; return the number of releases sent (again)."""
        return 0

    def emit(self, records: Iterable[Record]) -> None:
        """Send committed releases, in slot order."""

    def close(self) -> None:
        """Finish the output."""

    def abandon(self) -> None:
        """Release open files after a failure. The next run sends missing releases."""


class KeptOutput(Output):
    """No output: releases stay in the journal."""


class StreamOutput(Output):
    """Standard output. After a crash the last releases may come again, the same bytes; readers drop repeated slots.

    The stream stays open: the process owns it.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def repair(self, journal: Emitted, committed: int, emitted: int) -> int:
        """Send every committed release that is not known to be emitted."""
        again = list(released_records(journal, emitted + 1))
        self.emit(again)
        return len(again)

    def emit(self, records: Iterable[Record]) -> None:
        """Send one line per slot, then flush."""
        try:
            self._stream.write(b"".join(ndjson_line(record) for record in records))
            self._stream.flush()
        except (OSError, StorageFailed) as error:
            closed = isinstance(error, (BrokenPipeError, ReaderGone))
            raise StorageFailed(
                "to write to standard output",
                "a closed one" if closed else "one that cannot be written",
                "Releases are safe in the journal: what was not seen is sent again when the same command is run again.",
                path="-",
                passing=may_pass(error) if isinstance(error, OSError) else error.passing,
            ) from None


def refuse_special(path: Path) -> None:
    """Refuse a folder, pipe or device as a file, and a file in a missing folder.

    Raises:
        InvalidOutput: naming the kind.
        StorageFailed: if the folder is missing.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        if not Path(os.path.realpath(path)).parent.is_dir():
            raise StorageFailed(
                "a file for the releases in an existing folder", f"{path}", "Make the folder first.", path=str(path)
            ) from None
        return
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a device"
        raise InvalidOutput(
            "a file for the releases",
            f"{kind} ({path})",
            "Name a file, or use - for standard output.",
            path=str(path),
        )


def not_ours(path: Path, slot: int | None = None) -> InvalidOutput:
    """Return the error for a file that differs from the journal."""
    return InvalidOutput(
        f"releases of this journal in {path}",
        "something else" if slot is None else f"another release of slot {slot}, or none",
        "The file belongs to another journal, or was edited: choose another file, or move it away (a new one gets every "
        "release that the journal keeps). It is untouched.",
        path=str(path),
        **({} if slot is None else {"slot": slot}),
    )


def ahead(path: Path, last: int, committed: int) -> StaleJournal:
    """Return the error for a file with a slot that the journal lacks."""
    if committed:
        received = f"one that ends with slot {committed}"
        remedy = (
            "The journal is an old copy, unless the file is another journal's: state how far releases went out "
            f"(publish --released-through {last}, or later), or choose another file."
        )
    else:
        received = "a new one"
        remedy = (
            "Those slots went out already: restore the journal they came from (a backup with --released-through "
            f"{last} or later), or choose another output: over the same people epsilons then add up."
        )
    expected = f"a journal that knows slot {last}, the last one in {path}"
    return StaleJournal(expected, received, remedy, committed=committed, released=last)


def dropped(path: Path, first: int, last: int) -> InvalidOutput:
    """Return the error for a file that needs slots which the journal dropped."""
    return InvalidOutput(
        f"slots {first} to {last}, which {path} needs",
        "a journal that dropped them (--keep)",
        "Move the file away, and a new one gets every release that the journal keeps. It is untouched.",
        path=str(path),
        slot=first,
    )


def changed(path: Path) -> InvalidOutput:
    """Return the error for a file that another program changed during a run."""
    return InvalidOutput(
        f"{path} as this run left it",
        "one that another program replaced, cut or wrote to",
        "Releases are safe in the journal: move the file away and run the same command again; to rotate, rename it.",
        path=str(path),
    )


def unwritable(path: Path, reason: str, *, passing: bool = False) -> StorageFailed:
    """Return the error for a file that cannot be written."""
    return StorageFailed(f"to write {path}", reason, _REMEDY, path=str(path), passing=passing)


def clear_errors(path: Path) -> AbstractContextManager[None]:
    """Raise errors of the operating system as one clear sentence."""
    return storage_errors(f"to write {path}", _REMEDY, path)
