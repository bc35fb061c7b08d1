"""Objects and dependencies that all routes use: `app.state.context`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Annotated, ParamSpec, TypeVar, get_args

import msgspec
from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Request, Response

from wevent.journal import JournalAddress
from wevent.publishing.views import BudgetView
from wevent.service.access import Buckets, CallerKind
from wevent.service.feed import JournalReader, ReleaseFeed
from wevent.service.problems import RequestError, not_running
from wevent.service.publishing_thread import PublisherState
from wevent.service.request_body import JSON, MemoryBudget
from wevent.service.tokens import Tokens, tokens_path
from wevent.settings import ServiceSettings

_BATCHES = 32  # that wait at once until they are durable
_CHANGES = 2  # of the registry, at once: each waits for the journal

Answer = TypeVar("Answer")
P = ParamSpec("P")


class ServiceContext:
    """The parts of a service over a journal that exists, or will when it is read.

    Attributes:
        requests, events: limits per minute.
        columns: names of the columns of requirements files.
        batches: limit of batches that are stored at once.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        journal: JournalAddress,
        state: PublisherState,
        columns: Mapping[str, str],
    ) -> None:
        self.settings, self.journal, self.state = settings, journal, state
        self.tokens = Tokens(tokens_path(journal, settings.tokens))
        self.requests = {kind: Buckets(settings.requests_per_minute) for kind in get_args(CallerKind)}
        self.events = Buckets(settings.events_per_minute)
        self.memory = MemoryBudget()
        self.reader = JournalReader(journal)
        self.feed = ReleaseFeed(self.reader, state)
        self.budgets = BudgetView()
        self.columns = columns
        self.batches, self._changes = CapacityLimiter(_BATCHES), CapacityLimiter(_CHANGES)

    async def change(self, function: Callable[P, Answer], /, *arguments: P.args, **named: P.kwargs) -> Answer:
        """Return a function that changes the registry or the links, called in a thread."""
        return await to_thread.run_sync(functools.partial(function, *arguments, **named), limiter=self._changes)


async def find_context(request: Request) -> ServiceContext:  # FastAPI calls others in a thread
    """Return the parts of the service; refuse before the journal can be read (503)."""
    context: ServiceContext = request.app.state.context
    if not context.feed.is_open:
        raise not_running()
    return context


Context = Annotated[ServiceContext, Depends(find_context)]


async def check_parameters(request: Request) -> None:
    """Refuse unknown parameters (400): `?dryrun=true` would store what it should only preview."""
    known = [field.alias for field in request.scope["route"].dependant.query_params]
    if any(name not in known for name in request.query_params):
        raise RequestError(400, "Unknown query parameter.", f"Supported: {', '.join(known) or 'none'}.")


def json_answer(answer: msgspec.Struct | dict[str, object], status: int = 200) -> Response:
    """Return an answer as JSON."""
    return Response(msgspec.json.encode(answer), status, media_type=JSON)
