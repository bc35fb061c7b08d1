"""The outside of a publication: who comes, what is drawn, and the world that sees what goes out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tests.property.machines.witness import Held, Witness, member, unregistered
from tests.support.synthetic import QuietSource
from wevent.counting.roster import Counts, Roster
from wevent.journal import Journal
from wevent.journal.record import Record
from wevent.outputs.lines import ndjson_line
from wevent.streams.source import SlotCounts

CELLS = 2
HUGE = 2**60  # far above any threshold, far below int64's end
CROWDS = ("nobody", "first cell", "second cell", "split")


class ChosenNoise:
    """Noise as an adversary would like it: it decides which slots are published, and no draw is like another one."""

    seeded = False  # what is stored shall look like what goes out to people

    def __init__(self) -> None:
        self.publish = True
        self.draws = 0

    def laplace(self, permit: Any, size: int) -> np.ndarray:
        if size == 1:  # with two cells only a probe is
            return np.array([HUGE if self.publish else -HUGE], dtype=np.int64)
        self.draws += 1
        return np.full(size, self.draws, dtype=np.int64)

    def binomial(self, counts: np.ndarray, permit: Any) -> np.ndarray:
        return counts.copy()

    def respond(self, counts: np.ndarray, permit: Any) -> np.ndarray:
        return counts.copy()


class ChosenSource(QuietSource):
    """As many people as the registry says, where the machine wants them; notes what users hold and where they count."""

    def __init__(self, users: Iterable[str], noise: ChosenNoise) -> None:
        self.users, self.noise = list(users), noise
        self.plan: list[tuple[str, bool]] = [("nobody", True)]
        self.journal: Journal | None = None
        self.seen: dict[int, dict[str, Held]] = {}
        self.committed: dict[int, bytes] = {}  # slots that are stored: nobody may ask for them again

    def count(self, roster: Roster, first: int, most: int) -> Iterator[SlotCounts]:
        users = self._look(roster)
        for slot in range(first, first + most):
            assert slot not in self.committed, f"slot {slot} is drawn again"
            crowd, self.noise.publish = self.plan[slot % len(self.plan)]
            self.seen[slot] = users
            yield SlotCounts(slot, Counts(_matrix(roster.population.sizes, crowd)), {"slot": slot, "time_unit": "s"})

    def _look(self, roster: Roster) -> dict[str, Held]:
        """What each id holds, and where it would count."""
        assert self.journal is not None
        held = {one.user: one.key for one in self.journal.registry.members()}
        own = self.journal.head().epoch.classes.unregistered
        found = {}
        for user in self.users:
            rows = np.flatnonzero(roster.count([user], [0], CELLS).matrix[:, 0]).tolist()
            counted = roster.population.classes[rows[0]].key if rows else None
            if user in held:
                found[user] = member(held[user], counted)
            elif counted is not None:
                assert own is not None, f"{user} is counted and not registered"
                found[user] = unregistered(own, counted)
        return found


class World:
    """Sees every release; never forgets one."""

    def __init__(self, source: ChosenSource) -> None:
        self._source, self.witness = source, Witness()
        self.lines: dict[int, bytes] = {}

    def repair(self, journal: Any, committed: int, emitted: int) -> int:
        """As files do it: what is stored and is not out goes out, whatever the journal thinks."""
        again = [record for record in journal.releases(self.witness.last + 1) if record.kind != "elsewhere"]
        self.emit(again)
        return len(again)

    def emit(self, records: Iterable[Record]) -> None:
        for record in records:
            line = ndjson_line(record)
            assert self.lines.setdefault(record.slot, line) == line, f"slot {record.slot} went out with other numbers"
            if record.slot > self.witness.last:
                classes = [requirement.key for requirement in record.group.population.classes]
                totals = (record.probe + record.publication).tolist()
                self.witness.saw(record.slot, self._source.seen[record.slot], dict(zip(classes, totals, strict=True)))

    def closed(self, slot: int) -> None:
        """A slot that nobody ever saw, and nobody will."""
        self.witness.saw(slot, {}, {})

    def close(self) -> None: ...

    def abandon(self) -> None: ...


def _matrix(sizes: np.ndarray, crowd: str) -> np.ndarray:
    matrix = np.zeros((len(sizes), CELLS), dtype=np.int64)
    if crowd == "split":
        matrix[:, 0], matrix[:, 1] = sizes // 2, sizes - sizes // 2
    elif crowd != "nobody":
        matrix[:, CROWDS.index(crowd) - 1] = sizes
    return matrix
