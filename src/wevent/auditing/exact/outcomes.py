"""What a slot shows, to the last bit, and the numbers in it that noise moves."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from wevent.core.mechanism import Measurement
from wevent.publisher.release import Release

Outcome = tuple[Hashable, ...]
Observables = dict[tuple[str, int], float]
"""Numbers of an outcome by what they are and cell: first those that noise moves most directly."""


def outcome_of(release: Release, measured: Measurement | None) -> Outcome:
    """Everything public of a slot (spec 10): the release and the measurement behind it; equal only if equal in every bit."""
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


def failure_of(error: Exception) -> Outcome:
    """A slot that fails shows that it fails (spec 1: a run is an output too)."""
    return ("failed", type(error).__name__)


def observables_of(release: Release, measured: Measurement | None) -> Observables:
    """The numbers of a slot that noise moves."""
    found: Observables = {}
    if release.dissimilarity is not None:
        found["dissimilarity", 0] = float(release.dissimilarity)
    if measured is not None:
        if measured.anchor is not None:
            found |= _numbered("anchor", measured.anchor[0])
        found |= _numbered("measured", measured.values)
    return found | _numbered("histogram", release.histogram)


def told(release: Release, measured: Measurement | None) -> str:
    """A slot's outcome in words."""
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
