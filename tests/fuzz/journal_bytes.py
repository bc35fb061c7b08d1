"""The file of a journal, damaged: noticed in one sentence or by the audit, and never another release for a slot that has one.

An input is a list of changes to a journal that the commands made: of bytes of the file, or of values in its tables, which
leave the file whole for SQLite.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import numpy as np

from tests.fuzz.oracles import empty_folder, refusals
from tests.support import commands
from tests.support.synthetic import QuietSource
from wevent.counting.roster import Counts, Roster
from wevent.journal import SqliteJournal
from wevent.journal.record import Record
from wevent.outputs.lines import ndjson_line
from wevent.publishing.loop import Publication, Running
from wevent.publishing.staleness import settle_stale
from wevent.settings import RestoreOptions
from wevent.streams.source import SlotCounts
from wevent.verification import verify_journal

BASES = ("pft", "unregistered users", "backup")
TABLES = ("head", "slots", "facts", "epochs", "blobs", "state", "changes", "restores", "members")
MOST_CHANGES = 8
MOST_SLOTS = 60  # a journal that says that it is further would only take longer
SEEDS = (
    b"\x00",
    b"\x01",
    b"\x02",
    b"\x00\x00\x10\x00\x01",
    b"\x00\x80\x00\x00\x01\x01\x19",
    b"\x00\x81\x03\x02\x02\x02\x40\x80",
    b'\x01\x83\x00\x02\x03\x11{"cells":3,"decla',
    b"\x00\x88\x02\x00\x01\x01\x05\x88\x02\x05\x01\x01\x02",
    b"\x40\x81\x03\x02\x02\x02\x40\x80",
    b"\x40\x88\x02\x05\x01\x01\x02",
    b"\x00\x84\x00\x01\x02\x04\x93\x01\x02\x03",
)
WORDS = (
    b"\x80\x00",
    b"\x81\x01",
    b"\x83\x00\x02",
    b"\x88\x01",
    b"\x8a",
    b"\xff" * 8,
    b'{"cells":',
    b"\x7f" + b"\xff" * 7,
    b"[]",
)


class Source(QuietSource):
    """Empty slots."""

    cells = 0

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        for slot in range(first, first + most):
            shape = (len(roster.population), self.cells)
            yield SlotCounts(slot, Counts(np.zeros(shape, dtype=np.int64)), {"slot": slot, "time_unit": "s"})


class Output:
    """Where releases go: lines by slot."""

    def __init__(self) -> None:
        self.lines: dict[int, bytes] = {}

    def repair(self, journal: Any, committed: int, emitted: int) -> int:
        return 0

    def emit(self, records: list[Record]) -> None:
        for record in records:
            assert record.slot not in self.lines, "a slot went out twice"
            self.lines[record.slot] = ndjson_line(record)

    def close(self) -> None: ...

    def abandon(self) -> None: ...


class Base(NamedTuple):
    content: bytes
    lines: dict[int, bytes]


@functools.cache
def _base(name: str) -> Base:
    """A sound journal, brought up to date: what it holds, and every release as it went out."""
    folder = empty_folder()
    path = folder / "run.journal"
    commands.write_stream(folder)
    options = () if name == "pft" else ("--mechanism", "pbu", "--unknown-users", "2")
    published = commands.publish(folder, 24, *options)
    assert published.code == 0, published
    if name == "backup":
        saved = commands.call(folder, "backup", "run.journal", "saved.journal")
        assert saved.code == 0, saved
        path.write_bytes((folder / "saved.journal").read_bytes())
    content, lines = path.read_bytes(), {}
    with SqliteJournal(path) as journal:
        lines = {record.slot: ndjson_line(record) for record in journal.releases() if record.shown is not None}
    return Base(content, lines)


def check(data: bytes) -> None:
    """The first byte chooses the journal, and whether it is gone on with."""
    choice = data[0] if data else 0
    base = _base(BASES[choice % 64 % len(BASES)])
    path = empty_folder() / "run.journal"
    path.write_bytes(base.content)
    with suppress(apsw.Error):  # what SQLite itself refuses to store
        _damage(path, data[1:])
    before = path.read_bytes()
    is_sound = _audit(path)
    lines = _read(path)
    if is_sound and lines is not None:
        assert lines.items() <= base.lines.items(), "a release was changed, and the audit passes"
    assert path.read_bytes() == before, "reading a journal changed it"
    if not choice & 64:
        _resume(path, base, is_sound=is_sound)


def _damage(path: Path, changes: bytes) -> None:
    """First byte below 128: place (2), length, bytes. Else: table, row, column, type, value, by SQL."""
    for _ in range(MOST_CHANGES):
        if len(changes) < 5:
            return
        if changes[0] < 128:
            place, length = struct.unpack(">H", changes[1:3])[0], changes[3] % 9
            content = bytearray(path.read_bytes())
            content[place % len(content) : place % len(content) + length] = changes[4 : 4 + length]
            path.write_bytes(bytes(content))
            changes = changes[4 + length :]
        else:
            length = 1 + changes[4] % 32
            _set_value(path, *changes[:4], changes[5 : 5 + length])
            changes = changes[5 + length :]


def _set_value(path: Path, table: int, row: int, column: int, kind: int, value: bytes) -> None:
    name = TABLES[table % 128 % len(TABLES)]
    connection = apsw.Connection(str(path))
    try:
        columns = [str(one[1]) for one in connection.execute(f"PRAGMA table_info({name})")]
        keys = [str(one[1]) for one in connection.execute(f"PRAGMA table_info({name})") if one[5]]
        rows = connection.execute(f"SELECT {', '.join(keys)} FROM {name}").fetchall() if keys else []
        if not rows:
            return
        where = " AND ".join(f"{key} = ?" for key in keys)
        new = (int.from_bytes(value[:8], "big", signed=True), value.decode("latin-1"), value, None)[kind % 4]
        if kind & 4:
            connection.execute(f"DELETE FROM {name} WHERE {where}", rows[row % len(rows)])
            return
        query = f"UPDATE {name} SET {columns[column % len(columns)]} = ? WHERE {where}"
        connection.execute(query, (new, *rows[row % len(rows)]))
    finally:
        connection.close()


def _audit(path: Path) -> bool:
    with refusals():
        report = verify_journal(path)
        assert all(str(finding).isprintable() for finding in report.violations)
        return report.ok
    return False


def _read(path: Path) -> dict[int, bytes] | None:
    """What readers would be shown; None if they are told why not."""
    with refusals(), SqliteJournal(path) as journal:
        head = journal.head()
        members = list(journal.registry.members())
        assert all(member.user for member in members)
        lines = {record.slot: ndjson_line(record) for record in journal.releases() if record.shown is not None}
        assert max(lines, default=0) <= head.committed
        return lines
    return None


def _resume(path: Path, base: Base, *, is_sound: bool) -> None:
    """Go on for two slots, if the journal lets us: no release that is out is drawn again, and a sound journal stays so."""
    output = Output()
    with refusals() as refused, SqliteJournal(path, write=True) as journal:
        committed = journal.head().committed
        if not 0 <= committed <= MOST_SLOTS:
            return
        settle_stale(journal, RestoreOptions(max(committed, *base.lines), same_settings=True))
        source = Source()
        publication = Publication(journal, source, output, running=Running(last=journal.head().committed + 2))
        source.cells = len(publication.publisher.cells)
        publication.run()
    assert not output.lines.keys() & base.lines.keys(), "a slot that was released is drawn again"
    if is_sound and not refused:
        assert _audit(path), "going on with a sound journal broke it"
        lines = _read(path)
        assert lines is not None
        assert {slot: line for slot, line in lines.items() if slot in base.lines}.items() <= base.lines.items()
