"""What the calls about people take and answer."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from wevent.service.replies.reply import Reply


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


Word = Annotated[str, msgspec.Meta(max_length=1000)]


class LevelBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An offered level: its name, or a word for privacy and one for the window.

    Attributes:
        level: as /v1/levels has it, such as High/Small.
        privacy: a word; with a window word.
        window: a word; with a privacy word.
    """

    level: Word | None = None
    privacy: Word | None = None
    window: Word | None = None


class RequirementBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A requirement as somebody asks for it: a level; or words for privacy and window; or a window and an epsilon.

    Attributes:
        level: as /v1/levels has it, such as High/Small.
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
"""The keys that state a requirement: one of these groups."""
