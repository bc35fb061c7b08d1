"""What an output must not be, and errors of the operating system, in one clear sentence each."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from wevent.errors import InvalidOutput, StaleJournal, StorageFailed, may_pass


def refuse_special(path: Path) -> None:
    """Refuse a folder, pipe or device where a file is needed, and a file in a folder that is not there.

    Raises:
        InvalidOutput: naming what it is.
        StorageFailed: if the folder is not there.
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


def refuse_same_file(target: str | None, others: Iterable[tuple[str, Path]]) -> None:
    """Refuse an output that is one of the files a run reads or keeps.

    Args:
        target: as of `open_output`.
        others: the other files, and what each of them is.

    Raises:
        InvalidOutput: naming what it is.
    """
    if target is None or target == "-":
        return
    path = Path(target)
    for kind, other in others:
        same = os.path.realpath(path) == os.path.realpath(other)
        if same or (path.exists() and other.exists() and path.samefile(other)):
            raise InvalidOutput(
                "a file of its own for the releases",
                f"{kind} ({path})",
                "Choose another file; this one is untouched.",
                path=str(path),
            )


def refuse_existing(path: Path) -> None:
    """Refuse a file that is there already, for a part of the releases: only the whole can be gone on with.

    Raises:
        InvalidOutput: if it is not empty.
    """
    if path.exists() and path.stat().st_size:
        raise InvalidOutput(
            "a new file for a part of the releases",
            f"one that is there already ({path})",
            "Choose another file, or move it away; it is untouched.",
            path=str(path),
        )


def foreign(path: Path) -> InvalidOutput:
    """What is said about a file that holds something else."""
    return InvalidOutput(
        f"releases in {path}",
        "something else",
        "Choose another file, or move it away; it is untouched.",
        path=str(path),
    )


def outdated(path: Path) -> InvalidOutput:
    """What is said about a file of releases in the first version of the format."""
    return InvalidOutput(
        f"releases in format 2 in {path}",
        "releases in format 1, which an earlier wevent wrote",
        "Move it away and run the same command again: a new file gets every release that the journal keeps, in format 2 "
        "(wevent releases JOURNAL --out NEW does it without publishing). It is untouched.",
        path=str(path),
    )


def of_another_journal(path: Path, slot: int) -> InvalidOutput:
    """What is said about a file that holds another release for a slot."""
    return InvalidOutput(
        f"the release of slot {slot} as the journal has it",
        f"another one in {path}",
        "The file belongs to another journal, or was edited: choose another file, or move it away (a new one gets every "
        "release that the journal keeps). It is untouched.",
        path=str(path),
        slot=slot,
    )


def incomplete(path: Path, missing: int, found: int) -> InvalidOutput:
    """What is said about a file in which releases are missing before others."""
    return InvalidOutput(
        f"the release of slot {missing} in {path}",
        f"that of slot {found} in its place",
        "Lines were removed, or the file was cut and went on (copytruncate): move it away, and a new one gets every "
        "release that the journal keeps. It is untouched.",
        path=str(path),
        slot=missing,
    )


def gap(path: Path, first: int, last: int) -> InvalidOutput:
    """What is said about a file that ends before the first slot which the journal still has."""
    return InvalidOutput(
        f"releases up to slot {last} in {path}",
        f"none of slots {first} to {last}",
        "The journal no longer has them (--keep), so the file cannot be completed: move it away, and a new one gets "
        "every release that the journal keeps. It is untouched.",
        path=str(path),
        slot=first,
    )


def no_longer_kept(path: Path, first: int, last: int) -> InvalidOutput:
    """What is said about a file that is made anew, and holds slots which the journal can no longer give it."""
    return InvalidOutput(
        f"no releases in {path} but those that the journal keeps",
        f"those of slots {first} to {last}, too",
        "A Parquet file is made anew from the journal, which dropped them (--keep): move it away, and a new one gets "
        "every release that the journal keeps. It is untouched.",
        path=str(path),
        slot=first,
    )


def replaced(path: Path) -> InvalidOutput:
    """What is said about another file that was put in the place of the output during a run."""
    return InvalidOutput(
        f"{path} as this run left it, or none",
        "another file, which is not empty",
        "Releases are safe in the journal: move that file away and run the same command again. It is untouched.",
        path=str(path),
    )


def changed_meanwhile(path: Path) -> InvalidOutput:
    """What is said about a file that somebody else cut or wrote to during a run."""
    return InvalidOutput(
        f"{path} as this run left it",
        "one that was cut or written to by somebody else",
        "Releases are safe in the journal: move the file away and run the same command again; to rotate, rename it.",
        path=str(path),
    )


def ahead(path: Path, last: int, committed: int) -> StaleJournal:
    """What is said about a file that holds a slot which the journal does not know."""
    remedy = (
        "All that both have is the same, so the journal is an old copy. Say how far releases went out: "
        f"publish --released-through {last} (or later)."
    )
    if not committed:
        remedy = (
            "Those slots went out already: restore the journal they came from (a backup with --released-through "
            f"{last} or later), or choose another output: over the same people epsilons then add up."
        )
    return StaleJournal(
        f"a journal that knows slot {last}, the last one in {path}",
        f"one that ends with slot {committed}" if committed else "a new one",
        remedy,
        committed=committed,
        released=last,
    )


def unrelated(path: Path, last: int, committed: int) -> StaleJournal:
    """What is said about a file that goes on behind the journal's last slot and shares no fresh release with it."""
    return StaleJournal(
        f"a journal that knows slot {last}, the last one in {path}",
        f"one that ends with slot {committed}, and no fresh release that both have",
        "Nothing shows whose releases these are. If they are another journal's, choose another file. Only if they are "
        f"this journal's, it is an old copy: restore a newer one, or say --released-through {last} (or later).",
        committed=committed,
        released=last,
    )


def doubtful(path: Path, slot: int, last: int, committed: int) -> InvalidOutput:
    """What is said about a file that goes on behind the journal's last slot and differs from it before."""
    return InvalidOutput(
        f"the releases up to slot {committed} as the journal has them",
        f"a file that differs in slot {slot} and goes on to slot {last} ({path})",
        "It is another journal's: choose another file. (If it is this one's and was edited, the journal is an old copy: "
        "restore a newer one.) Nothing was changed.",
        path=str(path),
        slot=slot,
    )


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """Operating-system errors of an output as one clear sentence."""
    try:
        yield
    except OSError as error:
        raise unwritable(path, error.strerror or "an error", passing=may_pass(error)) from None


def unwritable(path: Path, reason: str, *, passing: bool = False) -> StorageFailed:
    """What is said about a file that could not be written."""
    missing = not Path(os.path.realpath(path)).parent.is_dir()
    return StorageFailed(
        f"to write {path}",
        reason,
        f"Releases are safe in the journal: {'make the folder' if missing else 'make room or the folder writable'} "
        "and run the same command again.",
        path=str(path),
        passing=passing,
    )
