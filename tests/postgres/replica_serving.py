"""`wevent` over a journal in a database, with a witness in it, as `tests.service.witnessed_serving` has one.

Told by the environment, besides WEVENT_WITNESS:

WEVENT_SENTENCE     a file: from when it says `STEP:N`, SIGKILL at the N-th time that this labelled step is reached; with
                    `STEP:N:stop` SIGSTOP, once. Steps of the loop and of the journal's commit; and of events: "locked" (the
                    intake lock is shared, nothing is added), "stored" (durable, not acknowledged), "closed" (a slot, not
                    read), "read", "destroyed" (its key), "dropped" (its events).
WEVENT_DRAWS        a file: a line for every draw, with what would go out, and for every commit.

A writer may be silent for as long as a test takes: it is not taken for dead because the machine is busy.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.postgres.journal_parts import LEASE_S
from tests.service.witnessed_serving import witness
from tests.support.executioner import Executioner
from wevent.cli import main
from wevent.events.postgres_store import IntakeLock, PostgresStore
from wevent.journal import lease
from wevent.outputs.lines import ndjson_line
from wevent.publishing import session
from wevent.publishing.loop import Publication, Running


def bear_silence() -> None:
    """Let others wait for this writer until a test says that its lease is over (`journal_parts.silence`)."""
    try_take = lease.Lease._try_acquire

    def taken(self: lease.Lease, connection: Any, above: int) -> lease.Holder | None:
        holder = try_take(self, connection, above)
        if holder is None:
            connection.execute("UPDATE writer SET lease_s = %s", (LEASE_S,))
            connection.execute(lease._RENEW)
        return holder

    lease.Lease._try_acquire = taken  # type: ignore[method-assign]


def obey(at: Callable[[str], None]) -> None:
    """Die when told."""

    def after(owner: type, name: str, step: str, is_reached: Callable[[Any], bool] = lambda result: True) -> None:
        method = getattr(owner, name)

        def wrapped(self: Any, *arguments: Any) -> Any:
            result = method(self, *arguments)
            if is_reached(result):
                at(step)
            return result

        setattr(owner, name, wrapped)

    after(IntakeLock, "shared", "locked")
    after(PostgresStore, "put", "stored", lambda result: bool(result[0]))
    after(PostgresStore, "close_slot", "closed")
    after(PostgresStore, "read", "read")
    after(PostgresStore, "destroy", "destroyed")
    after(PostgresStore, "forget", "dropped")


def tell_draws(path: str, at: Callable[[str], None]) -> None:
    """Write down every draw and every commit."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    step, commit = Publication._step, Publication._commit

    def tell(what: str, slot: int, line: bytes | None = None) -> None:
        told = {"what": what, "slot": slot, "pid": os.getpid(), "line": None if line is None else line.decode()}
        os.write(file, json.dumps(told).encode() + b"\n")

    def stepped(self: Publication, counted: Any) -> Any:
        record = step(self, counted)
        tell("drawn", record.slot, ndjson_line(record).rstrip(b"\n"))
        return record

    def committed(self: Publication, batch: Any) -> bool:
        def told(reached: str) -> None:
            if reached == "committed":
                for record in batch.records:
                    tell("committed", record.slot)
            at(reached)

        self._running = replace(self._running, at=told)
        return commit(self, batch)

    Publication._step, Publication._commit = stepped, committed  # type: ignore[method-assign]


if __name__ == "__main__":
    executioner = Executioner(Path(os.environ["WEVENT_SENTENCE"]))
    session.Running = lambda **settings: replace(Running(**settings), at=executioner)  # type: ignore[assignment,misc]
    bear_silence()
    obey(executioner)
    witness(os.environ["WEVENT_WITNESS"])
    tell_draws(os.environ["WEVENT_DRAWS"], executioner)
    main(sys.argv[1:])
