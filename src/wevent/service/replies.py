"""What the calls of the API answer: one class each, from which the JSON and the OpenAPI document are made.

Numbers here are public. What is not known is null. Fields may be added; one that goes is in the changelog.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Reply(msgspec.Struct):
    """An answer, or a part of one."""


class AboutReply(Reply):
    """What stream this is.

    Attributes:
        stream: its name.
        slot_length_s: how long a slot is.
        slot_origin: where slot 1 starts.
        due_s: how long after the end of a slot its release goes out.
        grace_s: how long after the end of a slot its events are still taken.
        mechanism: which one publishes.
        neighbours: which streams are told apart with difficulty: add_remove or replace.
        max_cells_per_user: how many cells a person counts in, per slot.
        cells: the labels.
        committed: the last slot that was released, 0 before the first.
        first: the first slot that is kept.
        next_due: when the next release goes out; null once publishing has ended.
        public: whether releases may be read without a token.
        version: of the service.
    """

    stream: str
    slot_length_s: float | None
    slot_origin: str | None
    due_s: float
    grace_s: float
    mechanism: str
    neighbours: str
    max_cells_per_user: int
    cells: list[str]
    committed: int
    first: int
    next_due: str | None
    public: bool
    version: str


class OfferedLevel(Reply):
    """A level that people may choose, or a requirement that some hold in numbers.

    Attributes:
        level: the words, such as High/Small; null for numbers.
        privacy: the word of privacy in it, if it has one.
        window_word: the word of the window in it, if it has one.
        window: in slots.
        epsilon: what any such span costs at most.
        span: the window as a length of time.
        odds: e^epsilon: by how much all that is published may change the odds that somebody was there.
        users: how many hold it, in whatever words.
        waiting: how many of them are not counted yet.
        noise: of one release if everybody had chosen it and each slot had an equal part; 1 for the level with the least.
    """

    level: str | None
    privacy: str | None
    window_word: str | None
    window: int
    epsilon: float
    span: str | None
    odds: float
    users: int
    waiting: int
    noise: float


class LevelsReply(Reply):
    """Which levels are offered.

    Attributes:
        rows: every one of them, the strictest first, then what is held in numbers only.
        privacy: the words of privacy, the strictest first.
        windows: the words of windows, the shortest first.
        slot_length_s: how long a slot is.
    """

    rows: list[OfferedLevel]
    privacy: list[str]
    windows: list[str]
    slot_length_s: float | None


class ClassOfPeople(Reply):
    """A requirement class of a release.

    Attributes:
        window: in slots.
        epsilon: of any such window.
    """

    window: int
    epsilon: float


class ReleaseObject(Reply):
    """A release, as `wevent publish` writes it: every field is in [releases](releases.md)."""

    format: int
    slot: int
    start: str | None
    end: str | None
    mechanism: str
    outcome: Literal["fresh", "repeated", "estimated", "nullified"]
    measured: int | None
    cells: int | list[Any]
    histogram: list[float] | None
    std_error: list[float] | None
    low: list[float] | None
    high: list[float] | None
    classes: list[ClassOfPeople]
    charges: list[float]
    threshold: float | None
    dissimilarity: float | None


class ReleasesReply(Reply):
    """Some releases.

    Attributes:
        releases: in slot order.
        next: the slot to go on from, null if there is none yet.
    """

    releases: list[ReleaseObject]
    next: int | None


class LedgerRow(Reply):
    """The budget of a class.

    Attributes:
        window: in slots.
        epsilon: what any window may be charged.
        users: how many hold it and are counted.
        left: what the next slot may still charge.
        share: the same, as a share of epsilon.
        charged: what the open window was charged.
    """

    window: int
    epsilon: float
    users: int
    left: float
    share: float
    charged: float


class LedgerReply(Reply):
    """The budget of every class.

    Attributes:
        slot: the last slot that was released: all is as of then.
        classes: the shortest window first.
    """

    slot: int
    classes: list[LedgerRow]


class BatchReply(Reply):
    """What became of a batch; a function of the batch, the clock and public settings alone.

    Attributes:
        accepted: how many events were taken, whoever they are of.
        rejected: how many were not, by reason.
    """

    accepted: int
    rejected: dict[str, int]


class HeldRequirement(Reply):
    """A requirement.

    Attributes:
        window: in slots.
        epsilon: of any such window.
        level: the words it came from; null for numbers.
        span: the window as a length of time.
    """

    window: int
    epsilon: float
    level: str | None
    span: str | None


class ChosenReply(Reply):
    """What a choice means.

    Attributes:
        requirement: what is held then.
        in_force_from: the slot from which on it is, if the publisher keeps up.
        counted_from: the slot from which on the person is counted, if that is later.
        waits: whether it is.
        notes: what is not obvious, a sentence each.
    """

    requirement: HeldRequirement
    in_force_from: int
    counted_from: int | None
    waits: bool
    notes: list[str]


class RequirementReply(Reply):
    """What somebody holds.

    Attributes:
        requirement: the one that was asked for last.
        counted_from: the first slot under it in which they count.
        waits: whether that lies ahead.
        queued: whether it waits for the next slot to be put in force.
    """

    requirement: HeldRequirement
    counted_from: int | None
    waits: bool
    queued: bool


class LeftReply(Reply):
    """What leaving means.

    Attributes:
        in_force_from: the slot from which on the person is not counted, if the publisher keeps up.
        kept_until: the last slot through which past memberships are kept, for the hold-out; null if nothing is.
        notes: what is not obvious, a sentence each.
    """

    in_force_from: int
    kept_until: int | None
    notes: list[str]


class MembershipRow(HeldRequirement):
    """A membership.

    Attributes:
        first: the first slot in which it counts.
        last: the last one; null while it lasts.
    """

    first: int
    last: int | None


class HoldoutRow(HeldRequirement):
    """A requirement held earlier.

    Attributes:
        last: the last slot of the membership.
        kept_until: the last slot through which it is kept.
    """

    last: int
    kept_until: int


class QueuedRow(Reply):
    """What was asked for and waits for the next slot.

    Attributes:
        action: join or change, leave, or leave and be erased.
        requirement: what is to be held; null for who leaves.
    """

    action: Literal["set", "remove", "erase"]
    requirement: HeldRequirement | None


class ExportReply(Reply):
    """All that is held about one person.

    Attributes:
        memberships: that last, or will.
        holdouts: that are over, and kept for as long as they may matter.
        queued: what was asked for since.
        joined_by_request: whether it is noted that they joined by themselves and not with a requirements file.
    """

    memberships: list[MembershipRow]
    holdouts: list[HoldoutRow]
    queued: list[QueuedRow]
    joined_by_request: bool


class LinkReply(Reply):
    """A person's own link.

    Attributes:
        url: shown this once.
        expires: when it ends.
    """

    url: str
    expires: str


class ImportReply(Reply):
    """What importing a requirements file came to; public numbers.

    Attributes:
        added: how many join.
        changed: how many change their requirement, or its words.
        removed: how many leave.
        unchanged: how many stay as they are.
        waiting: how many wait until they count.
        notes: what is not obvious, a sentence each.
    """

    added: int
    changed: int
    removed: int
    unchanged: int
    waiting: int
    notes: list[str]


class OverviewReply(Reply):
    """How the service is doing, for its administrator; nothing of it depends on anybody's events.

    Attributes:
        stream, mechanism, epoch: of the journal.
        levels: what is offered, and how many hold it.
        members: how many are registered.
        waiting: how many of them are not counted yet.
        pending_changes: how many changes wait for the next slot.
        committed: the last slot that was released.
        committed_start: when it began.
        next_due: when the next release goes out.
        slots_behind: how many releases are due and not out.
        fresh_rate: the share of fresh releases among the last `recent_slots`.
        recent_slots: how many these are.
        ready: whether the publisher runs and keeps up.
        unsafe: what weakens the promise.
        writer_since: since when this service publishes.
        versions: of what it is made of.
    """

    stream: str
    mechanism: str
    epoch: int
    levels: LevelsReply
    members: int
    waiting: int
    pending_changes: int
    committed: int
    committed_start: str | None
    next_due: str | None
    slots_behind: int
    fresh_rate: float | None
    recent_slots: int
    ready: bool
    unsafe: list[str]
    writer_since: str | None
    versions: dict[str, str]


class HealthReply(Reply):
    """Whether the process answers.

    Attributes:
        status: it does.
    """

    status: Literal["ok"]


class ReadyReply(Reply):
    """Whether the publisher runs and keeps up.

    Attributes:
        status: ready; or why it is not.
    """

    status: Literal["ready", "starting", "behind", "ended", "failed"]


class RequirementBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A requirement as somebody asks for it: a level; or words for privacy and window; or a window and an epsilon.

    Attributes:
        level: as /v1/levels has it, such as High/Small.
        privacy: a word; with a window word.
        window: with privacy a word; with epsilon a number of slots, or a duration such as "24h".
        epsilon: a number; with a window.
    """

    level: str | None = None
    privacy: str | None = None
    window: int | str | None = None
    epsilon: float | str | None = None


WAYS = (["level"], ["privacy", "window"], ["window", "epsilon"])
"""What of it is said: one of these."""

REPLIES: tuple[type[msgspec.Struct], ...] = (
    AboutReply,
    LevelsReply,
    ReleaseObject,
    ReleasesReply,
    LedgerReply,
    BatchReply,
    ChosenReply,
    RequirementReply,
    LeftReply,
    ExportReply,
    LinkReply,
    ImportReply,
    OverviewReply,
    HealthReply,
    ReadyReply,
    RequirementBody,
)
"""Everything that the OpenAPI document describes by name."""
