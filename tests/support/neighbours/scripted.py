"""A mechanism whose measurements are scripted: a function of slot and budgets, never of counts.

It takes the draw out of a run, so that all else must be equal byte by byte. It is registered like any mechanism from
outside: `wevent.register` in this process, the entry points of `write_package` in another one.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

import wevent
from wevent.core.estimators import Sampling, laplace_error
from wevent.core.mechanism import Measurement, Mechanism, NoOffer
from wevent.core.pft.filter import Filter
from wevent.core.postprocess import LastValue
from wevent.publisher import catalogue


class Script:
    """The slot that is open, and the counts of each measured slot: the one place where a test looks at them."""

    def __init__(self) -> None:
        self.slot = 0
        self.seen: list[tuple[int, Any]] = []


class ScriptedPolicy:
    """The even share in every `period`-th slot, from the first on; no probe."""

    def __init__(self, script: Script, period: int) -> None:
        self._script, self._period = script, period

    def probe(self, ledger: Any) -> None:
        return None

    def offer(self, ledger: Any, history: Any) -> Any:
        self._script.slot = history.slot
        return NoOffer.NOT_DUE if (history.slot - 1) % self._period else ledger.epsilons // ledger.windows


class ScriptedEstimator:
    """Looks at slot and permit only."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def plan(self, permit: Any) -> Any:
        return Sampling().plan(permit)

    def measure(self, permit: Any, plan: Any, counts: Any, noise: Any) -> Measurement:
        spend = permit.for_sampling(plan.threshold)
        self._script.seen.append((self._script.slot, counts.copy()))
        facts = b"%d" % self._script.slot + spend.budgets.tobytes() + permit.sizes.tobytes()
        digest = hashlib.shake_128(facts).digest(2 * counts.shape[1])
        values = np.frombuffer(digest, dtype="<i2").astype(np.int64)
        return Measurement(values, laplace_error(spend.noise.scale), users=int(permit.sizes.sum()))


class LeakyEstimator(ScriptedEstimator):
    """Broken on purpose: what it returns depends on how many are present."""

    def measure(self, permit: Any, plan: Any, counts: Any, noise: Any) -> Measurement:
        values, *others = super().measure(permit, plan, counts, noise)
        return Measurement(values + counts.sum(), *others)


SCRIPT = Script()


def _row(name: str, period: int, estimator: type[ScriptedEstimator] = ScriptedEstimator) -> Mechanism:
    return Mechanism(
        name=name,
        summary="scripted measurements, for tests",
        policy=lambda declared, options: ScriptedPolicy(SCRIPT, period),
        estimator=lambda options: estimator(SCRIPT),
        smoother=lambda options: Filter() if options.smoothing == "filter" else LastValue(),
    )


every_slot = _row("scripted", 1)
every_second = _row("scripted-second", 2)
leaky = _row("scripted-leaky", 1, LeakyEstimator)


def register() -> None:
    """Make the mechanisms known in this process."""
    for row in (every_slot, every_second, leaky):
        wevent.register(row)


def unregister() -> None:
    """Make them unknown again: other tests list every mechanism there is."""
    for row in (every_slot, every_second, leaky):
        catalogue._registered.pop(row.name, None)


def write_package(folder: Path) -> None:
    """An installed package that names the mechanisms in its entry points; `folder` goes on the path of a process."""
    about = folder / "scripted_mechanisms-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: scripted-mechanisms\nVersion: 1.0\n")
    rows = {"scripted": "every_slot", "scripted-second": "every_second"}
    lines = [f"{name} = tests.support.neighbours.scripted:{row}" for name, row in rows.items()]
    (about / "entry_points.txt").write_text("\n".join(["[wevent.mechanisms]", *lines]) + "\n")
