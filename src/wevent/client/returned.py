"""What the service answers, typed. Fields that a later version adds are ignored."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec


class StreamFacts(msgspec.Struct, frozen=True):
    """What is public about a stream."""

    stream: str
    slot_length_s: float
    slot_origin: datetime | None
    due_s: float
    grace_s: float
    mechanism: str
    neighbours: str
    max_cells_per_user: int
    cells: list[str]
    committed: int
    """The last slot that was released; 0 before the first."""
    first: int
    """The first one that is kept."""
    next_due: datetime | None = None
    public: bool = False
    version: str = ""


class LevelOffer(msgspec.Struct, frozen=True):
    """A level that users may choose. Only operators see `users`."""

    level: str | None
    window: int
    epsilon: float
    span: str
    odds: float
    users: int | None = None
    privacy: str | None = None
    window_word: str | None = None
    noise: float | None = None
    """If everybody chose it, in units of the mildest level that is offered."""


class LevelTable(msgspec.Struct, frozen=True):
    """All levels, and their words."""

    rows: list[LevelOffer]
    users: int = 0
    privacy: list[str] = []
    windows: list[str] = []
    slot_length_s: float | None = None


class ReleasedClass(msgspec.Struct, frozen=True):
    """A class of a released slot."""

    window: int
    epsilon: float


class ReleasedSlot(msgspec.Struct, frozen=True):
    """A released slot: the fields of a line of NDJSON (docs/reference/releases.md)."""

    slot: int
    start: datetime | None
    end: datetime | None
    mechanism: str
    outcome: str
    measured: int | None
    cells: int | list[str | int | float]
    histogram: list[float] | None
    std_error: list[float] | None
    low: list[float] | None
    high: list[float] | None
    classes: list[ReleasedClass]
    charges: list[float]
    threshold: float | None
    dissimilarity: float | None
    format: int

    @property
    def labels(self) -> list[str]:
        """The cells as text, also where they are numbers from 0 on."""
        return [str(cell) for cell in (range(self.cells) if isinstance(self.cells, int) else self.cells)]

    def by_cell(self) -> dict[str, float]:
        """The published value of every cell; nothing before the first measurement."""
        return {} if self.histogram is None else dict(zip(self.labels, self.histogram, strict=True))


class ReleasesPage(msgspec.Struct, frozen=True):
    """Some releases, and the slot that more of them begin with."""

    releases: list[ReleasedSlot]
    next: int | None = None


class BudgetRow(msgspec.Struct, frozen=True):
    """What a class has left in its window; `share` is that part of its epsilon."""

    window: int
    epsilon: float
    users: int
    left: float
    share: float
    charged: float | None = None


class BudgetTable(msgspec.Struct, frozen=True):
    """The budget of every class as of the last released slot."""

    slot: int
    classes: list[BudgetRow]


class BatchResult(msgspec.Struct, frozen=True):
    """How many events of a batch were taken, and why the others were not."""

    accepted: int
    rejected: dict[str, int] = {}


class StatedRequirement(msgspec.Struct, frozen=True):
    """What somebody asks for; `level` is None for numbers without a name."""

    window: int
    epsilon: float
    level: str | None = None
    span: str | None = None


class ChoiceResult(msgspec.Struct, frozen=True):
    """Effect of a choice: the slot from which on it is held, and the one until which an earlier choice protects as well."""

    requirement: StatedRequirement
    in_force_from: int
    in_force_time: datetime | None = None
    earlier_until: int | None = None
    earlier_until_time: datetime | None = None
    notes: list[str] = []


class HeldChoice(msgspec.Struct, frozen=True):
    """Requirement that a user holds; `queued`: it takes effect at the next slot boundary."""

    requirement: StatedRequirement
    in_force_from: int
    in_force_time: datetime | None = None
    earlier_until: int | None = None
    earlier_until_time: datetime | None = None
    queued: bool = False


class LeaveResult(msgspec.Struct, frozen=True):
    """From which slot on somebody has left, and until which one that is remembered."""

    in_force_from: int
    kept_until: int | None = None
    notes: list[str] = []


class ImportResult(msgspec.Struct, frozen=True):
    """What a file of requirements changes, in people."""

    added: int
    changed: int
    removed: int
    unchanged: int
    in_transition: int
    notes: list[str] = []


class PersonalLink(msgspec.Struct, frozen=True):
    """A person's own link. Whoever has `url` may choose for that person: it is left out where this is printed."""

    url: str
    expires: datetime

    def __repr__(self) -> str:
        return f"PersonalLink(url=…, expires={self.expires.isoformat()!r})"

    def __rich_repr__(self) -> Any:
        yield "expires", self.expires
