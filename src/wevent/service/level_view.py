"""The levels of a stream as the API shows them."""

from __future__ import annotations

import math

from msgspec.structs import replace

from wevent.core.budget import NANO
from wevent.core.requirements import Levels
from wevent.journal import Journal
from wevent.publishing.views import LevelRow, read_offer
from wevent.schemas import LevelTable, OfferedLevel
from wevent.streams.clock import SECOND_US


def show_levels(journal: Journal) -> LevelTable:
    """Return the levels of a journal and the number of users who chose each, without queued changes. For operators.

    A user in transition is counted in another class than the chosen one. Only sizes as counted are public (spec 15.2).
    """
    offer = read_offer(journal)
    table = journal.head().epoch.terms.level_table or Levels.default()
    mildest = min((_noise(row) for row in offer.rows if row.level is not None), default=1.0)
    words = {f"{privacy}/{window}": (privacy, window) for privacy in table.privacy for window in table.window}
    rows = [_shown(row, words.get(row.level or "", (None, None)), mildest) for row in offer.rows]
    privacy = sorted(table.privacy, key=lambda word: table.requirement(word, next(iter(table.window))).nano)
    sizes = {row.requirement: row.size or 0 for row in offer.rows}
    return LevelTable(
        rows=rows,
        users=sum(sizes.values()),
        privacy=privacy,
        windows=sorted(table.window, key=lambda word: table.window[word]),
        slot_length_s=None if offer.slot_us is None else offer.slot_us / SECOND_US,
    )


def hide_choices(levels: LevelTable) -> LevelTable:
    """Return the levels that everybody may see: the offered ones, without the number of users who chose each."""
    rows = [replace(row, users=None) for row in levels.rows if row.level is not None]
    return replace(levels, rows=rows)


def _shown(row: LevelRow, words: tuple[str | None, str | None], mildest: float) -> OfferedLevel:
    window, nano = row.requirement
    return OfferedLevel(
        level=row.level,
        privacy=words[0],
        window_word=words[1],
        window=window,
        epsilon=nano / NANO,
        span=row.span,
        odds=math.exp(nano / NANO),
        users=row.size or 0,
        noise=_noise(row) / mildest,
    )


def _noise(row: LevelRow) -> float:
    """What the noise of a release would grow with, were the budget of a window spread evenly over its slots."""
    window, nano = row.requirement
    return window / nano
