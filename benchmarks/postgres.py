"""A journal in PostgreSQL against one in an SQLite file: commits per second, and events per second through replicas.

Everything is on one machine and on one disk: a real server with its usual durability, a real SQLite file, real services. What
a network between them and other disks would add, or take away, is not measured.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

import wevent
from benchmarks import report
from benchmarks.driver import SLOT_US, matrices, population
from benchmarks.service import LEVELS, ROOT, Found, listening_place
from benchmarks.service_load import Place, Senders, Sent, encode_batches
from tests.support import postgres_server
from wevent.journal import Batch, Journal, Record, Terms, open_journal
from wevent.journal.record import Group, of_release

SIZES = ((9, 100), (25, 1_000), (25, 10_000))
ROUNDS, USERS, CELLS, EACH = 8, 100_000, 100, 10_000
GRACE_S, WARM_UP = 2.0, 3
_CONFIG = """\
slot = "1s"
grace = "2s"
release_delay = "3s"
cells = {cells}
journal = "{journal}"
requirements = "requirements.csv"

[service]
listen = "127.0.0.1:0"
requests_per_minute = 0
tokens = "{tokens}"
"""


def records(classes: int, cells: int, number: int) -> tuple[Terms, list[Record]]:
    """Releases of consecutive slots, each measured, before the clock starts."""
    people = population(classes)
    stream = matrices(people, cells, 4)
    declared = sorted(requirement.key for requirement in people.classes)
    terms = Terms(mechanism="pbu", stream="commits", origin_us=0, length_us=SLOT_US, cells=cells,
                  declared=declared)  # fmt: skip
    publisher, found, last = wevent.Publisher(people, cells, "pbu"), [], None
    with tempfile.TemporaryDirectory() as folder, open_journal(Path(folder) / "j", write=True) as journal:
        journal.begin(terms)
        epoch = journal.head().epoch
    group = Group.of(people)
    for slot in range(number):
        last = of_release(publisher.step(stream[slot % 4]), publisher.measured, epoch, group, last)
        found.append(last)
    return terms, found


def commit_rates(server: postgres_server.PostgresServer, folder: Path) -> list[dict[str, Any]]:
    """Commits per second of both, a slot in each, in turns."""
    rows = []
    for classes, cells in SIZES:
        each = 60 if cells < 10_000 else 12
        terms, stream = records(classes, cells, ROUNDS * each)
        side = folder / f"side-{cells}"
        side.mkdir(mode=0o700)
        places = {
            "SQLite": str(folder / f"{cells}.journal"),
            "PostgreSQL": server.url(schema=f"c{cells}", side=side),
        }
        taken: dict[str, list[float]] = {name: [] for name in places}
        with ExitStack() as opened:
            journals = {name: opened.enter_context(open_journal(at, write=True)) for name, at in places.items()}
            for journal in journals.values():
                journal.begin(terms)
            for start in range(0, len(stream), each):
                for name, journal in journals.items():
                    taken[name].append(_committed(journal, stream[start : start + each]))
        rate = {name: each / float(np.median(seconds[1:])) for name, seconds in taken.items()}
        rows.append(
            {
                "what": f"commits per second, {classes} classes × {cells:,} cells",
                "SQLite": f"{rate['SQLite']:,.0f}",
                "PostgreSQL": f"{rate['PostgreSQL']:,.0f}",
                "two replicas": "–",
                "PostgreSQL / SQLite": f"{rate['PostgreSQL'] / rate['SQLite']:.2f}",
            }
        )
        print(rows[-1], flush=True)
    return rows


def _committed(journal: Journal, stream: Sequence[Record]) -> float:
    begun = time.perf_counter()
    for record in stream:
        journal.commit(Batch([record], {"slot": record.slot}, None, record.slot - 1))
    return time.perf_counter() - begun


@contextmanager
def serving(folder: Path, journal: str, number: int) -> Iterator[list[tuple[Place, str]]]:
    """So many services over one journal, each with a token for its senders: batch ids are a token's own."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    rows = "".join(f"user-{user:07d},{LEVELS[user % len(LEVELS)]}\n" for user in range(USERS))
    wevent_command = [sys.executable, "-m", "wevent"]
    found, processes = [], []
    try:
        for one in range(number):
            own = folder / f"replica-{one}"
            own.mkdir()
            (own / "requirements.csv").write_text("user,level\n" + rows)
            (own / "wevent.toml").write_text(_CONFIG.format(cells=CELLS, journal=journal, tokens=folder / "tokens"))
            create = [*wevent_command, "token", "--config", "wevent.toml", "create", "--role", "admin"]
            made = subprocess.run(create, cwd=own, env=environment, capture_output=True, text=True, check=True)
            command = [*wevent_command, "serve", "--config", "wevent.toml"]
            processes.append(subprocess.Popen(command, cwd=own, stderr=subprocess.PIPE, env=environment))
            found.append((listening_place(processes[-1]), made.stdout.strip()))
        yield found
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            said = process.communicate(timeout=60)[1]
            if process.returncode:
                sys.exit(f"a service ended with {process.returncode}: {said.decode()[-2000:]}")


def ingest_rate(folder: Path, journal: str, number: int, seconds: int, senders: int) -> Found:
    """Events per second that are acknowledged, as many as are answered."""
    folder.mkdir()
    with serving(folder, journal, number) as places:
        whole = seconds + WARM_UP
        start = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3 + whole // 4)
        batches = encode_batches(whole, EACH, start=start, users=USERS, cells=CELLS)
        time.sleep(max(0.0, start.timestamp() - time.time() - 0.5))
        sending = [Senders(place, token, batches, start, senders // number) for place, token in places]
        for one in sending:
            one.begin(after=start.timestamp() + WARM_UP)
        sent = Sent()
        for one in sending:
            part = one.end()
            sent.accepted += part.accepted
            sent.answers_s += part.answers_s
            sent.failures += part.failures
            for reason, rejected in part.rejected.items():
                sent.rejected[reason] = sent.rejected.get(reason, 0) + rejected
    if sent.failures or not sent.accepted:
        sys.exit(f"the load failed: {sent.failures[:3]}, {sent.rejected}")
    return Found(sent, seconds)


def ingest_rates(
    server: postgres_server.PostgresServer, folder: Path, seconds: int, senders: int
) -> list[dict[str, Any]]:
    """The same load on a file, one replica and two."""
    side = [folder / f"ingest-side-{one}" for one in range(2)]
    for one in side:
        one.mkdir()
    found = {
        "SQLite": ingest_rate(folder / "file", "run.journal", 1, seconds, senders),
        "PostgreSQL": ingest_rate(folder / "one", server.url(schema="one", side=side[0]), 1, seconds, senders),
        "two replicas": ingest_rate(folder / "two", server.url(schema="two", side=side[1]), 2, seconds, senders),
    }
    rates = {name: one.sent.accepted / one.seconds for name, one in found.items()}
    ratio = f"{rates['PostgreSQL'] / rates['SQLite']:.2f}"
    answers = {name: np.percentile(one.sent.answers_s, (50, 99)) * 1000 for name, one in found.items()}
    return [
        {
            "what": f"events per second, acknowledged, batches of {EACH:,}",
            **{name: f"{rate:,.0f}" for name, rate in rates.items()},
            "PostgreSQL / SQLite": ratio,
        },
        {
            "what": "answer to a batch, ms: median, 99 %",
            **{name: f"{median:.0f}, {most:.0f}" for name, (median, most) in answers.items()},
            "PostgreSQL / SQLite": "",
        },
    ]


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.postgres")
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--senders", type=int, default=4)
    chosen = parser.parse_args(arguments)
    postgres_server._quick_folder = lambda: None  # on the same disk as the file, not in memory
    server = postgres_server.PostgresServer({"max_wal_size": "4GB"})
    try:
        with tempfile.TemporaryDirectory() as made:
            rows = commit_rates(server, Path(made))
            rows += ingest_rates(server, Path(made), chosen.seconds, chosen.senders)
    finally:
        server.remove()
    report.write("postgres", "A journal in PostgreSQL", rows, NOTES)


NOTES = (
    "One machine, two cores, one disk: senders, services and server share them. PostgreSQL with its usual durability",
    "(fsync, full_page_writes, synchronous_commit on) over 127.0.0.1, SQLite with synchronous=FULL. Commits: mechanism pbu,",
    "every slot measured, a transaction and a mark each, both journals in turns, medians. Events: 4 senders, as many as are",
    "answered, slots of 1 s, 100,000 people, text ids. Two replicas share the two cores with the server and the senders:",
    "this shows what a second one costs here, not what a second machine adds. Other programs kept both cores busy meanwhile",
    "(a load of 10): compare figures of one row.",
)

if __name__ == "__main__":
    main(sys.argv[1:])
