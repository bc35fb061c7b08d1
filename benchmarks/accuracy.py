"""How accurate `pft` is against every other mechanism: synthetic, real and hard streams.

Real streams are read from the folder WEVENT_DATA names (Parquet files of slot, user, cell); without it they are left out and
the report says so. Noise is seeded; one synthetic run is repeated with secure noise to confirm.
"""

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import wevent
from benchmarks import hard_streams, report
from wevent.core.builtin_mechanisms import BUILT_IN
from wevent.core.mechanism import Mechanism
from wevent.core.pft.adaptive_period import AdaptivePeriod
from wevent.core.pft.filter import Filter

CLASSIC = ("bd", "ba", "pbd", "pba", "uniform")
RIVALS = (*CLASSIC, "pbu", "sample")
SEED = 100
PERIODS = (1, 2, 4, 6, 8, 12, 16, 24, 40, 60, 80, 120)


class Run:
    """One mechanism over one stream: mean squared error, and coverage of its 95 % intervals."""

    def __init__(self, mechanism: str, counts: Any, sizes: Any, requirements: Any, seed: int | None, **options: Any):
        people = wevent.Population(
            {wevent.Requirement(w, e): int(size) for (w, e), size in zip(requirements, sizes, strict=True)}
        )
        noise = wevent.SecureNoise() if seed is None else wevent.SeededNoise(seed)
        publisher = wevent.Publisher(people, counts.shape[2], mechanism, noise=noise, **options)
        order = [people.index(wevent.Requirement(w, e)) for w, e in requirements]
        truth = counts.sum(axis=1)
        squared, inside, spread = np.zeros(truth.shape), np.zeros(truth.shape, dtype=bool), np.zeros(truth.shape)
        rows = np.empty_like(counts[0], dtype=np.int64)
        for slot, matrix in enumerate(counts):
            rows[order] = matrix
            release = publisher.step(rows)
            squared[slot] = (release.histogram - truth[slot]) ** 2
            bounds = release.interval(0.95)
            if bounds is not None and release.std_error is not None:
                inside[slot] = (bounds[0] <= truth[slot]) & (truth[slot] <= bounds[1])
                spread[slot] = release.std_error
        self.error = float(squared.mean())
        self.slot_errors = squared.mean(axis=1)
        self.coverage = float(inside.mean())
        large = truth.mean(axis=0) > spread.mean(axis=0)
        self.large_coverage = float(inside[:, large].mean()) if large.any() else float("nan")


def mean_error(mechanism: str, counts: Any, sizes: Any, requirements: Any, seeds: Iterable[int]) -> float:
    """The error over several noise seeds."""
    return float(np.mean([Run(mechanism, counts, sizes, requirements, seed).error for seed in seeds]))


@lru_cache(maxsize=64)
def fixed_period(period: int) -> str:
    """`pft` with a period chosen by someone who knows the stream: not private, a yardstick only."""

    class Fixed(AdaptivePeriod):
        def replan(self, ledger: Any, history: Any) -> int:
            return period

        def offer(self, ledger: Any, history: Any) -> Any:
            if not history.last_fresh:
                history.memory, history.last_fresh = period, history.slot - period
                offer = super().offer(ledger, history)
                history.memory, history.last_fresh = None, 0
                return offer
            return super().offer(ledger, history)

    row = BUILT_IN["pft"]
    name = f"pft-every-{period}"
    wevent.register(
        Mechanism(
            name,
            f"pft, released every {period} slots",
            lambda declared, options: Fixed(Filter().outlook),
            row.estimator,
            row.smoother,
        )
    )
    return name


def synthetic(repeats: int = 10) -> None:
    """Must show 1: errors summed over tlns, sin and log against pba and pbd."""
    floors = {"tlns": 433.0, "sin": 733.0, "log": 1756.0}
    rows, sums = [], dict.fromkeys(("pft", "pft weighted", "pba", "pbd"), 0.0)
    for kind, floor in floors.items():
        runs: dict[str, list[Run]] = {name: [] for name in sums}
        for repeat in range(repeats):
            counts, sizes = hard_streams.synthetic(kind, users=10_000, slots=1000, classes=9, seed=SEED + repeat)
            for name, done in runs.items():
                options = {"class_weights": "budget"} if name.endswith("weighted") else {}
                done.append(Run(name.split()[0], counts, sizes, hard_streams.NINE, SEED + repeat, **options))
        secure = Run("pft", counts, sizes, hard_streams.NINE, None)
        error = {name: float(np.mean([run.error for run in done])) for name, done in runs.items()}
        for name in sums:
            sums[name] += error[name]
        rows.append(
            {
                "stream": kind,
                **{name: round(value) for name, value in error.items()},
                "pft / floor": round(error["pft"] / floor, 2),
                "coverage": round(float(np.mean([run.coverage for run in runs["pft"]])), 3),
                "large cells": round(float(np.mean([run.large_coverage for run in runs["pft"]])), 3),
                "secure pft": round(secure.error),
            }
        )
    total = {name: round(value) for name, value in sums.items()}
    rows.append({"stream": "sum", **total, "pft / floor": "", "coverage": "", "large cells": "", "secure pft": ""})
    notes = [
        f"n = 10,000, T = 1,000, nine equal classes, {repeats} repeats, seeds {SEED} to {SEED + repeats - 1}.",
        f"pft is 1/{sums['pba'] / sums['pft']:.1f} of pba (target 1/18) and 1/{sums['pbd'] / sums['pft']:.1f} of pbd (1/50).",
    ]
    report.write("accuracy-synthetic", "pft on the paper's synthetic streams", rows, notes)


def real_stream(path: Path, seed: int) -> tuple[Any, Any]:
    """Counts of a recorded stream, its users dealt into nine equal classes at random; the facts are in the .json beside."""
    import json

    import pyarrow.parquet as parquet

    facts = json.loads(path.with_suffix(".json").read_text())
    table = parquet.read_table(path)
    slot, user, cell = (table[name].to_numpy() for name in ("slot", "user", "cell"))
    held = np.random.default_rng([4, seed]).permutation(np.arange(facts["n_users"]) % 9)
    _, row = np.unique(user, return_inverse=True)
    counts = np.zeros((facts["T_slots"], 9, facts["d_cells"]), dtype=np.int64)
    np.add.at(counts, (slot - slot.min(), held[row], cell - cell.min()), 1)
    return counts, np.bincount(held, minlength=9)


def real(seeds: int = 3) -> None:
    """Must show 2 and 5: recorded streams."""
    folder = Path(os.environ.get("WEVENT_DATA", ""))
    files = sorted(folder.glob("*.parquet")) if os.environ.get("WEVENT_DATA") else []
    rows = []
    for path in files:
        counts, sizes = real_stream(path, SEED)
        wanted = range(SEED, SEED + seeds)
        runs = [Run("pft", counts, sizes, hard_streams.NINE, seed) for seed in wanted]
        error = float(np.mean([run.error for run in runs]))
        rivals = {name: mean_error(name, counts, sizes, hard_streams.NINE, wanted[:1]) for name in (*CLASSIC, "sample")}
        classic = min(rivals[name] for name in CLASSIC)
        zeros = float((counts.sum(axis=1).astype(float) ** 2).mean())
        hindsight = {k: mean_error(fixed_period(k), counts, sizes, hard_streams.NINE, wanted[:2]) for k in PERIODS}
        best = min(hindsight, key=lambda k: hindsight[k])
        rows.append(
            {
                "stream": path.stem,
                "pft": f"{error:.4g}",
                "/ best classic (≤ 0.2)": f"{error / classic:.3f}",
                "/ sample (≤ 1.05)": f"{error / rivals['sample']:.2f}",
                "/ zeros (≤ 1.3)": f"{error / zeros:.2f}",
                "/ best period (≤ 1.25)": f"{error / hindsight[best]:.2f} (k = {best})",
                "coverage": f"{np.mean([run.coverage for run in runs]):.3f}",
                "large cells": f"{np.mean([run.large_coverage for run in runs]):.3f}",
            }
        )
    if rows:
        report.write("accuracy-real", "pft on recorded streams", rows, [f"Seeds {SEED} to {SEED + seeds - 1}."])
    else:
        print("Recorded streams are absent: set WEVENT_DATA to a folder of Parquet files. Left out.")


def hard() -> None:
    """Must show 3: never worse than 1.1 times the best other mechanism."""
    settings = {
        "nine classes": hard_streams.NINE,
        "25 classes": hard_streams.TWENTY_FIVE,
        "w = 1": [(1, 1.0)],
        "w = 10": [(10, 1.0)],
        "w = 500": [(500, 1.0)],
    }
    rows = []
    for stay in (False, True):
        for label, requirements in settings.items():
            for users in (1_000, 10_000, 1_000_000):
                for kind in hard_streams.KINDS:
                    counts, sizes = hard_streams.hard(
                        kind, users=users, classes=len(requirements), seed=SEED, stay=stay
                    )
                    ours = Run("pft", counts, sizes, requirements, SEED)
                    rivals = {name: Run(name, counts, sizes, requirements, SEED).error for name in RIVALS}
                    best = min(rivals, key=lambda name: rivals[name])
                    rows.append(
                        {
                            "users": "stay" if stay else "redrawn",
                            "requirements": label,
                            "n": users,
                            "stream": kind,
                            "pft": f"{ours.error:.4g}",
                            "best other": f"{best} {rivals[best]:.4g}",
                            "ratio": round(ours.error / rivals[best], 2),
                            "coverage": round(ours.coverage, 3),
                        }
                    )
    ratios = np.array([row["ratio"] for row in rows])
    notes = [f"Seed {SEED}. {(ratios > 1.1).sum()} of {len(ratios)} above 1.1; median {np.median(ratios):.2f}."]
    report.write("accuracy-hard", "pft on hard streams", rows, notes)


def main() -> None:
    """Measure and write all three."""
    synthetic()
    real()
    hard()


if __name__ == "__main__":
    main()
