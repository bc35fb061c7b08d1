"""The driver at size: what one slot costs where the step is made, against classes × cells, whatever counts it.

Simulates the driver of a stream of 10^8 people: matrices of the full size, real mechanisms with secure noise, a real journal
on disk with every commit forced, real lines. Counting is somebody else's work (`spark`, `throughput`); what is measured here
does not depend on the number of people or events, only on classes and cells (spec 2).
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import wevent
from benchmarks import report
from wevent.journal import Batch, SqliteJournal, Terms
from wevent.journal.record import Group, of_release
from wevent.outputs.lines import ndjson_line

PEOPLE = 100_000_000
SIZES = ((9, 100), (25, 100), (25, 1_000), (25, 10_000), (9, 100_000), (25, 100_000), (100, 100_000))
SLOT_US = 60_000_000


def population(classes: int) -> wevent.Population:
    """So many requirements, each of an equal part of the people."""
    side = int(np.ceil(np.sqrt(classes)))
    pairs = [(20 + 10 * (index // side), f"{0.5 + index % side / side:.6f}") for index in range(classes)]
    return wevent.Population({wevent.Requirement(w, e): PEOPLE // classes for w, e in pairs})


def matrices(people: wevent.Population, cells: int, number: int) -> list[Any]:
    """Slots in which half of everybody is somewhere; shares that drift."""
    generator = np.random.default_rng(1)
    shares = generator.dirichlet(np.full(cells, 0.5))
    drawn = []
    for _ in range(number):
        shares = shares * np.exp(generator.normal(0, 0.05, cells))
        shares /= shares.sum()
        drawn.append(generator.multinomial(np.asarray(people.sizes) // 2, shares))
    return drawn


def drive(mechanism: str, classes: int, cells: int, slots: int) -> dict[str, Any]:
    """Step, commit and render slots; milliseconds of each, of slots that measure and of those that do not."""
    people = population(classes)
    stream = matrices(people, cells, min(slots, 8))
    declared = sorted(requirement.key for requirement in people.classes)
    terms = Terms(mechanism=mechanism, stream="driver", origin_us=0, length_us=SLOT_US,
                  cells=cells, declared=declared)  # fmt: skip
    publisher = wevent.Publisher(people, cells, mechanism)
    wevent.SecureNoise.get_ready()
    fresh, other, commits, lines, sizes = [], [], [], [], []
    with tempfile.TemporaryDirectory() as folder, SqliteJournal(Path(folder) / "run.journal", write=True) as journal:
        journal.begin(terms)
        epoch, group, last = journal.head().epoch, Group.of(people), None
        for slot in range(slots):
            begun = time.perf_counter()
            release = publisher.step(stream[slot % len(stream)])
            stepped = time.perf_counter()
            last = of_release(release, publisher.measured, epoch, group, last)
            journal.commit(Batch([last], {"slot": slot + 1}, None, slot))
            committed = time.perf_counter()
            line = ndjson_line(last)
            (fresh if release.fresh else other).append(stepped - begun)
            if release.fresh:
                commits.append(committed - stepped)
                lines.append(time.perf_counter() - committed)
                sizes.append(len(line))
    return {
        "mechanism": mechanism,
        "classes": classes,
        "cells": cells,
        "measured slots": f"{len(fresh)} of {slots}",
        "step, ms": _milliseconds(fresh),
        "commit, ms": _milliseconds(commits),
        "line, ms": _milliseconds(lines),
        "together, ms": _milliseconds([sum(parts) for parts in zip(fresh, commits, lines, strict=True)]),
        "step without measuring, ms": _milliseconds(other),
        "line, MB": f"{np.median(sizes) / 1e6:.2f}" if sizes else "-",
    }


def _milliseconds(seconds: list[float]) -> str:
    return f"{1000 * float(np.median(seconds)):.1f}" if seconds else "-"


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks driver")
    parser.add_argument("--slots", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=15.0, help="per row, about")
    chosen, _ = parser.parse_known_args()
    rows = []
    for classes, cells in SIZES:
        for mechanism in ("pft", "pbd", "pbu"):
            once = drive(mechanism, classes, cells, 2)
            each_s = 1.0 if once["together, ms"] == "-" else float(once["together, ms"]) / 1000
            slots = int(max(6, min(chosen.slots, chosen.seconds / max(each_s, 1e-3))))
            rows.append(drive(mechanism, classes, cells, slots))
            print(rows[-1], flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    report.write(
        "driver",
        "The driver at size",
        rows,
        [
            f"Medians over slots that were measured; {PEOPLE:,} registered people, half of them somewhere in every slot;",
            "secure noise, journal in an SQLite file with every commit forced to disk; the machine was shared. Slots that",
            f"repeat cost what the column without measuring says. Peak memory of the whole run: {peak:,.0f} MB.",
        ],
    )


if __name__ == "__main__":
    main()
