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
        in_force_from: the first slot in which it is held and the person is counted, if the publisher keeps up.
        in_force_time: start of that slot; null before the publisher has started.
        earlier_until: the first slot in which no earlier choice protects the person as well; null without one.
        earlier_until_time: start of that slot.
        notes: what is not obvious, a sentence each.
    """

    requirement: HeldRequirement
    in_force_from: int
    in_force_time: str | None
    earlier_until: int | None
    earlier_until_time: str | None
    notes: list[str]


class RequirementReply(Reply):
    """What somebody holds.

    Attributes:
        requirement: the one that was asked for last.
        in_force_from: the first slot in which it is held and the person is counted.
        in_force_time: start of that slot.
        earlier_until: the first slot in which no earlier choice protects the person as well; null without one.
        earlier_until_time: start of that slot.
        queued: whether it takes effect at the next slot boundary.
    """

    requirement: HeldRequirement
    in_force_from: int
    in_force_time: str | None
    earlier_until: int | None
    earlier_until_time: str | None
    queued: bool


class LeftReply(Reply):
    """What leaving means.

    Attributes:
        in_force_from: the slot from which on the person is not counted, if the publisher keeps up.
        kept_until: the last slot through which earlier choices are kept; null if nothing is kept.
        notes: what is not obvious, a sentence each.
    """

    in_force_from: int
    kept_until: int | None
    notes: list[str]


class MembershipRow(HeldRequirement):
    """A membership.

    Attributes:
        first: the first slot.
        last: the last one; null while it lasts.
    """

    first: int
    last: int | None


class EarlierRow(HeldRequirement):
    """A requirement held earlier.

    Attributes:
        first: the first slot; null: the person was not registered and may have been counted as an unregistered user.
        last: the last slot.
        kept_until: the last slot through which it is kept.
    """

    first: int | None
    last: int
    kept_until: int


class QueuedRow(Reply):
    """A change that takes effect at the next slot boundary.

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
        earlier: that are over, and kept for a while.
        queued: what was asked for since.
        joined_by_request: whether it is noted that they joined by themselves and not with a requirements file.
    """

    memberships: list[MembershipRow]
    earlier: list[EarlierRow]
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
        in_transition: how many are counted in a stricter class for a while, because earlier choices protect as well.
        notes: what is not obvious, a sentence each.
    """

    added: int
    changed: int
    removed: int
    unchanged: int
    in_transition: int
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
