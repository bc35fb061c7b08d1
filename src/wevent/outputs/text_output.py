"""A text file of releases: every release of the journal, each once, in slot order.

Before a byte is written, all that the file holds is compared with the journal (`wevent.outputs.comparing`). Only then is
a torn end, which must be the beginning of what would be written there, cut off, and what is missing appended.

A file that is renamed under a run is rotated: the next release begins a new one at the path. That the earlier ones went
elsewhere is noted, on disk, before the new file is made, so no crash can leave one out.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from wevent.journal.contract import Emitted
from wevent.journal.record import Record
from wevent.outputs.comparing import LONGEST, Bounds, Format, Found, Written, compare, known_as, read_written
from wevent.outputs.lines import CSV_HEADER, csv_lines, csv_opening, ndjson_line, ndjson_opening
from wevent.outputs.refusals import ahead, changed_meanwhile, clear_errors, foreign, outdated, refuse_special, replaced

_log = logging.getLogger("wevent.outputs.text_output")
_TAIL = 1 << 16


class FileOutput:
    """A text file of releases.

    Args:
        path: the file.
        form: how releases are written.
        first: the first slot it is to hold.
    """

    def __init__(self, path: Path, form: Format, first: int = 1) -> None:
        self.path = path
        self._form = form
        self._after = first - 1  # the last slot that other files hold
        self._slot = 0
        self._file: BinaryIO | None = None
        self._journal: Emitted | None = None
        self._identity = ""
        self._size = 0
        self._hashed: Any = None
        self._seen: tuple[Any, Found] | None = None  # what `check` found, for as long as the file stays as it was

    def check(self, journal: Emitted, committed: int) -> None:
        """Refuse a file that is not this journal's; reads only.

        Raises:
            StaleJournal: if the file holds a slot that the journal does not know.
            InvalidOutput: if it is no file, or holds anything else than this journal's releases.
        """
        self._look(journal, committed)

    def repair(self, journal: Emitted, committed: int, emitted: int) -> int:
        """Cut off a torn end and append the missing releases, once `check` finds nothing.

        Raises:
            StaleJournal, InvalidOutput: as of `check`.
        """
        found = self._look(journal, committed)
        with clear_errors(self.path):
            there = os.path.realpath(self.path)
            self._file = open(there, "r+b" if self.path.exists() else "x+b", buffering=0)  # noqa: SIM115  until `close`
            self._file.truncate(found.keep)
        self._journal, self._identity = journal, journal.identity
        self._size, self._hashed = found.keep, found.hashed.copy()
        self._write([found.lacking if found.keep else self._form.header], found.last)
        return self._append_missing(journal, found.last)

    def emit(self, records: Iterable[Record]) -> None:
        """Append whole lines; to a new file, if this one was renamed or removed.

        Raises:
            InvalidOutput: if somebody else cut the file or wrote to it, or put another one in its place.
        """
        texts, slot = [], 0
        for record in records:
            texts.append(self._form.render(record))
            slot = record.slot
        if not texts:
            return
        if not self._is_in_place():
            self._begin_anew()
        self._write(texts, slot)

    def close(self) -> None:
        """Force it to disk and close it; the next run begins a new one if it was renamed or removed."""
        if self._file is not None:
            if not self._is_in_place():
                self._leave()
            with clear_errors(self.path):
                os.fsync(self._file.fileno())
                self._file.close()
            self._file = None

    def abandon(self) -> None:
        """Close the file as it is; the next run compares it with the journal."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def _is_in_place(self) -> bool:
        """Whether the path still leads to the file that is written to."""
        assert self._file is not None
        with clear_errors(self.path):
            try:
                return os.path.samestat(os.stat(self.path), os.fstat(self._file.fileno()))
            except FileNotFoundError:
                return False

    def _leave(self) -> None:
        """The file was renamed or removed: what follows belongs to a new one. Noted on disk before that is made."""
        assert self._file is not None
        refuse_special(self.path)
        with clear_errors(self.path):
            if self.path.exists() and self.path.stat().st_size:
                raise replaced(self.path)
            os.fsync(self._file.fileno())
            removed = not os.fstat(self._file.fileno()).st_nlink
        self._after, self._size, self._hashed = self._slot, 0, hashlib.sha256()
        self._note(force=True)
        if removed:
            _log.warning("%s was removed: a new one begins behind slot %d", self.path, self._slot)
        else:
            _log.info("%s was renamed: a new one begins behind slot %d", self.path, self._slot)

    def _begin_anew(self) -> None:
        self._leave()
        assert self._file is not None
        with clear_errors(self.path):
            self._file.close()
            self._file = open(os.path.realpath(self.path), "a+b", buffering=0)  # noqa: SIM115  until `close`
        self._write([self._form.header], self._slot)

    def _append_missing(self, journal: Emitted, last: int) -> int:
        sent = 0
        pending: list[Record] = []
        for record in journal.releases(last + 1):
            if record.shown is None:
                continue
            pending.append(record)
            sent += 1
            if len(pending) == 1024:
                self.emit(pending)
                pending = []
        if pending:
            self.emit(pending)
        return sent

    def _look(self, journal: Emitted, committed: int) -> Found:
        """What the file holds, if all of it is this journal's."""
        refuse_special(self.path)
        with clear_errors(self.path):
            written = read_written(journal, self.path) if committed else None
            if written is not None:
                self._after = max(self._after, min(written.after, committed))
            if not self.path.exists():
                return Found(self._after, 0, b"", hashlib.sha256())
            with self.path.open("rb") as file:
                stat = os.fstat(file.fileno())
                state = stat.st_ino, stat.st_size, stat.st_mtime_ns, committed
                if self._seen is None or self._seen[0] != state:
                    self._seen = state, self._inspect(file, journal, committed)
                return self._seen[1]

    def _inspect(self, file: BinaryIO, journal: Emitted, committed: int) -> Found:
        header = self._form.header
        size = file.seek(0, os.SEEK_END)
        start = _read(file, 0, min(size, len(header)))
        if len(start) < len(header) and header.startswith(start):
            return Found(self._after, 0, b"", hashlib.sha256())
        if _read(file, 0, len(self._form.first_version)) == self._form.first_version:
            raise outdated(self.path)
        if start != header:
            raise foreign(self.path)
        whole, line = _last_line(file, size)
        if size - whole > LONGEST:
            raise foreign(self.path)
        last = self._slot_of(line) if whole > len(header) else 0
        if not committed:
            if last:
                raise ahead(self.path, last, committed)
            if size > len(header):
                raise foreign(self.path)
            return Found(0, size, b"", hashlib.sha256(header))
        return compare(file, self.path, self._form, journal, Bounds(self._after, last, committed))

    def _slot_of(self, line: bytes) -> int:
        try:
            return self._form.slot_of(line)
        except ValueError:
            raise foreign(self.path) from None

    def _write(self, texts: list[bytes], slot: int) -> None:
        """Append, and note beside the journal what the file is now."""
        assert self._file is not None
        text = b"".join(texts)
        with clear_errors(self.path):
            if self._file.seek(0, os.SEEK_END) != self._size:
                raise changed_meanwhile(self.path)
            rest = memoryview(text)
            while rest:
                number = self._file.write(rest)
                self._size += number
                rest = rest[number:]
        self._hashed.update(text)
        self._slot = slot
        self._note()

    def _note(self, *, force: bool = False) -> None:
        """Write beside the journal what the file is now."""
        assert self._journal is not None
        digest, path = self._hashed.hexdigest(), known_as(self.path)
        written = Written(path, self._slot, self._size, digest, self._after, self._identity)
        self._journal.write_note(msgspec.json.encode(written), force=force)


def _read(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(end - start)


def _last_line(file: BinaryIO, size: int) -> tuple[int, bytes]:
    """Where the last line break is, and the line that ends there."""
    start, tail = size, b""
    while start and tail.count(b"\n") < 2 and len(tail) < LONGEST:
        step = min(start, max(_TAIL, len(tail)))
        start -= step
        tail = _read(file, start, start + step) + tail
    whole = tail.rfind(b"\n") + 1
    return start + whole, tail[tail.rfind(b"\n", 0, max(whole - 1, 0)) + 1 : whole]


def _ndjson_slot(line: bytes) -> int:
    try:
        return int(msgspec.json.decode(line)["slot"])
    except (msgspec.MsgspecError, KeyError, TypeError, RecursionError):
        raise ValueError("no release") from None


def _csv_slot(line: bytes) -> int:
    return int(line.split(b",", 1)[0])


NDJSON = Format(ndjson_line, b"", _ndjson_slot, ndjson_opening, b'{"slot":')
CSV = Format(csv_lines, CSV_HEADER, _csv_slot, csv_opening, b"slot,time,")
