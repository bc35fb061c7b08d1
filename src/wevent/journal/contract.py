"""The seam to durable storage: four methods each, one contract suite for every implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from wevent.journal.record import Record
from wevent.journal.terms import Epoch
from wevent.people.holdout import HoldOut, Key
from wevent.people.membership import Change

Hook = Callable[[str], None]
"""Called at each labelled step of the commit protocol; the kill tests hang in here."""


def no_hook(step: str) -> None:
    """Nothing happens between the steps."""


class Batch(NamedTuple):
    """What one transaction stores.

    Attributes:
        records: consecutive slots, the next one first.
        position: where the input stands after them; None leaves it as it is.
        state: `Publisher.state()` after the last of them, every now and then; None otherwise.
        emitted: the last slot known to have been emitted.
        pending: events of slots that are still open, kept until these close and no longer.
    """

    records: Sequence[Record]
    position: Any
    state: bytes | None
    emitted: int
    pending: bytes = b""


@dataclass(frozen=True, slots=True)
class Head:
    """Where a journal stands.

    Attributes:
        committed: the last committed slot, 0 before the first.
        emitted: the last slot known to have been emitted; it may lag behind the truth, never run ahead.
        position: where the input stands.
        digest: the end of the hash chain.
        epoch: the terms in force.
        copied: whether this file is a backup that was not yet told through which slot releases went out.
        first: the first slot still kept (retention drops older ones).
        unsafe: what weakens the promise: "seeded noise", "start auto", "started over".
    """

    committed: int
    emitted: int
    position: Any
    digest: bytes
    epoch: Epoch
    copied: bool
    first: int
    unsafe: tuple[str, ...]


class Loaded(NamedTuple):
    """What a publisher continues from.

    Attributes:
        head: where the journal stands.
        state: `Publisher.state()` of some committed slot, None before the first was stored.
        since: the slots committed after that state.
        last: the last committed slot.
        pending: events of slots that were still open, b"" without any; None if they can no longer be read.
    """

    head: Head
    state: bytes | None
    since: list[Record]
    last: Record | None
    pending: bytes | None = b""


class Member(NamedTuple):
    """A registered user: the requirement held, the words it came from, and from which slot it counts."""

    user: str
    key: Key
    level: str | None
    first: int


class Registry(Protocol):
    """Who holds which requirement since when (spec 10)."""

    def members(self) -> list[Member]:
        """Everybody who is registered, those held out included (their `first` lies ahead)."""

    def ask(self, changes: Iterable[Change]) -> int:
        """Queue changes; they take effect at the next slot boundary. Returns how many."""

    def pending(self) -> int:
        """How many changes are queued."""

    def apply(self, slot: int, holdout: HoldOut, most: int | None = None) -> int:
        """Put queued changes in force from `slot` on, the first `most`, and forget what no longer holds anyone out."""


class Journal(Protocol):
    """Durable storage of one stream: exactly one release per slot, ever (spec 10)."""

    @property
    def registry(self) -> Registry:
        """The registry."""

    @property
    def identity(self) -> str:
        """The journal's own id; copies share it."""

    def load(self) -> Loaded:
        """What to continue from."""

    def commit(self, batch: Batch, at: Hook = no_hook) -> None:
        """Store charges, releases and input position in one transaction: all of it or nothing.

        Raises:
            JournalLocked: if another writer has committed one of the slots; the draw is to be discarded.
        """

    def releases(self, first: int = 1) -> Iterator[Record]:
        """The committed slots from `first` on, in order."""

    def read_note(self) -> bytes:
        """What `write_note` wrote last, padded; anything after a crash. Nothing may rest on it that is not checked."""

    def write_note(self, data: bytes, *, force: bool = False) -> None:
        """Write a few bytes beside the journal, if it is open for writing: how an output was left; forced to disk or not."""
