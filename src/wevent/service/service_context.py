"""What every call of the service can reach: `app.state.context`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from anyio import CapacityLimiter

from wevent.journal import JournalPlace
from wevent.service.body_room import BodyRoom
from wevent.service.journal_reader import JournalReader
from wevent.service.ledger_view import BudgetBoard
from wevent.service.links import Links
from wevent.service.publisher_state import PublisherState
from wevent.service.release_feed import ReleaseFeed
from wevent.service.service_settings import ServiceSettings
from wevent.service.throttle import Throttle
from wevent.service.tokens import Tokens
from wevent.service.tokens_file import TokensFile

_BATCHES = 32  # that wait at once until they are durable
_CHANGES = 2  # of the registry, at once: each waits for the journal


@dataclass(frozen=True)
class ServiceContext:
    """The parts of a service.

    Attributes:
        settings: of the service.
        journal: where releases and people are.
        state: how far the publisher is.
        tokens: who may ask for what.
        links: personal ones.
        throttle: how often.
        reader: of the journal.
        feed: of its releases.
        board: the budget left per class.
        columns: what the columns of requirements files are called, where they have names of their own.
        room: for all bodies.
        batches: how many batches may wait at once.
        changes: how many changes of the registry may be made at once.
    """

    settings: ServiceSettings
    journal: JournalPlace
    state: PublisherState
    tokens: Tokens
    links: Links
    throttle: Throttle
    reader: JournalReader
    feed: ReleaseFeed
    board: BudgetBoard
    columns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    room: BodyRoom = field(default_factory=BodyRoom)
    batches: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_BATCHES))
    changes: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_CHANGES))

    @classmethod
    def of(
        cls,
        settings: ServiceSettings,
        journal: JournalPlace,
        state: PublisherState,
        columns: Mapping[str, str] | None = None,
    ) -> ServiceContext:
        """The parts of a service over a journal that exists, or will when it is asked."""
        file, reader = TokensFile(settings.tokens), JournalReader(journal)
        return cls(
            settings,
            journal,
            state,
            Tokens(file),
            Links(file),
            Throttle(settings.requests_per_minute, settings.events_per_minute),
            reader,
            ReleaseFeed(reader),
            BudgetBoard(),
            MappingProxyType(dict(columns or {})),
        )
