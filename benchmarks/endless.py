"""An endless stream: bytes per slot, step time and memory from slot 10⁵ to 10⁶, then the audit of all of it."""

import os
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from wevent.counting.roster import Counts, Roster
from wevent.journal import SqliteJournal, Terms
from wevent.noise import SeededNoise
from wevent.outputs.text_output import NDJSON, FileOutput
from wevent.people.membership import Change
from wevent.publishing.loop import Publication, Running
from wevent.streams.source import SlotCounts
from wevent.verification import verify_journal

SLOTS = int(os.environ.get("WEVENT_ENDLESS_SLOTS", "1000000"))
CLASSES = [(window, nano) for window in (40, 80, 120) for nano in (600_000_000, 800_000_000, 1_000_000_000)]


class Endless:
    """900 users in two cells, drifting."""

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        sizes = roster.population.sizes
        for slot in range(first, first + most):
            left = (sizes * (0.5 + 0.4 * np.sin(slot / 50.0))).astype(np.int64)
            yield SlotCounts(slot, Counts(np.stack([left, sizes - left], axis=1)), {"slot": slot, "time_unit": "s"})

    def resume(self, position: Any) -> None:
        """Nothing to go back to."""

    def closed_through(self) -> None:
        """Nothing is waited for."""

    def stop(self) -> None:
        """It ends with its slots."""

    def totals(self) -> dict[str, int]:
        return {}

    def first_malformed(self) -> list[str]:
        return []


class Nowhere(FileOutput):
    """The releases are in the journal; the benchmark needs no second copy."""

    def repair(self, journal: Any, committed: int, emitted: int) -> int:
        return 0

    def emit(self, records: Any) -> None:
        """Nothing."""


def main() -> None:
    """Measure and write. Seeded noise: the speed of draws is measured elsewhere."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "endless.journal"
        with SqliteJournal(path, write=True) as journal:
            journal.begin(Terms(stream="endless", origin_us=0, length_us=60_000_000, cells=2, declared=CLASSES))
            journal.registry.ask(Change("set", str(user), CLASSES[user % 9]) for user in range(900))
            noise = SeededNoise(1)
            output = Nowhere(path, NDJSON)
            for end in range(SLOTS // 10, SLOTS + 1, SLOTS // 10):
                begun, used = time.perf_counter(), time.process_time()
                Publication(journal, Endless(), output, running=Running(last=end, batch=256), noise=noise).run()
                seconds = time.perf_counter() - begun
                journal._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                rows.append(
                    {
                        "slots": end,
                        "µs per slot": round(seconds / (SLOTS // 10) * 1e6, 1),
                        "CPU µs per slot": round((time.process_time() - used) / (SLOTS // 10) * 1e6, 1),
                        "journal bytes per slot": round(path.stat().st_size / end, 1),
                        "peak MiB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
                    }
                )
        begun, used = time.perf_counter(), time.process_time()
        found = verify_journal(path)
        seconds, worked = time.perf_counter() - begun, time.process_time() - used
    notes = [
        f"Audit of {found.slots} slots: {seconds:.1f} s ({worked:.1f} s of CPU), {len(found.violations)} finding "
        "(the benchmark's noise is seeded, which an audit must report)."
    ]
    report.write("endless", "An endless stream in a journal", rows, notes)


if __name__ == "__main__":
    main()
