"""Text files of releases (NDJSON, CSV).

A file holds every release of the journal once and in slot order, after any crash. The rule:

1. A run appends to the file. A note beside the journal has the path, the last slot, the size and a digest of the file.
2. The next run reads the last line. A file that goes on after the journal's last slot is refused: the journal is an old
   copy, or the file is another journal's.
3. The part that the note describes is checked by its digest. The rest, or everything without a matching note, is compared
   with the releases of the journal. If both agree, the run appends. A last slot that is not whole is cut off first.
4. A file that differs is rewritten from the journal (temporary file, fsync, rename) on three conditions. The note names the
   file, its last line is a release of this journal, and the journal has every slot from the first to the last in the file.
5. Any other file is refused and stays as it is.

The file alone has slots that the journal dropped (`--keep`) or that another copy released. Only their order is checked.

A file that is renamed under a run is rotated: the next release begins a new file at the path. The note has the last slot of
the renamed file, on disk, before the new file is made, so a crash leaves out no release.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from wevent.errors import InvalidOutput
from wevent.file_io import atomic_write
from wevent.journal.record import Emitted, Record
from wevent.outputs.lines import CSV_HEADER, CSV_OPENING, NDJSON_OPENING, csv_lines, ndjson_line, released_records
from wevent.outputs.output import Output, ahead, changed, clear_errors, dropped, not_ours, refuse_special

_log = logging.getLogger("wevent.outputs.text_output")
_LONGEST = 1 << 27  # a line of more bytes is no release
_TAIL = 1 << 16


class Format(NamedTuple):
    """Form of releases as lines."""

    render: Callable[[Record], bytes]
    header: bytes  # first line of a file, if there is one
    opening: bytes  # of every line, up to its slot


NDJSON = Format(ndjson_line, b"", NDJSON_OPENING)
CSV = Format(csv_lines, CSV_HEADER, CSV_OPENING)


class Note(msgspec.Struct, frozen=True):
    """State of a file after a slot was written to it, stored beside the journal.

    Attributes:
        path, slot, size, digest: the file, its last slot, its size then and the digest of these bytes.
        after: last slot in files that were renamed under a run.
        journal: identity of the journal.
    """

    path: str
    slot: int
    size: int
    digest: str
    after: int
    journal: str


class _Content:
    """Beginning of a file that the journal confirms.

    Attributes:
        last: last slot in it; without any, the last one in other files.
        size: number of bytes.
        hashed: digest of these bytes.
    """

    def __init__(self, last: int, text: bytes = b"") -> None:
        self.last, self.size, self.hashed = last, 0, hashlib.sha256()
        self.add(text, last)

    def add(self, text: bytes, last: int) -> None:
        """Add bytes that end with a slot."""
        self.last, self.size = last, self.size + len(text)
        self.hashed.update(text)


class FileOutput(Output):
    """A text file of releases."""

    def __init__(self, path: Path, form: Format, first: int = 1) -> None:
        self.path = path
        self._form = form
        self._slot = re.compile(re.escape(form.opening).replace(b"%d", rb"(\d{1,18})"))
        self._after = first - 1  # the last slot in other files
        self._file: BinaryIO | None = None
        self._journal: Emitted | None = None
        self._identity = ""
        self._content = _Content(self._after)

    def check(self, journal: Emitted, committed: int) -> None:
        """Refuse a file of something else; read only.

        Raises:
            StaleJournal: if the file has a slot that the journal lacks.
            InvalidOutput: if the file is none, or not this journal's.
        """
        self._look(journal, committed)

    def repair(self, journal: Emitted, committed: int, emitted: int) -> int:
        """Rewrite or complete the file after the same check; return the number of releases written."""
        (content, is_edited), sent = self._look(journal, committed), 0
        if is_edited:
            sent = self._rewrite(journal, content.last)
            content, _ = self._look(journal, committed)
        with clear_errors(self.path):
            there = os.path.realpath(self.path)
            self._file = open(there, "r+b" if self.path.exists() else "x+b", buffering=0)  # noqa: SIM115  until `close`
            self._file.truncate(content.size)
        self._journal, self._identity, self._content = journal, journal.identity, content
        self._write(b"" if content.size else self._form.header, content.last)
        missing = released_records(journal, content.last + 1)
        while records := list(islice(missing, 1024)):
            self.emit(records)
            sent += len(records)
        return sent

    def emit(self, records: Iterable[Record]) -> None:
        """Append whole lines; to a new file, if this one was renamed or removed.

        Raises:
            InvalidOutput: if another program cut the file, wrote to it or replaced it.
        """
        texts, slot = [], 0
        for record in records:
            texts.append(self._form.render(record))
            slot = record.slot
        if not texts:
            return
        if not self._is_in_place():
            self._begin_anew()
        self._write(b"".join(texts), slot)

    def close(self) -> None:
        """Force the file to disk and close it."""
        if self._file is not None:
            if not self._is_in_place():
                self._leave()
            with clear_errors(self.path):
                os.fsync(self._file.fileno())
                self._file.close()
            self._file = None

    def abandon(self) -> None:
        """Close the file as it is."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def _is_in_place(self) -> bool:
        """Return whether the path still leads to the open file."""
        assert self._file is not None
        with clear_errors(self.path):
            try:
                return os.path.samestat(os.stat(self.path), os.fstat(self._file.fileno()))
            except FileNotFoundError:
                return False

    def _leave(self) -> None:
        """Note on disk, before a new file is made, that the old one was renamed or removed."""
        assert self._file is not None
        refuse_special(self.path)
        with clear_errors(self.path):
            if self.path.exists() and self.path.stat().st_size:
                raise changed(self.path)
            os.fsync(self._file.fileno())
            removed = not os.fstat(self._file.fileno()).st_nlink
        self._after = self._content.last
        self._content = _Content(self._after)
        self._note(force=True)
        level, what = (logging.WARNING, "removed") if removed else (logging.INFO, "renamed")
        _log.log(level, "%s was %s: a new one begins behind slot %d", self.path, what, self._after)

    def _begin_anew(self) -> None:
        self._leave()
        assert self._file is not None
        with clear_errors(self.path):
            self._file.close()
            self._file = open(os.path.realpath(self.path), "a+b", buffering=0)  # noqa: SIM115  until `close`
        self._write(self._form.header, self._after)

    def _write(self, text: bytes, slot: int) -> None:
        """Append and update the note."""
        assert self._file is not None
        with clear_errors(self.path):
            if self._file.seek(0, os.SEEK_END) != self._content.size:
                raise changed(self.path)
            rest = memoryview(text)
            while rest:
                rest = rest[self._file.write(rest) :]
        self._content.add(text, slot)
        self._note()

    def _note(self, *, force: bool = False) -> None:
        assert self._journal is not None
        now = self._content
        digest = now.hashed.hexdigest()
        note = Note(_known_as(self.path), now.last, now.size, digest, self._after, self._identity)
        self._journal.write_note(msgspec.json.encode(note), force=force)

    def _rewrite(self, journal: Emitted, after: int) -> int:
        """Replace the file by the releases after a slot; return their number."""
        target, sent = Path(os.path.realpath(self.path)), 0
        with clear_errors(self.path), atomic_write(target) as made:
            with made.open("wb") as file:
                file.write(self._form.header)
                for record in released_records(journal, after + 1):
                    file.write(self._form.render(record))
                    sent += 1
            shutil.copymode(target, made)
        _log.warning("%s was not as this journal left it: it was rewritten from the journal", self.path)
        return sent

    def _look(self, journal: Emitted, committed: int) -> tuple[_Content, bool]:
        """Return what the journal confirms of the file, and whether the rest is to be rewritten."""
        refuse_special(self.path)
        with clear_errors(self.path):
            note = _read_note(journal, self.path) if committed else None
            if note is not None:
                self._after = max(self._after, min(note.after, committed))
            if self.path.exists():
                with self.path.open("rb") as file:
                    return self._inspect(file, journal, committed, note)
            return _Content(self._after), False

    def _inspect(self, file: BinaryIO, journal: Emitted, committed: int, note: Note | None) -> tuple[_Content, bool]:
        header, size = self._form.header, file.seek(0, os.SEEK_END)
        start = _read(file, 0, len(header))
        if size <= len(header) and header.startswith(start):
            return _Content(self._after), False
        end, line = _last_line(file, size)
        if start != header or size - end > _LONGEST:
            raise not_ours(self.path)
        last = self._slot_of(line) if end > len(header) else 0
        if last > committed:
            raise ahead(self.path, last, committed)
        if not committed:
            raise not_ours(self.path)
        file.seek(len(header))
        first = self._slot_of(file.readline(_LONGEST)) if last else self._after + 1
        before = min(first - 1, self._after)
        try:
            content = _noted_content(file, note) or _Content(before, header)
            self._compare(file, journal, committed, content)
        except InvalidOutput:
            if note is None or not self._is_rewritable(journal, first, last, line, _read(file, end, size)):
                raise
            return _Content(before), True
        return content, False

    def _compare(self, file: BinaryIO, journal: Emitted, committed: int, content: _Content) -> None:
        """Add to a confirmed beginning what the journal confirms behind it.

        Raises:
            InvalidOutput: naming the first slot that differs.
        """
        begin = compared = content.last
        kept = next(journal.releases(begin + 1), None)
        if kept is not None:
            self._skip(file, content, kept.slot)
            if kept.slot > content.last + 1 and content.size > len(self._form.header):
                raise dropped(self.path, content.last + 1, kept.slot - 1)
        for record in chain(released_records(journal, begin + 1), [None]):
            stop = committed + 1 if record is None else record.slot
            expected = b"" if record is None else self._form.render(record)
            line = self._skip(file, content, stop)
            if line.endswith(b"\n"):
                line = _read(file, content.size, content.size + len(expected)) or line
            if record is None or line != expected:
                unknown = max(content.last, compared + 1, 0 if kept is None else kept.slot)
                if not expected.startswith(line) and not self._is_torn(line, range(unknown, stop)):
                    raise not_ours(self.path, stop)
                return
            content.add(line, stop)
            compared = stop

    def _skip(self, file: BinaryIO, content: _Content, stop: int) -> bytes:
        """Add lines of slots before `stop`, which the journal does not have; return the line that follows."""
        before = content.last
        file.seek(content.size)
        while (line := file.readline(_LONGEST)).endswith(b"\n") and (slot := self._slot_of(line)) < stop:
            if slot <= before or slot < content.last:
                raise not_ours(self.path, slot)
            content.add(line, slot)
        return line

    def _is_torn(self, line: bytes, slots: range) -> bool:
        """Return whether a line may be the beginning of one of the first two slots, which the journal does not have."""
        openings = [self._form.opening % slot for slot in slots[:2]]
        return b"\n" not in line and any(one.startswith(line) or line.startswith(one) for one in openings)

    def _is_rewritable(self, journal: Emitted, first: int, last: int, line: bytes, torn: bytes) -> bool:
        """Return whether the journal has every slot of a file, renders its last line, and then what is torn behind it."""
        known = [record.slot for record in takewhile(lambda one: one.slot <= last, released_records(journal, first))]
        if not known or known != list(range(first, last + 1)):
            return False
        end = b"".join(map(self._form.render, islice(released_records(journal, last), 2)))
        _, found, following = end.partition(line)
        return bool(found) and following.startswith(torn)

    def _slot_of(self, line: bytes) -> int:
        found = self._slot.match(line)
        if found is None:
            raise not_ours(self.path)
        return int(found[1])


def _read_note(journal: Emitted, path: Path) -> Note | None:
    """Return the note of this file and journal, None if there is none."""
    try:
        note = msgspec.json.decode(journal.read_note().strip(b" \0"), type=Note)
    except msgspec.MsgspecError:
        return None
    return note if (note.path, note.journal) == (_known_as(path), journal.identity) else None


def _known_as(path: Path) -> str:
    """Return one name for all paths of a file, as text; a link may lead through a folder whose name is none."""
    return os.fsencode(os.path.realpath(path)).decode("utf-8", "backslashreplace")


def _noted_content(file: BinaryIO, note: Note | None) -> _Content | None:
    """Return the beginning of a file that its note describes, None if it is another."""
    if note is None or not note.size:
        return None
    content = _Content(note.slot)
    file.seek(0)
    while content.size < note.size and (chunk := file.read(min(note.size - content.size, 1 << 20))):
        content.add(chunk, note.slot)
    return content if (content.size, content.hashed.hexdigest()) == (note.size, note.digest) else None


def _read(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(end - start)


def _last_line(file: BinaryIO, size: int) -> tuple[int, bytes]:
    """Return the position after the last line break, and the line that ends there."""
    start, tail = size, b""
    while start and tail.count(b"\n") < 2 and len(tail) < _LONGEST:
        step = min(start, max(_TAIL, len(tail)))
        start -= step
        tail = _read(file, start, start + step) + tail
    whole = tail.rfind(b"\n") + 1
    return start + whole, tail[tail.rfind(b"\n", 0, max(whole - 1, 0)) + 1 : whole]
