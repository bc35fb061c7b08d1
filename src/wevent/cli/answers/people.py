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


class WaitAnswer(Answer):
    """People who wait.

    Attributes:
        slot: the first slot in which they count.
        start: when it starts; null without a clock.
        people: how many.
    """

    slot: int
    start: str | None
    people: int


class ConsequencesAnswer(Answer):
    """What changes of the registry mean; public numbers.

    Attributes:
        registered: how many people are registered after them.
        waiting: how many of those who change wait.
        waits: how many wait until which slot, in slot order.
        returning: how many join whom the registry knows from before.
        alone: requirements that change hands and are then held by one person.
    """

    registered: int
    waiting: int
    waits: list[WaitAnswer]
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
        first: the slot from which they are counted.
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
        pending_changes: changes that wait for the next slot and are not in the list.
    """

    users: list[MemberAnswer]
    pending_changes: int


class ChangeAnswer(Answer):
    """`wevent users JOURNAL add|set|remove|erase|import --json`.

    Attributes:
        stored: whether it was made; false with --dry-run.
        in_force_from: the slot; null: the next one of the publisher that runs.
        counted_from: the slot from which the user is counted, if that is later and known.
        notes: what is not obvious.
        consequences: who waits until when; null where a file was imported.
        difference: what an imported file changes; null for other commands.
    """

    stored: bool
    in_force_from: int | None
    counted_from: int | None
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
        waiting: how many of them are not counted yet; null if that is not known.
    """

    level: str | None
    window: int
    span: str | None
    epsilon: float
    odds: float
    users: int | None
    waiting: int | None


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
