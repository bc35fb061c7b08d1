"""The command line as a process that is there already: every call is a fork of it, so that hundreds of runs take seconds.

`python -m wevent.auditing.black_box.command_process MODULE` reads calls from standard input, a JSON object per line, and
answers each with a line. A call runs as `python -m MODULE …` would: own process, own files, own exit code.
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
from types import TracebackType
from typing import NamedTuple, NoReturn, Self

import wevent

_PRELOADED = ("apsw", "duckdb", "opendp.measurements", "wevent.cli.publish", "wevent.publishing.session")
_OUT, _ERR = "standard-output", "standard-error"


class Ended(NamedTuple):
    """How a call ended: exit code, standard output, standard error."""

    code: int
    out: str
    err: str


class CommandProcess:
    """Calls of a command, each in a folder of its own.

    Args:
        module: what `python -m` runs.
    """

    def __init__(self, module: str = "wevent") -> None:
        self._module = module
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
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._server is not None:
            with suppress(OSError):
                self._server.communicate()  # its input ends, and so does it
            self._server = None

    def call(self, folder: Path, *arguments: str) -> Ended:
        """Run the command there, to its end."""
        if self._server is None or self._server.stdin is None or self._server.stdout is None:
            return self._as_process(folder, arguments)
        self._server.stdin.write(json.dumps({"folder": str(folder), "arguments": arguments}) + "\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline()
        if not answer:
            raise OSError("the process that runs the command has ended")
        code = int(answer)
        texts = [(folder / name).read_text(encoding="utf-8", errors="replace") for name in (_OUT, _ERR)]
        return Ended(code, *texts)

    def _as_process(self, folder: Path, arguments: tuple[str, ...]) -> Ended:
        command = [sys.executable, "-m", self._module, *arguments]
        done = subprocess.run(
            command,
            cwd=folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)


def _serve(module: str) -> None:
    """Fork for every line of standard input, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the audit, which then ends this process's input
    for name in _PRELOADED:
        with suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        call = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(module, call["folder"], call["arguments"])
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _run(module: str, folder: str, arguments: list[str]) -> NoReturn:
    """As `python -m` does it, with standard output and error in files."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
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
