"""One side of a pair, run for real: the command in this process, the command as a process, or the library."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from tests.support import synthetic
from tests.support.live_events import ScriptedPipeSource, pipe_source
from tests.support.neighbours.containers import pieces
from tests.support.neighbours.pairs import Pair
from tests.support.neighbours.scripted import SCRIPT, write_package
from tests.support.neighbours.values import SECOND, SLOT_S, START_US
from tests.support.streams import ScriptedInbox, Wall, settings
from wevent.cli import main
from wevent.events.segment_log import SegmentLog
from wevent.journal import SqliteJournal
from wevent.outputs import Output, open_output
from wevent.people.membership import Change
from wevent.publishing.loop import Publication, Running
from wevent.settings.values import format_time
from wevent.streams import SlotClock

ROOT = Path(__file__).parents[3]


class Ended(NamedTuple):
    """What a process leaves: exit code, standard output, standard error."""

    code: int
    out: bytes
    err: bytes


Runner = Callable[[list[str], Path, bytes], Ended]
"""Runs a command with these arguments in a folder, with this standard input."""


def command_runs(
    pair: Pair, folder: Path, run: Runner, extra: tuple[str, ...] = (), reports: tuple[str, ...] = ()
) -> list[Ended]:
    """`wevent publish` for every stage of the pair, then what these commands say about the journal."""
    declare(pair, folder)
    options = {**pair.options, "requirements": "users.csv", "journal": "run.journal", "cells": cells_option(pair)}
    if pair.world.times != "slot":
        options |= {"slot": f"{SLOT_S}s", "start": format_time(START_US)}
    else:
        options["slot_column"] = "slot"
    ended = []
    if pair.way == "files":
        for feed in pair.feeds:
            feed.write(folder)
        for end in pair.ends:
            options["end"] = str(end) if "slot_column" in options else format_time(_second(end * SLOT_S))
            ended.append(run(["publish", *pair.inputs, *_arguments(options), *extra], folder, b""))
    else:
        options |= {"close_slots_by": "lines", "grace": f"{pair.options['grace']}s"}
        words = ["publish", "-", *_arguments(options), *extra]
        ended += [run(words, folder, feed.content()) for feed in pair.feeds]
    return ended + [run([report, "run.journal"], folder, b"") for report in reports]


def in_this_process(arguments: list[str], folder: Path, stdin: bytes) -> Ended:
    """The command with its streams taken over; quick."""
    path = folder.with_name(folder.name + ".stdin")
    path.write_bytes(stdin)
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    code = 0
    with path.open(encoding="utf-8") as given, taken_over(folder, given, out, err):
        try:
            main(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:  # noqa: BLE001  what a process would show
            traceback.print_exc()
            code = 1
    return Ended(code, out.buffer.getvalue(), err.buffer.getvalue())  # type: ignore[attr-defined]


@contextlib.contextmanager
def taken_over(folder: Path, given: Any, out: Any, err: Any) -> Iterator[None]:
    """A process's surroundings for a command: folder, streams, and no log handler yet."""
    before, streams, log = os.getcwd(), (sys.stdin, sys.stdout, sys.stderr), logging.getLogger()
    handlers, level = log.handlers[:], log.level
    log.handlers[:] = []
    os.chdir(folder)
    sys.stdin, sys.stdout, sys.stderr = given, out, err
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        os.chdir(before)
        log.handlers[:] = handlers
        log.setLevel(level)


def as_a_process(arguments: list[str], folder: Path, stdin: bytes) -> Ended:
    """The command as anybody would start it; the mechanism comes from an installed package."""
    package = folder.with_name(folder.name + ".package")
    if not package.exists():
        write_package(package)
    path = os.pathsep.join([str(package), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    paths = [part if os.path.isabs(part) else str(ROOT / part) for part in path.split(os.pathsep)]
    ended = subprocess.run(
        [sys.executable, "-m", "wevent.cli", *arguments],
        cwd=folder,
        input=stdin,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


class PublicLines(logging.Handler):
    """Log lines that an operator may publish.

    Attributes:
        lines: their texts, in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if "(private" not in text:
            self.lines.append(f"{record.name} {record.levelname} {text}")

    @contextlib.contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Collect the lines of a logger, whatever its level, for a while."""
        log = logging.getLogger(name)
        level = log.level
        log.addHandler(self)
        log.setLevel(logging.INFO)
        try:
            yield
        finally:
            log.removeHandler(self)
            log.setLevel(level)


def library_run(
    pair: Pair,
    folder: Path,
    source: type[ScriptedPipeSource] = ScriptedPipeSource,
    wrap: Callable[[Output, ScriptedPipeSource], Output] = lambda output, source: output,
) -> list[Ended]:
    """The loop on live lines that slots of an injected wall clock close."""
    logged = PublicLines()
    said, code = logged.lines, 0
    with SqliteJournal(folder / "run.journal", write=True) as journal, logged.of("wevent"):
        journal.begin(_terms(pair))
        users = zip(pair.world.users, pair.world.requirements, strict=True)
        journal.registry.ask(Change("set", str(user), (window, round(nano * 1e9))) for user, (window, nano) in users)
        opened = _live_source(pair, source, SegmentLog(folder / "run.journal.events"))
        output = wrap(open_output(str(folder / "out.ndjson")), opened)
        try:
            Publication(journal, opened, output, running=Running(last=pair.world.slots)).run()
            output.close()
        except BaseException:  # noqa: BLE001  what a caller would see
            said.append(traceback.format_exc())
            code = 1
    return [Ended(code, b"", "".join(f"{one}\n" for one in said).encode())]


def _live_source(pair: Pair, source: type[ScriptedPipeSource], store: SegmentLog) -> ScriptedPipeSource:
    """Everything arrives at its second, cut into pieces anywhere; then time runs until the last slot has closed."""
    chance = Random(f"pieces {pair.seed} {len(pair.targets())}")
    script: list[bytes | float] = []
    for feed in pair.feeds:
        for second in sorted({one.arrival for one in feed.records}):
            arriving = [
                one.data + b"\n" for one in feed.records if one.arrival == second and isinstance(one.data, bytes)
            ]
            script += [float(second), *pieces(b"".join(arriving), chance)]
    wall = Wall(START_US)
    chosen = settings(
        cells=_declared_cells(pair),
        **{key: pair.options[key] for key in ("time_column", "user_column", "cell_column") if key in pair.options},
        grace_us=pair.options["grace"] * SECOND,
        max_cells_per_user=pair.options["max_cells_per_user"],
        timezone_us=0 if "timezone" in pair.options else None,
    )
    inbox = ScriptedInbox(script, wall, leave_open=True)
    clock = SlotClock(START_US, SLOT_S * SECOND)
    return pipe_source(chosen, clock, pair.world.slots, inbox=inbox, now_us=wall, store=store, source=source)


def _terms(pair: Pair) -> Any:
    names = ("mechanism", "max_cells_per_user", "unknown_users", "neighbours", "smoothing", "round", "nonnegative")
    return synthetic.make_terms(
        origin_us=START_US,
        length_us=SLOT_S * SECOND,
        cells=_declared_cells(pair),
        declared=sorted({(window, round(epsilon * 1e9)) for window, epsilon in pair.world.requirements}),
        **{name: pair.options[name] for name in names if name in pair.options},
    )


def counted() -> list[tuple[int, np.ndarray[Any, Any]]]:
    """What the scripted mechanism was given since the last call, slot by slot."""
    seen, SCRIPT.seen = SCRIPT.seen, []
    return seen


def declare(pair: Pair, folder: Path) -> None:
    """Write the files of users and cells."""
    rows = [
        f"{user},{window},{epsilon}"
        for user, (window, epsilon) in zip(pair.world.users, pair.world.requirements, strict=True)
    ]
    (folder / "users.csv").write_text("\n".join(["user,window,epsilon", *rows]) + "\n", encoding="utf-8")
    if not isinstance(pair.world.cells, int):
        (folder / "cells.txt").write_text("\n".join(pair.world.cells) + "\n", encoding="utf-8")


def cells_option(pair: Pair) -> str:
    """Return the number of cells, or the name of their file."""
    return str(pair.world.cells) if isinstance(pair.world.cells, int) else "cells.txt"


def _declared_cells(pair: Pair) -> Any:
    return pair.world.cells if isinstance(pair.world.cells, int) else list(pair.world.cells)


def _arguments(options: dict[str, Any]) -> list[str]:
    words = []
    for name, value in sorted(options.items()):
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(str(value))
    return words


def _second(second: float) -> int:
    return START_US + round(second * SECOND)
