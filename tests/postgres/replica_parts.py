"""Replicas without a service around them: a store, what takes batches in and what counts them, over a real database."""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.support.commands import PATIENCE_S
from tests.support.postgres_server import own_schema, shared_url
from wevent.counting.labels import Cells
from wevent.counting.roster import Roster
from wevent.events import receiver
from wevent.events.live_source import LiveSource
from wevent.events.receiver import BatchReceiver
from wevent.journal import lease
from wevent.journal.address import PostgresAddress, parse_address
from wevent.journal.lease import make_tables
from wevent.publishing.event_stores import ReplicaStores
from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock

SECOND = 1_000_000
CLOCK = SlotClock(0, 10 * SECOND)
receiver._ANSWER_S = PATIENCE_S  # a machine that is busy is no fault


class Clock:
    """A wall clock that tests move."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def __call__(self) -> int:
        return int(self.seconds * SECOND)


def new_place(folder: Path, url: str | None = None) -> PostgresAddress:
    """An empty schema of the server that tests share, with a witness folder."""
    schema, side = own_schema(), folder / "side"
    side.mkdir(mode=0o700, exist_ok=True)
    url = shared_url() if url is None else url
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"SET search_path TO {schema}")
        make_tables(connection, schema)
    place = parse_address(f"{url}?schema={schema}&witness={side}")
    assert isinstance(place, PostgresAddress)
    be_writer(place)
    with closing(ReplicaStores(place).open("test")) as events:
        events.let_in()
    return place


def be_writer(place: PostgresAddress, *, is_other: bool = False) -> None:
    """Let this process be the one that writes the journal; or one of another container, with its number and host."""
    instance = secrets.token_hex(8)
    if not is_other:
        lease._here.add(instance)
    with asked(place) as connection:
        text = "UPDATE writer SET fence = fence + 1, instance = %s, pid = %s, host = %s"
        connection.execute(text, (instance, os.getpid(), socket.gethostname()))


@contextmanager
def asked(place: PostgresAddress) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """A connection of the test's own."""
    with psycopg.connect(place.conninfo, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {place.schema}")
        yield connection


def cut_off(place: PostgresAddress, connection: psycopg.Connection[Any]) -> None:
    """End a connection from the server's side."""
    with asked(place) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (connection.info.backend_pid,))


def stored_slots(place: PostgresAddress) -> list[int]:
    """The slots that have events."""
    with asked(place) as connection:
        return [slot for (slot,) in connection.execute("SELECT DISTINCT slot FROM events ORDER BY slot")]


def key_slots(place: PostgresAddress) -> list[int]:
    """The slots that have a key."""
    assert place.folder is not None
    return sorted(int(path.name.split(".")[2]) for path in (place.folder / "keys").glob("*.key"))


def settings(**changes: Any) -> StreamSettings:
    fields: dict[str, Any] = {"inputs": ("-",), "cells": Cells.of(["north", "south"]), "slot_us": 10 * SECOND}
    return StreamSettings(**{**fields, **changes})


class Replica:
    """What one process of a service has of events.

    Args:
        place: the journal.
        now: its wall clock.
        **changes: of the settings.
    """

    def __init__(self, place: PostgresAddress, now: Clock, patience_s: float = PATIENCE_S, **changes: Any) -> None:
        stream = settings(**changes)
        self.stores = ReplicaStores(place)
        self.intake = self.stores.open("intake", patience_s)
        self.store = self.stores.open("counting", patience_s)
        self.receiver = BatchReceiver(stream, CLOCK, None, intake=self.intake, now_us=now)
        self.source = LiveSource(stream, CLOCK, None, store=self.store, now_us=now)

    def counted(self, slot: int, people: int = 1000) -> list[list[int]]:
        """The counts of a slot that has closed."""
        counts = next(self.source.count(roster(people), slot, 1)).counts
        return counts.matrix.tolist()  # type: ignore[no-any-return]

    def close(self) -> None:
        self.receiver.close()
        for store in (self.intake, self.store):
            store.close()


@contextmanager
def replicas(place: PostgresAddress, now: Clock, number: int = 2, **more: Any) -> Iterator[list[Replica]]:
    begun = [Replica(place, now, **more) for _ in range(number)]
    try:
        yield begun
    finally:
        for one in begun:
            one.close()


def roster(people: int = 1000) -> Roster:
    return Roster.from_columns(list(range(people)), [4] * people, ["1.0"] * people)


def lines(*events: tuple[float, Any, Any]) -> bytes:
    rows = ({"time": seconds, "user": user, "cell": cell} for seconds, user, cell in events)
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)
