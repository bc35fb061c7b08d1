"""Objects that commands print with `--json`, one class per command; `docs/reference/json.md` is made from them.

Unknown numbers are null. A new field is no new format; a field that goes or changes its meaning is, and in the changelog.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec


class Answer(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a command answers."""


class ClassOfUsers(Answer):
    """Users with the same requirement.

    Attributes:
        window: in slots.
        epsilon: of that window.
        users: how many hold it.
    """

    window: int
    epsilon: float
    users: int


def as_json(answer: Answer, *, indent: int | None = 2) -> str:
    """Return plain ASCII, which every console and pipe takes; NaN and infinity are null."""
    plain: Any = json.loads(msgspec.json.encode(answer))
    return json.dumps(plain, indent=indent)


class ShownAnswer(Answer):
    """The largest loss that an audit showed for one requirement.

    Attributes:
        audit: which one.
        window: of the promise, in slots.
        epsilon: that was promised.
        shown: the loss that was shown, in epsilons; null if it is infinite.
        broken: whether that is more than was promised.
        verdict: `broken`, `own randomness`, `cannot say` or `nothing found`.
        obstacle: what kept the audit from computing all it should; empty if nothing did.
        confidence: the probability with which nothing of an honest mechanism is called broken; null: the loss was computed.
        witness: where it was seen: streams and event in words.
        trials: transcripts computed, or runs made.
        seconds: how long it took.
    """

    audit: str
    window: int
    epsilon: float
    shown: float | None
    broken: bool
    verdict: str
    obstacle: str
    confidence: float | None
    witness: str
    trials: int
    seconds: float


class AuditAnswer(Answer):
    """`wevent audit --json`.

    Attributes:
        mechanism: its name.
        options: what it was made with.
        ok: whether every audit could look and nothing was found; that proves nothing.
        verdict: the worst of the findings' verdicts.
        confidence: the probability with which nothing of an honest mechanism is called broken, all audits together.
        findings: audit by audit.
        meaning: what the verdict says and what it does not.
        seconds: how long it took.
        plot: the picture; null if there is none.
    """

    mechanism: str
    options: dict[str, str]
    ok: bool
    verdict: str
    confidence: float
    findings: list[ShownAnswer]
    meaning: str
    seconds: float
    plot: str | None


class TokenAnswer(Answer):
    """`wevent token JOURNAL revoke --json`, and one token of the list.

    Attributes:
        id: its public part.
        name: what it is for, in the operator's words.
        roles: what it may do.
        state: valid, expired or revoked.
        created: when it was made.
        expires: from when on it admits nobody; null: never.
        revoked: when it was revoked; null: it was not.
    """

    id: str
    name: str
    roles: list[str]
    state: str
    created: str
    expires: str | None
    revoked: str | None


class TokensAnswer(Answer):
    """`wevent token JOURNAL list --json`.

    Attributes:
        file: where they are kept.
        tokens: in the order they were made.
    """

    file: str
    tokens: list[TokenAnswer]


class NewTokenAnswer(Answer):
    """`wevent token JOURNAL create --json`.

    Attributes:
        token: the token itself: a secret that is shown this once and kept nowhere.
        id: its public part.
        name: what it is for, in the operator's words.
        roles: what it may do.
        expires: from when on it admits nobody; null: never.
        file: where its digest is kept.
    """

    token: str
    id: str
    name: str
    roles: list[str]
    expires: str | None
    file: str


class PersonalLinkAnswer(Answer):
    """`wevent token JOURNAL link --json`.

    Attributes:
        url: the link: a secret of that person, kept nowhere.
        expires: from when on it admits nobody.
    """

    url: str
    expires: str


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


class ComparedRow(Answer):
    """What one mechanism came to, over all repeats.

    Attributes:
        mechanism: as it was named.
        amre: mean squared error per slot and cell (the paper's formula, which it calls relative).
        amre_std: its standard deviation over repeats.
        amre_low: where its 95 % interval begins; null for one repeat.
        amre_high: where its 95 % interval ends; null for one repeat.
        ajsd: Jensen-Shannon divergence, natural logarithm, estimates below 0 counted as 0.
        mre: mean of error / max(true count, 0.1 % of the slot total); empty slots are left out.
        mae: mean absolute error.
        fresh: releases measured in their slot.
        ms_per_slot: one run of the publisher with secure noise over the first 200 slots, counting not included; null of
            baselines, which never publish.
        worst_window_share: the largest part of its epsilon that any class spent in any of its windows.
        covered: how often the truth lay within the stated 95 % interval; null if none is stated.
    """

    mechanism: str
    amre: float
    amre_std: float
    amre_low: float | None
    amre_high: float | None
    ajsd: float
    mre: float
    mae: float
    fresh: float
    ms_per_slot: float | None
    worst_window_share: float
    covered: float | None


class CompareAnswer(Answer):
    """`wevent compare --json`; for the same seed only `ms_per_slot` differs.

    Attributes:
        stream: its name.
        users: in it.
        slots: in it.
        cells: in it.
        not_read: records of a file that were left out, by reason.
        repeats: of each mechanism.
        ajsd_form: raw or normalised.
        mechanisms: smallest error first.
        findings: which differences are beyond noise, in sentences.
        left_out: mechanisms that do not take the options, and why.
        plot: the picture; null if none was asked for or matplotlib is missing.
        per_slot: the file with the errors of every slot; null if none was asked for.
    """

    stream: str
    users: int
    slots: int
    cells: int
    not_read: dict[str, int]
    repeats: int
    ajsd_form: str
    mechanisms: list[ComparedRow]
    findings: list[str]
    left_out: dict[str, str]
    plot: str | None
    per_slot: str | None


class PlannedLevel(ClassOfUsers):
    """A planned level.

    Attributes:
        hours: the window as a time.
    """

    hours: float


class ExpectedRow(Answer):
    """What to expect of a mechanism.

    Attributes:
        mechanism: as it was named.
        amre: mean squared error per slot and cell.
        typical_error: its root: users per cell and slot.
        typical_error_low: where its 95 % interval begins; null for one repeat.
        typical_error_high: where its 95 % interval ends; null for one repeat.
        mre: relative error, as of `compare`.
        mae: mean absolute error.
        fresh: releases measured in their slot.
        worst_window_share: the largest part of its epsilon that any class spent in any of its windows.
    """

    mechanism: str
    amre: float
    typical_error: float
    typical_error_low: float | None
    typical_error_high: float | None
    mre: float
    mae: float
    fresh: float
    worst_window_share: float


class MoveAnswer(Answer, rename={"source": "from", "target": "to"}):
    """Users who choose another level.

    Attributes:
        source: the level they hold.
        target: the level they would choose.
        users: how many.
        amre_ratio: the squared error then, divided by what it is.
        amre_ratio_low: where its 95 % interval begins; null for one repeat.
        amre_ratio_high: where its 95 % interval ends; null for one repeat.
    """

    source: RequirementAnswer
    target: RequirementAnswer
    users: int
    amre_ratio: float
    amre_ratio_low: float | None
    amre_ratio_high: float | None


class PlanAnswer(Answer):
    """`wevent plan --json`.

    Attributes:
        stream: its name.
        slots: in it.
        cells: in it.
        classes: the planned levels.
        mean_count: of a slot and cell.
        mechanisms: smallest error first.
        moves: with the first of them.
        warnings: what to mind.
        advice: in sentences.
        left_out: mechanisms that do not take the options, and why.
        plot: the picture; null if none was asked for or matplotlib is missing.
    """

    stream: str
    slots: int
    cells: int
    classes: list[PlannedLevel]
    mean_count: float
    mechanisms: list[ExpectedRow]
    moves: list[MoveAnswer]
    warnings: list[str]
    advice: list[str]
    left_out: dict[str, str]
    plot: str | None


class ClaimAnswer(Answer):
    """A claim of the paper.

    Attributes:
        claim: in words.
        paper: what the paper says.
        baseline: which threshold of bd and ba it was checked against.
        measured: what came out here.
        verdict: in a word.
    """

    claim: str
    paper: str
    baseline: str
    measured: str
    verdict: str


class ReproduceAnswer(Answer):
    """`wevent reproduce --json`.

    Attributes:
        claims: each with what was measured.
        absent: streams whose files are not there, and what is missing.
        report: the file with pictures and claims.
    """

    claims: list[ClaimAnswer]
    absent: dict[str, str]
    report: str


ANSWERS: Mapping[str, type[Answer]] = MappingProxyType(
    {
        "verify": VerifyAnswer,
        "backup": BackupAnswer,
        "audit": AuditAnswer,
        "check": CheckAnswer,
        "compare": CompareAnswer,
        "demo": CompareAnswer,
        "doctor": DoctorAnswer,
        "init": InitAnswer,
        "levels": LevelsAnswer,
        "mechanisms": MechanismsAnswer,
        "plan": PlanAnswer,
        "plot": PlotAnswer,
        "publish": PublishAnswer,
        "reproduce": ReproduceAnswer,
        "restore": RestoreAnswer,
        "status": StatusAnswer,
        "token create": NewTokenAnswer,
        "token link": PersonalLinkAnswer,
        "token list": TokensAnswer,
        "token revoke": TokenAnswer,
        "users list": UsersAnswer,
        "users add|set|remove|erase|import": ChangeAnswer,
    }
)
"""Every command that has `--json`, and what it answers."""
