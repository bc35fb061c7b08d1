"""Witness of a journal: a file outside it that shows through which slot releases were drawn, and the last draw itself.

A draw is written ahead here, durably, before the database sees any of it (spec 10). From then on it is the draw of its slots:
the next writer stores it instead of drawing again. A journal that knows less than its witness is an old copy.

The witness of a journal in a file is also its writer's lock. The operating system drops the lock when the process ends,
however it ends: a dead holder blocks nobody.

Layout: two copies of a record of at most 4,096 bytes, written in turn; a note of an output; the write-ahead record. A
record names its write-ahead record by length and SHA-256. The write-ahead record is overwritten in place: when the next one
is written, the journal has the one before.
"""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import stat
import time
import zlib
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec

from wevent.errors import InvalidOption, JournalLocked, StaleJournal, StorageFailed
from wevent.file_io import read_at, storage_errors, write_at
from wevent.journal.database import Database, Facts, only_row
from wevent.journal.record import NO_REVISION, Revision, Writer

try:
    import fcntl
except ImportError:  # a system without these locks, Windows: journals can be read there
    fcntl = None  # type: ignore[assignment]

STARTED_OVER = "started over"
"""Mark in the privacy statement of a journal that replaced a lost one."""

STOP_HOLDER = "Wait for that process, or stop it."

RECORD_SIZE = 4096
"""Room for each copy of a record, in bytes."""

_NOTE_AT, NOTE_SIZE = 2 * RECORD_SIZE, 4096
_AHEAD_AT = 4 * RECORD_SIZE
_ROOM = 1 << 16  # for a draw of few cells, and a multiple of it for others
_BYTES_PER_CELL = 64  # value, error and measurement, each of eight bytes or two numbers of eight


class WitnessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a witness shows.

    Attributes:
        number: how often a record was written; the larger one of two copies counts.
        pid, host, since: process that writes the journal, or wrote it last.
        journal: id of the journal, empty before its first slot.
        committed: last slot that was drawn.
        chain: chain hash after that slot, hexadecimal.
        before: chain hash before the write-ahead record, hexadecimal; empty if no draw may be missing in the journal.
        revision: state of the registry that the slot was counted under, or a later one.
        versions: hash over all configuration versions, hexadecimal.
        ahead: length and SHA-256, hexadecimal, of the write-ahead record.
        earlier: ids and last slots of journals that were at this place before.
        is_readable: whether a copy was whole; never written.
    """

    number: int = 0
    pid: int = 0
    host: str = ""
    since: str = ""
    journal: str = ""
    committed: int = 0
    chain: str = ""
    before: str = ""
    revision: Revision = NO_REVISION
    versions: str = ""
    ahead: tuple[int, str] = (0, "")
    earlier: tuple[tuple[str, int], ...] = ()
    is_readable: bool = True

    @property
    def writer(self) -> Writer:
        """The process that writes the journal, or wrote it last."""
        return Writer(self.pid, self.host, self.since)

    @property
    def last_drawn(self) -> tuple[str, int]:
        """The journal that drew here last, and its last slot; ("", 0) if none did.

        A journal that was started over draws nothing before its first slot: until then it is the one before.
        """
        if self.committed:
            return self.journal, self.committed
        return self.earlier[-1] if self.earlier else ("", 0)

    def follows(self, chain: bytes) -> bool:
        """Return whether a journal that ends with this chain hash lacks only the write-ahead record."""
        return self.before == chain.hex()


class WitnessFile:
    """A witness that is open for its one writer, by a descriptor for reading and writing, which `close` closes.

    Attributes:
        before: record of the writer before.
        record: record as it is now.
    """

    def __init__(self, path: Path, file: int) -> None:
        self.path, self._file = path, file
        self.before = self.record = _newest(read_at(file, 2 * RECORD_SIZE, 0))
        self._room = 0

    @property
    def is_blank(self) -> bool:
        """Whether it shows nothing of any journal, and never did."""
        return self.before == WitnessRecord() and not self.record.journal

    def name_writer(self, writer: Writer) -> None:
        """Record who writes the journal. An unreadable witness stays as it is: a person may still read it."""
        if self.before.is_readable:
            self.update(pid=writer.pid, host=writer.host, since=writer.since)

    def update(self, **known: Any) -> None:
        """Replace fields of the record; durable on return, before the other copy is written.

        Raises:
            StorageFailed: if it cannot be written. So does every method that writes.
        """
        journal = known.get("journal", self.record.journal)
        if self.record.committed and self.record.journal != journal:
            known["earlier"] = (*self.record.earlier, (self.record.journal, self.record.committed))
        record = msgspec.structs.replace(self.record, **known, number=self.record.number + 1)
        while len(block := _encode(record)) > RECORD_SIZE:
            record = msgspec.structs.replace(record, earlier=record.earlier[1:])
        with witness_errors(self.path):
            write_at(self._file, block, RECORD_SIZE * (record.number % 2))
            self.record = record
            _force(self._file)

    def write_ahead(self, data: bytes, **known: Any) -> None:
        """Write a draw ahead, and a record that names it; durable on return. Nobody saw a draw that cannot be written.

        The bytes are durable before the record names them. So a record with another write-ahead record than it names is
        damage, or its draw is in the journal already.
        """
        with witness_errors(self.path):
            write_at(self._file, data, _AHEAD_AT)
            _force(self._file)
        self.update(**known, ahead=(len(data), hashlib.sha256(data).hexdigest()), is_readable=True)

    def read_ahead(self) -> bytes | None:
        """Return the draw that was written ahead last; None if the bytes are no longer those of the record."""
        size, digest = self.record.ahead
        with witness_errors(self.path):
            data = read_at(self._file, size, _AHEAD_AT)
        return data if size and hashlib.sha256(data).hexdigest() == digest else None

    def clear_ahead(self) -> None:
        """Overwrite the last draw, which is in the journal: ids of users are in it."""
        with witness_errors(self.path):
            write_at(self._file, bytes(self.record.ahead[0]), _AHEAD_AT)
            _force(self._file)

    def reserve(self, cells: int) -> None:
        """Have room for the next draw, which is not made yet, so that its size does not decide whether it can be stored."""
        wanted = max(_BYTES_PER_CELL * cells, 2 * self.record.ahead[0])
        room = (wanted // _ROOM + 1) * _ROOM
        if room > self._room:
            with witness_errors(self.path):
                _allocate(self._file, _AHEAD_AT + room)
            self._room = room

    def read_note(self) -> bytes:
        """Return what `write_note` wrote last, padded."""
        return read_at(self._file, NOTE_SIZE, _NOTE_AT)

    def write_note(self, data: bytes, *, force: bool) -> None:
        """Write a note of at most `NOTE_SIZE` bytes; a longer one is not written."""
        if len(data) > NOTE_SIZE:
            return
        with witness_errors(self.path):
            write_at(self._file, data.ljust(NOTE_SIZE), _NOTE_AT)
            if force:
                _force(self._file)

    def is_in_place(self) -> bool:
        """Return whether the path still leads to this file. Raises `StorageFailed` if that cannot be told."""
        own = os.fstat(self._file)
        with witness_errors(self.path):
            try:
                found = os.stat(self.path)
            except FileNotFoundError:
                return False
        return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)

    def close(self) -> None:
        """Close the file, and with it end its lock. Every record is durable already, whatever the system reports now."""
        file, self._file = self._file, -1
        if file >= 0:
            with storage_errors(f"to close {self.path}", "Check its disk; every released slot is stored.", self.path):
                os.close(file)


def read_witness(path: Path) -> WitnessRecord:
    """Return the record of a witness file; a blank one without a file, an unreadable one if no copy is whole."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # to open a pipe would wait for its writer
            return WitnessRecord(is_readable=False)
        with path.open("rb") as file:
            return _newest(file.read(2 * RECORD_SIZE))
    except FileNotFoundError:
        return WitnessRecord()
    except OSError:
        return WitnessRecord(is_readable=False)


def witness_errors(path: Path) -> AbstractContextManager[None]:
    """Raise `StorageFailed` if a witness cannot be written."""
    return storage_errors(f"to write {path}", "Make room and make the folder writable; nothing was lost.", path)


# The lock of a journal in a file


def lock_witness(journal: Path) -> WitnessFile:
    """Be the one writer of a journal: lock its witness, which then names this process. `close` ends the lock.

    Raises:
        JournalLocked: naming the holder, if another process has it.
    """
    path = witness_path(journal)
    if fcntl is None:
        raise StorageFailed(
            "This system has no locks that keep a second writer out.",
            "Publish on Linux or macOS; reading journals and the library itself work here too.",
            path=str(journal),
        )
    while True:
        with witness_errors(path):
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if not _try_lock(file, fcntl.LOCK_EX, tries=4):  # another process may only be looking, see `holder`
            os.close(file)
            raise held_by(str(journal), read_witness(path).writer, STOP_HOLDER)
        with ExitStack() as undo:
            undo.callback(os.close, file)
            with witness_errors(path):
                witness = WitnessFile(path, file)
            undo.pop_all()
            undo.callback(witness.close)
            if witness.is_in_place():  # else it was removed meanwhile by a holder that had no use for it
                undo.pop_all()
                break
    try:
        witness.name_writer(this_process())
    except BaseException:
        unlock_witness(witness)  # a record that is torn at its first writing would look like one that shows something
        raise
    return witness


def unlock_witness(witness: WitnessFile) -> None:
    """End the lock; the witness of a journal that was never begun is removed first, while the lock is held."""
    if witness.is_blank:
        witness.path.unlink(missing_ok=True)
    witness.close()


def witness_path(journal: Path) -> Path:
    """Return the witness of a journal; links are followed, so two names of a journal share it."""
    return Path(f"{os.path.realpath(journal)}.witness")


def holder(journal: Path) -> Writer | None:
    """Return the process that publishes into a journal now, None if there is none."""
    path = witness_path(journal)
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        is_free = fcntl is None or _try_lock(file, fcntl.LOCK_SH)  # others may look at the same time
        return None if is_free else read_witness(path).writer
    finally:
        os.close(file)


def this_process() -> Writer:
    """Return this process as a writer from now on."""
    return Writer(os.getpid(), socket.gethostname(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))


def held_by(journal: str, writer: Writer | None, fix: str) -> JournalLocked:
    """Return the error for a journal that another process writes."""
    named = "another process" if writer is None else f"process {writer.pid} on {writer.host} since {writer.since}"
    facts = {} if writer is None else writer._asdict()
    return JournalLocked(f"The journal is held by {named} ({journal}).", fix, path=journal, holder=facts)


def _try_lock(file: int, kind: int, tries: int = 1) -> bool:
    for attempt in range(tries):
        if attempt:
            time.sleep(0.05)
        with suppress(OSError):
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return True
    return False


# A journal that is gone: its witness shows slots that no journal here has


def check_lost(
    record: WitnessRecord, database: Database | None, place: str, restoring: str, *, start_over: bool = False
) -> None:
    """Refuse a journal that was lost, unless the operator starts over; and starting over without a loss.

    A missing, empty or foreign journal beside the witness of another one must not begin at slot 1 with a full budget: the
    slots of the other one were released already.

    Args:
        record: content of the witness.
        database: tables of the journal; None if there is none.
        place: its path or address.
        restoring: how a backup is put back: the words before `--released-through`.
        start_over: whether the operator says so.
    """
    identity = None
    if database is not None:
        with database.readable():
            facts = Facts(database)
            identity = facts.text("id")
            (committed,) = only_row(database, "SELECT committed FROM head")
            if not committed and STARTED_OVER in facts.unsafe:  # said before, by a run that came to no slot
                start_over = _is_lost(record, identity)
    lost = _is_lost(record, identity)
    if lost and not start_over:
        released = record.last_drawn[1] if record.is_readable else None
        known = "some slot" if released is None else f"slot {released}"
        found = "no journal, or an empty one" if identity is None else "another journal"
        through = "SLOT" if released is None else f"{released}"
        raise StaleJournal(
            f"The journal that committed {known} at {place}, as its witness shows, is gone: there is {found}.",
            f"Restore its backup ({restoring} --released-through {through}, or later). Or say --start-over: a new journal "
            "over the same users. Epsilons then add up, and released slots are released again with other numbers.",
            committed=0,
            released=released,
        )
    if start_over and not lost:
        found = "was not lost" if identity is not None else "shows no sign of an earlier one"
        raise InvalidOption(f"The journal {found}.", "Leave --start-over out.", option="start_over")


def _is_lost(record: WitnessRecord, identity: str | None) -> bool:
    """Return whether a witness shows slots of another journal than the one that is here (None: none is)."""
    if not record.is_readable:
        return identity is None
    journal, committed = record.last_drawn
    return committed > 0 and journal != identity


# Encoding


def _newest(data: bytes) -> WitnessRecord:
    copies = [_decode(data[start : start + RECORD_SIZE]) for start in (0, RECORD_SIZE)]
    whole = [record for record in copies if record is not None]
    return max(whole, key=lambda record: record.number, default=WitnessRecord(is_readable=not data))


def _encode(record: WitnessRecord) -> bytes:
    fields = msgspec.to_builtins(record)
    del fields["is_readable"]
    text = msgspec.json.encode(fields)
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _decode(block: bytes) -> WitnessRecord | None:
    text, _, _ = block[9:].partition(b"\n")  # what is behind it is left of a longer record
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        if text and block[:9] == b"%08x " % zlib.crc32(text):
            return msgspec.json.decode(text, type=WitnessRecord)
    return None


_force = getattr(os, "fdatasync", os.fsync)


def _allocate(file: int, size: int) -> None:
    """Take room for a file on its disk; where the system has no call for it, by writing."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, 0, size)
            return
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
    written = os.fstat(file).st_size
    while written < size:
        written += os.pwrite(file, bytes(size - written), written)
