"""A writer in a process of its own, which stops itself at a labelled step and publishes on when it is continued.

python -m tests.postgres.paused_writer URL OUT STEP: prints "paused" before it stops, and in the end what became of it.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.support.publications import publish
from wevent.errors import WeventError
from wevent.journal import PostgresAddress, parse_address
from wevent.journal.postgres import PostgresJournal


def main(url: str, out: str, step: str) -> None:
    place = parse_address(url)
    assert isinstance(place, PostgresAddress)
    stopped: list[str] = []

    def at(label: str) -> None:
        if label == step and not stopped:
            stopped.append(label)
            print("paused", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)

    try:
        with PostgresJournal(place, write=True) as journal:
            publish(journal, Path(out), journal.head().committed + 2, at=at)
        print("published", flush=True)
    except WeventError as error:
        print(type(error).__name__, error, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
