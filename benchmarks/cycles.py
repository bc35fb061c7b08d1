"""What a public cycle gains, day by day, and what it costs where there is none: `pft` with and without `seasonality`.

Constants were chosen on seed 100, and on recorded cabs and bikes; what is reported is other seeds, and foursquare.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from benchmarks import hard_streams, report
from benchmarks.accuracy import Run, real_stream
from benchmarks.cyclic_streams import city, cyclic, days_off

SEEDS = (300, 301)
MORE_SEEDS = (300, 301, 302, 303)
DAY = 288
BANDS = {"day 1": (0, 1), "2": (1, 2), "3–4": (2, 4), "5–7": (4, 7), "8–14": (7, 14), "15 on": (14, None)}
ONSETS = range(530, 572, 7)  # where the cell of `appear` appears: what it costs depends on when a release is due


class Case(NamedTuple):
    """One line of the table: a stream, and what `pft` is told of it; `plain` goes to both runs."""

    name: str
    counts: Callable[[int], tuple[Any, Any]]
    cycle: float = DAY
    days: float | None = DAY
    calendar: tuple[int, ...] = ()
    plain: Mapping[str, Any] = MappingProxyType({})
    seeds: tuple[int, ...] = SEEDS


def invented(kind: str, **options: Any) -> Case:
    """A stream of 14 days; with `off`, a calendar names the days of the other kind."""
    off = options.pop("off", False)
    label = options.pop("label", kind)
    users = 2_000 if kind == "sparse" else 10_000

    def counts(seed: int) -> tuple[Any, Any]:
        if kind == "city":
            return city(users=users, days=14, classes=9, seed=seed)
        return cyclic(kind, users=users, days=14, classes=9, seed=seed)

    days = [day * DAY + 1 for day in days_off(kind, 14)] if off else []
    return Case(label, counts, calendar=changes(days), **options)


def changes(days: list[int]) -> tuple[int, ...]:
    """Where days that begin with these slots begin and end, in turns."""
    edges = [edge for first in days for edge in (first, first + DAY)]
    return tuple(max(edge, 1) for edge in edges if edges.count(edge) == 1)


def steady(kind: str, users: int) -> Case:
    """A stream without days."""

    def counts(seed: int) -> tuple[Any, Any]:
        if kind in ("tlns", "sin", "log"):
            return hard_streams.synthetic(kind, users=users, slots=1000, classes=9, seed=seed)
        return hard_streams.hard(kind, users=users, classes=9, seed=seed)

    return Case(f"no cycle: {kind}, n = {users:,}", counts, days=None, seeds=MORE_SEEDS)


def appearing(onset: int) -> Case:
    """`appear` with another onset."""

    def counts(seed: int) -> tuple[Any, Any]:
        before, sizes = hard_streams.hard("appear", users=1_000, classes=9, seed=seed)
        half = 530
        shifted = np.concatenate([before[:half], before[: onset - half], before[half : 1000 - (onset - half)]])
        return shifted, sizes

    return Case(f"no cycle: appear, n = 1,000, at {onset}", counts, days=None, seeds=MORE_SEEDS)


def recorded() -> Iterator[Case]:
    """Streams of the folder WEVENT_DATA, if it is there."""
    folder = Path(os.environ.get("WEVENT_DATA", ""))
    lengths = {"cabspotting": 288.0, "citibike": 24.0, "foursquare": 14.4}
    for path in sorted(folder.glob("*.parquet")) if os.environ.get("WEVENT_DATA") else []:
        name = path.stem.split("_")[0]
        if name not in lengths:
            continue
        length = lengths[name]
        case = Case(name, lambda seed, path=path: real_stream(path, seed), length, length, seeds=(300,))
        yield case
        if name == "cabspotting":  # from a Saturday, 3 in the morning of San Francisco on; Memorial Day is day 9
            off = [day * DAY + 1 - 36 for day in range(25) if day % 7 in (0, 1) or day == 9]
            yield case._replace(name=f"{name}, calendar", calendar=changes(off))
            yield case._replace(name=f"wrong cycle: {name}, 250 instead of 288", cycle=250.0, days=None)


def cases() -> Iterator[Case]:
    """All of them."""
    for kind in ("city", "two peaks", "own hours", "sparse", "holiday", "shift", "weekends"):
        yield invented(kind)
    for kind in ("holiday", "weekends"):
        yield invented(kind, off=True, label=f"{kind}, calendar")
    yield invented("city", label="city, unbiased", plain={"class_weights": "equal"}, seeds=SEEDS[:1])
    yield invented("city", label="city, anchors", plain={"class_weights": "calibrated"}, seeds=SEEDS[:1])
    yield from recorded()
    for kind in ("city", "own hours"):
        yield invented(kind, label=f"wrong cycle: {kind}, 250 instead of 288", cycle=250.0)._replace(days=None)
    for users in (1_000, 10_000):
        for kind in (*hard_streams.KINDS, "tlns", "sin", "log"):
            if kind != "cycle":
                yield steady(kind, users)
    for onset in ONSETS:
        yield appearing(onset)


def measure(case: Case) -> tuple[Any, Any, float, float]:
    """Errors by slot, without and with the cycle, and both coverages; means over the seeds."""
    runs: list[list[Run]] = [[], []]
    for seed in case.seeds:
        counts, sizes = case.counts(seed)
        for kind, told in enumerate(({}, {"seasonality": case.cycle, "special_days": case.calendar})):
            runs[kind].append(
                Run("pft", counts, sizes, hard_streams.NINE, seed, **({"class_weights": "budget"} | case.plain), **told)
            )
    plain, told = (np.mean([run.slot_errors for run in done], axis=0) for done in runs)
    covered = [float(np.mean([run.coverage for run in done])) for done in runs]
    return plain, told, covered[0], covered[1]


def row(case: Case) -> dict[str, Any]:
    """One line of the table."""
    plain, told, before, after = measure(case)
    line: dict[str, Any] = {"stream": case.name, "without": f"{plain.mean():.4g}"}
    for band, (first, last) in BANDS.items():
        line[band] = ""
        if case.days is not None and len(plain) > first * case.days + 1:
            part = slice(round(first * case.days), None if last is None else round(last * case.days))
            line[band] = round(float(told[part].mean() / plain[part].mean()), 2)
    line["all"] = round(float(told.mean() / plain.mean()), 3)
    return {**line, "coverage": round(after, 3), "without it": round(before, 3)}


def main() -> None:
    """Measure and write."""
    rows = []
    for case in cases():
        rows.append(row(case))
        print(rows[-1], file=sys.stderr, flush=True)
    onsets = [line for line in rows if ", at " in line["stream"]]
    errors = np.array([[float(line["without"]), float(line["without"]) * line["all"]] for line in onsets]).sum(axis=0)
    steady_rows = [line["all"] for line in rows if line["stream"].startswith("no cycle") and line not in onsets]
    notes = [
        "Mean squared error of pft with a cycle over that without, by day; error without; coverage of 95 % intervals.",
        f"Nine equal classes, weighted unless said otherwise; seeds {SEEDS}, without a cycle {MORE_SEEDS}, recorded 300.",
        f"Without a cycle: mean {np.mean(steady_rows):.3f}, largest {max(steady_rows):.3f}; "
        f"appear at n = 1,000 over {len(onsets)} onsets: {errors[1] / errors[0]:.3f}.",
    ]
    report.write("cycles", "What a public cycle gains", rows, notes)


if __name__ == "__main__":
    main()
