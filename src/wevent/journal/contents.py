"""Values that go into a journal and come out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from wevent.journal.record import Record
from wevent.journal.terms import Epoch, Terms

Hook = Callable[[str], None]
"""Called at each labelled step of the commit protocol. Kill tests use it."""


def no_hook(step: str) -> None:
    """Do nothing between the steps."""


class Batch(NamedTuple):
    """What one transaction stores.

    Attributes:
        records: consecutive slots, the next one first.
        position: where the input stands after them; None leaves it as it is.
        state: `Publisher.state()` after the last of them, every now and then; None otherwise.
        emitted: last slot known to have been emitted.
    """

    records: Sequence[Record]
    position: Any
    state: bytes | None
    emitted: int


@dataclass(frozen=True, slots=True)
class Head:
    """Head of a journal.

    Attributes:
        committed: last committed slot, 0 before the first.
        emitted: last slot known to have been emitted; it may lag behind the truth, never run ahead.
        position: where the input stands.
        digest: chain hash after the last committed slot.
        epoch: the active configuration version.
        copied: whether this is a backup that was not restored yet.
        first: first slot still kept (retention drops older ones).
        unsafe: what weakens the guarantee: "seeded noise", "start auto", "started over".
    """

    committed: int
    emitted: int
    position: Any
    digest: bytes
    epoch: Epoch
    copied: bool
    first: int
    unsafe: tuple[str, ...]

    @property
    def next_slot(self) -> int:
        """The slot that is to be published next."""
        return self.committed + 1

    @property
    def pinned(self) -> Terms | None:
        """The pinned configuration, None before the first slot: a start without slots pins nothing."""
        return self.epoch.terms if self.committed or self.copied else None


class Loaded(NamedTuple):
    """What a publisher continues from.

    Attributes:
        head: head of the journal.
        state: `Publisher.state()` of some committed slot, None before the first was stored.
        since: slots committed after that state.
        last: last committed slot.
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


class Writer(NamedTuple):
    """A process that publishes into a journal, its host, and since when."""

    pid: int
    host: str
    since: str
