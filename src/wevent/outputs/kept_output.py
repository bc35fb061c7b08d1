"""No place of its own: releases stay in the journal, for a program that reads them there."""

from __future__ import annotations

from collections.abc import Iterable

from wevent.journal.contract import Emitted
from wevent.journal.record import Record


class KeptOutput:
    """Releases are where they were committed; nothing is written, nothing can be missing."""

    def check(self, journal: Emitted, committed: int) -> None:
        """Nothing can be wrong with it."""

    def repair(self, journal: Emitted, committed: int, emitted: int) -> int:
        """Nothing is missing."""
        return 0

    def emit(self, records: Iterable[Record]) -> None:
        """They are committed."""

    def close(self) -> None:
        """Nothing is open."""

    def abandon(self) -> None:
        """Nothing is open."""
