"""Check of the end of a journal against its witness (spec 10).

A journal whose end was cut off consistently, or an old copy of a journal, is whole in itself. The witness outside it shows
the last slot that was drawn. The module reads witness files by the documented format (docs/reference/journal-format.md).
"""

from __future__ import annotations

import hashlib
import os
import re
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from wevent.journal.address import PostgresAddress
from wevent.verification.journal_reader import ELSEWHERE, HeadRow, JournalTables

_RECORD_SIZE = 4096
_AHEAD_AT = 4 * _RECORD_SIZE
_CHUNK = 1 << 20
_TRIES = 5  # a record may be half written, or a file about to be removed
_PAUSE_S = 0.02


class ObservedWitness(msgspec.Struct):
    """Fields of a witness record that are compared; hashes are hexadecimal."""

    number: int
    journal: str
    committed: int
    chain: str
    before: str
    revision: tuple[int, str]
    ahead: tuple[int, str]


class SeenWitness(NamedTuple):
    """Content of a witness.

    Attributes:
        place: its file or folder.
        record: the newest record; None if there is none that can be read.
        problem: the reason; None with a record.
        has_draw: whether the write-ahead record is the one that the record names.
    """

    place: str
    record: ObservedWitness | None
    problem: str | None
    has_draw: bool = False


class EndOfJournal(NamedTuple):
    """Result of the comparison.

    Attributes:
        witness_slot: last slot that the witness shows for the journal; None if it shows nothing of it.
        problem: reason why the end was not compared; None if it was.
        write_ahead_slot: last slot that only the write-ahead record has and the next writer stores; None without one.
    """

    witness_slot: int | None
    problem: str | None
    write_ahead_slot: int | None


def read_witness(place: Path | PostgresAddress) -> SeenWitness:
    """Read a witness. Open the journal afterwards, so that it is at least as new."""
    for _ in range(_TRIES):
        seen = _read(place)
        if seen.problem is None:
            break
        time.sleep(_PAUSE_S)
    return seen


def check_end(reader: JournalTables, seen: SeenWitness, add: Callable[[int, str], None]) -> EndOfJournal:
    """Compare the last slots of a journal with its witness; report each difference with `add`."""
    head, facts, record = reader.head(), reader.facts(), seen.record
    if record is None:
        return EndOfJournal(None, seen.problem, None)
    after = head.committed + 1
    if record.journal != facts["id"].decode():
        if record.committed and not head.copied:  # a backup may be where another journal was
            add(after, f"{seen.place} shows slot {record.committed} of another journal")
        return EndOfJournal(None, f"{seen.place} is of another journal", None)
    revision = int(facts["revision"]), facts["registry chain"].decode()
    if record.committed > head.committed:
        if not _can_be_stored(head, record, revision):
            add(
                after,
                f"{seen.place} shows slot {record.committed}, and the journal ends with {head.committed}: its end is "
                "missing, or it is an old copy",
            )
        elif not seen.has_draw:
            add(after, f"the write-ahead record in {seen.place} is damaged: slots through {record.committed} are lost")
        else:
            return EndOfJournal(record.committed, None, record.committed)
    stored = reader.chain_at(record.committed)
    if stored is not None and stored[0].hex() != record.chain and stored[1] != ELSEWHERE:
        add(record.committed, f"{seen.place} shows another release of the slot: two copies went on")
    return EndOfJournal(record.committed, None, None)


def _can_be_stored(head: HeadRow, record: ObservedWitness, revision: tuple[int, str]) -> bool:
    """Return whether the next writer stores the write-ahead record."""
    return record.before == head.chain.hex() and record.revision == revision and not head.copied


def _read(place: Path | PostgresAddress) -> SeenWitness:
    if isinstance(place, PostgresAddress):
        if place.folder is None:
            return SeenWitness("", None, "the address names no witness folder")
        folder = str(place.folder)
        try:
            path = _newest_file(place.folder, place.schema)
        except OSError as error:
            return SeenWitness(folder, None, f"{folder}: {error.strerror or 'an error'}")
        return SeenWitness(folder, None, f"no witness file in {folder}") if path is None else _read_file(path)
    journal = os.path.realpath(place) if place.is_symlink() else place
    return _read_file(Path(f"{journal}.witness"))


def _newest_file(folder: Path, schema: str) -> Path | None:
    """Return the witness file with the largest fencing number: no other writer's slots reach the database."""
    pattern = re.compile(rf"{re.escape(schema)}\.([0-9]+)\.witness")
    fences = [int(match[1]) for match in map(pattern.fullmatch, os.listdir(folder)) if match]
    return folder / f"{schema}.{max(fences)}.witness" if fences else None


def _read_file(path: Path) -> SeenWitness:
    place = str(path)
    try:
        with path.open("rb") as file:
            data = file.read(2 * _RECORD_SIZE)
            records = [_decode(data[:_RECORD_SIZE]), _decode(data[_RECORD_SIZE:])]
            record = max(filter(None, records), key=lambda record: record.number, default=None)
            if record is None:
                return SeenWitness(place, None, f"{place} has no record that can be read")
            if not record.journal:
                return SeenWitness(place, None, f"{place} shows no journal")
            return SeenWitness(place, record, None, _hash_draw(file, record.ahead[0]) == record.ahead[1])
    except FileNotFoundError:
        return SeenWitness(place, None, f"no witness file {place}")
    except OSError:
        return SeenWitness(place, None, f"{place} cannot be read")


def _decode(block: bytes) -> ObservedWitness | None:
    """Return a record if its checksum is right."""
    text, _, _ = block[9:].partition(b"\n")
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        if text and block[:9] == b"%08x " % zlib.crc32(text):
            return msgspec.json.decode(text, type=ObservedWitness)
    return None


def _hash_draw(file: BinaryIO, size: int) -> str:
    """Return the SHA-256 of the write-ahead record, hexadecimal."""
    found = hashlib.sha256()
    file.seek(_AHEAD_AT)
    while size > 0 and (chunk := file.read(min(size, _CHUNK))):
        found.update(chunk)
        size -= len(chunk)
    return found.hexdigest()
