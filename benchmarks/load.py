"""Whole commands under load: live lines, imports, starts, changes, commits, verification, Parquet and text files.

`python -m benchmarks load` measures this source. `python -m benchmarks.load --before SRC` measures another source tree
(its `src` folder) in the same run, in turns, and gives ratios. Only commands are used, so any version can be measured.
`--sizes` scales all sizes, `--only` picks measurements.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np

from benchmarks import report

SRC = Path(__file__).parents[1] / "src"
CELLS = 100
SLOTS = 100
LIVE_USERS = 200_000
PAIRS = [(window, epsilon) for window in (40, 80, 120) for epsilon in ("0.6", "0.8", "1.0")]
ORIGIN = datetime(2026, 1, 1, tzinfo=UTC)
SLOT = timedelta(seconds=60)


class Measured(NamedTuple):
    """Cost of one measurement: the number of items, seconds, peak memory of the process and bytes written."""

    done: float
    wall_s: float
    cpu_s: float
    peak_mb: float = 0.0
    written: int = 0

    def minus(self, base: "Measured") -> "Measured":
        """Return the cost beyond another run. Peak memory stays: the start is part of it."""
        wall_s, cpu_s, written = self.wall_s - base.wall_s, self.cpu_s - base.cpu_s, self.written - base.written
        return Measured(self.done, wall_s, cpu_s, self.peak_mb, written)


def run(tree: Path, *arguments: str, number: int = 1) -> Measured:
    """Run one command of a source tree. Written bytes include those of the command alone."""
    begun, before = time.perf_counter(), written()
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, "-m", "wevent", *arguments]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"wevent {' '.join(arguments)} ended with {process.returncode}")
    seconds = time.perf_counter() - begun
    return Measured(number, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, written() - before)


def written() -> int:
    """Return the bytes that this process and its ended children have written."""
    match = re.search(r"wchar: (\d+)", Path("/proc/self/io").read_text())
    return int(match[1]) if match else 0


def options(folder: Path, slots: int, requirements: Path) -> list[str]:
    """Return the options of `publish` for slots 1 to `slots`, with journal and output in a folder."""
    times = ["--start", ORIGIN.isoformat(), "--end", (ORIGIN + slots * SLOT).isoformat(), "--slot", "60s"]
    files = ["--journal", str(folder / "run.journal"), "--out", str(folder / "out.ndjson")]
    return ["--cells", str(CELLS), *times, *files, "--requirements", str(requirements)]


def users_file(folder: Path, users: int, number_ids: bool = False) -> Path:
    """Write a requirements file: a ninth of the users in each class."""
    path = folder / f"users-{users}-{number_ids}.parquet"
    if not path.exists():
        classes = ", ".join(f"({row}, {window}, '{epsilon}')" for row, (window, epsilon) in enumerate(PAIRS))
        name = "i" if number_ids else "printf('user-%07d', i)"
        duckdb.execute(
            f'COPY (SELECT {name} AS "user", w AS "window", e AS epsilon FROM range({users}) AS t(i) '
            f"JOIN (VALUES {classes}) AS c(k, w, e) ON i % {len(PAIRS)} = k ORDER BY i) TO '{path}' (FORMAT parquet)"
        )
    return path


def no_events(folder: Path) -> Path:
    """Write an events file without events."""
    path = folder / "none.csv"
    path.write_text("time,user,cell\n")
    return path


def live(tree: Path, folder: Path, size: int, number_ids: bool) -> Measured:
    """Send lines to `publish -`; measure from the first release to the last."""
    lines = folder / f"lines-{number_ids}.ndjson"
    if not lines.exists():
        write_lines(lines, size, number_ids)
    place = Path(tempfile.mkdtemp(dir=folder))
    command = [
        *options(place, SLOTS, users_file(folder, LIVE_USERS, number_ids)),
        "--mechanism",
        "pbd",
        "--close-slots-by",
        "lines",
    ]
    command[command.index("--out") + 1] = "-"
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    with lines.open("rb") as stdin:
        process = subprocess.Popen(
            [sys.executable, "-m", "wevent", "publish", "-", *command],
            stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        moments = []
        for number, _ in enumerate(process.stdout, 1):
            if number in {1, SLOTS}:
                moments.append((time.perf_counter(), cpu_seconds(process.pid)))
                peak_mb = peak_memory(process.pid)
    if process.wait() or len(moments) != 2:
        sys.exit(f"publish - ended with {process.returncode}: {process.stderr.read().decode()[-2000:]}")
    (begun, worked), (ended, at_end) = moments
    return Measured(size / SLOTS * (SLOTS - 1), ended - begun, at_end - worked, peak_mb)


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a running process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_memory(pid: int) -> float:
    """Return the peak memory of a running process, in MB."""
    match = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(match[1]) / 1024 if match else 0.0


def write_lines(path: Path, events: int, number_ids: bool, shuffled: bool = False) -> None:
    """Write events as NDJSON, by slot with a close line after each, or in any order without."""
    generator = np.random.default_rng(1)
    each = events // SLOTS
    origin = np.datetime64("2026-01-01", "us")
    with path.open("w") as file:
        for slot in range(SLOTS):
            start = origin + np.timedelta64(60 * slot, "s")
            span = SLOTS if shuffled else 1
            first = origin if shuffled else start
            moments = generator.integers(0, 60_000_000 * span, each)
            stamps = np.datetime_as_string(first + (moments if shuffled else np.sort(moments)).view("m8[us]"))
            people, places = generator.integers(0, LIVE_USERS, each).tolist(), generator.integers(0, CELLS, each)
            names = people if number_ids else [f'"user-{one:07d}"' for one in people]
            file.writelines(
                f'{{"time":"{stamp}Z","user":{user},"cell":{cell}}}\n'
                for stamp, user, cell in zip(stamps.tolist(), names, places.tolist(), strict=True)
            )
            if not shuffled:
                file.write(f'{{"close":"{start + np.timedelta64(60, "s")}Z"}}\n')


def registered(tree: Path, folder: Path, users: int) -> Path:
    """Return a folder with the journal of a source tree, slot 1 of so many users; made once."""
    place = folder / f"registered-{tree.parent.name}-{users}"
    if not place.exists():
        place.mkdir()
        run(tree, "publish", str(no_events(folder)), *options(place, 1, users_file(folder, users)))
    return place


def first_import(tree: Path, folder: Path, size: int) -> Measured:
    """Publish one empty slot with a requirements file."""
    place = Path(tempfile.mkdtemp(dir=folder))
    return run(tree, "publish", str(no_events(folder)), *options(place, 1, users_file(folder, size)), number=size)


def resume(tree: Path, folder: Path, size: int) -> Measured:
    """Publish one more empty slot over many users, beyond the same over nine users."""
    found = []
    for users in (9, size):
        place = registered(tree, folder, users)
        slots = (place / "out.ndjson").read_bytes().count(b"\n") + 1
        command = options(place, slots, users_file(folder, users))
        del command[command.index("--requirements") :]
        found.append(run(tree, "publish", str(no_events(folder)), *command, number=size))
    return found[1].minus(found[0])


def verify(tree: Path, folder: Path, size: int) -> Measured:
    """Re-check a journal of many users."""
    return run(tree, "verify", str(registered(tree, folder, size) / "run.journal"), number=size)


def change(tree: Path, folder: Path, size: int) -> Measured:
    """Change one of many users: the command, and the slot that applies it beyond a slot that applies nothing."""
    place = registered(tree, folder, size)
    found = []
    for step in (0, 1):
        if step:
            command = ("users", str(place / "run.journal"), "set", "user-0000000", "--window", "80", "--epsilon", "0.6")
            found.append(run(tree, *command))
        slots = (place / "out.ndjson").read_bytes().count(b"\n") + 1
        arguments = options(place, slots, users_file(folder, size))
        del arguments[arguments.index("--requirements") :]
        found.append(run(tree, "publish", str(no_events(folder)), *arguments))
    plain, command_cost, applied = found
    beyond = applied.minus(plain)
    return beyond._replace(written=beyond.written + command_cost.written)


def commit(tree: Path, folder: Path, size: int) -> Measured:
    """Publish empty slots, each with a fresh release of 100 cells, beyond the first."""
    place = Path(tempfile.mkdtemp(dir=folder))
    users = users_file(folder, 9)
    events = str(no_events(folder))
    base = run(tree, "publish", events, *options(place, 1, users), "--mechanism", "pbu")
    whole = run(tree, "publish", events, *options(place, size, users), "--mechanism", "pbu", number=size - 1)
    return whole.minus(base)


def parquet(tree: Path, folder: Path, size: int) -> Measured:
    """Publish a Parquet file of number ids over registered users."""
    users = LIVE_USERS
    events = folder / f"events-{size}.parquet"
    if not events.exists():
        step = SLOTS * 60_000_000 / size
        origin = int(ORIGIN.timestamp() * 1_000_000)
        duckdb.execute(
            f"COPY (SELECT make_timestamptz(CAST({origin} + i * {step} AS BIGINT)) AS time, "
            f'CAST(hash(i) % {users} AS BIGINT) AS "user", CAST(hash(i + 7) % {CELLS} AS BIGINT) AS cell '
            f"FROM range({size}) AS t(i)) TO '{events}' (FORMAT parquet)"
        )
    place = Path(tempfile.mkdtemp(dir=folder))
    registry = users_file(folder, users, number_ids=True)
    run(tree, "publish", str(no_events(folder)), *options(place, 1, registry))
    return run(tree, "publish", str(events), *options(place, SLOTS, registry), number=size)


def text(tree: Path, folder: Path, size: int) -> Measured:
    """Publish an unsorted NDJSON file over registered users."""
    events = folder / f"shuffled-{size}.ndjson"
    if not events.exists():
        write_lines(events, size, number_ids=False, shuffled=True)
    place = Path(tempfile.mkdtemp(dir=folder))
    registry = users_file(folder, LIVE_USERS)
    run(tree, "publish", str(no_events(folder)), *options(place, 1, registry))
    return run(tree, "publish", str(events), *options(place, SLOTS, registry), number=size)


class Measurement(NamedTuple):
    """A measurement with its full size and its goal."""

    run: Callable[[Path, Path, int], Measured]
    size: int
    goal: str


MEASUREMENTS = {
    "live lines, text ids": Measurement(lambda *a: live(*a, False), 2_000_000, "750,000/s"),
    "live lines, number ids": Measurement(lambda *a: live(*a, True), 2_000_000, "1,000,000/s"),
    "first import": Measurement(first_import, 5_000_000, "40 s"),
    "start over a registry": Measurement(resume, 5_000_000, "1 s per million"),
    "verify": Measurement(verify, 5_000_000, "15 s, 800 MB"),
    "one change": Measurement(change, 200_000, "8 kB written"),
    "commit of a fresh slot": Measurement(commit, 5_000, "ratio 1.5"),
    "Parquet events": Measurement(parquet, 50_000_000, "ratio 1.1"),
    "unsorted text events": Measurement(text, 6_000_000, "2.4 decoding passes"),
}


def compare(trees: dict[str, Path], sizes: float, only: str, rounds: int) -> list[dict[str, Any]]:
    """Return the best of `rounds` per measurement, trees in turns."""
    rows = []
    with tempfile.TemporaryDirectory() as made:
        for name, (measure, size, goal) in MEASUREMENTS.items():
            if only not in name:
                continue
            found: dict[str, list[Measured]] = {one: [] for one in trees}
            for _ in range(rounds):
                for one, tree in trees.items():
                    found[one].append(measure(tree, Path(made), int(size * sizes)))
            first: Measured | None = None
            for one, results in found.items():
                best = min(results, key=lambda result: result.cpu_s)
                first = first or best
                row = {
                    "measurement": name,
                    "source": one,
                    "number": f"{best.done:,.0f}",
                    "wall s": round(best.wall_s, 2),
                    "CPU s": round(best.cpu_s, 2),
                    "per wall s": f"{best.done / best.wall_s:,.0f}" if best.wall_s > 0 else "–",
                    "peak MB": round(best.peak_mb),
                    "written bytes": f"{best.written:,}" if measure is change else "–",
                    "CPU ratio": round(best.cpu_s / first.cpu_s, 2) if first.cpu_s > 0 else "–",
                    "goal": goal,
                }
                rows.append(row)
                print(row, flush=True)
    return rows


def main(arguments: Sequence[str] = ()) -> None:
    """Measure, and write the table if everything was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load")
    parser.add_argument("--before", type=Path, help="the src folder of another source tree")
    parser.add_argument("--before-name", default="before")
    parser.add_argument("--sizes", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args(arguments)
    trees = {"now": SRC} if chosen.before is None else {chosen.before_name: chosen.before.resolve(), "now": SRC}
    rows = compare(trees, chosen.sizes, chosen.only, chosen.rounds)
    if not chosen.only:
        report.write("load", "Under load", rows, NOTES)


NOTES = (
    "Whole commands. Live lines are measured from the first release to the last. A start, a change and commits are",
    "the cost beyond the same command with nine users, no change or one slot. Written bytes are those that the processes",
    "passed to the system.",
)

if __name__ == "__main__":
    main(sys.argv[1:])
