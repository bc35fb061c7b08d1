"""The service under load, on loopback and bounded in time: durable events per second, readers, slot closing, memory.

A real `wevent serve` in a folder of its own with slots of a second, driven by sockets (`service_load`), once at the rate that
is asked for and once as fast as it answers. Every figure comes from outside but one: the service shows no timings, so when a
release was ready is written down by a hook (`watched_service`).
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.service_load import Place, Readers, Senders, Sent, Watching, encode_batches

ROOT = Path(__file__).parents[1]
USERS, CELLS, EACH = 100_000, 100, 10_000
GOAL = 100_000
READERS = "readers, of them stalled, of these cut off"
GRACE_S, WARM_UP = 0.5, 3
LEVELS = [f"{privacy}/{window}" for privacy in ("High", "Medium", "Low") for window in ("Small", "Medium", "Large")]
_CONFIG = """\
slot = "1s"
grace = "{grace_ms}ms"
cells = {cells}
journal = "run.journal"
out = "releases.ndjson"
requirements = "requirements.csv"

[service]
listen = "127.0.0.1:0"
requests_per_minute = 0
"""


@dataclass(frozen=True)
class Service:
    """A service that runs."""

    process: subprocess.Popen[bytes]
    place: Place
    token: str
    folder: Path

    def about(self) -> dict[str, Any]:
        """What it says about its stream."""
        url = f"http://{self.place[0]}:{self.place[1]}/v1/about"
        asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return dict(json.load(answer))

    def ready(self) -> dict[int, list[float]]:
        """When the release of each slot was ready (seconds since 1970), and what it took: wall and CPU seconds."""
        lines = (self.folder / "ready.txt").read_text().splitlines()
        return {int(slot): list(map(float, figures)) for slot, *figures in map(str.split, lines)}


@contextmanager
def running(cells: int = CELLS, users: int = USERS) -> Iterator[Service]:
    """A service for the time of a block; ended by SIGTERM."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        rows = (f"user-{user:07d},{LEVELS[user % len(LEVELS)]}\n" for user in range(users))
        (folder / "requirements.csv").write_text("user,level\n" + "".join(rows))
        (folder / "wevent.toml").write_text(_CONFIG.format(cells=cells, grace_ms=round(GRACE_S * 1000)))
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
        create = [sys.executable, "-m", "wevent", "token", "run.journal", "create", "--role", "admin"]
        token = subprocess.run(create, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout
        command = [sys.executable, "-m", "benchmarks.watched_service", "ready.txt", "serve", "--config", "wevent.toml"]
        process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, env=environment)
        try:
            yield Service(process, listening_place(process), token.strip(), folder)
        finally:
            process.send_signal(signal.SIGTERM)
            said = process.communicate(timeout=60)[1]
            if process.returncode:
                sys.exit(f"the service ended with {process.returncode}: {said.decode()[-2000:]}")


def listening_place(process: subprocess.Popen[bytes]) -> Place:
    """Where it says that it listens."""
    assert process.stderr is not None
    for line in process.stderr:
        if b"Serving http://" in line:
            host, _, port = line.split()[1].decode().removeprefix("http://").rpartition(":")
            return host, int(port)
    sys.exit(f"the service did not start: {process.wait()}")


@dataclass
class Found:
    """What was seen of a service under load; times in milliseconds."""

    sent: Sent
    seconds: int
    cpu_s: float = 0.0
    own_cpu_s: float = 0.0
    closing: list[float] = field(default_factory=list)
    closing_cpu: list[float] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    cut: int = 0

    def whole_seconds(self) -> range:
        """Those between the first and the last, which may be cut."""
        return range(min(self.sent.seconds) + 1, max(self.sent.seconds) - 1)


@dataclass(frozen=True)
class Load:
    """What a service has to bear.

    Attributes:
        heading: what the table calls it.
        rate: events per second; None: as many as are answered.
        cells: how many, so how large a release is.
        times: how much longer it lasts than the others: stalled readers are cut off after 30 seconds.
        each: events in a batch.
    """

    heading: str
    rate: float | None
    cells: int = CELLS
    times: int = 1
    each: int = EACH


LOADS = {
    "rate": Load(f"{GOAL:,} events/s sent", GOAL),
    "small": Load(f"{GOAL:,} events/s in batches of 1,000", GOAL, each=1000),
    "most": Load("as fast as it answers", None),
    "large": Load("large releases: 10,000 cells", 20_000, 10_000, 3),
}


def measure(load: Load, seconds: int, senders: int, readers: int, stalled: int) -> Found:
    """Load for so many seconds, after a few that do not count."""
    with running(load.cells) as service:
        about = service.about()
        listening = Readers(service.place, service.token, number=readers, stalled=stalled)
        whole = seconds + WARM_UP
        start = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3 + whole // 4)
        batches = encode_batches(whole, load.each, start=start, users=USERS, cells=load.cells)
        time.sleep(max(0.0, start.timestamp() - time.time() - 0.5))
        per_second = None if load.rate is None else load.rate / load.each
        sending = Senders(service.place, service.token, batches, start, senders, per_second)
        sending.begin(after=start.timestamp() + WARM_UP)
        time.sleep(max(0.0, start.timestamp() + WARM_UP - time.time()))
        watching, own = Watching(service.process.pid), time.process_time()
        found = Found(sending.end(), seconds)
        found.own_cpu_s, found.cpu_s = time.process_time() - own, watching.close()
        time.sleep(about["due_s"] + 2.0)
        listening.close()
        origin_s = datetime.fromisoformat(about["slot_origin"]).timestamp()
        first = round(start.timestamp() - origin_s) + WARM_UP + 1
        ends = {slot: origin_s + slot for slot in range(first, first + seconds)}
        ready = {slot: figures for slot, figures in service.ready().items() if slot in ends}
        due_s = about["due_s"]
    found.closing = [1000 * (moment - ends[slot] - GRACE_S) for slot, (moment, _, _) in ready.items()]
    found.closing_cpu = [1000 * cpu_s for _, _, cpu_s in ready.values()]
    found.late = [1000 * (when - ends[slot] - due_s) for slot, when in listening.arrivals.items() if slot in ends]
    found.memory_mb, found.received, found.cut = watching.memory_mb, listening.received, listening.cut
    return found


def figures(found: Found) -> dict[str, str]:
    """What is in the table."""
    sent, memory = found.sent, found.memory_mb
    if sent.failures or not sent.accepted:
        sys.exit(f"the load failed: {sent.failures[:3]}, {sent.rejected}")
    rejected = sum(sent.rejected.values())
    third = memory[len(memory) // 3]
    return {
        "acknowledged durable events per second": f"{sent.accepted / found.seconds:,.0f}",
        "the slowest second": f"{min(sent.seconds.get(second, 0) for second in found.whole_seconds()):,}",
        "rejected": f"{rejected / (sent.accepted + rejected):.2%}",
        "answer to a batch, ms: median, 99 %": _quantiles([1000 * one for one in sent.answers_s], 50, 99),
        "CPU seconds per second: service": f"{found.cpu_s / found.seconds:.2f}",
        "CPU seconds per million events: service": f"{1e6 * found.cpu_s / sent.accepted:.2f}",
        "CPU seconds per second: load generator": f"{found.own_cpu_s / found.seconds:.2f}",
        "slot closing, ms: median, 99 %": _quantiles(found.closing, 50, 99),
        "CPU of that, ms: median, 99 %": _quantiles(found.closing_cpu, 50, 99),
        "release at a reader after it was due, ms: median, 99 %": _quantiles(found.late, 50, 99),
        "slots that readers got": f"{len(found.late)} of {found.seconds}",
        READERS: "",
        "memory, MB: at a third, most, at the end": f"{third:.0f}, {max(memory):.0f}, {memory[-1]:.0f}",
        "memory at the end / at a third": f"{memory[-1] / third:.2f}",
    }


GOALS = {
    "acknowledged durable events per second": f"{GOAL:,}",
    "CPU seconds per million events: service": "3 in batches of 1,000",
    "slot closing, ms: median, 99 %": "99 %: 250",
    READERS: "200",
    "memory at the end / at a third": "1",
}


def _quantiles(values: Sequence[float], *shares: int) -> str:
    return ", ".join(f"{np.percentile(values, share):.0f}" for share in shares) if len(values) else "–"


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and write; a part of it is only printed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--senders", type=int, default=4)
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--stalled", type=int, default=50)
    parser.add_argument("--only", choices=tuple(LOADS))
    chosen = parser.parse_args(arguments)
    columns: dict[str, dict[str, str]] = {}
    for name, load in LOADS.items():
        if chosen.only in (None, name):
            found = measure(load, chosen.seconds * load.times, chosen.senders, chosen.readers, chosen.stalled)
            column = figures(found) | {READERS: f"{chosen.readers}, {chosen.stalled}, {found.cut}"}
            columns[load.heading] = column
            print(load.heading, json.dumps(column, indent=1, ensure_ascii=False), flush=True)
    if chosen.only is None:
        rows = [
            {
                "what": what,
                **{heading: column[what] for heading, column in columns.items()},
                "goal": GOALS.get(what, ""),
            }
            for what in next(iter(columns.values()))
        ]
        report.write("service", "The service under load", rows, NOTES)


NOTES = (
    "A real `wevent serve` on loopback: slots of 1 s, a grace of 0.5 s, 100,000 people in 9 classes, text ids, batches",
    "of 10,000 events; 4 senders and 200 readers from one other process on the same two cores. After 3 s that do not count.",
    "Slot closing: from a slot's end plus the grace until its release is ready (a hook in the process: the service shows",
    "no timings). What goes out is fixed by the clock, `release_delay`, 250 ms after closing: a later slot waits for the",
    "next one's moment. Other programs kept both cores busy meanwhile; it ran with a higher priority (nice -15).",
    "Stalled readers are cut off 30 s after they have stopped taking what is sent; releases of 100 cells fit into their",
    "sockets for longer than that. Memory that still grows slowly is the last releases, kept to 32 MB.",
    "",
    "What the profile said (py-spy, as fast as it answers; shares of the time in which threads work).",
    "",
    "- Taking batches in, a third: decoding lines 14 %, sorting them into slots and writing them down 9 %, waiting for the",
    "  disk 10 %. One fsync serves every batch that waits for it.",
    "- Counting closed slots, a fifth: sorting by user and time, then finding ids. The draw itself is below 1 %.",
    "- HTTP, a third: uvicorn and FastAPI around each request, reading sockets; little per event with 10,000 in a batch.",
    "- 200 readers take 2 %: a release is rendered once, and no reader has a queue of its own.",
)

if __name__ == "__main__":
    main(sys.argv[1:])
