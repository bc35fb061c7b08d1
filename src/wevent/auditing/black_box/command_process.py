"""The command line as a process that is there already: every call is a fork of it, so that hundreds of runs take seconds.

`python -m wevent.auditing.black_box.command_process MODULE` reads calls from standard input, a JSON object per line, and
answers each with a line. A call runs as `python -m MODULE …` would: own process, own files, own exit code. One that takes too
long is killed, by the process it was forked from, and said to hang.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import NamedTuple, NoReturn, Self

import wevent

_PRELOADED = ("apsw", "duckdb", "opendp.measurements", "wevent.cli.publish", "wevent.publishing.session")
_OUT, _ERR = "standard-output", "standard-error"
_HUNG = "hung"
LIMIT_S = 10.0
"""How long a call may take: one that does not hang takes a part of a second, a few where the machine has much else to do."""


class Ended(NamedTuple):
    """How a call ended: exit code, None if it did not end in time and was killed; standard output, standard error."""

    code: int | None
    out: str
    err: str


class CommandProcess:
    """Calls of a command, each in a folder of its own.

    Args:
        module: what `python -m` runs.
        limit_s: how long a call may take.
    """

    def __init__(self, module: str = "wevent", *, limit_s: float = LIMIT_S) -> None:
        self._module, self._limit_s = module, limit_s
        path = os.pathsep.join((str(Path(wevent.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])))
        self._environment = {**os.environ, "PYTHONPATH": path}
        self._server: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        if hasattr(os, "fork"):
            self._server = subprocess.Popen(
                [sys.executable, "-m", __name__, self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=self._environment,
                start_new_session=True,  # Ctrl-C is for the audit; what calls leave behind ends with this group
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        server, self._server = self._server, None
        if server is not None:
            with suppress(OSError):  # it has ended already
                os.killpg(server.pid, signal.SIGKILL)
            with suppress(OSError), server:  # a call that it never got may be left in a pipe to nobody
                pass

    def call(self, folder: Path, *arguments: str) -> Ended:
        """Run the command there, to its end or until its time is over."""
        code = (self._as_process if self._server is None else self._forked)(folder, arguments)
        return Ended(code, *(_text(folder / name) for name in (_OUT, _ERR)))

    def _forked(self, folder: Path, arguments: tuple[str, ...]) -> int | None:
        assert self._server is not None
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        call = {"folder": str(folder), "arguments": arguments, "limit_s": self._limit_s}
        self._server.stdin.write(json.dumps(call) + "\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline().strip()  # comes in time: calls are killed there, it runs nothing itself
        if not answer:
            raise OSError("the process that runs the command has ended")
        return None if answer == _HUNG else int(answer)

    def _as_process(self, folder: Path, arguments: tuple[str, ...]) -> int | None:
        """A whole new process, where there is no fork; files, because a pipe may outlive who is killed."""
        command = [sys.executable, "-m", self._module, *arguments]
        with (folder / _OUT).open("wb") as out, (folder / _ERR).open("wb") as err:
            try:
                return subprocess.run(
                    command,
                    cwd=folder,
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    timeout=self._limit_s,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                return None


def _text(file: Path) -> str:
    """What a call wrote; nothing, if it was killed before it came to that."""
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def _serve(module: str) -> None:
    """Fork for every line of standard input, until it ends."""
    for name in _PRELOADED:
        with suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        call = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(module, call["folder"], call["arguments"])
        sys.stdout.write(f"{_end_of(child, call['limit_s'])}\n")
        sys.stdout.flush()


def _end_of(child: int, limit_s: float) -> int | str:
    """Its exit code; or that it hung, and is dead now."""
    late: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        late.append(number)
        with suppress(ProcessLookupError):  # it ended just now
            os.kill(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    _, status = os.waitpid(child, 0)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    return _HUNG if late else os.waitstatus_to_exitcode(status)


def _run(module: str, folder: str, arguments: list[str]) -> NoReturn:
    """As `python -m` does it, with standard output and error in files."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # that of the call before
    os.chdir(folder)
    for number, name in enumerate((os.devnull, _OUT, _ERR)):
        opened = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  the process ends with it
    sys.argv[1:] = arguments
    code: object = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code
    except BaseException as error:  # noqa: BLE001  an exit code like any other
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    _serve(sys.argv[1])
