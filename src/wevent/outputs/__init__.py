"""Outputs of a stream: a file, standard output, or the journal alone. Sending a slot again changes nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from wevent.errors import InvalidOption, InvalidOutput
from wevent.outputs.output import KeptOutput, Output, StreamOutput
from wevent.outputs.parquet_output import ParquetOutput
from wevent.outputs.text_output import CSV, NDJSON, FileOutput

__all__ = [
    "FileOutput",
    "KeptOutput",
    "Output",
    "ParquetOutput",
    "StreamOutput",
    "open_output",
    "refuse_dropping",
    "refuse_existing",
    "refuse_same_file",
    "standard_output",
]


def open_output(target: str | None, first: int = 1) -> Output:
    """Return the output of releases from a slot on, by the ending of its path; "-" or None is standard output."""
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
        f"The output {str(path)!r} does not end in .ndjson, .csv or .parquet.",
        "Name a file in it." if path.is_dir() else "Rename it, or use - for standard output.",
        path=str(path),
    )


def standard_output() -> BinaryIO:
    """Return standard output, as bytes."""
    if sys.stdout is None:
        raise InvalidOutput("Standard output is closed.", "Redirect it, or name a file.", path="-")
    return sys.stdout.buffer


def refuse_dropping(output: Output, keep: int | None) -> None:
    """Refuse to drop slots from the journal (`keep`) that no output has."""
    if keep is not None and isinstance(output, KeptOutput | ParquetOutput):
        there = "There is no output" if isinstance(output, KeptOutput) else f"{output.path} is made when the run ends"
        raise InvalidOption(
            f"{there}, and the journal drops slots (--keep).",
            "Leave --keep out, or choose an output that grows with every slot (.ndjson, .csv or -).",
            option="keep",
        )


def refuse_same_file(target: str | None, others: Iterable[tuple[str, Path]]) -> None:
    """Refuse an output that is one of the files a run reads or keeps."""
    if target is None or target == "-":
        return
    path = Path(target)
    for kind, other in others:
        same = os.path.realpath(path) == os.path.realpath(other)
        if same or (path.exists() and other.exists() and path.samefile(other)):
            raise InvalidOutput(
                f"{path} is {kind}, not a file of its own for the releases.",
                "Choose another file; this one is untouched.",
                path=str(path),
            )


def refuse_existing(path: Path) -> None:
    """Refuse a file that is not empty, for a part of the releases: only a file of all releases can be continued."""
    if path.exists() and path.stat().st_size:
        raise InvalidOutput(
            f"{path} exists, and a part of the releases needs a new file.",
            "Choose another file, or move it away; it is untouched.",
            path=str(path),
        )
