"""One slot of a publisher, run on a copy with chosen draws: what it shows, and which draws it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wevent.auditing.audit_subject import Stepping
from wevent.auditing.exact.laws import Call
from wevent.auditing.exact.outcomes import Observables, Outcome, failure_of, observables_of, outcome_of, told
from wevent.auditing.exact.scripted_noise import Chooser, ScriptedNoise, as_it_is
from wevent.auditing.exact.state_copy import fork
from wevent.core.arrays import IntArray


@dataclass(frozen=True, eq=False)
class SlotRun:
    """One slot, run on a fork: what it showed, which draws it took, and the publisher after it.

    Attributes:
        costs: what each class lost in it, nano-epsilons, if the release says the truth; only guides a search.
    """

    outcome: Outcome
    observables: Observables
    calls: list[Call]
    draws: list[IntArray]
    state: Stepping
    words: str
    costs: IntArray | None = None

    @property
    def measured(self) -> tuple[float, ...]:
        """The values of a fresh measurement; empty if there is none."""
        return tuple(value for (name, _), value in self.observables.items() if name == "measured")


def run_slot(state: Stepping, counts: IntArray, script: Sequence[IntArray] = (), choose: Chooser = as_it_is) -> SlotRun:
    """Run one slot on a fork; the state itself stays as it is.

    Raises:
        NotFollowed: if the publisher holds what cannot be copied, or draws without end.
        UnseenRandomness: if it asks for other draws than before.
    """
    noise = ScriptedNoise(script, choose)
    forked = fork(state, noise)
    try:
        release = forked.step(counts.copy())
    except Exception as error:  # noqa: BLE001  that a slot fails is seen, too
        if noise.trouble is not None:
            raise noise.trouble from None
        return SlotRun(failure_of(error), {}, noise.calls, noise.draws, forked, f"fails with {type(error).__name__}")
    if noise.trouble is not None:
        raise noise.trouble
    measured = getattr(forked, "measured", None)
    seen, numbers = outcome_of(release, measured), observables_of(release, measured)
    most = release.publication_charges if release.threshold is None else release.threshold
    costs = release.probe_charges + np.minimum(release.publication_charges, most)
    costs *= len(noise.calls) > 0  # nothing was measured: reserved only
    return SlotRun(seen, numbers, noise.calls, noise.draws, forked, told(release, measured), costs)
