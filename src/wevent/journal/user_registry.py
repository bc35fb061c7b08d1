"""Registry in tables: the requirements that users hold and held. The rules are in `wevent.people`."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from wevent.core.arrays import IntArray
from wevent.counting.string_column import StringColumn
from wevent.errors import StaleJournal
from wevent.journal.contents import Revision
from wevent.journal.database import ALL, Database, maybe_row, only_row
from wevent.journal.metadata import UPSERT, Facts
from wevent.people.classes import ClassHistory, Key, Restore
from wevent.people.membership import (
    ERASED,
    Boundary,
    Change,
    Enrolment,
    History,
    KeyColumn,
    Membership,
    check_epoch,
    check_id,
    erased_id,
)
from wevent.people.rosters import MemberColumns, TailColumns

_PORTION = 1 << 15  # changes or rows that are at hand at once
_CHAIN = re.compile("[0-9a-f]{64}")
_BY_REQUEST = "by request "  # facts of this name and an id: users who joined by themselves
_ARE_BY_REQUEST = "name > 'by request ' AND name < 'by request!'"
_CHANGES = msgspec.msgpack.Decoder(list[Change])
_ROWS = 'SELECT "user", "window", nano, level, first, last FROM members'
_START: tuple[Any, ...] = ("", 0, 0, 0)  # before the key of every row
_ERASED_RANGE = (ERASED, ERASED[:-1] + chr(ord(ERASED[-1]) + 1))  # erased ids are from the one on and before the other

Witness = Callable[[Revision], None]
"""Stores a state of the registry outside the journal, before it is committed."""


class UserRegistry:
    """Registry of users in the tables of a journal.

    Any process may `ask`; only the holder of the writer's lock may `apply`. So a change takes effect exactly
    between two slots, whoever asked.

    Args:
        database: the journal's connection.
        witness: stores every new state of the registry beside the journal.

    Attributes:
        held_after: last queued request that `apply` may apply: later ones wait for the first slot of the next version.
            None: all of them.
    """

    def __init__(self, database: Database, witness: Witness) -> None:
        self._database = database
        self._facts = Facts(database)
        self._witness = witness
        self._loaded: tuple[bytes, MemberColumns] | None = None  # a checked registry until it is asked for
        self._in_force: Revision | None = None  # state that this writer counts under
        self.held_after: int | None = None

    @property
    def salt(self) -> bytes:
        return self._facts.data("salt")

    # Reading

    def members(self) -> list[Membership]:
        with self._database.readable():
            return list(self._rows("WHERE last IS NULL"))

    def rows(self) -> MemberColumns:
        self.check()
        loaded, self._loaded = self._loaded, None
        assert loaded is not None
        return loaded[1]

    def check(self) -> None:
        with self._database.readable():
            self._database.read(self._load)

    def _load(self) -> None:
        """Read every row and compare the checksum; in one view, because a publisher may apply changes meanwhile."""
        stored = self._facts.data("registry")
        if self._loaded is not None and self._loaded[0] == stored:
            return
        checksum, after = Checksum(self.salt), _START
        users, codes, keys = list[StringColumn](), list[npt.NDArray[np.int32]](), dict[Key, int]()
        for restore in self.restores():
            checksum.add_restore(restore)
        while (found := self._database.member_columns(after)) is not None:
            names, levels = StringColumn.from_separated(found[0]), StringColumn.from_separated(found[1])
            numbers = np.array([np.fromstring(column, dtype=np.int64, sep=" ") for column in found[2]])
            checksum.add(names, levels, numbers)
            held = numbers[3] < 0
            users.append(names if held.all() else names.where(held))
            part = KeyColumn.of_columns(*numbers[:2, held])
            codes.append(
                np.array([keys.setdefault(key, len(keys)) for key in part.distinct], dtype=np.int32)[part.codes]
            )
            window, nano, first, _ = numbers[:, -1].tolist()
            before, after = after, (names.where(slice(-1, None)).texts()[0], first, window, nano)
            if after <= before:  # a damaged key: the same rows would be read again
                raise self._database.damaged()
        if checksum.value() != stored:
            raise self._database.damaged()
        column = KeyColumn(list(keys), np.concatenate([np.empty(0, dtype=np.int32), *codes]))
        self._loaded = stored, MemberColumns(StringColumn.joined(users), column)

    def tails(self, slot: int) -> TailColumns:
        query = 'SELECT "user", "window", nano, last FROM members WHERE last IS NOT NULL AND last + "window" > ?'
        with self._database.readable():
            rows = self._database.execute(query, (slot,)).fetchall()
        numbers = np.array([row[1:] for row in rows], dtype=np.int64).reshape(-1, 3)
        keys = KeyColumn.of_columns(numbers[:, 0], numbers[:, 1])
        return TailColumns(StringColumn.from_texts([row[0] for row in rows]), keys, numbers[:, 2])

    def former_ids(self) -> list[str]:
        query = (
            'SELECT DISTINCT "user" FROM members WHERE last IS NOT NULL AND NOT EXISTS (SELECT 1 FROM members AS held'
            ' WHERE held."user" = members."user" AND held.last IS NULL)'
        )
        return [user for (user,) in self._database.execute(query)]

    def next_expiry(self, classes: ClassHistory) -> int | None:
        query = 'SELECT min(last + CASE WHEN "window" > ? THEN "window" ELSE ? END) FROM members WHERE last IS NOT NULL'
        (ends,) = only_row(self._database, query, (classes.min_kept_slots,) * 2)
        return None if ends is None else int(ends)

    def holds(self, user: str) -> bool:
        wishes = [change for change in self.queued() if change.user == user]
        if wishes:
            return wishes[-1].action == "set"
        query = 'SELECT 1 FROM members WHERE "user" = ? AND last IS NULL'
        return maybe_row(self._database, query, (user,)) is not None

    def remembers(self, user: str) -> bool:
        return maybe_row(self._database, 'SELECT 1 FROM members WHERE "user" = ?', (user,)) is not None

    def histories(self, users: Iterable[str]) -> Iterator[History]:
        query = 'SELECT 1 FROM members WHERE "user" >= ? AND "user" < ? LIMIT 1'
        salt = None if maybe_row(self._database, query, _ERASED_RANGE) is None else self.salt
        asking = iter(users)
        while names := list(itertools.islice(asking, _PORTION)):
            digests = [] if salt is None else [erased_id(name, salt) for name in names]
            found: dict[str, list[Membership]] = {name: [] for name in (*names, *digests)}
            for row in self._database.among(_ROWS, list(found)):
                found[row[0]].append(Membership(*row))
            if salt is None:
                yield from (found[name] for name in names)
            else:
                yield from (found[name] + found[digest] for name, digest in zip(names, digests, strict=True))

    def turnover(self, slot: int) -> int:
        joined = 'SELECT "user" FROM members WHERE first = ?'
        left = 'SELECT "user" FROM members WHERE last = ? AND first > 0'  # a note is no membership that ended
        query = f"SELECT count(*) FROM ({joined} EXCEPT {left}) AS joined"
        query += f" UNION ALL SELECT count(*) FROM ({left} EXCEPT {joined}) AS gone"
        with self._database.readable():
            return sum(count for (count,) in self._database.execute(query, (slot, slot - 1, slot - 1, slot)))

    def sizes(self) -> dict[Key, int]:
        query = 'SELECT "window", nano, count(*) FROM members WHERE last IS NULL GROUP BY "window", nano'
        with self._database.readable():
            return {(window, nano): users for window, nano, users in self._database.execute(query)}

    def restores(self) -> tuple[Restore, ...]:
        query = "SELECT slot, silent_through, doubted FROM restores ORDER BY slot"
        return tuple(
            Restore(slot, silent_through, tuple((window, nano) for window, nano in json.loads(doubted)))
            for slot, silent_through, doubted in self._database.execute(query)
        )

    def _rows(self, where: str, values: tuple[Any, ...] = ()) -> Iterator[Membership]:
        return (Membership(*row) for row in self._database.execute(f"{_ROWS} {where}", values))

    # Requests

    def ask(self, changes: Iterable[Change], epoch: int | None = None, *, by_request: bool = False) -> int:
        wishes = list(changes)
        for change in wishes:
            check_id(change.user)
        portions = [  # encoded before the transaction: a publisher waits for its end
            (min(_PORTION, len(wishes) - start), msgspec.msgpack.encode(wishes[start : start + _PORTION]))
            for start in range(0, len(wishes), _PORTION)
        ]
        joining = [change.user for change in wishes if by_request and change.action == "set"]
        leaving = [change.user for change in wishes if change.action != "set"]

        def queue() -> None:
            committed, copied = only_row(self._database, "SELECT committed, copied FROM head")
            if copied:
                raise StaleJournal(
                    "the journal",
                    f"a backup that ends with slot {committed}",
                    "The registry of a copy takes no change: restore it first (wevent restore).",
                    committed=committed,
                    released=None,
                )
            check_epoch(epoch, only_row(self._database, "SELECT count(*) FROM epochs")[0])
            self._database.executemany("INSERT INTO changes (number, data) VALUES (?, ?)", portions)
            self._database.executemany("DELETE FROM facts WHERE name = ?", ((_BY_REQUEST + user,) for user in leaving))
            self._note_by_request(joining)

        self._database.write(queue)
        return len(wishes)

    def joined_by_request(self) -> frozenset[str]:
        notes = self._database.execute(f"SELECT name FROM facts WHERE {_ARE_BY_REQUEST}")
        return frozenset(name.removeprefix(_BY_REQUEST) for (name,) in notes)

    def file_imported(self, since: Iterable[Change]) -> None:
        """Note that every user is in a file, except those who asked to join since it was read; inside a transaction."""
        kept = self.joined_by_request().intersection(change.user for change in since if change.action == "set")
        self._database.execute(f"DELETE FROM facts WHERE {_ARE_BY_REQUEST}")
        self._note_by_request(kept)

    def _note_by_request(self, users: Iterable[str]) -> None:
        self._database.executemany(UPSERT, ((_BY_REQUEST + user, b"") for user in users))

    def pending(self) -> int:
        return int(only_row(self._database, "SELECT coalesce(sum(number), 0) FROM changes")[0])

    def queued(self) -> list[Change]:
        return self._decode("WHERE id > ?", 0)

    def held_back(self) -> list[Change]:
        """Return the queued changes that `apply` does not apply."""
        return [] if self.held_after is None else self._decode("WHERE id > ?", self.held_after)

    def last_request(self) -> int:
        return int(only_row(self._database, "SELECT coalesce(max(id), 0) FROM changes")[0])

    def replace_held_back(self, changes: Iterable[Change]) -> None:
        """Queue others in place of the requests that `apply` does not apply; inside a transaction."""
        self._database.execute("DELETE FROM changes WHERE id > ?", (self.held_after or 0,))
        self.ask(changes)

    # Changes

    def apply(self, slot: int, classes: ClassHistory, most: int | None = None) -> int:
        before = self.revision()
        number, is_done, self._in_force = self._database.write(lambda: self._apply(slot, classes, most))
        if self.held_after is not None and is_done:
            self.held_after = 0  # ids of requests begin again at 1 when the queue is empty
        if self._in_force != before:
            self._witness(self._in_force)  # last: it may fail, and what is applied stays applied
        return number

    def _apply(self, slot: int, classes: ClassHistory, most: int | None) -> tuple[int, bool, Revision]:
        """Return the number of changes, whether none is left that may be applied, and the new state."""
        self.check_in_force(slot - 1)
        if together := self._facts.number("together"):
            most = None
        checksum = Checksum(self.salt, self._facts.data("registry"))
        if self._drop_expired(slot, classes, most, checksum):
            self._facts["complete_from"] = slot  # for verification: no row that is in force from here on was dropped
        boundary, has_changed, number = Boundary(classes, slot, self.salt), False, 0
        while changes := self._take(None if most is None else most - number):
            has_changed |= self._change(changes, boundary, checksum)
            number += len(changes)
        self._facts["registry"] = checksum.value()
        if together and self.held_after is None:
            self._facts["together"] = 0
        if has_changed:
            self.advance()
        waiting = maybe_row(self._database, "SELECT 1 FROM changes WHERE id <= ?", (self.held_after or 0,))
        return number, waiting is None, self.revision()

    def _take(self, limit: int | None) -> list[Change]:
        """Remove the first queued changes that may be applied, at most `limit` and some thousands; return them."""
        through, size, last = ALL if self.held_after is None else self.held_after, 0, 0
        enough = _PORTION if limit is None else min(_PORTION, limit)
        query = "SELECT id, number FROM changes WHERE id <= ? ORDER BY id LIMIT ?"
        for row in self._database.execute(query, (through, enough)).fetchall():
            last, size = row[0], size + row[1]
            if size >= enough:
                break
        changes = self._decode("WHERE id <= ?", last)
        self._database.execute("DELETE FROM changes WHERE id <= ?", (last,))
        if rest := [] if limit is None else changes[limit:]:
            values = last, len(rest), msgspec.msgpack.encode(rest)
            self._database.execute("INSERT INTO changes VALUES (?, ?, ?)", values)
        return changes[:limit]

    def _decode(self, where: str, value: int) -> list[Change]:
        with self._database.readable():
            rows = self._database.execute(f"SELECT data FROM changes {where} ORDER BY id", (value,))
            return [change for (data,) in rows for change in _CHANGES.decode(data)]

    def _change(self, changes: list[Change], boundary: Boundary, checksum: Checksum) -> bool:
        """Apply changes in order and return whether any membership changed."""
        users = dict.fromkeys(change.user for change in changes)
        stored: dict[str, History] = dict(zip(users, self.histories(users), strict=True))
        rows = dict(stored)
        for change in changes:
            rows[change.user] = boundary.apply(rows[change.user], change)
        changed = sorted(user for user in users if rows[user] != stored[user])  # in the order of the table
        gone = [row for user in changed for row in stored[user]]
        come = [row for user in changed for row in rows[user]]
        self._database.among("DELETE FROM members", list({row.user for row in gone}))
        self._database.add_members(come)
        checksum.add_rows(come)
        checksum.drop_rows(gone)
        return bool(changed)

    def _drop_expired(self, slot: int, classes: ClassHistory, limit: int | None, checksum: Checksum) -> bool:
        """Drop rows that are no longer kept in a slot (`ClassHistory.kept_through`); return whether there were any.

        More than `limit` rows wait for a later boundary. They affect no count.
        """
        where = 'WHERE last IS NOT NULL AND last <= ? AND last + "window" <= ? LIMIT ?'
        dropped = list(self._rows(where, (slot - classes.min_kept_slots, slot, ALL if limit is None else limit)))
        self._database.executemany(
            'DELETE FROM members WHERE "user" = ? AND first = ? AND "window" = ? AND nano = ?',
            ((row.user, row.first, row.window, row.nano) for row in dropped),
        )
        checksum.drop_rows(dropped)
        return bool(dropped)

    def enrol(self, everybody: Enrolment, slot: int, classes: ClassHistory) -> bool:
        """Register everybody from `slot` on without queueing, if the registry has no rows and nobody was counted before.

        Only the holder of the writer's lock may, before `slot`; inside a transaction. Returns whether that was so.
        """
        (known,) = only_row(self._database, "SELECT EXISTS (SELECT 1 FROM members)")
        if known or self.pending() or classes.unregistered_before(slot):
            return False
        checksum = Checksum(self.salt, self._facts.data("registry"))
        for changes in everybody.portions(everybody.users.order()):
            for change in changes:
                check_id(change.user)
            rows = [Membership(change.user, *(change.key or (0, 0)), change.level, slot, None) for change in changes]
            self._database.add_members(rows)
            checksum.add_rows(rows)
        self._facts["registry"] = checksum.value()
        self._loaded = checksum.value(), MemberColumns(everybody.users, everybody.keys)  # reading back takes as long
        self.advance()
        self._in_force = None
        return True

    def store_restore(self, restore: Restore, beyond: int = 0) -> None:
        """Store what slots released elsewhere leave in doubt; inside a transaction. `beyond`: as of `advance`."""
        checksum = Checksum(self.salt, self._facts.data("registry"))
        checksum.add_restore(restore)
        values = restore.slot, restore.silent_through, encode_keys(restore.doubted)
        self._database.execute("INSERT INTO restores VALUES (?, ?, ?)", values)
        self._facts["registry"] = checksum.value()
        self.advance(beyond)
        self._in_force = None

    # State

    def revision(self) -> Revision:
        with self._database.readable():
            number, chain = self._facts.number("revision"), self._facts.text("registry chain")
            if number < 0 or not _CHAIN.fullmatch(chain):
                raise self._database.damaged()
        return Revision(number, chain)

    def counted_under(self) -> Revision:
        """Return the state of the registry that slots are counted under now."""
        return self._in_force or self.revision()

    def check_in_force(self, through: int) -> None:
        """Refuse to continue with memberships that are not those this writer counted under; inside a transaction.

        ▲ A database that was restored to between two slots has all slots and lacks later changes: users who were counted
        would be unregistered users (spec 10).

        Args:
            through: the last slot that was drawn under them.

        Raises:
            StaleJournal: if they differ.
        """
        if self._in_force is None or self.revision() == self._in_force:
            return
        (committed,) = only_row(self._database, "SELECT committed FROM head")
        raise StaleJournal(
            "the memberships that were put in force here",
            "a journal that does not know them",
            "It was restored, or a standby took over that had not received everything: nothing more goes out. Publish with "
            f"--released-through {through}; changes of the registry that were lost have to be asked for again.",
            committed=int(committed),
            released=through,
        )

    def advance(self, beyond: int = 0) -> None:
        """Store the next revision; inside a transaction.

        Args:
            beyond: a number that the next one exceeds. A settled restore exceeds every revision that the witness shows.
        """
        before = self.revision()
        chain = hashlib.sha256(bytes.fromhex(before.chain) + self._facts.data("registry")).hexdigest()
        after = Revision(max(before.number, beyond) + 1, chain)
        self._facts["revision"] = after.number
        self._facts["registry chain"] = after.chain


class Checksum:
    """Sum of a keyed 64-bit hash of every row of `members` and `restores`, modulo 2⁶⁴.

    A change adds and subtracts rows. The sum finds damage, not forgery. Formula: docs/reference/journal-format.md.

    Args:
        salt: key of the journal.
        stored: the sum before, as stored.
    """

    def __init__(self, salt: bytes, stored: bytes = bytes(8)) -> None:
        self._salt = salt
        self._keys = np.frombuffer(salt, dtype="<u8", count=4) | np.uint64(1)
        self._sum = int.from_bytes(stored, "little")

    def add(self, users: StringColumn, levels: StringColumn, numbers: IntArray) -> None:
        """Add rows as columns; the rows of `numbers` are window, nano-epsilons, first and last (−1: held)."""
        self._sum += self._hash(users, levels, numbers)

    def add_rows(self, rows: list[Membership]) -> None:
        self._sum += self._hash(*_to_columns(rows))

    def drop_rows(self, rows: list[Membership]) -> None:
        self._sum -= self._hash(*_to_columns(rows))

    def add_restore(self, restore: Restore) -> None:
        text = f"{restore.slot},{restore.silent_through},{encode_keys(restore.doubted)}"
        digest = hashlib.blake2b(text.encode(), key=self._salt, digest_size=8).digest()
        self._sum += int.from_bytes(digest, "little")

    def value(self) -> bytes:
        """Return the sum as it is stored."""
        return (self._sum % (1 << 64)).to_bytes(8, "little")

    def _hash(self, users: StringColumn, levels: StringColumn, numbers: IntArray) -> int:
        hashes = np.zeros(len(users), dtype=np.uint64)
        texts = [column.words(column.words_for(len(column))).T for column in (users, levels)]
        for key, words in zip(self._keys, (*texts, numbers.astype(np.uint64)), strict=False):
            powers = np.multiply.accumulate(np.full(len(words), key))
            for power, column in zip(powers, words, strict=True):
                hashes += _mix(column, power)
        return int(_mix(hashes, self._keys[3]).sum(dtype=np.uint64))


def _mix(words: npt.NDArray[np.uint64], key: np.uint64) -> npt.NDArray[np.uint64]:
    """Return a hash of each word; 0 of 0, so zeros behind the end of a text add nothing."""
    mixed = words * key
    mixed ^= mixed >> np.uint64(32)
    mixed *= key
    return mixed


def _to_columns(rows: list[Membership]) -> tuple[StringColumn, StringColumn, IntArray]:
    if not rows:
        return StringColumn.from_texts(()), StringColumn.from_texts(()), np.empty((4, 0), dtype=np.int64)
    users, windows, nanos, levels, firsts, lasts = zip(*rows, strict=True)
    numbers = np.array([windows, nanos, firsts, [-1 if last is None else last for last in lasts]])
    return StringColumn.from_texts(users), StringColumn.from_texts([level or "" for level in levels]), numbers


def encode_keys(keys: Iterable[Key]) -> str:
    """Return requirements as they are stored."""
    return json.dumps(sorted(keys), separators=(",", ":"))
