"""Which memberships changed, kept outside the journal: what a restored backup is compared with (spec 10).

A backup knows the registry's revision at its time. The side file of the journal's lock keeps, for each of 65,536 buckets
of ids, the last revision in which a membership of the bucket changed. Buckets that did not change after the backup prove
that their users held, in the slots released since, what the backup says. Fixed in size, however long the stream runs,
and without ids: a bucket is two bytes of a keyed digest, and the key stays in the journal.

Entries are forced to disk before the change is committed, so a mark written later never claims more than is there. After
a crash an entry may tell of a change that was not made: more doubt, never less.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterable

import numpy as np

from wevent.holdout import BUCKETS
from wevent.journal.places import read_at, write_at

_PLACE = 1 << 16  # the mark and what else the side file holds lie before it
_HEAD = struct.Struct("<8s32s32sQ32s")  # name, journal, incarnation, floor, digest over all of it
_NAME = b"changes1"
_DTYPE = "<u8"


class ChangeTable:
    """The table in a side file that is open for writing.

    Args:
        file: its descriptor.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._owner: tuple[str, str] | None = None
        self._floor = 0
        self._revisions = np.zeros(BUCKETS, dtype=_DTYPE)

    def continue_with(self, journal: str, incarnation: str, revision: int) -> None:
        """Go on with the table of this journal, or begin one that knows of no change before `revision`."""
        if self._owner == (journal, incarnation):
            return
        if not self._load() or self._owner != (journal, incarnation) or int(self._revisions.max()) > revision + 1:
            self._owner, self._floor = (journal, incarnation), revision
            self._revisions = np.zeros(BUCKETS, dtype=_DTYPE)
            self._store()

    def note(self, buckets: Iterable[int] | None, revision: int) -> None:
        """Write down that memberships of these buckets (None: of any) change in a revision; on disk on return."""
        self._revisions[slice(None) if buckets is None else sorted(buckets)] = revision
        self._store()

    def changed_since(self, journal: str, incarnation: str, revision: int) -> bytes | None:
        """A bit per bucket that changed after a revision; None if the table cannot tell."""
        if not self._load() or self._owner != (journal, incarnation) or revision < self._floor:
            return None
        return np.packbits(self._revisions > revision, bitorder="little").tobytes()

    def _load(self) -> bool:
        size = _HEAD.size + BUCKETS * 8
        data = read_at(self._file, size, _PLACE)
        if len(data) != size:
            return False
        name, journal, incarnation, floor, digest = _HEAD.unpack_from(data)
        revisions = np.frombuffer(data, dtype=_DTYPE, offset=_HEAD.size)
        if name != _NAME or digest != _digest(journal, incarnation, floor, revisions.tobytes()):
            return False
        self._owner = journal.rstrip(b"\0").decode("ascii"), incarnation.rstrip(b"\0").decode("ascii")
        self._floor, self._revisions = floor, revisions.copy()
        return True

    def _store(self) -> None:
        assert self._owner is not None
        journal, incarnation = (one.encode("ascii").ljust(32, b"\0") for one in self._owner)
        table = self._revisions.tobytes()
        digest = _digest(journal, incarnation, self._floor, table)
        head = _HEAD.pack(_NAME, journal, incarnation, self._floor, digest)
        write_at(self._file, head + table, _PLACE)
        os.fsync(self._file)


def _digest(journal: bytes, incarnation: bytes, floor: int, table: bytes) -> bytes:
    return hashlib.blake2b(journal + incarnation + floor.to_bytes(8, "little") + table, digest_size=32).digest()
