"""Runs that are broken on purpose: what a comparison of pairs has to see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.live_events import ScriptedPipeSource


class StopsAtMalformed(ScriptedPipeSource):
    """Broken on purpose: ends with the first malformed line."""

    def count(self, roster: Any, first: int, most: int) -> Any:
        for counted in super().count(roster, first, most):
            if self.totals()["malformed"]:
                return
            yield counted


class LosesNeighbours(ScriptedPipeSource):
    """Broken on purpose: one malformed line, and nobody is counted any more."""

    def count(self, roster: Any, first: int, most: int) -> Any:
        for counted in super().count(roster, first, most):
            if self.totals()["malformed"]:
                counted.counts.matrix[:] = 0
            yield counted


class WritesEvents:
    """Broken on purpose: an output that says how many events there were."""

    def __init__(self, output: Any, source: ScriptedPipeSource, path: Path) -> None:
        self._output, self._source, self._path = output, source, path
        self.repair, self.emit = output.repair, output.emit

    def close(self) -> None:
        self._output.close()
        self._path.write_text(str(self._source.totals()["events"]))
