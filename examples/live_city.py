"""`make serve`: a service with an invented city, whose people enrol and move through the API, until Ctrl-C."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import click
import numpy as np

from wevent.client import Client, ServiceRefused, ServiceUnreachable
from wevent.core.arrays import IntArray
from wevent.core.requirements import Levels
from wevent.errors import InvalidSettings, WeventError
from wevent.experiments.datasets.city import DISTRICTS, SLOTS_PER_DAY, City

_CONFIG = """\
# The service of `make serve`: an invented city, whose people move through a day in a few minutes.
slot = "2s"
start = "{start}"  # a moment after this was written: the city is awake when its first slot begins
grace = "500ms"
cells = "cells.txt"
requirements = "requirements.csv"
journal = "run.journal"
out = "releases.ndjson"
stream = "Invented city"
nonnegative = true

# High: a small epsilon, much noise. Large: a long window; minutes are hours in this city.
[levels.privacy]
High = 0.1
Medium = 0.5
Low = 0.9

[levels.window]
Small = "1m"
Medium = "2m"
Large = "4m"

[service]
listen = "127.0.0.1:{port}"
public = true
"""
_WHERE = """
  the page               {url}/
  somebody's own link    {link}
  for administrators     {url}/admin with the token in {token_file}

The people are invented; a day of theirs takes {minutes:g} minutes. Stop with Ctrl-C.
"""
_EARLY = 0.9  # of the people have chosen before the service begins; the others do when it runs
_LEAD_S = 15  # until slot 1: time to start the service and to enrol the others
_STOP_S = 20.0
_STOPPING = (signal.SIGINT, signal.SIGTERM)


TICK_S = 0.25
"""How often a batch is sent."""
_MORNING = SLOTS_PER_DAY * 6 // 24  # the first day begins when people are about to leave home


def person(number: int) -> str:
    """Return the id of a person."""
    return f"person-{number:06d}"


def requirement_rows(levels: Sequence[str], numbers: range, generator: np.random.Generator) -> bytes:
    """Return a requirements file with a random level for everybody."""
    drawn = generator.choice(np.array(levels), len(numbers))
    return (
        b"user,level\n"
        + "".join(f"{person(one)},{level}\n" for one, level in zip(numbers, drawn, strict=True)).encode()
    )


class CitySender:
    """Sends the positions of people in real time.

    Args:
        client: with a token that may send and enrol.
        users: people in the city.
        day_s: seconds of a day of the city.
        changes_per_minute: people who choose another level.
        seed: of the invented people.
    """

    def __init__(
        self, client: Client, *, users: int, day_s: float, changes_per_minute: float = 4.0, seed: int | None = None
    ) -> None:
        self._client, self._users = client, users
        self._step_s = day_s / SLOTS_PER_DAY
        self._chance = changes_per_minute * self._step_s / 60.0
        self._generator = np.random.default_rng(seed)
        self._levels: list[str] = []

    def enrol(self, numbers: range) -> None:
        """Give each of these people a random level."""
        self._levels = [row.level for row in self._client.levels().rows if row.level is not None]
        self._client.import_requirements(requirement_rows(self._levels, numbers, self._generator))

    def run(self, stop: threading.Event) -> None:
        """Send until the event is set.

        Raises:
            WeventError: if the service refuses, or is away for too long.
        """
        try:
            self._send_days(stop)
        except WeventError:
            if not stop.is_set():
                raise

    def _send_days(self, stop: threading.Event) -> None:
        begun = time.monotonic()
        days = City(self._users, 10**9).walk(self._generator)
        for number, (present, district) in enumerate(islice(days, _MORNING, None)):
            late_s = time.monotonic() - begun - number * self._step_s
            if late_s > self._step_s:  # the machine was asleep or busy: nobody was seen meanwhile
                continue
            self._send_step(present, district, begun + number * self._step_s, stop)
            if stop.is_set():
                return
            if self._generator.random() < self._chance:
                self._change_mind()

    def _send_step(self, present: IntArray, district: IntArray, start: float, stop: threading.Event) -> None:
        """Send everybody on the map once within a step, each at a moment of their own."""
        order = self._generator.permutation(len(present))
        ticks = max(1, round(self._step_s / TICK_S))
        for tick, seen in enumerate(np.array_split(order, ticks), start=1):
            if stop.wait(max(0.0, start + tick * self._step_s / ticks - time.monotonic())):
                return
            self._client.send(_lines(present[seen], district[seen], self._step_s / ticks, self._generator))

    def _change_mind(self) -> None:
        level = str(self._generator.choice(np.array(self._levels)))
        self._client.set_requirement(person(int(self._generator.integers(self._users))), level=level)


def _lines(present: IntArray, district: IntArray, within_s: float, generator: np.random.Generator) -> bytes:
    """Return events of the moments that have just passed."""
    now = datetime.now(UTC)
    moments = [now - timedelta(seconds=ago) for ago in generator.random(len(present)) * within_s]
    return "".join(
        f'{{"time":"{moment.isoformat()}","user":"{person(one)}","cell":"{DISTRICTS[place]}"}}\n'
        for moment, one, place in zip(moments, present.tolist(), district.tolist(), strict=True)
    ).encode()


@click.command(epilog="Example: make serve PORT=8081")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(1, 65535), help="Where to listen.")
@click.option("--folder", default="demo-serve", show_default=True, type=Path, help="Made anew.")
@click.option("--users", default=20_000, show_default=True, type=click.IntRange(100), help="People of the city.")
@click.option("--day", default=600.0, show_default=True, type=click.FloatRange(60.0), help="Seconds that a day takes.")
def main(port: int, folder: Path, users: int, day: float) -> None:
    """Serve an invented city: people enrol and are seen through the API; the page shows what is released."""
    for asking in _STOPPING:  # said: what a script starts with & has SIGINT ignored, and could only be killed
        signal.signal(asking, signal.default_int_handler)
    try:
        _refuse_taken(port)
        _prepare(folder, port, users)
        url, admin, platform = f"http://127.0.0.1:{port}", _token(folder, "admin"), _token(folder, "ingest", "enrol")
        with _serving(folder) as ended, Client(url, token=platform) as client:
            _wait_until_ready(url, ended)
            sender = CitySender(client, users=users, day_s=day)
            sender.enrol(range(round(users * _EARLY), users))
            file = _keep(admin, folder)
            where = {"url": url, "link": client.link(person(1)).url, "token_file": file, "minutes": day / 60.0}
            click.echo(_WHERE.format(**where))
            sender.run(ended)
    except KeyboardInterrupt:
        click.echo("Stopped. The next `make serve` makes another city.")
    except WeventError as error:
        raise click.ClickException(str(error)) from None
    else:
        raise click.ClickException("The service has ended.")


def _prepare(folder: Path, port: int, users: int) -> None:
    """A new folder with the files of the service."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    early, generator = range(round(users * _EARLY)), np.random.default_rng()
    levels = [f"{privacy}/{window}" for privacy in Levels.default().privacy for window in Levels.default().window]
    start = (datetime.now(UTC) + timedelta(seconds=_LEAD_S)).isoformat(timespec="seconds")
    (folder / "wevent.toml").write_text(_CONFIG.format(port=port, start=start), encoding="utf-8")
    (folder / "cells.txt").write_text("".join(f"{district}\n" for district in DISTRICTS), encoding="utf-8")
    (folder / "requirements.csv").write_bytes(requirement_rows(levels, early, generator))


def _refuse_taken(port: int) -> None:
    with socket.socket() as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trying.bind(("127.0.0.1", port))
        except OSError as error:
            raise InvalidSettings(
                f"Port {port} cannot be used ({(error.strerror or 'no such port').lower()}).",
                f"Stop what listens there, or take another one: make serve PORT={port % 65535 + 1}",
                key="port",
            ) from None


def _wait_until_ready(url: str, ended: threading.Event) -> None:
    """Return when the service answers, or has ended."""
    with Client(url, patience_s=1.0) as client:
        while not ended.is_set():
            with suppress(ServiceRefused, ServiceUnreachable):
                client.wait_until_ready()
                return


def _keep(admin: str, folder: Path) -> Path:
    """The administrator's token, in a file for its owner."""
    file = folder / "admin.token"
    file.touch(mode=0o600)
    file.write_text(f"{admin}\n", encoding="ascii")
    return file


def _wevent(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "wevent", *arguments]


def _token(folder: Path, *roles: str) -> str:
    chosen = [part for role in roles for part in ("--role", role)]
    command = _wevent("--quiet", "token", str(folder / "run.journal"), "create", *chosen)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


@contextmanager
def _serving(folder: Path) -> Iterator[threading.Event]:
    """`wevent serve` as a process of its own; the event says that it has ended."""
    process = subprocess.Popen(_wevent("serve", "--config", str(folder / "wevent.toml")), start_new_session=True)
    ended = threading.Event()

    def wait() -> None:
        process.wait()
        ended.set()

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    try:
        yield ended
    finally:
        for asking in _STOPPING:  # one Ctrl-C is enough
            signal.signal(asking, signal.SIG_IGN)
        process.terminate()
        waiting.join(_STOP_S)
        if not ended.is_set():
            process.kill()


if __name__ == "__main__":
    main()
