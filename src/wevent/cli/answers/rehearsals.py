"""What commands answer before anything is published: the check, the machine, an example, the mechanisms."""

from __future__ import annotations

import msgspec

from wevent.cli.answers.answer import Answer, ClassOfUsers
from wevent.cli.answers.people import RegistryDifference


class CheckedClock(Answer):
    """The slots that a run would have.

    Attributes:
        first_slot: the first that would be published.
        last_slot: the last; null for live lines without an end.
        slot_seconds: how long a slot is; null where slots are numbers.
        start: when slot 1 starts; null where slots are numbers.
        end: when the last slot ends; null without one.
    """

    first_slot: int
    last_slot: int | None
    slot_seconds: float | None
    start: str | None
    end: str | None


class CheckedInput(Answer):
    """A file of events.

    Attributes:
        file: its name.
        columns: that were found in it.
    """

    file: str
    columns: list[str]


class CheckedMatching(Answer):
    """How well events fit the settings; private.

    Attributes:
        events: that were read.
        first_event: when the first of them was; null without any.
        last_event: when the last of them was; null without any.
        of_registered_users: how many are of people who are registered.
        in_declared_cells: how many are in cells that are declared.
        registered_who_occur: how many of the registered people have an event.
    """

    events: int
    first_event: str | None
    last_event: str | None
    of_registered_users: int
    in_declared_cells: int
    registered_who_occur: int


class CheckedReason(Answer):
    """Why events would not count; private.

    Attributes:
        reason: in words.
        events: how many.
        looks_like: the shape of one of them, letters and digits replaced; null without one.
    """

    reason: str
    events: int
    looks_like: str | None


class CheckedNotCounted(Answer):
    """Events that would not count; private.

    Attributes:
        rejected: events that are well-formed.
        malformed: lines that are no event.
        reasons: one by one.
    """

    rejected: int
    malformed: int
    reasons: list[CheckedReason]


class CheckedPeople(Answer):
    """Who would count.

    Attributes:
        counted: in the first slot.
        changes: what the requirements file would change; null for a new journal.
    """

    counted: int
    changes: RegistryDifference | None


class CheckedClass(ClassOfUsers):
    """Users with the same requirement.

    Attributes:
        span: the window as a time; null where slots are numbers.
        level: its words; null without any.
    """

    span: str | None
    level: str | None


class CheckedError(Answer):
    """What error to expect, from an invented stream: it knows nothing of the events.

    Attributes:
        mechanism: in force.
        typical_error: users per cell and slot.
        stream: what was invented.
        fresh_share: the share of slots that were measured.
    """

    mechanism: str
    typical_error: float
    stream: str
    fresh_share: float


class CheckAnswer(Answer):
    """`wevent check --json`; for the operator, not to be published.

    Attributes:
        private: a sentence that says so.
        journal: the journal; null if none is set.
        mechanism: that would publish.
        clock: the slots.
        inputs: the files; null for live lines.
        matching: how well events fit; null for live lines.
        not_counted: events that would not count; null for live lines.
        first_malformed: where the first malformed records are.
        people: who would count.
        classes: their requirements.
        expected_error: null where nothing can be said.
        hints: what to do about it.
        warnings: what to mind.
    """

    private: str
    journal: str | None
    mechanism: str
    clock: CheckedClock
    inputs: list[CheckedInput] | None
    matching: CheckedMatching | None
    not_counted: CheckedNotCounted | None
    first_malformed: list[str]
    people: CheckedPeople
    classes: list[CheckedClass]
    expected_error: CheckedError | None
    hints: list[str]
    warnings: list[str]


class CheckOfMachine(Answer):
    """One thing that publishing needs.

    Attributes:
        check: what was looked at.
        ok: whether it is fine.
        found: what was found, in words.
    """

    check: str
    ok: bool
    found: str


class DoctorAnswer(Answer):
    """`wevent doctor --json`.

    Attributes:
        ok: whether everything is fine (exit code 0; otherwise 1).
        checks: one by one.
    """

    ok: bool
    checks: list[CheckOfMachine]


class InitAnswer(Answer):
    """`wevent init --json`.

    Attributes:
        written: the files.
        next: the command that comes next.
        blank: the settings that are to be filled in.
    """

    written: list[str]
    next: str
    blank: list[str] = msgspec.field(default_factory=list)


class MechanismsAnswer(Answer):
    """`wevent mechanisms --json`.

    Attributes:
        mechanisms: those that can publish, name to description.
        baselines: those that `wevent compare` simulates and that cannot publish, name to description.
    """

    mechanisms: dict[str, str]
    baselines: dict[str, str]
