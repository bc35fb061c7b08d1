"""What a filter knows of the swings of its seasonal models."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from wevent.core.arrays import FloatArray, packed, unpacked


@dataclass(slots=True)
class SeasonState:
    """Models × coefficients × cells unless said otherwise.

    Attributes:
        mean: of the coefficients.
        cross: their covariance with the level.
        variance: their covariance; models × coefficients² × cells.
        path: of the average of all models, coefficients × cells: the mean, the covariance with the level, with the slope.
        path_variance: of that average, coefficients² × cells.
        reach: r per cell.
        released: the slot of the last release; before the first, the slot before the first slot.
    """

    mean: FloatArray
    cross: FloatArray
    variance: FloatArray
    path: FloatArray
    path_variance: FloatArray
    reach: FloatArray
    released: int

    def copy(self) -> SeasonState:
        """A state of its own."""
        return SeasonState(**{name: getattr(self, name).copy() for name in _ARRAYS}, released=self.released)

    def __getitem__(self, block: Any) -> SeasonState:
        """The state of a block of cells; it shares its arrays with the whole."""
        return SeasonState(**{name: getattr(self, name)[block] for name in _ARRAYS}, released=self.released)

    def dump(self) -> dict[str, Any]:
        """Arrays as shape and bytes, covariances by the half of them that says all."""
        half = np.triu_indices(self.mean.shape[1])
        halves = {"variance": self.variance[:, *half], "path_variance": self.path_variance[half]}
        arrays = {name: halves.get(name, getattr(self, name)) for name in _ARRAYS}
        return {"released": self.released, **{name: packed(value) for name, value in arrays.items()}}

    @classmethod
    def load(cls, dumped: dict[str, Any]) -> SeasonState:
        """The counterpart of `dump`."""
        arrays = {name: unpacked(dumped[name]) for name in _ARRAYS}
        terms = arrays["mean"].shape[1]
        for name in ("variance", "path_variance"):
            arrays[name] = _mirrored(arrays[name], terms)
        return cls(**arrays, released=dumped["released"])


_ARRAYS = tuple(field.name for field in fields(SeasonState) if field.name != "released")


def _mirrored(half: FloatArray, terms: int) -> FloatArray:
    """A symmetric matrix from the half of it."""
    rows, columns = np.triu_indices(terms)
    whole = np.empty((*half.shape[:-2], terms, terms, half.shape[-1]))
    whole[..., rows, columns, :] = half
    whole[..., columns, rows, :] = half
    return whole
