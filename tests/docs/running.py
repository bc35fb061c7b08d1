"""Running the blocks of a page: commands in a shell, Python in one process that remembers what it defined."""

from __future__ import annotations

import io
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import traceback
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any

import wevent
from tests.docs.blocks import Block, Command, commands
from tests.docs.setups import BACKGROUND, PLACE, SETUPS
from tests.support.commands import PATIENCE_S, wait_for

_PROGRESS = re.compile(r"\S+: \d+ of \d+ runs done")  # said once a minute: by a busy machine only
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[-+]?\d+)?")
_LONGEST_S = 6 * PATIENCE_S  # a whole comparison takes a minute on a quiet machine


class Failed(AssertionError):
    """A block did something else than its page says."""


class PageRun:
    """The blocks of one page, run from first to last in a folder of their own.

    Args:
        folder: an empty one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._python: tuple[Any, Connection] | None = None
        self._begun: list[subprocess.Popen[bytes]] = []
        self._place = _free_place()
        tools = folder.parent / f"{folder.name}-tools"
        tools.mkdir()
        for name, what in (("wevent", "-m wevent.cli"), ("python", "")):
            tool = tools / name
            tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" {what} "$@"\n')
            tool.chmod(0o755)
        source = str(Path(wevent.__file__).parents[1])
        path = f"{tools}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**os.environ, "PYTHONPATH": source, "PATH": path, "COLUMNS": "100", "HOME": str(folder)}

    def __enter__(self) -> PageRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._python is not None:
            self._python[0].kill()
            self._python[0].join()
        for process in self._begun:  # asked first: what has begun something itself ends that, too
            for asking, patience_s in ((signal.SIGTERM, PATIENCE_S), (signal.SIGKILL, None)):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, asking)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(patience_s)

    def run(self, block: Block) -> None:
        """Do what a block says.

        Raises:
            Failed: if it ends otherwise than its page says.
        """
        block = replace(block, text=block.text.replace(PLACE, self._place))
        if "setup" in block.marks:
            self._set_up(block, block.marks["setup"])
        if "file" in block.marks:
            (self._folder / block.marks["file"]).write_text(block.text, encoding="utf-8")
        elif "not run" in block.marks:
            return
        elif "background" in block.marks:
            (command,) = commands(block)
            self._begin(block, command.text, block.marks["background"])
        elif block.language == "python":
            self._run_python(block)
        elif block.language == "console":
            for command in commands(block):
                came = self._run_command(block, command.text)
                if command.shown is not None:
                    self._compare(block, command, came)

    def _set_up(self, block: Block, name: str) -> None:
        SETUPS[name](self._folder)
        for file in self._folder.glob("*.toml"):
            file.write_text(file.read_text(encoding="utf-8").replace(PLACE, self._place), encoding="utf-8")
        if name in BACKGROUND:
            text, words = BACKGROUND[name]
            self._begin(block, text.replace(PLACE, self._place), words)

    def _begin(self, block: Block, text: str, words: str) -> None:
        """Start a command and wait for what it says."""
        said = self._folder.parent / f"{self._folder.name}-{len(self._begun)}.log"
        with said.open("wb") as file:
            streams = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": subprocess.STDOUT}
            process = subprocess.Popen(
                ["bash", "-c", text], cwd=self._folder, env=self._environment, start_new_session=True, **streams
            )
        self._begun.append(process)
        wait_for(lambda: words in said.read_text(encoding="utf-8") or process.poll() is not None, words)
        told = said.read_text(encoding="utf-8")
        if words not in told:
            raise Failed(f"{block.place}: {text!r} did not say {words!r} but\n{told}")

    def _compare(self, block: Block, command: Command, came: str) -> None:
        compare(block, command.text, command.shown or "", came)

    def _run_command(self, block: Block, text: str) -> str:
        done = subprocess.run(
            ["bash", "-c", text],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_LONGEST_S,
            check=False,
        )
        came = done.stdout.decode()
        if done.returncode:
            raise Failed(f"{block.place}: {text!r} ended with {done.returncode}:\n{came}")
        return came

    def _run_python(self, block: Block) -> None:
        if self._python is None:
            context = multiprocessing.get_context("spawn")
            here, there = context.Pipe()
            process = context.Process(target=_interpret, args=(there, str(self._folder)), daemon=False)
            process.start()
            there.close()
            self._python = process, here
        connection = self._python[1]
        connection.send(("\n" * block.line + block.text, str(block.page)))
        if not connection.poll(_LONGEST_S):
            raise Failed(f"{block.place}: no end after {_LONGEST_S} seconds")
        failure = connection.recv()
        if failure is not None:
            raise Failed(f"{block.place}:\n{failure}")


def _free_place() -> str:
    """A place on loopback where nobody listens."""
    with socket.socket() as trying:
        trying.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{trying.getsockname()[1]}"


def compare(block: Block, command: str, shown: str, came: str) -> None:
    """Refuse a page that shows something else than what comes; a line "…" stands for any lines."""
    numbers, column = "numbers differ" in block.marks, block.marks.get("column differs")
    lines = _prepared(shown, numbers, column)
    patterns = [r"(?:.*\n)*?" if line == "…" else re.escape(line) + r"\n" for line in lines]
    text = "".join(f"{line}\n" for line in _prepared(came, numbers, column))
    if not re.fullmatch("".join(patterns), text):
        raise Failed(f"{block.place}: {command!r} is shown with\n{shown}\nbut printed\n{came}")


def _prepared(text: str, numbers: bool, column: str | None) -> list[str]:
    lines = [line.rstrip() for line in text.strip("\n").split("\n") if not _PROGRESS.fullmatch(line.rstrip())]
    if column is not None:
        lines = _without_column(lines, column)
    if numbers:
        lines = [
            " ".join(re.sub("#(?:,#)+", "#", _NUMBER.sub("#", line)).split()) for line in lines
        ]  # "24,101": one or two
        lines = [re.sub("─+", "─", line) for line in lines]
    return lines


def _without_column(lines: list[str], heading: str) -> list[str]:
    """Blank the numbers that end where a right-aligned heading ends, until the table does."""
    end, result = 0, []
    for line in lines:
        if heading in line:
            end = line.index(heading) + len(heading)
        elif not line.strip():
            end = end if "─" in "".join(result[-1:]) else 0
        elif end and _NUMBER.search(line[:end]):
            match = re.search(r"(\S+)$", line[:end])
            if match:
                line = line[: match.start()] + "#".rjust(len(match[0])) + line[end:]
        result.append(line)
    return result


def _interpret(connection: Connection, folder: str) -> None:
    """Execute blocks as they come, in one namespace; answer with a traceback, or None."""
    os.chdir(folder)
    names: dict[str, Any] = {"__name__": "__docs__"}
    while True:
        try:
            text, page = connection.recv()
        except EOFError:
            return
        try:
            with redirect_stdout(io.StringIO()):
                exec(compile(text, page, "exec"), names)
        except BaseException:  # noqa: BLE001  whatever it was, the page is wrong
            connection.send(traceback.format_exc())
        else:
            connection.send(None)
