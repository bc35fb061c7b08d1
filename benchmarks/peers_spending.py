"""What windows lose with the spending of public code of the peers, by the accountant that holds the corrected ones."""

from collections.abc import Iterator
from typing import Any

from benchmarks import hard_streams, memoryless_streams, report
from benchmarks.uncorrected_baselines import UNCORRECTED, spent
from wevent import Requirement
from wevent.experiments.baselines import BASELINES, BaselineAccountant, BaselineNoise

SEEDS = range(100, 102)
WINDOWS = (20, 40, 120)
USERS, SLOTS = 10_000, 600
SLIPS = {
    "spas": "a success also gets what tests have left, unrecorded; the first window spends all of epsilon",
    "fast": "epsilon for each block of w slots",
    "rescuedp": "a schedule for each cell, and a user who moves",
}


def streams(seed: int) -> Iterator[Any]:
    """Tuned-on streams, slots × cells."""
    for kind in ("tlns", "sin", "log"):
        yield hard_streams.synthetic(kind, users=USERS, slots=SLOTS, classes=1, seed=seed)[0].sum(axis=1)
    for kind in hard_streams.KINDS:
        yield hard_streams.hard(kind, users=USERS, slots=SLOTS, classes=1, seed=seed)[0].sum(axis=1)
    for kind in memoryless_streams.KINDS:
        yield memoryless_streams.memoryless(kind, users=USERS, slots=SLOTS, classes=1, seed=seed)[0].sum(axis=1)


def corrected(label: str, truth: Any, requirement: Requirement, seed: int) -> float:
    """The most that a window loses to the peer as `wevent compare` runs it, as a part of its epsilon."""
    accountant = BaselineAccountant(requirement)
    run = BASELINES[label].start(truth.shape[1], accountant, BaselineNoise([seed]))
    for counts in truth:
        run.step(counts)
    return accountant.worst_window(requirement.window) / requirement.nano


def main() -> None:
    """Measure and write."""
    rows = []
    for label in UNCORRECTED:
        public, own = [], []
        for window in WINDOWS:
            for seed in SEEDS:
                for truth in streams(seed):
                    public.append(spent(label, truth, Requirement(window, 1), seed))
                    own.append(corrected(label, truth, Requirement(window, 1), seed))
        rows.append(
            {
                "peer": label,
                "slip": SLIPS[label],
                "worst window / epsilon": f"{max(public):.2f}",
                "runs above 1.05": f"{sum(share > 1.05 for share in public)} of {len(public)}",
                "corrected": f"{max(own):.3f}",
            }
        )
    notes = [
        f"n = {USERS:,}, {SLOTS} slots, epsilon 1, windows of {', '.join(map(str, WINDOWS))} slots, the tuned-on invented "
        f"streams, seeds {SEEDS[0]} and {SEEDS[-1]}."
    ]
    report.write("peers-spending", "What windows lose with the spending of public code", rows, notes)


if __name__ == "__main__":
    main()
