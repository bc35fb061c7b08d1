"""A client of `wevent serve`: small, typed, for blocking and for asynchronous programs.

It needs httpx (`pip install 'wevent[client]'`), logs nothing, and shows neither tokens nor ids: not in messages, not in
representations. The types of its results are in `wevent.schemas`.
"""

from __future__ import annotations

from wevent.client.async_client import AsyncClient
from wevent.client.sync_client import Client
from wevent.errors import ServiceRefused, ServiceUnreachable

__all__ = ["AsyncClient", "Client", "ServiceRefused", "ServiceUnreachable"]
