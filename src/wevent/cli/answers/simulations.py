"""What simulations answer."""

from __future__ import annotations

from wevent.cli.answers.answer import Answer, ClassOfUsers
from wevent.cli.answers.people import RequirementAnswer


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
