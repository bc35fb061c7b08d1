"""What goes into a journal and comes out of it, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from wevent.journal.record import Record
from wevent.journal.terms import Epoch, Terms

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
    """

    records: Sequence[Record]
    position: Any
    state: bytes | None
    emitted: int


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
        unshown: how many more slots are committed that a reader is not shown: they are not known outside yet (spec 10).
    """

    committed: int
    emitted: int
    position: Any
    digest: bytes
    epoch: Epoch
    copied: bool
    first: int
    unsafe: tuple[str, ...]
    unshown: int = 0

    @property
    def next_slot(self) -> int:
        """The slot that is to be published next."""
        return self.committed + self.unshown + 1

    @property
    def pinned(self) -> Terms | None:
        """The terms that bind, None before the first slot: a start that came to no slot binds nobody."""
        return self.epoch.terms if self.next_slot > 1 or self.copied else None


class Loaded(NamedTuple):
    """What a publisher continues from.

    Attributes:
        head: where the journal stands.
        state: `Publisher.state()` of some committed slot, None before the first was stored.
        since: the slots committed after that state.
        last: the last committed slot.
    """

    head: Head
    state: bytes | None
    since: list[Record]
    last: Record | None


class Revision(NamedTuple):
    """A state of the registry.

    Attributes:
        number: how often memberships have changed. −1: unknown.
        chain: hash over all of these states, hexadecimal, so that two copies that went on separately differ.
    """

    number: int
    chain: str


NO_REVISION = Revision(-1, "")


class Marked(NamedTuple):
    """What is written outside the journal about the last slot that was committed.

    Attributes:
        journal: the id of the journal that wrote it, empty if none did.
        committed: the last slot it committed.
        link: the end of its hash chain there, hexadecimal.
        revision: state of the registry, as far as it was known then.
        versions: hash over all configuration versions, hexadecimal.
        applied: number of the last revision that was committed.
    """

    journal: str
    committed: int
    link: str
    revision: Revision = NO_REVISION
    versions: str = ""
    applied: int = -1


class Writer(NamedTuple):
    """Who publishes into a journal: a process, where it runs, and since when."""

    pid: int
    host: str
    since: str
