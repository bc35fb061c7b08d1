"""One slot of a publisher, run on a copy with chosen draws: what it shows, and which draws it takes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wevent.auditing.audit_subject import Stepping
from wevent.auditing.exact.laws import Call
from wevent.auditing.exact.scripted_noise import Chooser, ScriptedNoise, as_it_is
from wevent.auditing.exact.state_copy import fork
from wevent.core.arrays import IntArray
from wevent.core.mechanism import Measurement
from wevent.publisher.release import Release

Outcome = tuple[Hashable, ...]
Observables = dict[tuple[str, int], float]
"""Numbers of an outcome by what they are and cell: first those that noise moves most directly."""


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
        return SlotRun(_failure(error), {}, noise.calls, noise.draws, forked, f"fails with {type(error).__name__}")
    if noise.trouble is not None:
        raise noise.trouble
    measured = getattr(forked, "measured", None)
    seen, numbers = _outcome(release, measured), _observables(release, measured)
    most = release.publication_charges if release.threshold is None else release.threshold
    costs = release.probe_charges + np.minimum(release.publication_charges, most)
    costs *= len(noise.calls) > 0  # nothing was measured: reserved only
    return SlotRun(seen, numbers, noise.calls, noise.draws, forked, _describe(release, measured), costs)


@dataclass(frozen=True, eq=False)
class Prefix:
    """The beginning of a slot: state before it, counts, and its first draws."""

    state: Stepping
    counts: IntArray
    draws: tuple[IntArray, ...] = ()

    def __len__(self) -> int:
        return len(self.draws)

    def extend(self, draw: IntArray) -> Prefix:
        """Return the prefix with one more draw."""
        return Prefix(self.state, self.counts, (*self.draws, draw))

    def run(self, *draws: IntArray) -> SlotRun:
        """Run the slot with more draws; those after them are without noise."""
        return run_slot(self.state, self.counts, (*self.draws, *draws))


def _outcome(release: Release, measured: Measurement | None) -> Outcome:
    """Return all public data of a slot (spec 10), equal only if equal in every bit."""
    return (
        release.slot,
        release.outcome,
        _bits(release.histogram),
        _bits(release.probe_charges),
        _bits(release.publication_charges),
        _bits(release.std_error),
        release.threshold,
        _bits(release.dissimilarity),
        _law(release.noise),
        release.measured,
        release.honest,
        None if measured is None else _measurement(measured),
    )


def _failure(error: Exception) -> Outcome:
    """Return the outcome of a slot that fails: a failure is an output too (spec 1)."""
    return ("failed", type(error).__name__)


def _observables(release: Release, measured: Measurement | None) -> Observables:
    """Return the numbers of a slot that noise moves."""
    found: Observables = {}
    if release.dissimilarity is not None:
        found["dissimilarity", 0] = float(release.dissimilarity)
    if measured is not None:
        if measured.anchor is not None:
            found |= _numbered("anchor", measured.anchor[0])
        found |= _numbered("measured", measured.values)
    return found | _numbered("histogram", release.histogram)


def _describe(release: Release, measured: Measurement | None) -> str:
    """Return a slot's outcome in words."""
    text = f"{release.outcome}"
    if release.dissimilarity is not None:
        text += f", dissimilarity {release.dissimilarity:g}"
    if measured is not None:
        if measured.anchor is not None:
            text += f", anchor {_list(measured.anchor[0])}"
        text += f", measured {_list(measured.values)}"
    return text


def _list(values: Any) -> str:
    return "[" + ", ".join(f"{value:.9g}" for value in np.asarray(values).tolist()) + "]"


def _numbered(name: str, values: Any) -> Observables:
    return {(name, place): float(value) for place, value in enumerate(np.asarray(values).tolist())}


def _measurement(measured: Measurement) -> Outcome:
    anchor = None if measured.anchor is None else (_bits(measured.anchor[0]), _law(measured.anchor[1]))
    return (
        _bits(measured.values),
        _law(measured.error),
        _bits(measured.composition),
        measured.users,
        anchor,
        _bits(measured.lean),
    )


def _law(law: Any) -> Hashable:
    return None if law is None else (law[0], *map(_bits, law[1:]))


def _bits(values: Any) -> Hashable:
    return None if values is None else np.asarray(values).tobytes()
