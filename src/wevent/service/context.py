"""Objects and dependencies that all routes use: `app.state.context`."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ParamSpec, TypeVar, get_args

import msgspec
from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Request, Response

from wevent.errors import WeventError
from wevent.journal import Journal, JournalPlace, open_journal
from wevent.publishing.views import BudgetView
from wevent.service.access import Buckets, CallerKind
from wevent.service.feed import ReleaseFeed
from wevent.service.problems import RequestError, not_running
from wevent.service.publishing_thread import PublisherState
from wevent.service.request_body import JSON, MemoryBudget
from wevent.service.tokens import Tokens, tokens_path
from wevent.settings import ServiceSettings

_READERS = 4  # of the journal at once; more would only wait for each other
_BATCHES = 32  # that wait at once until they are durable
_CHANGES = 2  # of the registry, at once: each waits for the journal
_PATIENCE_S = 3.0  # with a database: the caller can ask again

Answer = TypeVar("Answer")
P = ParamSpec("P")


class JournalReader:
    """Readers of a journal beside its publisher, in a bounded number of threads."""

    def __init__(self, place: JournalPlace) -> None:
        self._place = place
        self._limiter = CapacityLimiter(_READERS)
        self._cache: dict[str, tuple[int, Any]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._failed: dict[str, tuple[float, WeventError]] = {}  # when the last call failed, and why

    async def ask(self, question: Callable[[Journal], Answer]) -> Answer:
        """Return a function of the journal, called in a thread with a journal of its own."""

        def answer() -> Answer:
            with open_journal(self._place, patience_s=_PATIENCE_S) as journal:
                return question(journal)

        return await to_thread.run_sync(answer, limiter=self._limiter)

    async def once(self, name: str, slot: int, question: Callable[[Journal], Answer]) -> Answer:
        """Return a function of the journal, called once per committed slot for all callers; who waited shares a failure."""
        begun = time.monotonic()
        async with self._locks.setdefault(name, asyncio.Lock()):
            if self._cache.get(name, (None,))[0] != slot:
                if name in self._failed and self._failed[name][0] >= begun:
                    raise self._failed[name][1]
                try:
                    self._cache[name] = slot, await self.ask(question)
                except WeventError as error:
                    self._failed[name] = time.monotonic(), error
                    raise
            answer: Answer = self._cache[name][1]
            return answer


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
        journal: JournalPlace,
        state: PublisherState,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self.settings, self.journal, self.state = settings, journal, state
        self.tokens = Tokens(tokens_path(journal, settings.tokens))
        self.requests = {kind: Buckets(settings.requests_per_minute) for kind in get_args(CallerKind)}
        self.events = Buckets(settings.events_per_minute)
        self.memory = MemoryBudget()
        self.reader = JournalReader(journal)
        self.feed = ReleaseFeed(self.reader, state)
        self.budgets = BudgetView()
        self.columns = dict(columns or {})
        self.batches, self._changes = CapacityLimiter(_BATCHES), CapacityLimiter(_CHANGES)

    async def change(self, function: Callable[P, Answer], /, *arguments: P.args, **named: P.kwargs) -> Answer:
        """Return a function that changes the registry or the links, called in a thread."""
        return await to_thread.run_sync(functools.partial(function, *arguments, **named), limiter=self._changes)


def find_context(request: Request) -> ServiceContext:
    """Return the parts of the service; refuse before the journal can be read (503), but answer readiness from the start."""
    context: ServiceContext = request.app.state.context
    if not context.feed.is_open and request.url.path != "/readyz":
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
