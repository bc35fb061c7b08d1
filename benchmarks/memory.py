"""Peak memory of a publisher from slot 10³ to slot 10⁵: it must be flat."""

import tracemalloc
from typing import Any

import wevent
from benchmarks import report
from benchmarks.slots import population, slots

MARKS = (1_000, 10_000, 100_000)


def main() -> None:
    """Measure and write."""
    people = population(9)
    stream = slots(people, 2)
    rows = []
    for mechanism in wevent.mechanisms():
        publisher = wevent.Publisher(people, 2, mechanism, noise=wevent.SeededNoise(1))
        row: dict[str, Any] = {"mechanism": mechanism}
        tracemalloc.start()
        for slot in range(1, MARKS[-1] + 1):
            publisher.step(stream[slot // 10 % 2])
            if slot in MARKS:
                row[f"peak KiB to slot {slot}"] = round(tracemalloc.get_traced_memory()[1] / 1024, 1)
                row[f"state bytes at slot {slot}"] = len(publisher.state())
                tracemalloc.reset_peak()
        tracemalloc.stop()
        rows.append(row)
    report.write("memory", "Memory over slots", rows)


if __name__ == "__main__":
    main()
