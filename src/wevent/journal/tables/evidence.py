"""Which memberships changed, kept outside the journal: what a restored backup is compared with (spec 10).

A backup knows the registry's revision at its time. The side file of the journal's lock keeps, for each of 65,536 buckets
of ids, the last revision in which a membership of the bucket changed. Buckets that did not change after the backup prove
that their users held, in the slots released since, what the backup says. A revision has a random token, so that one of a
copy that went on elsewhere is not mistaken for one of this journal. Fixed in size, however long the stream runs,
and without ids: a bucket is two bytes of a keyed digest, and the key stays in the journal.

Entries are forced to disk before the change is committed, so a mark written later never claims more than is there. After
a crash an entry may tell of a change that was not made: more doubt, never less.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np

from wevent.people.holdout import BUCKETS

_PLACE = 1 << 16  # the mark and what else the side file holds lie before it
_RECENT = 1 << 13  # revisions whose tokens are known; a backup that is older proves nothing
_HEAD = struct.Struct("<8s32s32sQ32s")  # name, journal, incarnation, floor, digest over all of it
_NAME = b"changes1"
_DTYPE = "<u8"


class Revision(NamedTuple):
    """A state of the registry: how often memberships had changed, and a random token, so that no other copy has it."""

    number: int
    token: str


class SideFile(Protocol):
    """A side file that is open for writing."""

    def read(self, number: int, place: int) -> bytes:
        """Bytes from a place on."""

    def overwrite(self, data: bytes, place: int) -> None:
        """Overwrite bytes in place."""

    def sync(self) -> None:
        """Force them to disk."""


class ChangeTable:
    """The table in a side file.

    Args:
        file: the side file.
    """

    def __init__(self, file: SideFile) -> None:
        self._file = file
        self._owner: tuple[str, str] | None = None
        self._begin_at(0)

    def continue_with(self, journal: str, incarnation: str, revision: Revision) -> None:
        """Go on with the table of this journal, or begin one that knows of no change before `revision`."""
        if self._owner == (journal, incarnation) and self._knows(revision):
            return
        if not self._load() or self._owner != (journal, incarnation) or not self._knows(revision):
            self._owner = journal, incarnation
            self._begin_at(revision.number)
            self._remember(revision)
            self._store()

    def note(self, buckets: Iterable[int] | None, revision: Revision) -> None:
        """Write down that memberships of these buckets (None: of any) change in a revision; on disk on return."""
        self._changed[slice(None) if buckets is None else sorted(buckets)] = revision.number
        self._remember(revision)
        self._store()

    def changed_since(self, journal: str, incarnation: str, revision: Revision) -> bytes | None:
        """A bit per bucket that changed after a revision; None if the table cannot tell."""
        if not self._load() or self._owner != (journal, incarnation):
            return None
        if revision.number < self._floor or not self._knows(revision):
            return None
        return np.packbits(self._changed > revision.number, bitorder="little").tobytes()

    def _begin_at(self, floor: int) -> None:
        """A table that knows of no change: what was before revision `floor` is not known at all."""
        self._floor = floor
        self._changed = np.zeros(BUCKETS, dtype=_DTYPE)
        self._numbers = np.zeros(_RECENT, dtype=_DTYPE)
        self._tokens = np.zeros(_RECENT, dtype=_DTYPE)

    def _knows(self, revision: Revision) -> bool:
        place = revision.number % _RECENT
        known = int(self._numbers[place]), int(self._tokens[place])
        return known == (revision.number, int(revision.token, 16))

    def _remember(self, revision: Revision) -> None:
        place = revision.number % _RECENT
        self._numbers[place], self._tokens[place] = revision.number, int(revision.token, 16)

    def _load(self) -> bool:
        size = _HEAD.size + (BUCKETS + 2 * _RECENT) * 8
        data = self._file.read(size, _PLACE)
        if len(data) != size:
            return False
        name, journal, incarnation, floor, digest = _HEAD.unpack_from(data)
        table = data[_HEAD.size :]
        if name != _NAME or digest != _digest(journal, incarnation, floor, table):
            return False
        self._owner = journal.rstrip(b"\0").decode("ascii"), incarnation.rstrip(b"\0").decode("ascii")
        numbers = np.frombuffer(table, dtype=_DTYPE).copy()
        self._floor = floor
        self._changed, self._numbers, self._tokens = np.split(numbers, [BUCKETS, BUCKETS + _RECENT])
        return True

    def _store(self) -> None:
        assert self._owner is not None
        journal, incarnation = (name.encode("ascii").ljust(32, b"\0") for name in self._owner)
        table = self._changed.tobytes() + self._numbers.tobytes() + self._tokens.tobytes()
        digest = _digest(journal, incarnation, self._floor, table)
        head = _HEAD.pack(_NAME, journal, incarnation, self._floor, digest)
        self._file.overwrite(head + table, _PLACE)
        self._file.sync()


def _digest(journal: bytes, incarnation: bytes, floor: int, table: bytes) -> bytes:
    return hashlib.blake2b(journal + incarnation + floor.to_bytes(8, "little") + table, digest_size=32).digest()
