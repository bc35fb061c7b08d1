"""A client of `wevent serve`: small, typed, for blocking and for asynchronous programs.

It needs httpx (`pip install 'wevent[client]'`), logs nothing, and shows neither tokens nor ids: not in messages, not in
representations.
"""

from __future__ import annotations

from wevent.client.async_client import AsyncClient
from wevent.client.sync_client import Client
from wevent.errors import ServiceRefused, ServiceUnreachable
from wevent.schemas import (
    BatchResult,
    BudgetRow,
    BudgetTable,
    HeldChoice,
    ImportResult,
    LeaveResult,
    LevelTable,
    OfferedLevel,
    PersonalLink,
    ReleasedClass,
    ReleasedSlot,
    StreamInfo,
    UserRequirement,
)

__all__ = [
    "AsyncClient",
    "BatchResult",
    "BudgetRow",
    "BudgetTable",
    "Client",
    "HeldChoice",
    "ImportResult",
    "LeaveResult",
    "LevelTable",
    "OfferedLevel",
    "PersonalLink",
    "ReleasedClass",
    "ReleasedSlot",
    "ServiceRefused",
    "ServiceUnreachable",
    "StreamInfo",
    "UserRequirement",
]
