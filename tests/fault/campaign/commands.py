"""The real commands in forked children: a command costs milliseconds, and can be killed at any moment.

The child is forked after import, gets files of its own as standard output and error, and runs one command after another
through `wevent.cli.main`; what escapes from that is a traceback, as it would be for an operator.
"""

from __future__ import annotations

import logging
import os
import pickle
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from wevent.cli import main
from wevent.errors import WeventError

Variant = Callable[[], None]
"""Applied in the child before the command: a wrong way to publish, or nothing."""

Step = tuple[str, ...] | Callable[[], object]
Steps = tuple[Step, ...]

_EFFECTS = frozenset(
    ("write", "execute", "executemany", "fsync", "truncate", "ftruncate", "replace", "rename", "unlink", "remove",
     "open", "close", "step", "mkstemp", "rmdir", "mkdir")
)  # fmt: skip


def unchanged() -> None:
    """The program as it is."""


def die_after(slot: int) -> None:
    """From now on this process dies when a slot is out."""
    from wevent.publishing.loop import Publication

    emit = Publication._emit

    def emit_and_die(publication: Publication, records: Any) -> bool:
        emitted = emit(publication, records)
        if records[-1].slot == slot:
            os.kill(os.getpid(), signal.SIGKILL)
        return emitted

    Publication._emit = emit_and_die  # type: ignore[method-assign]


class Ended(NamedTuple):
    """How a command ended: the exit code, negative for a signal; None if it was never reached."""

    code: int | None
    out: bytes
    err: str
    value: Any = None
    effects: int = 0

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out[-400:]!r}\n{self.err[-2500:]}"


class Commands:
    """Commands in one folder.

    Args:
        folder: where they run.
        variant: what is wrong with the program under test.
    """

    def __init__(self, folder: Path, variant: Variant = unchanged) -> None:
        self.folder, self._variant = folder, variant
        self._took: dict[str, float] = {}
        self._effects: dict[str, int] = {}

    def run(self, *steps: Step, stdin: bytes = b"") -> list[Ended]:
        """Steps to their end, in one child, as far as they came."""
        return self._wait(*self._start(steps, stdin), steps)

    def killed(self, kind: str, share: float, *steps: Step, stdin: bytes = b"", by_time: bool = True) -> list[Ended]:
        """Steps that are killed after a share of what such steps took so far: of the time, or of the effects they had.

        The last one ends with -9, or was done before. An effect is a call that may write, sync, cut, rename or remove.
        """
        if by_time:
            begun = time.monotonic()
            child, notes = self._start(steps, stdin)
            time.sleep(share * self._took.get(kind, 0.15))
            os.kill(child, signal.SIGKILL)
        else:
            last = round(share * self._effects.get(kind, 1 << 40))  # the first one lives, to be counted
            child, notes = self._start(steps, stdin, last)
        ended = self._wait(child, notes, steps)
        if ended[-1].code == -signal.SIGKILL:
            self._took[kind] = self._took.get(kind, 0.15) * 1.02  # too many died: allow for a busy machine
        elif by_time:
            self._took[kind] = 0.5 * self._took.get(kind, 0.15) + 0.5 * (time.monotonic() - begun)
        else:
            self._effects[kind] = ended[-1].effects
        return ended

    def _start(self, steps: Steps, stdin: bytes, effects: int | None = None) -> tuple[int, Path]:
        notes = quick_folder()
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(writing)
            self._run_child(steps, notes, reading, effects)
        os.close(reading)
        if stdin:
            assert len(stdin) <= 65536, "more lines than a pipe holds"
            with suppress(BrokenPipeError):
                os.write(writing, stdin)
        os.close(writing)
        return child, notes

    def _run_child(self, steps: Steps, notes: Path, stdin: int, effects: int | None) -> None:
        code = 70
        try:
            os.chdir(self.folder)
            os.dup2(stdin, 0)
            sys.stdin = os.fdopen(0, "r", closefd=False)
            logging.getLogger().handlers.clear()
            self._variant()
            count = _Effects(effects)
            for number, step in enumerate(steps):
                code = _run_step(step, notes, number, count)
        except BaseException:  # noqa: BLE001  a child must never return into the campaign
            code = 70
            (notes / "0.err").write_text(f"The campaign itself failed:\n{traceback.format_exc()}")
        finally:
            os._exit(code)

    def _wait(self, child: int, notes: Path, steps: Steps) -> list[Ended]:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        ended: list[Ended] = []
        for number in range(len(steps)):
            out, err = notes / f"{number}.out", notes / f"{number}.err"
            done = notes / f"{number}.code"
            texts = (out.read_bytes() if out.exists() else b"", err.read_text(errors="replace") if err.exists() else "")
            if not done.exists():
                ended.append(Ended(status, *texts))
                break
            code, value, effects = pickle.loads(done.read_bytes())
            ended.append(Ended(code, *texts, value, effects))
        shutil.rmtree(notes)
        return ended


class _Effects:
    """Counts calls that may change a file, right before and right after each, and dies at one of them."""

    def __init__(self, last: int | None) -> None:
        self._last, self.number = last, 0

    def __enter__(self) -> None:
        if self._last is not None:
            sys.setprofile(self._called)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _called(self, frame: object, event: str, called: object) -> None:
        if event in ("c_call", "c_return") and getattr(called, "__name__", "") in _EFFECTS:
            self.number += 1
            if self.number == self._last:
                os.kill(os.getpid(), signal.SIGKILL)


def _run_step(step: Step, notes: Path, number: int, effects: _Effects) -> int:
    for descriptor, ending in ((1, "out"), (2, "err")):
        file = os.open(notes / f"{number}.{ending}", os.O_WRONLY | os.O_CREAT)
        os.dup2(file, descriptor)
        os.close(file)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  until the child ends
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    code, value = 0, None
    try:
        with effects:
            value = step() if callable(step) else main(step)
    except WeventError as error:  # of a step that is no command
        print(f"Error: {error}", file=sys.stderr)
        code = 2
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:  # noqa: BLE001  as the interpreter would end
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    partial = notes / f"{number}.partial"
    partial.write_bytes(pickle.dumps((code, value, effects.number)))
    partial.rename(notes / f"{number}.code")
    return code


def quick_folder() -> Path:
    """A new folder in memory, where there is one: a kill loses nothing that was written, and syncs cost nothing."""
    memory = "/dev/shm"
    return Path(tempfile.mkdtemp(prefix="wevent-campaign-", dir=memory if os.access(memory, os.W_OK) else None))


def load_everything() -> None:
    """Load what commands need, before forking: OpenDP first of all; DuckDB makes threads and stays out."""
    import importlib

    from tests.fault.killing import warm_up

    for name in ("publish", "verify", "status", "users", "backup", "releases"):
        importlib.import_module(f"wevent.cli.{name}")
    warm_up()
