"""`wevent` with a witness in it: the same command, which also tells the test what only the process knows.

Told by the environment:

WEVENT_WITNESS      a file outside the service's folder: before every step a line with the slot, every event that is handed to
                    it (before the last one of each person wins) and the matrix that is made of them.
WEVENT_SENTENCE     a file outside the folder, too: from when it says `STEP:N`, SIGKILL at the N-th time that this labelled
                    step is reached. Steps of the loop as in `tests.fault.killing` and "due"; and of ingestion: "written"
                    (in the file, not forced to disk), "durable" (forced, not acknowledged).
WEVENT_HASTE        seconds that headers, bodies and stalled readers have, instead of the minutes of real life.
WEVENT_STEP_S       how long every step takes at least.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.executioner import Executioner
from wevent.cli import main
from wevent.counting.roster import Counts
from wevent.events import segment_log
from wevent.events.live_source import SlotBuffer
from wevent.publishing import session
from wevent.publishing.loop import Publication, Running
from wevent.service import request_body, server


def obey(sentence: Path) -> None:
    """Die when told."""
    at = Executioner(sentence)
    session.Running = lambda **settings: replace(Running(**settings), at=at)  # type: ignore[assignment,misc]
    write, force = segment_log._write_all, segment_log._force

    def written(file: int, data: bytes) -> None:
        write(file, data)
        at("written")

    def forced(file: int) -> None:
        force(file)
        at("durable")

    segment_log._write_all, segment_log._force = written, forced


def witness(path: str) -> None:
    """Write down what is handed to every step."""
    events: list[tuple[str, int]] = []
    count, step = SlotBuffer.count, Publication._step
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def counted(self: SlotBuffer, cells: int) -> Counts:
        events[:] = [
            (str(user), int(cell))
            for part in self._parts
            for user, cell in zip(part.users.values(), part.cells.tolist(), strict=True)
        ]
        return count(self, cells)

    def stepped(self: Publication, counts: Any) -> Any:
        classes = [[one.window, one.epsilon] for one in self.publisher.population.classes]
        told = {"slot": counts.slot, "events": events, "classes": classes, "matrix": counts.counts.matrix.tolist()}
        told["pid"] = os.getpid()
        os.write(file, json.dumps(told).encode() + b"\n")
        time.sleep(float(os.environ.get("WEVENT_STEP_S", "0")))
        return step(self, counts)

    SlotBuffer.count, Publication._step = counted, stepped  # type: ignore[method-assign]


def hurry(seconds: float) -> None:
    server.HEADER_S = server.STALLED_S = server.DRAIN_S = seconds
    request_body.BODY_S = seconds


if __name__ == "__main__":
    if "WEVENT_SENTENCE" in os.environ:
        obey(Path(os.environ["WEVENT_SENTENCE"]))
    if "WEVENT_WITNESS" in os.environ:
        witness(os.environ["WEVENT_WITNESS"])
    if "WEVENT_HASTE" in os.environ:
        hurry(float(os.environ["WEVENT_HASTE"]))
    main(sys.argv[1:])
