"""Requests and replies of the HTTP API, once for the service, its OpenAPI document and the client.

All numbers are public. Unknown values are null. A reader ignores fields that a later version adds.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

Condition = Literal["ready", "starting", "behind", "ahead", "away", "unwritable", "ended", "failed"]
Role = Literal["writer", "standby"]


class StreamInfo(msgspec.Struct, frozen=True):
    """Public facts about the stream.

    Attributes:
        stream: name of the stream.
        slot_length_s: length of a slot in seconds.
        slot_origin: start of slot 1.
        due_s: time between the end of a slot and its release, in seconds.
        grace_s: time after the end of a slot in which its events are still accepted, in seconds.
        mechanism: name of the mechanism.
        neighbours: neighbouring streams of the guarantee: add_remove or replace.
        max_cells_per_user: number of cells that a user counts in, per slot.
        cells: labels of the cells.
        committed: last released slot; 0 before the first.
        first: first slot that is kept.
        next_due: time of the next release; null once publishing has ended.
        public: true if releases can be read without a token.
        version: version of the service.
    """

    stream: str
    slot_length_s: float
    slot_origin: datetime
    due_s: float
    grace_s: float
    mechanism: str
    neighbours: str
    max_cells_per_user: int
    cells: list[str]
    committed: int
    first: int
    next_due: datetime | None
    public: bool
    version: str


class OfferedLevel(msgspec.Struct, frozen=True):
    """A level that users may choose. For operators also a requirement that users hold and no level names.

    Attributes:
        level: name, such as High/Small; null for numbers.
        privacy: word of privacy in the name, if it has one.
        window_word: word of the window in the name, if it has one.
        window: number of slots.
        epsilon: largest loss in any window.
        span: length of the window as text.
        odds: e^epsilon: largest factor by which all releases change the odds that a user was present.
        users: number of users who chose it, under any name. Null in `/v1/levels`: only operators see it.
        noise: noise of a release if every user chose this level and each slot had an equal part; 1 for the mildest level.
    """

    level: str | None
    privacy: str | None
    window_word: str | None
    window: int
    epsilon: float
    span: str | None
    odds: float
    users: int | None
    noise: float


class LevelTable(msgspec.Struct, frozen=True):
    """Levels that users may choose.

    Attributes:
        rows: levels, the strictest first.
        users: number of registered users.
        privacy: words of privacy, the strictest first.
        windows: words of windows, the shortest first.
        slot_length_s: length of a slot in seconds; null for slots without times.
    """

    rows: list[OfferedLevel]
    users: int
    privacy: list[str]
    windows: list[str]
    slot_length_s: float | None


class ReleasedClass(msgspec.Struct, frozen=True):
    """A requirement class of a release.

    Attributes:
        window: number of slots.
        epsilon: largest loss in any window.
    """

    window: int
    epsilon: float


class ReleasedSlot(msgspec.Struct, frozen=True):
    """A release, as `wevent publish` writes it: every field is in [releases](releases.md)."""

    format: int
    slot: int
    start: datetime | None
    end: datetime | None
    mechanism: str
    outcome: Literal["fresh", "repeated", "estimated", "nullified"]
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

    @property
    def labels(self) -> list[str]:
        """Cells as text. A number of cells stands for the labels 0, 1, 2, …"""
        return [str(cell) for cell in (range(self.cells) if isinstance(self.cells, int) else self.cells)]

    def by_cell(self) -> dict[str, float]:
        """Return the released value of every cell; empty before the first measurement."""
        return {} if self.histogram is None else dict(zip(self.labels, self.histogram, strict=True))


class ReleasePage(msgspec.Struct, frozen=True):
    """Some releases.

    Attributes:
        releases: in slot order.
        next: first slot of the next page; null if there is none yet.
    """

    releases: list[ReleasedSlot]
    next: int | None


class BudgetRow(msgspec.Struct, frozen=True):
    """Budget of a class.

    Attributes:
        window: number of slots.
        epsilon: largest charge of any window.
        users: number of users counted in the class.
        left: largest charge of the next slot.
        share: the same as a share of epsilon.
        charged: charge of the open window.
    """

    window: int
    epsilon: float
    users: int
    left: float
    share: float
    charged: float


class BudgetTable(msgspec.Struct, frozen=True):
    """Budget of every class.

    Attributes:
        slot: last released slot; all budgets are as of then.
        classes: classes, the shortest window first.
    """

    slot: int
    classes: list[BudgetRow]


class BatchResult(msgspec.Struct, frozen=True):
    """Result of a batch: a function of the batch, the clock and public settings alone.

    Attributes:
        accepted: number of accepted events, of registered and unregistered users alike.
        rejected: number of rejected records by reason, without reasons that do not occur.
    """

    accepted: int
    rejected: dict[str, int]


class UserRequirement(msgspec.Struct, frozen=True):
    """A requirement.

    Attributes:
        window: number of slots.
        epsilon: largest loss in any window.
        level: name of the chosen level; null for numbers.
        span: length of the window as text.
    """

    window: int
    epsilon: float
    level: str | None
    span: str | None


class HeldChoice(msgspec.Struct, frozen=True):
    """Requirement that a user holds.

    Attributes:
        requirement: last requested requirement.
        in_force_from: first slot in which it is held and the user is counted, if the publisher keeps up.
        in_force_time: start of that slot.
        earlier_until: first slot in which no earlier choice protects the user as well; null without one.
        earlier_until_time: start of that slot.
        queued: true if it takes effect at the next slot boundary.
    """

    requirement: UserRequirement
    in_force_from: int
    in_force_time: datetime | None
    earlier_until: int | None
    earlier_until_time: datetime | None
    queued: bool


class ChoiceResult(HeldChoice, frozen=True):
    """Effect of a choice: the requirement that the user will hold.

    Attributes:
        notes: further consequences, a sentence each.
    """

    notes: list[str]


class LeaveResult(msgspec.Struct, frozen=True):
    """Effect of leaving.

    Attributes:
        in_force_from: first slot in which the user is not counted, if the publisher keeps up.
        kept_until: last slot through which earlier choices are kept; null if nothing is kept.
        notes: further consequences, a sentence each.
    """

    in_force_from: int
    kept_until: int | None
    notes: list[str]


class MembershipRow(UserRequirement, frozen=True):
    """A membership.

    Attributes:
        first: first slot; null if the user was not registered and may have been counted as an unregistered user.
        last: last slot; null while it lasts.
    """

    first: int | None
    last: int | None


class EarlierRow(MembershipRow, frozen=True):
    """A requirement held earlier.

    Attributes:
        kept_until: last slot through which it is kept.
    """

    kept_until: int


class QueuedRow(msgspec.Struct, frozen=True):
    """A change that takes effect at the next slot boundary.

    Attributes:
        action: join or change, leave, or leave and be erased.
        requirement: requested requirement; null for a user who leaves.
    """

    action: Literal["set", "remove", "erase"]
    requirement: UserRequirement | None


class UserExport(msgspec.Struct, frozen=True):
    """All stored data about one user.

    Attributes:
        memberships: current and future memberships.
        earlier: ended memberships that are still kept.
        queued: changes requested since.
        joined_by_request: true if a note says that the user joined by request and not by a requirements file.
    """

    memberships: list[MembershipRow]
    earlier: list[EarlierRow]
    queued: list[QueuedRow]
    joined_by_request: bool


class PersonalLink(msgspec.Struct, frozen=True):
    """Personal link of a user. Its holder may choose for that user, so `url` is left out where the link is printed.

    Attributes:
        url: address, shown this once.
        expires: end of its validity.
    """

    url: str
    expires: datetime

    def __repr__(self) -> str:
        return f"PersonalLink(url=…, expires={self.expires.isoformat()!r})"

    def __rich_repr__(self) -> Any:
        yield "expires", self.expires


class ImportResult(msgspec.Struct, frozen=True):
    """Effect of a requirements file, in users.

    Attributes:
        added: number of users who join.
        changed: number of users whose requirement or its name changes.
        removed: number of users who leave.
        unchanged: number of users without a change.
        in_transition: number of users counted in a stricter class for a while, because earlier choices protect as well.
        notes: further consequences, a sentence each.
    """

    added: int
    changed: int
    removed: int
    unchanged: int
    in_transition: int
    notes: list[str]


class Overview(msgspec.Struct, frozen=True):
    """Status of the service for its administrator; independent of all events.

    Attributes:
        stream, mechanism, epoch: of the journal.
        levels: offered levels, and the number of users who hold each.
        members: number of registered users.
        pending_changes: number of changes that take effect at the next slot boundary.
        committed: last released slot.
        committed_start: start of that slot.
        next_due: time of the next release.
        slots_behind: number of releases that are due and not out; negative if releases are ahead of the clock.
        fresh_rate: share of fresh releases among the last `recent_slots`.
        recent_slots: number of these slots.
        ready: true if the publisher runs and keeps up.
        role: writer if this process closes slots, standby if another one does.
        unsafe: reasons that weaken the guarantee.
        writer_since: start of the writer; null if there is none.
        writer_host: machine of the writer.
        versions: versions of wevent and its libraries.
    """

    stream: str
    mechanism: str
    epoch: int
    levels: LevelTable
    members: int
    pending_changes: int
    committed: int
    committed_start: datetime | None
    next_due: datetime | None
    slots_behind: int
    fresh_rate: float | None
    recent_slots: int
    ready: bool
    role: Role
    unsafe: list[str]
    writer_since: str | None
    writer_host: str | None
    versions: dict[str, str]


class Health(msgspec.Struct, frozen=True):
    """The process answers.

    Attributes:
        status: always ok.
    """

    status: Literal["ok"]


class Readiness(msgspec.Struct, frozen=True):
    """Readiness: the publisher runs and keeps up, and batches can be stored.

    Attributes:
        status: ready, or the reason against it. "ahead": slots were released ahead of the clock, and events are late until
            the clock has caught up. "unwritable": batches cannot be stored.
        role: writer if this process closes slots, standby if another one does.
        clock: jumped if the wall clock disagrees with the time since boot, and slots do not follow it yet.
    """

    status: Condition
    role: Role
    clock: Literal["steady", "jumped"]


class Problem(msgspec.Struct, frozen=True):
    """A refused request or a failure (RFC 9457).

    Attributes:
        type: always about:blank.
        title: name of the status code.
        status: status code.
        detail: problem and fix, a sentence each.
    """

    type: str
    title: str
    status: int
    detail: str


Word = Annotated[str, msgspec.Meta(max_length=1000)]


class LevelBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An offered level: its name, or a word for privacy and one for the window.

    Attributes:
        level: name from /v1/levels, such as High/Small.
        privacy: a word; with a window word.
        window: a word; with a privacy word.
    """

    level: Word | None = None
    privacy: Word | None = None
    window: Word | None = None


class RequirementBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A requested requirement: a level; or words for privacy and window; or a window and an epsilon.

    Attributes:
        level: name from /v1/levels, such as High/Small.
        privacy: a word; with a window word.
        window: with privacy a word; with epsilon a number of slots, or a duration such as "24h".
        epsilon: a number; with a window.
    """

    level: Word | None = None
    privacy: Word | None = None
    window: int | Word | None = None
    epsilon: float | Word | None = None


WAYS: dict[type[LevelBody | RequirementBody], tuple[list[str], ...]] = {
    LevelBody: (["level"], ["privacy", "window"]),
    RequirementBody: (["level"], ["privacy", "window"], ["window", "epsilon"]),
}
"""Keys that state a requirement: one of these groups."""
