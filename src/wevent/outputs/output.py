"""Base class of outputs, standard output, and errors about the files of outputs."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from wevent.errors import InvalidOutput, ReaderGone, StaleJournal, StorageFailed, may_pass
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
                f"Standard output {'is closed' if closed else 'cannot be written'}.",
                "Run the same command again: releases are safe in the journal, and those that were not seen are sent again.",
                path="-",
                passing=may_pass(error) if isinstance(error, OSError) else error.passing,
            ) from None


def refuse_special(path: Path) -> None:
    """Refuse a folder, pipe or device as a file, and a file in a missing folder."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        folder = Path(os.path.realpath(path)).parent
        if not folder.is_dir():
            raise StorageFailed(f"{path} is in a missing folder.", "Make the folder first.", path=str(path)) from None
        return
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a device"
        raise InvalidOutput(
            f"{path} is {kind}, not a file for the releases.",
            "Name a file, or use - for standard output.",
            path=str(path),
        )


def not_ours(path: Path, slot: int | None = None) -> InvalidOutput:
    """Return the error for a file that differs from the journal."""
    found = (
        "something other than releases of this journal" if slot is None else f"another release of slot {slot}, or none"
    )
    facts: dict[str, Any] = {} if slot is None else {"slot": slot}
    return InvalidOutput(
        f"{path} holds {found}.",
        "The file belongs to another journal, or was edited: choose another file, or move it away (a new one gets every "
        "release that the journal keeps). It is untouched.",
        path=str(path),
        **facts,
    )


def ahead(path: Path, last: int, committed: int) -> StaleJournal:
    """Return the error for a file with a slot that the journal lacks."""
    problem = f"{path} ends with slot {last}, and the journal {f'with slot {committed}' if committed else 'is new'}."
    fix = (
        "The journal is an old copy, unless the file is another journal's: state how far releases went out "
        f"(publish --released-through {last}, or later), or choose another file."
        if committed
        else "Those slots went out already: restore the journal they came from (a backup with --released-through "
        f"{last} or later), or choose another output: over the same people epsilons then add up."
    )
    return StaleJournal(problem, fix, committed=committed, released=last)


def dropped(path: Path, first: int, last: int) -> InvalidOutput:
    """Return the error for a file that needs slots which the journal dropped."""
    return InvalidOutput(
        f"The journal dropped slots {first} to {last}, which {path} needs (--keep).",
        "Move the file away, and a new one gets every release that the journal keeps. It is untouched.",
        path=str(path),
        slot=first,
    )


def changed(path: Path) -> InvalidOutput:
    """Return the error for a file that another program changed during a run."""
    return InvalidOutput(
        f"Another program replaced, cut or wrote to {path} during the run.",
        "Releases are safe in the journal: move the file away and run the same command again; to rotate, rename it.",
        path=str(path),
    )


def unwritable(path: Path, reason: str, *, passing: bool = False) -> StorageFailed:
    """Return the error for a file that cannot be written."""
    return StorageFailed(f"{path} cannot be written ({reason}).", _REMEDY, path=str(path), passing=passing)


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """Raise errors of the operating system as one clear sentence."""
    try:
        yield
    except OSError as error:
        raise unwritable(path, error.strerror or "an error", passing=may_pass(error)) from None
