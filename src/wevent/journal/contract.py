"""The seam to durable storage: a small protocol per role, and `Journal`, which is all of them.

| role | what it keeps |
|---|---|
| `Slots` | one release per slot, ever, with its charges and the input position |
| `Registry` | who holds which requirement since when |
| `Epochs` | the terms that slots are published under, and what comes with them |
| `Witnessed` | what is known outside the journal: whether this is the journal or an old copy of it |
| `Notes` | a few bytes for an output |

Callers annotate the narrowest they need. Every implementation passes one suite, `tests/contract/journal`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from wevent.journal.contents import Batch, Head, Hook, Loaded, Revision, Writer, no_hook
from wevent.journal.record import Record
from wevent.journal.terms import Epoch, Terms
from wevent.journal.witness import WitnessRecord
from wevent.people.classes import ClassHistory, Key, Restore
from wevent.people.membership import Change, Changes, History, Membership
from wevent.people.rosters import MemberColumns, TailColumns


class Slots(Protocol):
    """Committed slots: exactly one release per slot, ever (spec 10)."""

    @property
    def identity(self) -> str:
        """The journal's own id; copies share it."""

    def load(self) -> Loaded:
        """What to continue from.

        Raises:
            InvalidJournal: if state or slots are not what was stored.
        """

    def head(self) -> Head:
        """Return the head of the journal."""

    def commit(self, batch: Batch, at: Hook = no_hook) -> None:
        """Store charges, releases and input position in one transaction: all of it or nothing.

        Nothing of the batch is public before this returns. A batch that failed may be committed again.

        Raises:
            JournalLocked: if another writer has committed one of the slots; the draw is to be discarded.
        """

    def releases(self, first: int = 1) -> Iterator[Record]:
        """Yield the committed slots from `first` on, in order, as far as they are kept.

        Raises:
            InvalidJournal: at the first slot that is not what was stored.
        """

    def chain_at(self, slot: int) -> bytes | None:
        """Return the chain hash after a kept slot, or right before the first one; None elsewhere."""

    def is_elsewhere(self, slot: int) -> bool:
        """Whether a slot is known to have been released by another copy of the journal."""

    def compact(self, keep: int) -> int:
        """Drop all but the last `keep` slots, as far as nothing still needs them; returns the first slot kept.

        Kept in any case: what is not yet emitted, what the stored state is replayed from, and the largest window.
        """


class Registry(Protocol):
    """Who holds which requirement since when (spec 10); the rules are in `wevent.people`.

    Anybody may `ask`; only the writer may `apply`. So a change takes effect exactly between two slots, whoever asked.
    """

    @property
    def salt(self) -> bytes:
        """The key of digests of ids; it stays in the journal and its copies."""

    def members(self) -> list[Membership]:
        """Return the current membership of every member."""

    def rows(self) -> MemberColumns:
        """Return every member as columns, for rosters of millions."""

    def tails(self, slot: int) -> TailColumns:
        """Return the requirements that ended and are still in force in a slot."""

    def former_ids(self) -> list[str]:
        """Return the ids that have rows and are no members, erased ones as digests: they are never unregistered users."""

    def holds(self, user: str) -> bool:
        """Whether a user is registered, queued changes counted in."""

    def remembers(self, user: str) -> bool:
        """Whether the registry has rows of the id: a member, or a user who left and whose requirement is still in force."""

    def histories(self, users: Iterable[str]) -> Iterator[History]:
        """Every membership of each of these ids, in their order, under the id or the digest of it; none: an empty one."""

    def turnover(self, slot: int) -> int:
        """Return how many users joined plus how many left at the boundary before a slot; a change of class is neither."""

    def sizes(self) -> dict[Key, int]:
        """Return the number of members that hold each requirement, without queued changes."""

    def ask(self, changes: Iterable[Change], epoch: int | None = None, *, by_request: bool = False) -> int:
        """Queue changes; they take effect at the next slot boundary. Returns how many.

        Args:
            changes: in order.
            epoch: the number of the epoch whose terms they were checked against, None if they need no check.
            by_request: people who join by themselves, not with a requirements file: `joined_by_request` knows them.

        Raises:
            StaleJournal: for a backup: memberships decided after it are lost, so it takes no change (spec 10).
            InvalidMembership: for an id that nobody can have, or if a later epoch has been stored: nothing is queued.
        """

    def joined_by_request(self) -> frozenset[str]:
        """Return the users who joined by request since a requirements file was imported, and did not ask to leave."""

    def pending(self) -> int:
        """How many changes are queued."""

    def queued(self) -> list[Change]:
        """The queued changes, in order."""

    def last_request(self) -> int:
        """Return the number of the request that was queued last, 0 if none waits."""

    def apply(self, slot: int, classes: ClassHistory, most: int | None = None) -> int:
        """Apply the first `most` queued changes at the boundary before `slot`, and drop as many rows that are not kept.

        All of them are applied where they belong together: they came with an epoch, or with a registry that was imported
        again after a restore.
        """

    def next_expiry(self, classes: ClassHistory) -> int | None:
        """Return the first slot in which some row is no longer kept, None without such rows."""

    def restores(self) -> tuple[Restore, ...]:
        """Return every restore that left something in doubt, in slot order."""

    def revision(self) -> Revision:
        """Return the state of the registry that the next change builds on."""

    def check(self) -> None:
        """Refuse memberships that are not those that were stored.

        Raises:
            InvalidJournal: if they are not.
        """


class Epochs(Protocol):
    """The terms that slots are published under, and what comes with them."""

    @property
    def is_new(self) -> bool:
        """Whether there are no terms yet."""

    def begin(
        self,
        terms: Terms,
        unsafe: tuple[str, ...] = (),
        changes: Changes = (),
        imported: bytes | None = None,
        asked: int | None = None,
    ) -> None:
        """Put terms in force for the slots to come; the first slot that is committed under them pins them.

        A journal without slots keeps them, and takes others until its first slot: a failed start binds nobody. An epoch
        of a journal with slots is stored, with everything that comes with it, in the transaction of its first slot;
        changes of the registry then take effect at the boundary after it. What people ask for meanwhile waits for the same
        boundary and is not overridden: `wevent.journal.coming.changes_to_queue` has the rule.

        Args:
            terms: what to pin.
            unsafe: what weakens the promise.
            changes: what the registry is to be told with it.
            imported: the digest of the requirements file that the changes come from.
            asked: last request (`Registry.last_request`) that the changes of an epoch take into account; None: the last one.
        """

    def epochs(self) -> list[Epoch]:
        """Every epoch, the first one first; the last may wait for its first slot."""

    @property
    def epoch_waits(self) -> bool:
        """Whether an epoch is to be stored with its first slot."""

    def imported(self) -> bytes:
        """The digest of the requirements file that was imported last, empty if none was."""

    def note_imported(self, digest: bytes) -> None:
        """Write down which requirements file was imported: whoever is registered now is in it, nobody joined by request."""

    def note_unsafe(self, unsafe: tuple[str, ...]) -> None:
        """Write down what weakens the promise; it never goes away."""


class Witnessed(Protocol):
    """What is known outside the journal, so that an old copy of it is noticed and never draws a slot twice (spec 10)."""

    @property
    def identity(self) -> str:
        """The journal's own id; copies share it."""

    @property
    def witness_name(self) -> str:
        """The name of the witness in messages."""

    def witnessed(self) -> WitnessRecord:
        """Return what the witness shows; for a writer: what it showed before this journal was opened."""

    def update_witness(self) -> None:
        """Write the end of the journal, its registry and its versions into the witness; durable on return.

        A commit does it by itself. This is for changes of the registry without a slot, and for restores.
        """

    def take_over(self, batch: Batch, restore: Restore | None = None, *, changes_lost: bool = False) -> None:
        """Make a backup the journal, after the operator stated through which slot releases went out. One transaction.

        Args:
            batch: the slots released elsewhere, charged; none if nothing was.
            restore: what these slots leave in doubt; None: nothing.
            changes_lost: whether changes of the registry may have been lost; see `changes_lost`.
        """

    @property
    def changes_lost(self) -> bool:
        """Whether changes of the registry may have been lost with slots released elsewhere.

        Users who left, were erased or chose a stricter level would be counted as before. So no slot is published until the
        operator imports the registry again, which clears this, or accepts the loss (`accept_lost_changes`).
        """

    def accept_lost_changes(self) -> None:
        """Store that the operator accepts the loss."""


class Notes(Protocol):
    """A few bytes beside the journal, for an output: how it was left."""

    def read_note(self) -> bytes:
        """What `write_note` wrote last, padded; anything after a crash. Nothing may rest on it that is not checked."""

    def write_note(self, data: bytes, *, force: bool = False) -> None:
        """Write them, if the journal is open for writing; forced to disk or not."""


class Emitted(Notes, Protocol):
    """What an output looks at: committed slots, and its note."""

    @property
    def identity(self) -> str:
        """See `Slots.identity`."""

    def head(self) -> Head:
        """See `Slots.head`."""

    def releases(self, first: int = 1) -> Iterator[Record]:
        """See `Slots.releases`."""


class Journal(Slots, Epochs, Witnessed, Notes, Protocol):
    """Durable storage of one stream; a context manager that closes it."""

    @property
    def registry(self) -> Registry:
        """The registry."""

    @property
    def name(self) -> str:
        """What it is called in messages: a path, an address."""

    def files(self) -> list[Path]:
        """The files that belong to it: nothing else may be written there."""

    def size(self) -> int:
        """How many bytes it takes; of interest to the operator only."""

    def writer(self) -> Writer | None:
        """Who is publishing into it now, None if nobody is."""

    def close(self) -> None:
        """Close it and let the next writer in; a journal that was never begun leaves nothing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
