"""What audits of mechanisms answer."""

from __future__ import annotations

from wevent.cli.answers.answer import Answer


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
