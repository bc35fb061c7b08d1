"""What commands about a journal answer: publishing, looking at it, checking it, copying it and putting it back."""

from __future__ import annotations

from wevent.cli.answers.answer import Answer, ClassOfUsers
from wevent.cli.answers.people import RegistryDifference


class ClassBudget(ClassOfUsers):
    """Users with the same requirement, and what is left for them.

    Attributes:
        left: what the next slot may cost at most.
        share: the same as a part of epsilon.
    """

    left: float
    share: float


class WriterAnswer(Answer):
    """Who publishes into a journal.

    Attributes:
        pid: the process.
        host: where it runs.
        since: when it began.
    """

    pid: int
    host: str
    since: str


class SlotsElsewhere(Answer):
    """Slots that another copy of the journal released, charged here and never drawn again.

    Attributes:
        first: the first of them.
        last: the last of them.
    """

    first: int
    last: int


class StatusAnswer(Answer):
    """`wevent status --json`.

    Attributes:
        stream: the stream's id.
        mechanism: in force.
        epoch: its number.
        slot: the last slot that was published; 0 before the first.
        slot_start: when that slot began; null before the first, and where slots are numbers of the data.
        first_kept: the first slot that the journal still keeps.
        fresh_rate: the share of recent slots that were measured; null before the first.
        recent_slots: how many slots that is of.
        pending_changes: changes of the registry that take effect at the next slot boundary.
        members: how many people are registered.
        released_elsewhere: slots that a restore charged.
        in_doubt_through: last slot in which users are counted in stricter classes because of a restore; null without one.
        silent_through: last slot in which no user is counted because settings may be lost; null without one.
        changes_lost: whether changes of the registry may be lost and the loss was not accepted.
        classes: what is left for each.
        meaning: what it means that little is left, in a sentence.
        backup: whether the file is a backup that cannot be published from yet.
        noted_slot: the last slot that is shown by the witness, if that is later than the last one that is
            stored: the journal was put back, or its end is missing. Null otherwise, and where nothing outside can be read.
        unsafe: what weakens the promise.
        writer: who publishes; null if nobody does.
        bytes: the size of the journal.
    """

    stream: str
    mechanism: str
    epoch: int
    slot: int
    slot_start: str | None
    first_kept: int
    fresh_rate: float | None
    recent_slots: int
    pending_changes: int
    members: int
    released_elsewhere: list[SlotsElsewhere]
    in_doubt_through: int | None
    silent_through: int | None
    changes_lost: bool
    classes: list[ClassBudget]
    meaning: str
    backup: bool
    noted_slot: int | None
    unsafe: list[str]
    writer: WriterAnswer | None
    bytes: int


class WindowSpend(Answer):
    """What a class spent.

    Attributes:
        window: in slots.
        epsilon: the limit of any window.
        worst_window_spend: the most that any window spent.
    """

    window: int
    epsilon: float
    worst_window_spend: float


class Violation(Answer, omit_defaults=True):
    """Something that breaks the promise.

    Attributes:
        slot: where.
        problem: what, in words.
        window: of the class it concerns.
        epsilon: of the class it concerns.
        spend: what a window spent.
        limit: what it may spend.
    """

    slot: int
    problem: str
    window: int | None = None
    epsilon: float | None = None
    spend: float | None = None
    limit: float | None = None


class VerifyAnswer(Answer):
    """`wevent verify --json`.

    Attributes:
        ok: whether nothing is wrong (exit code 0; otherwise 1).
        first: the first slot that was checked.
        slots: how many were.
        classes: the worst window of each.
        released_elsewhere: slots that a restore charged.
        witness_slot: last slot that the witness outside the journal shows; null if it shows nothing of the journal.
        witness_problem: reason why the end was not compared with a witness, so that a missing end is not noticed; null if
            it was.
        write_ahead_slot: last slot of a draw that only the witness has and the next writer stores; null without one.
        unsafe: what weakens the promise without breaking it.
        violations: in slot order, the first thousand.
    """

    ok: bool
    first: int
    slots: int
    classes: list[WindowSpend]
    released_elsewhere: list[SlotsElsewhere]
    witness_slot: int | None
    witness_problem: str | None
    write_ahead_slot: int | None
    unsafe: list[str]
    violations: list[Violation]


class PrivateTotals(Answer):
    """Totals of the whole run that depend on events: for the operator, not to be published.

    Attributes:
        not_counted: how many events were not counted, by reason.
        first_malformed: where the first malformed records were.
    """

    not_counted: dict[str, int]
    first_malformed: list[str]


class PublishAnswer(Answer):
    """`wevent publish --json`, one line when the run ends; releases must go to a file (`--out`).

    Attributes:
        journal: the journal.
        out: where the releases are.
        first: the first slot of this run.
        last: the last slot that is published; smaller than `first` if this run published none.
        sent_again: releases that were missing in the output and were sent from the journal.
        interrupted: whether a signal ended it; the same command resumes.
        requirements: what the requirements file changed; null without one, and for a new journal.
        remarks: what was to be said about the settings, in sentences.
        private: what depends on events.
    """

    journal: str
    out: str
    first: int
    last: int
    sent_again: int
    interrupted: bool
    requirements: RegistryDifference | None
    remarks: list[str]
    private: PrivateTotals


class BackupAnswer(Answer):
    """`wevent backup --json`.

    Attributes:
        target: the copy.
        through_slot: the last slot in it.
    """

    target: str
    through_slot: int


class PlotAnswer(Answer):
    """`wevent plot --json`.

    Attributes:
        source: what is drawn.
        picture: the picture; null if none was asked for.
        page: the page; null if none was asked for.
    """

    source: str
    picture: str | None
    page: str | None


class RestoreAnswer(Answer):
    """`wevent restore --json`.

    Attributes:
        journal: what was put in place.
        backup: what it came from.
        backup_through: the last slot of the backup.
        released_through: the last slot that is known or charged now.
        members: how many people are registered.
        in_doubt_through: last slot in which users are counted in stricter classes because of the restore; null without one.
        silent_through: last slot in which no user is counted because settings may be lost; null without one.
        changes_lost: whether changes of the registry may be lost and the loss was not accepted.
        put_aside: where the old files are.
        next: what to do now.
    """

    journal: str
    backup: str
    backup_through: int
    released_through: int
    members: int
    in_doubt_through: int | None
    silent_through: int | None
    changes_lost: bool
    put_aside: list[str]
    next: str
