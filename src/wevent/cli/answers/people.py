"""What commands about people answer: who is registered, what is offered, what a change means."""

from __future__ import annotations

from wevent.cli.answers.answer import Answer


class RequirementAnswer(Answer):
    """A requirement.

    Attributes:
        window: in slots.
        epsilon: of that window.
    """

    window: int
    epsilon: float


class ConsequencesAnswer(Answer):
    """What changes of the registry mean; public numbers.

    Attributes:
        registered: how many people are registered after them.
        in_transition: number of changed users who are counted in a stricter class for a while.
        until: first slot in which all of these are counted in the class they chose; null without such users.
        until_time: start of that slot; null without a clock.
        returning: how many join whom the registry knows from before.
        alone: requirements that change hands and are then held by one person.
    """

    registered: int
    in_transition: int
    until: int | None
    until_time: str | None
    returning: int
    alone: list[RequirementAnswer]


class RegistryDifference(ConsequencesAnswer):
    """What a requirements file changes, and what that means.

    Attributes:
        joining: how many people join.
        changing: how many change their requirement, or the words it is in.
        leaving: how many leave.
        requested: how many of those who leave had joined by request (`users add`), not with a file.
        relevelled: how many have new numbers because the level table changed.
        notes: what was made of the file and is not obvious.
    """

    joining: int
    changing: int
    leaving: int
    requested: int
    relevelled: int
    notes: list[str]


class MemberAnswer(Answer, rename={"first": "from"}):
    """Somebody who is registered.

    Attributes:
        user: the id.
        window: in slots.
        epsilon: of that window.
        level: the words it comes from; null for numbers.
        first: the first slot.
    """

    user: str
    window: int
    epsilon: float
    level: str | None
    first: int


class UsersAnswer(Answer):
    """`wevent users JOURNAL list --json`.

    Attributes:
        users: everybody who is registered.
        pending_changes: changes that take effect at the next slot boundary and are not in the list.
    """

    users: list[MemberAnswer]
    pending_changes: int


class ChangeAnswer(Answer):
    """`wevent users JOURNAL add|set|remove|erase|import --json`.

    Attributes:
        stored: whether it was made; false with --dry-run.
        in_force_from: the slot; null: the next one of the publisher that runs.
        earlier_until: the first slot in which no earlier choice protects the user as well; null without one.
        notes: what is not obvious.
        consequences: effect on users in transition and classes of one; null where a file was imported.
        difference: what an imported file changes; null for other commands.
    """

    stored: bool
    in_force_from: int | None
    earlier_until: int | None
    notes: list[str]
    consequences: ConsequencesAnswer | None
    difference: RegistryDifference | None


class LevelAnswer(Answer):
    """A level, or a requirement in numbers.

    Attributes:
        level: its words; null for numbers.
        window: in slots.
        span: the same as a time; null without a clock.
        epsilon: of that window.
        odds: e to the epsilon: by which factor releases change the odds that somebody was there, at most.
        users: how many hold it; null if that is not known.
    """

    level: str | None
    window: int
    span: str | None
    epsilon: float
    odds: float
    users: int | None


class LevelsAnswer(Answer):
    """`wevent levels --json`.

    Attributes:
        slot_seconds: how long a slot is; null where slots are numbers.
        declared: whether the levels are declared; otherwise they are the default words.
        levels: those with words.
        numbers: requirements that people hold in numbers.
        notes: what to mind.
    """

    slot_seconds: float | None
    declared: bool
    levels: list[LevelAnswer]
    numbers: list[LevelAnswer]
    notes: list[str]
