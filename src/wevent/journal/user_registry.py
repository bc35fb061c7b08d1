"""Registry of users: the requirements that they hold and held since when (spec 10). The rules are in `wevent.people`."""

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
from wevent.journal.database import ALL, UPSERT, Database, Facts, maybe_row, only_row
from wevent.journal.record import Revision
from wevent.people.classes import ClassHistory, Key, Restore
from wevent.people.membership import (
    ERASED,
    Boundary,
    Change,
    Enrolment,
    History,
    KeyColumn,
    MemberColumns,
    Membership,
    TailColumns,
    check_epoch,
    check_id,
    erased_id,
)

_PORTION = 1 << 15  # changes or rows in memory
_CHAIN = re.compile("[0-9a-f]{64}")
_BY_REQUEST = "by request "  # facts of this name and an id: users who joined by themselves
_ARE_BY_REQUEST = "name > 'by request ' AND name < 'by request!'"
_CHANGES = msgspec.msgpack.Decoder(list[Change])
_ROWS = 'SELECT "user", "window", nano, level, first, last FROM members'
_START: tuple[Any, ...] = ("", 0, 0, 0)  # before the key of every row
_ERASED_RANGE = (ERASED, ERASED[:-1] + chr(ord(ERASED[-1]) + 1))  # erased ids are from the one on and before the other


class Registry:
    """Registry of users in the tables of a journal.

    Any process may `ask`; only the writer may `apply`. So a change takes effect exactly between two slots.

    Args:
        database: the journal's connection.
        witness: stores every new state of the registry outside the journal.

    Attributes:
        held_after: last queued request that `apply` may apply: later ones wait for the first slot of the next version.
            None: all of them.
    """

    def __init__(self, database: Database, witness: Callable[[Revision], None]) -> None:
        self._database = database
        self._facts = Facts(database)
        self._witness = witness
        self._loaded: tuple[bytes, MemberColumns] | None = None  # a checked registry until it is read
        self._in_force: Revision | None = None  # state that this writer counts under
        self.held_after: int | None = None

    @property
    def salt(self) -> bytes:
        """The key of digests of ids; it stays in the journal and its copies."""
        return self._facts.data("salt")

    # Reading

    def members(self) -> list[Membership]:
        """Return the current membership of every member."""
        with self._database.readable():
            return list(self._rows("WHERE last IS NULL"))

    def rows(self) -> MemberColumns:
        """Return every member as columns, for rosters of millions."""
        self.check()
        loaded, self._loaded = self._loaded, None
        assert loaded is not None
        return loaded[1]

    def check(self) -> None:
        """Compare all rows with the checksum.

        Raises:
            InvalidJournal: if they are not the rows that were stored.
        """
        with self._database.readable():
            self._database.read(self._load)

    def _load(self) -> None:
        stored = self._facts.data("registry")
        if self._loaded is not None and self._loaded[0] == stored:
            return
        salt, after = self.salt, _START
        checksum = sum(_hash_restore(salt, restore) for restore in self.restores())
        users, codes, keys = list[StringColumn](), list[npt.NDArray[np.int32]](), dict[Key, int]()
        while (found := self._database.member_columns(after)) is not None:
            names, levels = StringColumn.from_separated(found[0]), StringColumn.from_separated(found[1])
            numbers = np.array([np.fromstring(column, dtype=np.int64, sep=" ") for column in found[2]])
            checksum += _hash_columns(salt, names, levels, numbers)
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
        if _encode_checksum(checksum) != stored:
            raise self._database.damaged()
        column = KeyColumn(list(keys), np.concatenate([np.empty(0, dtype=np.int32), *codes]))
        self._loaded = stored, MemberColumns(StringColumn.joined(users), column)

    def tails(self, slot: int) -> TailColumns:
        """Return the requirements that ended and are still in force in a slot."""
        query = 'SELECT "user", "window", nano, last FROM members WHERE last IS NOT NULL AND last + "window" > ?'
        with self._database.readable():
            rows = self._database.execute(query, (slot,)).fetchall()
        numbers = np.array([row[1:] for row in rows], dtype=np.int64).reshape(-1, 3)
        keys = KeyColumn.of_columns(numbers[:, 0], numbers[:, 1])
        return TailColumns(StringColumn.from_texts([row[0] for row in rows]), keys, numbers[:, 2])

    def former_ids(self) -> list[str]:
        """Return the ids that have rows and are no members, erased ones as digests: they are never unregistered users."""
        query = (
            'SELECT DISTINCT "user" FROM members WHERE last IS NOT NULL AND NOT EXISTS (SELECT 1 FROM members AS held'
            ' WHERE held."user" = members."user" AND held.last IS NULL)'
        )
        return [user for (user,) in self._database.execute(query)]

    def next_expiry(self, classes: ClassHistory) -> int | None:
        """Return the first slot in which some row is no longer kept, None without such rows."""
        query = 'SELECT min(last + CASE WHEN "window" > ? THEN "window" ELSE ? END) FROM members WHERE last IS NOT NULL'
        (ends,) = only_row(self._database, query, (classes.min_kept_slots,) * 2)
        return None if ends is None else int(ends)

    def holds(self, user: str) -> bool:
        """Return whether a user is registered, or will be after the queued changes."""
        wishes = [change for change in self.queued() if change.user == user]
        if wishes:
            return wishes[-1].action == "set"
        query = 'SELECT 1 FROM members WHERE "user" = ? AND last IS NULL'
        return maybe_row(self._database, query, (user,)) is not None

    def remembers(self, user: str) -> bool:
        """Return whether the id has rows: a member, or a user who left and whose requirement is still in force."""
        return maybe_row(self._database, 'SELECT 1 FROM members WHERE "user" = ?', (user,)) is not None

    def histories(self, users: Iterable[str]) -> Iterator[History]:
        """Yield all rows of each of these ids, in their order, under the id or the digest of it."""
        query = 'SELECT 1 FROM members WHERE "user" >= ? AND "user" < ? LIMIT 1'
        has_erased = maybe_row(self._database, query, _ERASED_RANGE) is not None
        salt, asking = self.salt if has_erased else b"", iter(users)
        while names := list(itertools.islice(asking, _PORTION)):
            digests = [erased_id(name, salt) for name in names] if has_erased else []
            found: dict[str, list[Membership]] = {name: [] for name in (*names, *digests)}
            for row in self._database.among(_ROWS, list(found)):
                found[row[0]].append(Membership(*row))
            for name, digest in itertools.zip_longest(names, digests):
                yield found[name] + found[digest] if has_erased else found[name]

    def turnover(self, slot: int) -> int:
        """Return how many users joined plus how many left at the boundary before a slot; a change of class is neither."""
        joined = 'SELECT "user" FROM members WHERE first = ?'
        left = 'SELECT "user" FROM members WHERE last = ? AND first > 0'  # a note is no membership that ended
        query = f"SELECT count(*) FROM ({joined} EXCEPT {left}) AS joined"
        query += f" UNION ALL SELECT count(*) FROM ({left} EXCEPT {joined}) AS gone"
        with self._database.readable():
            return sum(count for (count,) in self._database.execute(query, (slot, slot - 1, slot - 1, slot)))

    def sizes(self) -> dict[Key, int]:
        """Return the number of members that hold each requirement, without queued changes."""
        query = 'SELECT "window", nano, count(*) FROM members WHERE last IS NULL GROUP BY "window", nano'
        with self._database.readable():
            return {(window, nano): users for window, nano, users in self._database.execute(query)}

    def restores(self) -> tuple[Restore, ...]:
        """Return every restore that left something in doubt, in slot order."""
        query = "SELECT slot, silent_through, doubted FROM restores ORDER BY slot"
        return tuple(
            Restore(slot, silent_through, tuple((window, nano) for window, nano in json.loads(doubted)))
            for slot, silent_through, doubted in self._database.execute(query)
        )

    def _rows(self, where: str, values: tuple[Any, ...] = ()) -> Iterator[Membership]:
        return (Membership(*row) for row in self._database.execute(f"{_ROWS} {where}", values))

    # Requests

    def ask(self, changes: Iterable[Change], epoch: int | None = None, *, by_request: bool = False) -> int:
        """Queue changes; they take effect at the next slot boundary. Returns how many.

        Args:
            changes: in order.
            epoch: the number of the version that they were checked against, None if they need no check.
            by_request: users who join by themselves, not with a requirements file.

        Raises:
            StaleJournal: for a backup: memberships decided after it are lost, so it takes no change (spec 10).
            InvalidMembership: for an id that no user can have, or if a later version was stored: nothing is queued.
        """
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
                    f"The journal is a backup that ends with slot {committed}.",
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
        """Return the users who joined by request since a requirements file was imported, and did not ask to leave."""
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

    def pop_held_requests(self) -> list[Change]:
        """Remove the requests that `apply` does not apply and return them; inside a transaction."""
        held = self._decode("WHERE id > ?", self.held_after or 0)
        self._database.execute("DELETE FROM changes WHERE id > ?", (self.held_after or 0,))
        return held

    def last_request(self) -> int:
        """Return the number of the request that was queued last, 0 if none waits."""
        return int(only_row(self._database, "SELECT coalesce(max(id), 0) FROM changes")[0])

    # Changes

    def apply(self, slot: int, classes: ClassHistory, most: int | None = None) -> int:
        """Apply the first `most` queued changes at the boundary before `slot`, and drop as many rows that are not kept.

        All of them are applied where they belong together: they came with a version, or with a registry that was imported
        again after a restore. Returns the number of changes.
        """
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
        salt, hashes, has_changed, number = self.salt, 0, False, 0
        if dropped := self._drop_expired(slot, classes, most):
            hashes -= _hash_rows(salt, dropped)
            self._facts["complete_from"] = slot  # for verification: no row that is in force from here on was dropped
        boundary = Boundary(classes, slot, salt)
        while changes := self._take(None if most is None else most - number):
            gone, come = self._change(changes, boundary)
            hashes += _hash_rows(salt, come) - _hash_rows(salt, gone)
            has_changed |= bool(gone or come)
            number += len(changes)
        self._add_to_checksum(hashes)
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

    def _change(self, changes: list[Change], boundary: Boundary) -> tuple[list[Membership], list[Membership]]:
        """Apply changes in order; return the rows that went and those that came in their place."""
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
        return gone, come

    def _drop_expired(self, slot: int, classes: ClassHistory, limit: int | None) -> list[Membership]:
        """Drop the rows that are no longer kept in a slot (`ClassHistory.kept_through`); return them.

        More than `limit` rows wait for a later boundary. They affect no count.
        """
        where = 'WHERE last IS NOT NULL AND last <= ? AND last + "window" <= ? LIMIT ?'
        dropped = list(self._rows(where, (slot - classes.min_kept_slots, slot, ALL if limit is None else limit)))
        self._database.executemany(
            'DELETE FROM members WHERE "user" = ? AND first = ? AND "window" = ? AND nano = ?',
            ((row.user, row.first, row.window, row.nano) for row in dropped),
        )
        return dropped

    def enrol(self, everybody: Enrolment, slot: int, classes: ClassHistory) -> bool:
        """Register all users from `slot` on without queueing, if the registry has no rows and no user was counted before.

        Only the holder of the writer's lock may, before `slot`; inside a transaction. Returns whether that was so.
        """
        (known,) = only_row(self._database, "SELECT EXISTS (SELECT 1 FROM members)")
        if known or self.pending() or classes.unregistered_before(slot):
            return False
        salt, hashes = self.salt, 0
        for changes in everybody.portions(everybody.users.order()):
            for change in changes:
                check_id(change.user)
            rows = [Membership(change.user, *(change.key or (0, 0)), change.level, slot, None) for change in changes]
            self._database.add_members(rows)
            hashes += _hash_rows(salt, rows)
        checksum = self._add_to_checksum(hashes)
        self._loaded = checksum, MemberColumns(everybody.users, everybody.keys)  # reading back takes as long
        self.advance()
        self._in_force = None
        return True

    def store_restore(self, restore: Restore, beyond: int = 0) -> None:
        """Store what slots released elsewhere leave in doubt; inside a transaction. `beyond`: as of `advance`."""
        values = restore.slot, restore.silent_through, _encode_keys(restore.doubted)
        self._database.execute("INSERT INTO restores VALUES (?, ?, ?)", values)
        self._add_to_checksum(_hash_restore(self.salt, restore))
        self.advance(beyond)
        self._in_force = None

    # State

    def revision(self) -> Revision:
        """Return the state of the registry that the next change builds on."""
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
            "The journal lacks memberships that were put in force here: it was restored, or a standby took over that had not "
            "received everything. Nothing more is released.",
            f"Publish with --released-through {through}; changes of the registry that were lost have to be asked for again.",
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

    def _add_to_checksum(self, hashes: int) -> bytes:
        """Add hashes of rows to the checksum and store it; return it."""
        stored = int.from_bytes(self._facts.data("registry"), "little")
        self._facts["registry"] = checksum = _encode_checksum(stored + hashes)
        return checksum


# The checksum is the sum of a keyed 64-bit hash of every row of `members` and `restores`, modulo 2⁶⁴. It finds damage, not
# forgery. Formula: docs/reference/journal-format.md.


def _encode_checksum(hashes: int) -> bytes:
    return (hashes % (1 << 64)).to_bytes(8, "little")


def _hash_restore(salt: bytes, restore: Restore) -> int:
    text = f"{restore.slot},{restore.silent_through},{_encode_keys(restore.doubted)}"
    return int.from_bytes(hashlib.blake2b(text.encode(), key=salt, digest_size=8).digest(), "little")


def _hash_rows(salt: bytes, rows: list[Membership]) -> int:
    if not rows:
        return 0
    users, windows, nanos, levels, firsts, lasts = zip(*rows, strict=True)
    numbers = np.array([windows, nanos, firsts, [-1 if last is None else last for last in lasts]])
    names = StringColumn.from_texts(users), StringColumn.from_texts([level or "" for level in levels])
    return _hash_columns(salt, *names, numbers)


def _hash_columns(salt: bytes, users: StringColumn, levels: StringColumn, numbers: IntArray) -> int:
    """Return the sum of the hashes of rows; the rows of `numbers` are window, nano-epsilons, first and last (−1: held)."""
    hashes, keys = np.zeros(len(users), dtype=np.uint64), np.frombuffer(salt, dtype="<u8", count=4) | np.uint64(1)
    texts = [column.words(column.words_for(len(column))).T for column in (users, levels)]
    for key, words in zip(keys, (*texts, numbers.astype(np.uint64)), strict=False):
        powers = np.multiply.accumulate(np.full(len(words), key))
        for power, column in zip(powers, words, strict=True):
            hashes += _mix(column, power)
    return int(_mix(hashes, keys[3]).sum(dtype=np.uint64))


def _mix(words: npt.NDArray[np.uint64], key: np.uint64) -> npt.NDArray[np.uint64]:
    """Return a hash of each word; 0 of 0, so zeros behind the end of a text add nothing."""
    mixed = words * key
    mixed ^= mixed >> np.uint64(32)
    mixed *= key
    return mixed


def _encode_keys(keys: Iterable[Key]) -> str:
    return json.dumps(sorted(keys), separators=(",", ":"))
