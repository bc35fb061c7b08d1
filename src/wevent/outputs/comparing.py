"""Does a text file hold this journal's releases, all of them and nothing else? Read once, from front to back.

Slots that the journal keeps are compared byte for byte. Of dropped slots, and of those released elsewhere, only how
their lines begin is known: they must be there in order. What was compared once need not be rendered again: beside the
journal stands how long the file was and its digest after the last slot that was written (`Written`). A file that ends
behind the journal proves that the journal is old only if what both have is the same: any other is another journal's.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from wevent.errors import InvalidOutput
from wevent.journal.contract import Emitted
from wevent.journal.record import Record
from wevent.journal.terms import Terms
from wevent.outputs.refusals import ahead, doubtful, foreign, gap, incomplete, of_another_journal, unrelated

LONGEST = 1 << 27  # a line of more bytes is no release
_CHUNK = 1 << 20


class Format(NamedTuple):
    """How releases are written as lines.

    Attributes:
        render: a record's bytes, whole lines.
        header: the file's first line, empty if it has none.
        slot_of: the slot that a line belongs to; ValueError if it is no line of this format.
        opening: how every line of a slot begins, whatever was released.
        first_version: how a file of the first version begins, which is no longer written.
    """

    render: Callable[[Record], bytes]
    header: bytes
    slot_of: Callable[[bytes], int]
    opening: Callable[[Terms, int], bytes]
    first_version: bytes


class Written(msgspec.Struct, frozen=True):
    """How a file was after a slot was written to it: its digest over so many bytes.

    Attributes:
        path, slot, size, digest: the file, the last slot that was written, and what it was then.
        after: the last slot that went to files which were renamed under a run: this one begins behind it.
        journal: whose releases they are.
    """

    path: str
    slot: int
    size: int
    digest: str
    after: int = 0
    journal: str = ""


class Bounds(NamedTuple):
    """What is known before a file is compared.

    Attributes:
        after: the last slot that it need not hold: others do.
        last: the last slot in it.
        committed: the last slot that the journal knows, or is about to be told of as released elsewhere.
    """

    after: int
    last: int
    committed: int


class Found(NamedTuple):
    """What a file holds.

    Attributes:
        last: the last slot of which anything is there; if none is, the last one that others hold.
        keep: how many bytes stay; what follows is torn.
        lacking: what the last slot still lacks.
        hashed: over the bytes that stay.
    """

    last: int
    keep: int
    lacking: bytes
    hashed: Any


def read_written(journal: Emitted, path: Path) -> Written | None:
    """What is known of a file since it was written last, None if nothing is."""
    try:
        written = msgspec.json.decode(journal.read_note().strip(b" \0"), type=Written)
    except msgspec.MsgspecError:
        return None
    known = written.path == known_as(path) and written.journal in ("", journal.identity)
    return written if known else None


def known_as(path: Path) -> str:
    """The one name under which a file is known, as text; a link may lead through a folder whose name is none."""
    return os.fsencode(os.path.realpath(path)).decode("utf-8", "backslashreplace")


def compare(file: BinaryIO, path: Path, form: Format, journal: Emitted, bounds: Bounds) -> Found:
    """Compare a file, whose header is there, with a journal.

    Raises:
        StaleJournal: if it goes on behind the journal's last slot and is the same up to there.
        InvalidOutput: naming the first slot that is missing or is not the journal's.
        InvalidJournal: if a slot of the journal is not what was stored.
    """
    try:
        return _start(file, path, form, journal, bounds)
    except InvalidOutput as error:
        if bounds.last > bounds.committed and "slot" in error.facts:
            raise doubtful(path, error.facts["slot"], bounds.last, bounds.committed) from None
        raise


def _start(file: BinaryIO, path: Path, form: Format, journal: Emitted, bounds: Bounds) -> Found:
    """Compare from where it is worth it: behind what is known since it was written, or from the front."""
    written = read_written(journal, path)
    ends_known = bounds.last <= bounds.committed  # otherwise nothing counts but what the journal itself has
    if written is not None and written.size > len(form.header) and ends_known:
        hashed = _hash(file, written.size)
        if hashed is not None and hashed.hexdigest() == written.digest:
            return _Reading(file, path, form, hashed, written.size, bounds).compare(journal, written.slot)
    reading = _Reading(file, path, form, hashlib.sha256(form.header), len(form.header), bounds)
    known, first = bounds.after, reading.first_slot() if bounds.last else 0
    if first and (first <= known or bounds.last > bounds.committed):
        known = first - 1  # others may hold what is missing before; or only this counts: is it this journal's?
    return reading.compare(journal, known)


def _hash(file: BinaryIO, size: int) -> Any:
    """A digest over the first bytes of a file, None if it has fewer."""
    file.seek(0)
    hashed = hashlib.sha256()
    while size and (part := file.read(min(size, _CHUNK))):
        hashed.update(part)
        size -= len(part)
    return None if size else hashed


class _Reading:
    """A file that is read from a place on."""

    def __init__(self, file: BinaryIO, path: Path, form: Format, hashed: Any, start: int, bounds: Bounds) -> None:
        self._file, self._path, self._form, self._bounds = file, path, form, bounds
        self._hashed, self._place = hashed, start
        self._last = 0
        self._shared = False  # whether a fresh release is the journal's: others may look alike

    def first_slot(self) -> int:
        """The slot of the next line."""
        return self._slot_of(self._line())

    def compare(self, journal: Emitted, known: int) -> Found:
        """Everything behind slot `known`, which is confirmed or held by others."""
        self._last = reached = known
        for record in journal.releases(known + 1):
            if record.slot > reached + 1:  # the first slot that is kept: the file may begin earlier
                self._skip_dropped(record)
            reached = record.slot
            if record.shown is None:
                if self._is_torn_in(record.epoch.terms, record.slot):
                    break
            elif (end := self._take(record, self._form.render(record))) is not None:
                return end
        else:
            self._pass_elsewhere(journal, reached)
        return Found(self._last, self._place, b"", self._hashed)

    def _take(self, record: Record, text: bytes) -> Found | None:
        """The lines of a slot; if the file ends with or before them, what it holds."""
        part = self._read(len(text))
        if part == text:
            self._confirm(part, record.slot)
            self._shared = self._shared or record.kind == "published"
            return None
        if not text.startswith(part) or len(part) == len(text):
            raise self._wrong(record.slot)
        whole = part.rfind(b"\n") + 1
        if whole:
            self._confirm(part[:whole], record.slot)
            return Found(self._last, self._place, text[whole:], self._hashed)
        return Found(self._last, self._place, b"", self._hashed)

    def _skip_dropped(self, first: Record) -> None:
        """Lines of slots that the journal no longer keeps: in order, each with its time, and up to the ones it keeps."""
        least = self._last + 1
        while (line := self._line()).endswith(b"\n"):
            slot = self._slot_of(line)
            if slot >= first.slot:
                break
            if slot < least or not line.startswith(self._form.opening(first.epoch.terms, slot)):
                raise of_another_journal(self._path, slot)
            least = slot
            self._confirm(line, slot)
        anything = self._place > len(self._form.header)
        if anything and self._last < first.slot - 1 and first.shown is not None:
            raise gap(self._path, self._last + 1, first.slot - 1)

    def _pass_elsewhere(self, journal: Emitted, reached: int) -> None:
        """Behind the journal's last slot: only those that it is about to be told of as released elsewhere."""
        if reached < self._bounds.committed and self._read(1):
            terms = journal.head().epoch.terms
            for slot in range(reached + 1, self._bounds.committed + 1):
                if self._is_torn_in(terms, slot):
                    return
        if not self._read(1):
            return
        if self._bounds.last <= self._bounds.committed or self._slot_of(self._line()) <= self._bounds.committed:
            raise self._wrong(self._last + 1)
        judge = ahead if self._shared else unrelated
        raise judge(self._path, self._bounds.last, self._bounds.committed)

    def _is_torn_in(self, terms: Terms, slot: int) -> bool:
        """Skip lines of a slot that another copy released, if they are here; whether the file ends within one."""
        opening = self._form.opening(terms, slot)
        while (line := self._line()).startswith(opening) and line.endswith(b"\n"):
            self._confirm(line, slot)
        return line != b"" and not line.endswith(b"\n") and (line.startswith(opening) or opening.startswith(line))

    def _wrong(self, expected: int) -> Exception:
        """What is said of the line that is not the one of an expected slot."""
        line = self._line()
        found = self._slot_of(line)
        if self._last < expected < found:
            return incomplete(self._path, expected, found)
        return of_another_journal(self._path, min(expected, found))

    def _slot_of(self, line: bytes) -> int:
        try:
            return self._form.slot_of(line)
        except ValueError:
            raise foreign(self._path) from None

    def _confirm(self, text: bytes, slot: int) -> None:
        self._hashed.update(text)
        self._place += len(text)
        self._last = slot

    def _line(self) -> bytes:
        self._file.seek(self._place)
        line = self._file.readline(LONGEST)
        if len(line) == LONGEST:
            raise foreign(self._path)
        return line

    def _read(self, number: int) -> bytes:
        self._file.seek(self._place)
        return self._file.read(number)
