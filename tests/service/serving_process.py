"""A real `wevent serve` on a free port of this machine, in a folder of its own: started, asked, frozen, killed, restarted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import httpx

import wevent
from tests.support.commands import PATIENCE_S, Done, call, wait_for
from wevent.service.tokens import Tokens

ROOT = Path(__file__).parents[2]
WITNESSED = "tests.service.witnessed_serving"
"""The same command with a witness in it, see there."""

_LISTENS = re.compile(r"Serving (http://\S+)")


class Service:
    """A service in a folder, through all its lives.

    Args:
        folder: where its files are.
        people: rows user,window,epsilon of the requirements file; or user,level.
        slot: how long a slot is.
        cells: the number of cells, or their labels.
        service: the table [service]; there is no limit to requests unless it says so.
        **settings: more of the configuration.

    Attributes:
        url: where it listens, once it does.
        pid: of the process, once it runs.
    """

    def __init__(
        self,
        folder: Path,
        people: Iterable[tuple[str, int, float] | tuple[str, str]],
        *,
        slot: str = "400ms",
        cells: int | list[str] = 4,
        service: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self.folder, self.journal = folder, folder / "run.journal"
        self.url = ""
        self._child: subprocess.Popen[bytes] | None = None
        self._lives = 0
        folder.mkdir(exist_ok=True)
        rows = list(people)
        header = "user,window,epsilon" if len(rows[0]) == 3 else "user,level"
        (folder / "users.csv").write_text("\n".join([header, *(",".join(map(str, row)) for row in rows), ""]))
        told = {
            "journal": "run.journal",
            "requirements": "users.csv",
            "out": "out.ndjson",
            "slot": slot,
            "cells": cells,
        }
        limits = {"requests_per_minute": 0, **(service or {})}
        lines = [f"{key} = {json.dumps(value)}" for key, value in {**told, **settings}.items()]
        lines += ["[service]", *(f"{key} = {json.dumps(value)}" for key, value in limits.items())]
        (folder / "wevent.toml").write_text("\n".join(lines) + "\n")
        self.tokens = Tokens(folder / "run.journal.tokens")

    def token(self, *roles: str, expires: int | None = None) -> str:
        """A new token."""
        return self.tokens.create(roles, expires=expires).text

    def link(self, user: str, life_s: int = 3600) -> str:
        """A person's own link: its token."""
        return self.tokens.make_link(user, life_s).text

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    @property
    def log(self) -> str:
        """All that it ever wrote to standard output and error."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("life-*.log")))

    def start(
        self,
        *arguments: str,
        module: str = "wevent.cli",
        told: Mapping[str, str] | None = None,
        under: Iterable[str] = (),
        ready: bool = True,
        piped: bool = False,
    ) -> Service:
        """Start it, and wait until it is ready.

        Args:
            *arguments: more of the command line.
            module: what runs the command.
            told: more of its environment.
            under: a command that becomes this one and watches it.
            ready: whether to wait until it is ready, not only until it listens.
            piped: whether another process writes its log: limits of its files do not count for it.
        """
        self._lives += 1
        log = self.folder / f"life-{self._lives:04d}.log"
        path = os.pathsep.join((str(Path(wevent.__file__).parents[1]), str(ROOT)))
        command = [*under, sys.executable, "-m", module, "serve", "--listen", "127.0.0.1:0", *arguments]
        with log.open("wb") as file:
            keeper = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=file) if piped else None
            output = file if keeper is None else keeper.stdin
            self._child = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": path, **(told or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
            if keeper is not None and keeper.stdin is not None:
                keeper.stdin.close()
        wait_for(lambda: bool(_LISTENS.search(log.read_text())) or not self.runs, "an address")
        listens = _LISTENS.search(log.read_text())
        if listens is not None:
            self.url = listens[1]
            wait_for(lambda: not ready or self.is_ready() or not self.runs, "readiness")
        assert self.runs, f"it ended with {self._child.returncode}: {log.read_text()[-2000:]}"
        return self

    @property
    def runs(self) -> bool:
        assert self._child is not None
        return self._child.poll() is None

    def is_ready(self) -> bool:
        """Whether it says so."""
        try:
            return httpx.get(self.url + "/readyz", timeout=PATIENCE_S).status_code == 200
        except httpx.TransportError:
            return False

    def stop(self) -> int:
        """Stop it as an operator does; the exit code."""
        assert self._child is not None
        self._child.terminate()
        return self._child.wait(PATIENCE_S)

    def kill(self) -> None:
        """SIGKILL."""
        assert self._child is not None
        self._child.kill()
        self._child.wait(PATIENCE_S)

    def died(self) -> bool:
        """Wait for its end; whether SIGKILL was it."""
        assert self._child is not None
        try:
            return self._child.wait(PATIENCE_S) == -signal.SIGKILL
        except subprocess.TimeoutExpired:
            return False

    def freeze(self) -> None:
        """SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """End it, whatever it does."""
        if self._child is not None and self.runs:
            self.thaw()
            self.kill()

    def asker(self, token: str | None = None, **more: Any) -> httpx.Client:
        """Who asks it, with a token."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE_S, **more)

    def committed(self, token: str) -> int:
        """The last slot that it says it has released."""
        with self.asker(token) as client:
            return int(client.get("/v1/about").raise_for_status().json()["committed"])

    def wait_until_committed(self, slot: int, token: str) -> None:
        """Wait for the release of a slot."""
        wait_for(lambda: self.committed(token) >= slot, f"slot {slot}")

    def command(self, *arguments: str) -> Done:
        """A wevent command in its folder."""
        return call(self.folder, *arguments)

    def memory_kib(self, which: str = "VmRSS") -> int:
        """How much memory it has: now, or (VmHWM) had at most."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(rf"{which}:\s+(\d+) kB", status)[1])  # type: ignore[index]


def event_line(user: object, cell: object, moment_s: float | None = None, **more: object) -> bytes:
    """An event of now, or of a moment, as a line."""
    moment = time.time() if moment_s is None else moment_s
    return json.dumps({"time": round(moment, 6), "user": user, "cell": cell, **more}).encode() + b"\n"
