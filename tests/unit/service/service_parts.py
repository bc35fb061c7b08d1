"""What the tests of routes share: a journal with a few slots, a service over it without a process, and who may ask."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from tests.support import commands
from wevent.publishing.configuration import load_settings
from wevent.schemas import BatchResult
from wevent.service.app import make_app
from wevent.service.context import ServiceContext
from wevent.service.publishing_thread import PublisherState
from wevent.settings import Settings
from wevent.settings.values import SECOND_US, parse_time
from wevent.streams.clock import SlotClock

SLOTS = 6
ORIGIN_US = parse_time(commands.START, "start")
LEVELS = "[levels.privacy]\nHigh = 0.1\nLow = 0.9\n[levels.window]\nSmall = 4\nLarge = 8\n"


class Wall:
    """A wall clock that a test sets."""

    def __init__(self) -> None:
        self.now_us, self.jumped = 0, False

    def __call__(self) -> int:
        return self.now_us

    def has_jumped(self) -> bool:
        return self.jumped


WALL = Wall()


def set_wall(slot: float, second: float) -> None:
    """Let it be a second of a slot."""
    WALL.now_us = ORIGIN_US + int(((slot - 1) * 60 + second) * SECOND_US)


@dataclass
class Receiving:
    """A source that takes everything and remembers it; or refuses with an error."""

    batches: list[tuple[str, str | None, bytes]] = field(default_factory=list)
    error: Exception | None = None

    def receive(self, sender: str, batch: str | None, lines: bytes) -> BatchResult:
        if self.error is not None:
            raise self.error
        self.batches.append((sender, batch, lines))
        return BatchResult(lines.count(b"\n"), {})


@dataclass
class Service:
    """A service without a process."""

    context: ServiceContext
    app: FastAPI
    receiving: Receiving
    state: PublisherState
    tokens: dict[str, str]

    def header(self, role: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[role]}"}

    def ask(self, method: str, path: str, role: str | None = "admin", **more: Any) -> httpx.Response:
        """One call, in a loop of its own; pages need no journal that `opens`."""
        headers = {**(self.header(role) if role else {}), **more.pop("headers", {})}
        opens = more.pop("opens", True)
        return self.during(lambda client: client.request(method, path, headers=headers, **more), opens=opens)

    def during(self, act: Callable[[httpx.AsyncClient], Awaitable[Any]], *, opens: bool = True) -> Any:
        """Whatever is done with a client while releases are followed."""

        async def running() -> Any:
            if opens:
                await self.context.feed.open()
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
                return await act(client)

        return asyncio.run(running())


def write_journal(folder: Path, slots: int = SLOTS) -> Path:
    """60 people in four cells, a few minutes of them; with levels that nobody has chosen yet."""
    commands.write_stream(folder, slots)
    (folder / "wevent.toml").write_text(f'mechanism = "pbd"\n{LEVELS}')
    done = commands.publish(folder, slots, "--config", "wevent.toml")
    assert done.code == 0, done
    return folder / "run.journal"


def make_service(folder: Path, journal: Path, **service: Any) -> Service:
    table = {"requests_per_minute": 0, "tokens": str(folder / "tokens"), **service}
    settings = stream_settings(journal, table).service
    receiving = Receiving()
    state = PublisherState(0, SECOND_US, SlotClock(ORIGIN_US, 60 * SECOND_US), committed=SLOTS, phase="running")
    state.receiver = receiving
    set_wall(SLOTS + 1, 30)
    WALL.jumped = False
    context = ServiceContext(settings, journal, state, {})
    tokens = {role: context.tokens.create([role]).text for role in ("ingest", "enrol", "read", "admin")}
    return Service(context, make_app(context), receiving, state, tokens)


def stream_settings(journal: Path, table: Mapping[str, Any]) -> Settings:
    """Of a live stream, with a table [service]."""
    options = {"inputs": "-", "cells": 4, "slot": "60s", "journal": str(journal), "service": table}
    return load_settings(None, options)
