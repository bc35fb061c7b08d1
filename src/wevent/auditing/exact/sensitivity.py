"""How what is published moves with a Laplace draw: learnt by moving every entry, near and far, and looking.

Two shapes can be followed. *Linear*: some numbers move in proportion to the draw, as many of them as entries, so one draw
alone shows what is wanted. *Monotone*: every entry moves a number of its own and never back, as where a value is clipped or
rounded; then the draws that show what is wanted are a run of whole numbers in every entry. Anything else cannot be followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wevent.auditing.audit_subject import Stepping
from wevent.auditing.exact.laws import LaplaceCall
from wevent.auditing.exact.scripted_noise import NotFollowed
from wevent.auditing.exact.slot_run import Prefix, SlotRun
from wevent.auditing.exact.state_copy import fingerprint
from wevent.core.arrays import FloatArray, IntArray

Key = tuple[str, int]
_FAR = 2**30
_FARTHEST = 2**52  # beyond it a float no longer tells one from the next
_TOLERANCE = 1e-6  # of a change that should be in proportion; floats are rounded on their way out

_MANY = 4  # entries beyond which each is moved less often
_RANK = 1e-8  # less than this part of a slope is rounding


@dataclass(frozen=True, eq=False)
class Slopes:
    """The change of some outputs with the entries of a Laplace draw, enough to determine every entry that matters.

    Attributes:
        keys: the observables; where the shape is monotone one for every entry of `told`, in its order.
        inverse: from their changes to the entries of `told`; of monotone ones the signs alone.
        told: the entries that they tell; the others change nothing.
        linear: whether they move in proportion.
    """

    keys: list[Key]
    inverse: FloatArray
    told: list[int]
    linear: bool


def learn_slopes(prefix: Prefix, run: SlotRun) -> Slopes:
    """Move the entries of the next draw, and see what moves with them.

    Raises:
        NotFollowed: if an entry decides something, now or later, without being told by any number, or in no shape that is
            known.
    """
    call = run.calls[len(prefix)]
    assert isinstance(call, LaplaceCall)
    step = max(1, round(min(call.scale, 2.0**40)))
    draws = list(_probed(call.size, step))
    moved = [prefix.run(draw) for draw in draws]
    shared = [name for name in run.observables if all(name in other.observables for other in moved)]
    changes = np.array([[other.observables[name] - run.observables[name] for name in shared] for other in moved])
    matrix = np.array(draws)
    told = [place for place in range(call.size) if changes[matrix[:, place] != 0].any()] if shared else []
    told = [place for place in told if _alone(matrix, changes, place).any()]
    for draw, other in zip(draws, moved, strict=True):
        if draw[told].any():
            continue
        if other.outcome != run.outcome:
            raise NotFollowed("an outcome that depends on noise but does not tell which")
        if not _is_alike(other.state, run.state):
            raise NotFollowed("noise that is kept for later slots and told by nothing in this one")
    if not told:
        return Slopes([], np.zeros((0, 0)), [], linear=True)
    linear = _linear(shared, matrix[:, told], changes, _base(run, shared))
    if linear is not None:
        return Slopes(linear[0], linear[1], told, linear=True)
    return _monotone(shared, matrix, changes, told)


def _is_alike(one: Stepping, other: Stepping) -> bool:
    mark = fingerprint(one)
    return mark is not None and mark == fingerprint(other)


def _probed(size: int, step: int) -> Iterator[IntArray]:
    """Yield the draws that are looked at: every entry alone, near and far; then some together."""
    far = min(_FAR * step, _FARTHEST)
    few = (step, -7 * step - 3, far, -far)
    for distance in few if size > _MANY else (*few, -step, 1, -1, 7 * step + 3):
        for place in range(size):
            draw = np.zeros(size, dtype=np.int64)
            draw[place] = distance
            yield draw
    own = np.random.default_rng(size)
    for spread in (1, 5) if size > 1 else ():
        yield own.integers(-3, 4, size) * spread * step


def _alone(draws: IntArray, changes: FloatArray, place: int) -> FloatArray:
    """Return the changes where this entry alone was moved."""
    own: FloatArray = changes[(draws[:, place] != 0) & (np.count_nonzero(draws, axis=1) == 1)]
    return own


def _base(run: SlotRun, shared: list[Key]) -> FloatArray:
    base: FloatArray = np.abs(np.array([run.observables[name] for name in shared]))
    return base


def _linear(
    shared: list[Key], draws: IntArray, changes: FloatArray, base: FloatArray
) -> tuple[list[Key], FloatArray] | None:
    """Return numbers that moved in proportion in every probe, one for every entry; None if there are fewer."""
    entries = draws.shape[1]
    first = [
        int(np.flatnonzero((draws[:, place] != 0) & (np.count_nonzero(draws, axis=1) == 1))[0])
        for place in range(entries)
    ]
    steps = np.array([draws[row, place] for place, row in enumerate(first)], dtype=np.float64)
    slopes = changes[first].T / steps  # observables × entries
    hoped = draws @ slopes.T
    reach = np.abs(draws) @ np.abs(slopes).T
    wrong = np.abs(changes - hoped) > _TOLERANCE * reach + 1e-9 * base
    keys: list[Key] = []
    rows: list[Any] = []
    for place, name in enumerate(shared):
        if wrong[:, place].any() or len(rows) == entries:
            continue
        if np.linalg.matrix_rank(_scaled([*rows, slopes[place]]), tol=_RANK) > len(rows):
            keys.append(name)
            rows.append(slopes[place])
    return (keys, np.linalg.inv(np.array(rows))) if len(rows) == entries else None


def _monotone(shared: list[Key], draws: IntArray, changes: FloatArray, told: list[int]) -> Slopes:
    """Return a number for every entry that moves with it alone, and never back."""
    keys: list[Key] = []
    signs: list[float] = []
    alone = np.count_nonzero(draws, axis=1) == 1
    for place in told:
        mine = alone & (draws[:, place] != 0)
        order = np.argsort(draws[mine, place])
        for number, name in enumerate(shared):
            own = changes[mine, number][order]
            below = int((draws[mine, place] < 0).sum())
            path = np.diff(np.insert(own, below, 0.0))
            others = changes[alone & ~mine, number]
            if name not in keys and path.any() and not others.any() and ((path >= 0).all() or (path <= 0).all()):
                keys.append(name)
                signs.append(float(np.sign(path.sum())))
                break
        else:
            raise NotFollowed("numbers that move back and forth with the noise, or with several draws of it")
    return Slopes(keys, np.diag(signs), told, linear=False)


def _scaled(rows: list[Any]) -> Any:
    """Return rows of about the same size, for a rank that does not depend on units."""
    matrix = np.array(rows)
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    return matrix / np.where(largest == 0, 1.0, largest)
