"""The nearest of the words that are known to one that is not: what somebody meant who mistyped it."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], *, always: bool = False) -> str | None:
    """The known word that takes the fewest slips of the finger from this one; the first of several.

    A slip is a letter too many, missing, wrong, or two neighbours swapped: `pdb` is nearer to `pbd` than to `pbu`.

    Args:
        word: what was written.
        known: what it may have meant.
        always: also if it is nothing like any of them.

    Returns:
        None if nothing is near: more than one slip, and more than one in three letters.

    >>> nearest("pubish", ["publish", "plan"]), nearest("pdb", ["pbu", "pbd"]), nearest("frobnicate", ["plan"])
    ('publish', 'pbd', None)
    """
    written = word.lower()
    slips = {one: _slips(written, one.lower()) for one in known}
    if not slips:
        return None
    best = min(slips, key=lambda one: slips[one])
    return best if always or slips[best] <= max(1, max(len(word), len(best)) // 3) else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """A question for the end of an error: the nearest word, or `otherwise` if nothing is near."""
    near = nearest(word, known)
    return otherwise if near is None else f"Did you mean {near!r}?"


def _slips(left: str, right: str) -> int:
    """Optimal string alignment distance."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for place, letter in enumerate(left, 1):
        earlier, before, row = before, row, [place]
        for column, other in enumerate(right, 1):
            cost = min(before[column] + 1, row[-1] + 1, before[column - 1] + (letter != other))
            if place > 1 and column > 1 and letter == right[column - 2] and left[place - 2] == other:
                cost = min(cost, earlier[column - 2] + 1)
            row.append(cost)
    return row[-1]
