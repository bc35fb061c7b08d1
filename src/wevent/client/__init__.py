"""A client of `wevent serve`: small, typed, for blocking and for asynchronous programs.

It needs httpx (`pip install 'wevent[client]'`), logs nothing, and shows neither tokens nor ids: not in messages, not in
representations.
"""

from __future__ import annotations

from wevent.client.async_client import AsyncClient
from wevent.client.returned import (
    BatchResult,
    BudgetRow,
    BudgetTable,
    ChoiceResult,
    HeldChoice,
    ImportResult,
    LeaveResult,
    LevelOffer,
    LevelTable,
    PersonalLink,
    ReleasedClass,
    ReleasedSlot,
    StatedRequirement,
    StreamFacts,
)
from wevent.client.sync_client import Client
from wevent.errors import ServiceRefused, ServiceUnreachable

__all__ = [
    "AsyncClient",
    "BatchResult",
    "BudgetRow",
    "BudgetTable",
    "ChoiceResult",
    "Client",
    "HeldChoice",
    "ImportResult",
    "LeaveResult",
    "LevelOffer",
    "LevelTable",
    "PersonalLink",
    "ReleasedClass",
    "ReleasedSlot",
    "ServiceRefused",
    "ServiceUnreachable",
    "StatedRequirement",
    "StreamFacts",
]
