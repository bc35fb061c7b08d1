"""Where releases go: a file that is repaired after a crash, standard output, or the journal alone. Idempotent by slot."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Protocol

from wevent.errors import InvalidOption, InvalidOutput
from wevent.journal.contract import Emitted
from wevent.journal.record import Record
from wevent.outputs.kept_output import KeptOutput
from wevent.outputs.parquet_output import ParquetOutput
from wevent.outputs.refusals import refuse_same_file
from wevent.outputs.stream_output import StreamOutput
from wevent.outputs.text_output import CSV, NDJSON, FileOutput

__all__ = [
    "FileOutput",
    "KeptOutput",
    "Output",
    "ParquetOutput",
    "StreamOutput",
    "open_output",
    "refuse_dropping",
    "refuse_same_file",
    "standard_output",
]


class Output(Protocol):
    """A place that releases go to."""

    def check(self, journal: Emitted, committed: int) -> None:
        """Refuse a place that is not this journal's, before a byte of it is written.

        Args:
            journal: whose releases it is for; not looked at when nothing is committed.
            committed: its last committed slot, or a later one that it is about to be told of as released elsewhere.
        """

    def repair(self, journal: Emitted, committed: int, emitted: int) -> int:
        """Bring it up to the last committed slot; returns how many releases were sent (again)."""

    def emit(self, records: Iterable[Record]) -> None:
        """Send committed releases, in slot order."""

    def close(self) -> None:
        """Nothing more follows."""

    def abandon(self) -> None:
        """Let go of what is open after a failure; nothing if it is closed. What is missing is sent by the next run."""


def refuse_dropping(output: Output, keep: int | None) -> None:
    """Refuse to drop slots from the journal while they are nowhere else.

    Args:
        output: where releases go.
        keep: how many slots the journal is to keep; None: all.

    Raises:
        InvalidOption: for an output that is made from the journal when the run ends, or none beside the journal.
    """
    if keep is not None and isinstance(output, KeptOutput):
        raise InvalidOption(
            'an output beside the journal, as out="releases.ndjson", for a journal that drops slots (keep)',
            "none",
            "Releases that are dropped would be nowhere: name an output, or leave keep out.",
            option="keep",
        )
    if keep is not None and isinstance(output, ParquetOutput):
        raise InvalidOption(
            "an output that grows with every slot (.ndjson, .csv or -) for a journal that drops slots (--keep)",
            f"a Parquet file ({output.path}), which is made from the journal when the run ends",
            "Leave --keep out, or choose another output.",
            option="keep",
        )


def standard_output() -> BinaryIO:
    """Standard output, as bytes.

    Raises:
        InvalidOutput: if it is closed.
    """
    if sys.stdout is None:
        raise InvalidOutput("standard output", "a closed one", "Redirect it, or name a file.", path="-")
    return sys.stdout.buffer


def open_output(target: str | None, first: int = 1) -> Output:
    """The output for a path, by its ending; "-" or None is standard output.

    Args:
        target: where releases go.
        first: the first slot that a file is to hold.

    Raises:
        InvalidOutput: for an ending that is no format.
    """
    if target is None or target == "-":
        return StreamOutput(standard_output())
    path = Path(target)
    ending = path.suffix.lower()
    if ending in (".ndjson", ".jsonl", ".json"):
        return FileOutput(path, NDJSON, first)
    if ending == ".csv":
        return FileOutput(path, CSV, first)
    if ending == ".parquet":
        return ParquetOutput(path, first)
    raise InvalidOutput(
        "an output ending in .ndjson, .csv or .parquet, or - for standard output",
        f"{str(path)!r}",
        "Name a file in it." if path.is_dir() else "Rename it.",
        path=str(path),
    )
