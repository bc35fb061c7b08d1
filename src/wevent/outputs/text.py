"""A text file of releases: every release of the journal, each once, in slot order.

Before a byte is written, the first release in the file and the last one are compared with the journal's. Only then is a
torn end, which must be the beginning of what would be written there, cut off, and what is missing appended.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from wevent.journal.contract import Journal
from wevent.journal.lines import CSV_HEADER, csv_lines, ndjson_line, slot_time
from wevent.journal.record import Record
from wevent.journal.terms import Terms
from wevent.outputs.refusals import ahead, clear_errors, foreign, of_another_journal, refuse_special

_TAIL = 1 << 16
_LONGEST = 1 << 27  # a line of more bytes is no release


class Format(NamedTuple):
    """How releases are written as lines.

    Attributes:
        render: a record's bytes, whole lines.
        header: the file's first line, empty if it has none.
        slot_of: the slot that a line belongs to; ValueError if it is no line of this format.
        opening: how every line of a slot begins, whatever was released.
    """

    render: Callable[[Record], bytes]
    header: bytes
    slot_of: Callable[[bytes], int]
    opening: Callable[[Terms, int], bytes]


class _Found(NamedTuple):
    """What a file holds: the last slot (0: none), how many bytes stay, and what that slot still lacks."""

    last: int = 0
    keep: int = 0
    lacking: bytes = b""


class FileOutput:
    """A text file of releases.

    Args:
        path: the file.
        form: how releases are written.
    """

    def __init__(self, path: Path, form: Format) -> None:
        self.path = path
        self._form = form
        self._file: BinaryIO | None = None

    def check(self, journal: Journal, committed: int) -> None:
        """Refuse a file that is not this journal's; reads only.

        Raises:
            StaleJournal: if the file holds a slot that the journal does not know.
            InvalidOutput: if it is no file, or holds anything else than this journal's releases.
        """
        refuse_special(self.path)
        with clear_errors(self.path):
            if self.path.exists():
                with self.path.open("rb", buffering=0) as file:
                    self._inspect(file, journal, committed)

    def repair(self, journal: Journal, committed: int, emitted: int) -> int:
        """Cut off a torn end and append the missing releases, once `check` finds nothing.

        Raises:
            StaleJournal, InvalidOutput: as of `check`.
        """
        self.check(journal, committed)
        with clear_errors(self.path):
            file = open(self.path, "r+b" if self.path.exists() else "x+b", buffering=0)  # noqa: SIM115  until `close`
            self._file = file
            found = self._inspect(file, journal, committed)
            file.truncate(found.keep)
        self._write([found.lacking if found.keep else self._form.header])
        return self._append_missing(journal, found.last)

    def emit(self, records: Iterable[Record]) -> None:
        """Append whole lines."""
        self._write([self._form.render(record) for record in records])

    def close(self) -> None:
        """Force it to disk and close it."""
        if self._file is not None:
            with clear_errors(self.path):
                os.fsync(self._file.fileno())
                self._file.close()
            self._file = None

    def _append_missing(self, journal: Journal, last: int) -> int:
        sent = 0
        pending: list[bytes] = []
        for record in journal.releases(last + 1):
            if record.shown is None:
                continue
            pending.append(self._form.render(record))
            sent += 1
            if len(pending) == 1024:
                self._write(pending)
                pending = []
        self._write(pending)
        return sent

    def _inspect(self, file: BinaryIO, journal: Journal, committed: int) -> _Found:
        """What the file holds, if all of it that can be checked cheaply is this journal's."""
        header = self._form.header
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        start = file.read(len(header))
        if len(start) < len(header) and header.startswith(start):
            return _Found()
        if start != header:
            raise foreign(self.path)
        whole, line = _last_line(file, size)
        if size - whole > _LONGEST:
            raise foreign(self.path)
        if whole == len(header):
            self._check_torn(_read(file, whole, size), journal, 1 if committed else 0)
            return _Found(0, whole)
        last = self._slot_of(line)
        if last > committed:
            raise ahead(self.path, last, committed)
        first = _first_line(file, len(header), whole)
        self._check_line(first, self._slot_of(first), journal)
        return self._check_end(file, whole, line, last, journal)

    def _check_end(self, file: BinaryIO, whole: int, line: bytes, last: int, journal: Journal) -> _Found:
        """The last release, and what stands torn behind it."""
        size = file.seek(0, os.SEEK_END)
        lines, place = self._check_line(line, last, journal)
        present = lines[: place + 1]
        start = whole - sum(map(len, present))
        if start < len(self._form.header) or _read(file, start, whole) != b"".join(present):
            raise of_another_journal(self.path, last)
        torn, lacking = _read(file, whole, size), b"".join(lines[place + 1 :])
        if lacking:
            if not lacking.startswith(torn):
                raise foreign(self.path)
        else:
            self._check_torn(torn, journal, last + 1)
        return _Found(last, whole, lacking)

    def _check_line(self, line: bytes, slot: int, journal: Journal) -> tuple[list[bytes], int]:
        """A line of a slot must be one of those the journal has for it; returns these and its place among them."""
        record = next(journal.releases(slot), None)
        if record is None:
            raise of_another_journal(self.path, slot)
        if record.slot != slot or record.shown is None:  # dropped, or released elsewhere: only its start is known
            if not line.startswith(self._form.opening(record.epoch.terms, slot)):
                raise of_another_journal(self.path, slot)
            return [line], 0
        lines = self._form.render(record).splitlines(keepends=True)
        if line not in lines:
            raise of_another_journal(self.path, slot)
        return lines, lines.index(line)

    def _check_torn(self, torn: bytes, journal: Journal, slot: int) -> None:
        """What has no line break must be the beginning of the next release, from `slot` on (0: there is none)."""
        if not torn:
            return
        for record in journal.releases(slot) if slot else ():
            text = self._form.opening(record.epoch.terms, record.slot)
            if record.shown is not None:
                text = self._form.render(record)
            elif torn.startswith(text):
                return
            if text.startswith(torn):
                return
            if record.shown is not None:
                break
        raise foreign(self.path)

    def _slot_of(self, line: bytes) -> int:
        try:
            return self._form.slot_of(line)
        except ValueError:
            raise foreign(self.path) from None

    def _write(self, texts: list[bytes]) -> None:
        assert self._file is not None
        with clear_errors(self.path):
            self._file.seek(0, os.SEEK_END)
            rest = memoryview(b"".join(texts))
            while rest:
                rest = rest[self._file.write(rest) :]


def _read(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    parts = []
    while start < end and (part := file.read(end - start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def _first_line(file: BinaryIO, start: int, end: int) -> bytes:
    """The line that starts at a place; one ends before `end`."""
    text = b""
    while b"\n" not in text and len(text) < min(end - start, _LONGEST):
        text = _read(file, start, min(start + max(_TAIL, 2 * len(text)), end))
    return text[: text.find(b"\n") + 1]


def _last_line(file: BinaryIO, size: int) -> tuple[int, bytes]:
    """Where the last line break is, and the line that ends there."""
    start, tail = size, b""
    while start and tail.count(b"\n") < 2 and len(tail) < _LONGEST:
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


def _ndjson_opening(terms: Terms, slot: int) -> bytes:
    return b'{"slot":%d,"time":"%s",' % (slot, slot_time(terms, slot).encode())


def _csv_slot(line: bytes) -> int:
    return int(line.split(b",", 1)[0])


def _csv_opening(terms: Terms, slot: int) -> bytes:
    return b"%d,%s," % (slot, slot_time(terms, slot).encode())


NDJSON = Format(ndjson_line, b"", _ndjson_slot, _ndjson_opening)
CSV = Format(csv_lines, CSV_HEADER, _csv_slot, _csv_opening)
