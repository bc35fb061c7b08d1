"""Requests and replies of the HTTP API, once for the service, its OpenAPI document and the client.

All numbers are public. Unknown values are null. A reader ignores fields that a later version adds.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

Condition = Literal["ready", "starting", "behind", "ahead", "away", "unwritable", "ended", "failed"]
Role = Literal["writer", "standby"]


def about(description: str) -> msgspec.Meta:
    """Return the meaning of a field, which the OpenAPI document repeats."""
    return msgspec.Meta(description=description)


class StreamInfo(msgspec.Struct, frozen=True):
    """Public facts about the stream."""

    stream: Annotated[str, about("Name of the stream.")]
    slot_length_s: Annotated[float, about("Length of a slot in seconds.")]
    slot_origin: Annotated[datetime, about("Start of slot 1.")]
    due_s: Annotated[float, about("Time between the end of a slot and its release, in seconds.")]
    grace_s: Annotated[float, about("Time after the end of a slot in which its events are still accepted, in seconds.")]
    mechanism: Annotated[str, about("Name of the mechanism.")]
    neighbours: Annotated[str, about("Neighbouring streams of the guarantee: add_remove or replace.")]
    max_cells_per_user: Annotated[int, about("Number of cells that a user counts in, per slot.")]
    cells: Annotated[list[str], about("Labels of the cells.")]
    committed: Annotated[int, about("Last released slot; 0 before the first.")]
    first: Annotated[int, about("First slot that is kept.")]
    next_due: Annotated[datetime | None, about("Time of the next release; null once publishing has ended.")]
    public: Annotated[bool, about("True if releases can be read without a token.")]
    version: Annotated[str, about("Version of the service.")]


class OfferedLevel(msgspec.Struct, frozen=True):
    """A level that users may choose. For operators also a requirement that users hold and no level names."""

    level: Annotated[str | None, about("Name, such as High/Small; null for numbers.")]
    privacy: Annotated[str | None, about("Word of privacy in the name, if it has one.")]
    window_word: Annotated[str | None, about("Word of the window in the name, if it has one.")]
    window: Annotated[int, about("Number of slots.")]
    epsilon: Annotated[float, about("Largest loss in any window.")]
    span: Annotated[str | None, about("Length of the window as text.")]
    odds: Annotated[float, about("e^epsilon: largest factor on the odds that a user was present.")]
    users: Annotated[int | None, about("Number of users who chose it, for operators; null in `/v1/levels`.")]
    noise: Annotated[float, about("Noise if all users chose this level and slots cost the same; 1 for the mildest.")]


class LevelTable(msgspec.Struct, frozen=True):
    """Levels that users may choose."""

    rows: Annotated[list[OfferedLevel], about("Levels, the strictest first.")]
    users: Annotated[int, about("Number of registered users.")]
    privacy: Annotated[list[str], about("Words of privacy, the strictest first.")]
    windows: Annotated[list[str], about("Words of windows, the shortest first.")]
    slot_length_s: Annotated[float | None, about("Length of a slot in seconds; null for slots without times.")]


class ReleasedClass(msgspec.Struct, frozen=True):
    """A requirement class of a release."""

    window: Annotated[int, about("Number of slots.")]
    epsilon: Annotated[float, about("Largest loss in any window.")]


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
    """Some releases."""

    releases: Annotated[list[ReleasedSlot], about("In slot order.")]
    next: Annotated[int | None, about("First slot of the next page; null if there is none yet.")]


class BudgetRow(ReleasedClass, frozen=True):
    """Budget of a class."""

    users: Annotated[int, about("Number of users counted in the class.")]
    left: Annotated[float, about("Largest charge of the next slot.")]
    share: Annotated[float, about("The same as a share of epsilon.")]
    charged: Annotated[float, about("Charge of the open window.")]


class BudgetTable(msgspec.Struct, frozen=True):
    """Budget of every class."""

    slot: Annotated[int, about("Last released slot; all budgets are as of then.")]
    classes: Annotated[list[BudgetRow], about("Classes, the shortest window first.")]


class BatchResult(msgspec.Struct, frozen=True):
    """Result of a batch: a function of the batch, the clock and public settings alone."""

    accepted: Annotated[int, about("Number of accepted events, of registered and unregistered users.")]
    rejected: Annotated[dict[str, int], about("Number of rejected records, by the reasons that occur.")]


class UserRequirement(ReleasedClass, frozen=True):
    """A requirement."""

    level: Annotated[str | None, about("Name of the chosen level; null for numbers.")]
    span: Annotated[str | None, about("Length of the window as text.")]


class HeldChoice(msgspec.Struct, frozen=True):
    """Requirement that a user holds, or will hold."""

    requirement: Annotated[UserRequirement, about("Last requested requirement.")]
    in_force_from: Annotated[int, about("First slot in which it is held, if the publisher keeps up.")]
    in_force_time: Annotated[datetime | None, about("Start of that slot.")]
    earlier_until: Annotated[int | None, about("First slot that no earlier choice protects as well; null without one.")]
    earlier_until_time: Annotated[datetime | None, about("Start of that slot.")]
    queued: Annotated[bool, about("True if it takes effect at the next slot boundary.")]
    notes: Annotated[list[str], about("Further consequences of a choice, a sentence each.")]


class LeaveResult(msgspec.Struct, frozen=True):
    """Effect of leaving."""

    in_force_from: Annotated[int, about("First slot in which the user is not counted, if the publisher keeps up.")]
    kept_until: Annotated[int | None, about("Last slot through which earlier choices are kept; null without one.")]
    notes: Annotated[list[str], about("Further consequences, a sentence each.")]


class MembershipRow(UserRequirement, frozen=True):
    """A membership."""

    first: Annotated[int | None, about("First slot; null for the time as an unregistered user.")]
    last: Annotated[int | None, about("Last slot; null while it lasts.")]


class EarlierRow(MembershipRow, frozen=True):
    """A requirement held earlier."""

    kept_until: Annotated[int, about("Last slot through which it is kept.")]


class QueuedRow(msgspec.Struct, frozen=True):
    """A change that takes effect at the next slot boundary."""

    action: Annotated[Literal["set", "remove", "erase"], about("Join or change, leave, or leave and be erased.")]
    requirement: Annotated[UserRequirement | None, about("Requested requirement; null for a user who leaves.")]


class UserExport(msgspec.Struct, frozen=True):
    """All stored data about one user."""

    memberships: Annotated[list[MembershipRow], about("Current and future memberships.")]
    earlier: Annotated[list[EarlierRow], about("Ended memberships that are still kept.")]
    queued: Annotated[list[QueuedRow], about("Changes requested since.")]
    joined_by_request: Annotated[bool, about("True for a user who joined by request, not by a requirements file.")]


class PersonalLink(msgspec.Struct, frozen=True):
    """Personal link of a user. Its holder may choose for that user, so `url` is left out where the link is printed."""

    url: Annotated[str, about("Address, shown this once.")]
    expires: Annotated[datetime, about("End of its validity.")]

    def __repr__(self) -> str:
        return f"PersonalLink(url=…, expires={self.expires.isoformat()!r})"

    def __rich_repr__(self) -> Any:
        yield "expires", self.expires


class ImportResult(msgspec.Struct, frozen=True):
    """Effect of a requirements file, in users."""

    added: Annotated[int, about("Number of users who join.")]
    changed: Annotated[int, about("Number of users whose requirement or its name changes.")]
    removed: Annotated[int, about("Number of users who leave.")]
    unchanged: Annotated[int, about("Number of users without a change.")]
    in_transition: Annotated[
        int, about("Number of users in a stricter class while an earlier choice protects as well.")
    ]
    notes: Annotated[list[str], about("Further consequences, a sentence each.")]


class Overview(msgspec.Struct, frozen=True):
    """Status of the service for its administrator; independent of all events."""

    stream: Annotated[str, about("Name of the stream.")]
    mechanism: Annotated[str, about("Name of the mechanism.")]
    epoch: Annotated[int, about("Number of the configuration version.")]
    levels: Annotated[LevelTable, about("Offered levels, and the number of users who hold each.")]
    members: Annotated[int, about("Number of registered users.")]
    pending_changes: Annotated[int, about("Number of changes that take effect at the next slot boundary.")]
    committed: Annotated[int, about("Last released slot.")]
    committed_start: Annotated[datetime | None, about("Start of that slot.")]
    next_due: Annotated[datetime | None, about("Time of the next release.")]
    slots_behind: Annotated[int, about("Number of releases that are due and not out; negative ahead of the clock.")]
    fresh_rate: Annotated[float | None, about("Share of fresh releases among the last `recent_slots`.")]
    recent_slots: Annotated[int, about("Number of these slots.")]
    ready: Annotated[bool, about("True if the publisher runs and keeps up.")]
    role: Annotated[Role, about("Writer if this process closes slots, standby if another one does.")]
    unsafe: Annotated[list[str], about("Reasons that weaken the guarantee.")]
    writer_since: Annotated[str | None, about("Start of the writer; null if there is none.")]
    writer_host: Annotated[str | None, about("Machine of the writer.")]
    versions: Annotated[dict[str, str], about("Versions of wevent and its libraries.")]


class Health(msgspec.Struct, frozen=True):
    """The process answers."""

    status: Annotated[Literal["ok"], about("Always ok.")]


class Readiness(msgspec.Struct, frozen=True):
    """Readiness: the publisher runs and keeps up, and batches can be stored."""

    status: Annotated[
        Condition,
        about('Ready, or why not. "ahead" of the clock events are late. "unwritable": batches cannot be stored.'),
    ]
    role: Annotated[Role, about("Writer if this process closes slots, standby if another one does.")]
    clock: Annotated[
        Literal["steady", "jumped"], about("Jumped if the wall clock has, and slots do not follow it yet.")
    ]


class Problem(msgspec.Struct, frozen=True):
    """A refused request or a failure (RFC 9457)."""

    type: Annotated[str, about("Always about:blank.")]
    title: Annotated[str, about("Name of the status code.")]
    status: Annotated[int, about("Status code.")]
    detail: Annotated[str, about("Problem and fix, a sentence each.")]


Word = Annotated[str, msgspec.Meta(max_length=1000)]


class RequirementBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A requested requirement: a level; or words for privacy and window; or, with a token, a window and an epsilon."""

    level: Annotated[Word | None, about("Name from /v1/levels, such as High/Small.")] = None
    privacy: Annotated[Word | None, about("A word; with a window word.")] = None
    window: Annotated[int | Word | None, about("With privacy a word; with epsilon slots, or a duration: 24h.")] = None
    epsilon: Annotated[float | Word | None, about("A number; with a window.")] = None


REQUIREMENT_KEYS = (["level"], ["privacy", "window"], ["window", "epsilon"])
"""Keys that state a requirement: one of these groups."""
