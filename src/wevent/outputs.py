"""Where releases go: a file that is repaired after a crash, or standard output. Idempotent by slot.

A file holds every release of the journal, each once, in slot order. Opening it for a resumed run cuts off a torn last
line, checks that what is there is this journal's, and appends what is missing, byte for byte.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec

from wevent.errors import InvalidOutput, StaleJournal, StorageFailed
from wevent.journal.contract import Journal
from wevent.journal.lines import CSV_HEADER, csv_lines, ndjson_line
from wevent.journal.record import Record

_TAIL = 1 << 16


class Output(Protocol):
    """A place that releases go to."""

    def repair(self, journal: Journal, committed: int, emitted: int) -> int:
        """Bring it up to the last committed slot; returns how many releases were sent (again)."""

    def emit(self, records: Iterable[Record]) -> None:
        """Send committed releases, in slot order."""

    def close(self) -> None:
        """Nothing more follows."""


def open_output(target: str | None) -> Output:
    """The output for a path, by its ending; "-" or None is standard output.

    Raises:
        InvalidOutput: for an ending that is no format.
    """
    if target is None or target == "-":
        return StreamOutput(sys.stdout.buffer)
    path = Path(target)
    ending = path.suffix.lower()
    if ending in (".ndjson", ".jsonl", ".json"):
        return FileOutput(path, ndjson_line, b"", _ndjson_slot)
    if ending == ".csv":
        return FileOutput(path, csv_lines, CSV_HEADER, _csv_slot)
    if ending == ".parquet":
        return ParquetOutput(path)
    raise InvalidOutput(
        "an output ending in .ndjson, .csv or .parquet, or - for standard output",
        repr(ending),
        "Rename it.",
        path=str(path),
    )


class StreamOutput:
    """Standard output: what may not have been seen is sent again, the same bytes; readers drop repeated slots."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def repair(self, journal: Journal, committed: int, emitted: int) -> int:
        """Send every committed release that is not known to have gone out."""
        again = _emittable(journal.releases(emitted + 1))
        self.emit(again)
        return len(again)

    def emit(self, records: Iterable[Record]) -> None:
        """One line per slot, then flush."""
        self._stream.write(b"".join(ndjson_line(record) for record in records))
        self._stream.flush()

    def close(self) -> None:
        """Leave it open: it is not ours."""


class FileOutput:
    """A text file of releases.

    Args:
        path: the file.
        render: a record's bytes, whole lines.
        header: the file's first line, empty if it has none.
        slot_of: the slot that a line belongs to; ValueError if it is no line of this format.
    """

    def __init__(
        self, path: Path, render: Callable[[Record], bytes], header: bytes, slot_of: Callable[[bytes], int]
    ) -> None:
        self.path = path
        self._render = render
        self._header = header
        self._slot_of = slot_of
        self._file: BinaryIO | None = None

    def repair(self, journal: Journal, committed: int, emitted: int) -> int:
        """Cut off a torn end, check the last release, append the missing ones.

        Raises:
            StaleJournal: if the file holds a slot that the journal does not know.
            InvalidOutput: if its last release is not this journal's.
        """
        with _clear(self.path):
            file = open(self.path, "r+b" if self.path.exists() else "w+b", buffering=0)  # noqa: SIM115
        self._file = file
        if not file.seek(0, os.SEEK_END):
            self._write([self._header])
        last = self._keep_whole(file)
        if last > committed:
            raise StaleJournal(
                f"a journal that knows slot {last}, the last one in {self.path}",
                f"one that ends with slot {committed}",
                f"It is an old copy. Say how far releases went out: publish --released-through {last} (or later).",
                committed=committed,
                released=last,
            )
        return self._append_missing(journal, last)

    def emit(self, records: Iterable[Record]) -> None:
        """Append whole lines."""
        self._write([self._render(record) for record in records])

    def close(self) -> None:
        """Force it to disk and close it."""
        if self._file is not None:
            with _clear(self.path):
                os.fsync(self._file.fileno())
                self._file.close()
            self._file = None

    def _append_missing(self, journal: Journal, last: int) -> int:
        """Rewrite the last release if it is torn, then everything after it."""
        assert self._file is not None
        sent = 0
        pending: list[bytes] = []
        for record in journal.releases(max(last, 1)):
            if record.shown is None:
                continue
            text = self._render(record)
            if record.slot == last:
                self._check_last(text)
                continue
            pending.append(text)
            sent += 1
            if len(pending) == 1024:
                self._write(pending)
                pending = []
        self._write(pending)
        return sent

    def _keep_whole(self, file: BinaryIO) -> int:
        """Cut the file after its last line break; returns the slot of the last line, 0 if there is none."""
        size = file.seek(0, os.SEEK_END)
        start, tail = size, b""
        while start and tail.count(b"\n") < 2:
            step = min(start, max(_TAIL, len(tail)))
            start -= step
            file.seek(start)
            tail = file.read(step) + tail
        whole = tail.rfind(b"\n") + 1
        file.truncate(start + whole)
        file.seek(0, os.SEEK_END)
        line = tail[tail.rfind(b"\n", 0, max(whole - 1, 0)) + 1 : whole]
        if not whole and not start:
            self._write([self._header])
        if not line or line == self._header:
            return 0
        try:
            return self._slot_of(line)
        except ValueError:
            raise InvalidOutput(
                f"releases in {self.path}",
                "something else",
                "Choose another file, or move it away.",
                path=str(self.path),
            ) from None

    def _check_last(self, text: bytes) -> None:
        """The last release in the file must be the journal's; one that lacks lines at its end is completed."""
        assert self._file is not None
        end = self._file.seek(0, os.SEEK_END)
        start = max(end - len(text), 0)
        self._file.seek(start)
        if self._file.read(end - start) == text:
            return
        lines = text.splitlines(keepends=True)
        for present in range(len(lines) - 1, 0, -1):
            part = b"".join(lines[:present])
            self._file.seek(max(end - len(part), 0))
            if end >= len(part) and self._file.read(len(part)) == part:
                self._write(lines[present:])
                return
        slot = self._slot_of(lines[-1])
        raise InvalidOutput(
            f"the release of slot {slot} as the journal has it",
            f"another one in {self.path}",
            "The file belongs to another journal, or was edited: choose another file.",
            path=str(self.path),
            slot=slot,
        )

    def _write(self, texts: list[bytes]) -> None:
        assert self._file is not None
        with _clear(self.path):
            self._file.seek(0, os.SEEK_END)
            rest = memoryview(b"".join(texts))
            while rest:
                rest = rest[self._file.write(rest) :]


class ParquetOutput:
    """A Parquet file, which cannot grow: written whole from the journal at the end of a run, in one move."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._journal: Journal | None = None

    def repair(self, journal: Journal, committed: int, emitted: int) -> int:
        """Nothing yet: the file is made anew by `close`."""
        self._journal = journal
        return 0

    def emit(self, records: Iterable[Record]) -> None:
        """Nothing yet: the journal has them."""

    def close(self) -> None:
        """Write all releases of the journal to a new file and put it in place."""
        import duckdb

        if self._journal is None:
            return
        table, partial = self.path.with_name(self.path.name + ".csv"), self.path.with_name(self.path.name + ".partial")
        with _clear(self.path):
            with table.open("wb") as file:
                file.write(CSV_HEADER)
                for record in self._journal.releases(1):
                    if record.shown is not None:
                        file.write(csv_lines(record))
            duckdb.connect().execute(
                "COPY (SELECT * FROM read_csv(?, header = true, columns = {'slot': 'BIGINT', 'time': 'TIMESTAMPTZ',"
                " 'cell': 'VARCHAR', 'value': 'DOUBLE', 'std_error': 'DOUBLE', 'outcome': 'VARCHAR',"
                f" 'fresh': 'BOOLEAN', 'mechanism': 'VARCHAR'}})) TO '{_sql(partial)}' (FORMAT parquet)",
                [str(table)],
            )
            os.replace(partial, self.path)
            table.unlink()
        self._journal = None


def _emittable(records: Iterable[Record]) -> list[Record]:
    return [record for record in records if record.shown is not None]


def _ndjson_slot(line: bytes) -> int:
    try:
        return int(msgspec.json.decode(line)["slot"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        raise ValueError("no release") from None


def _csv_slot(line: bytes) -> int:
    return int(line.split(b",", 1)[0])


def _sql(path: Path) -> str:
    return str(path).replace("'", "''")


class _clear:  # noqa: N801  reads as a statement
    """Operating-system errors of an output as one clear sentence."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise StorageFailed(
                f"to write {self._path}",
                error.strerror or "an error",
                "Releases are safe in the journal: make room or the folder writable and run the same command again.",
                path=str(self._path),
            ) from None
