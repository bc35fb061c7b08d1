"""The audit of a mechanism: exact, then as a black box, with one verdict."""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from wevent.auditing.audit_subject import AuditSubject, Finding, Verdict, build_subject
from wevent.auditing.black_box.black_box_audit import Effort, Progress, audit_black_box
from wevent.auditing.exact.exact_audit import audit_exactly
from wevent.core.requirements import Population, Requirement
from wevent.errors import InvalidOption

AUDITS = ("exact", "black-box")
"""Names of the audits."""
PROVES_NOTHING = "That proves nothing: an audit tries what it tries. Proofs are in the documentation."
VERDICTS: tuple[Verdict, ...] = ("broken", "own randomness", "cannot say", "nothing found")
"""The worst first."""
_MEANINGS: dict[Verdict, str] = {
    "broken": "The guarantee is broken: see the witness. Audits that found nothing prove nothing.",
    "own randomness": "No broken guarantee was shown, but some randomness does not come from the source of noise: the exact"
    " audit cannot cover it. Draw through the source, or review that code as you would review noise.",
    "cannot say": "No broken guarantee was shown, but an audit could not compute what it should: see the obstacle. This is"
    " no pass.",
    "nothing found": f"Nothing was found. {PROVES_NOTHING}",
}
_EXACT_PART = 1 / 3  # of the time, beside the black box


@dataclass(frozen=True)
class AuditReport:
    """Result of the audits of a mechanism.

    Attributes:
        mechanism: its name.
        options: its options.
        confidence: the probability that an honest mechanism is not called broken, all audits together.
        findings: one for each audit and requirement.
        seconds: duration.
    """

    mechanism: str
    options: dict[str, Any]
    confidence: float
    findings: list[Finding]
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the findings; "cannot say" without any."""
        found = {finding.verdict for finding in self.findings} or {"cannot say"}
        return next(verdict for verdict in VERDICTS if verdict in found)

    @property
    def broken(self) -> bool:
        """True if a loss above the guarantee was shown."""
        return self.verdict == "broken"

    @property
    def ok(self) -> bool:
        """True if every audit could look and found nothing; that proves nothing."""
        return self.verdict == "nothing found"

    @property
    def meaning(self) -> str:
        """The verdict in words."""
        return _MEANINGS[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """Return plain types, ready for JSON; an infinite loss is None."""
        return {
            "mechanism": self.mechanism,
            "options": {name: _option_text(value) for name, value in self.options.items()},
            "ok": self.ok,
            "verdict": self.verdict,
            "confidence": self.confidence,
            "findings": [_plain(finding) for finding in self.findings],
            "meaning": self.meaning,
            "seconds": self.seconds,
        }


def _option_text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def _plain(finding: Finding) -> dict[str, Any]:
    return {
        "audit": finding.audit,
        "window": finding.requirement.window,
        "epsilon": finding.requirement.epsilon,
        "shown": finding.shown if math.isfinite(finding.shown) else None,
        "broken": finding.broken,
        "verdict": finding.verdict,
        "obstacle": finding.obstacle,
        "confidence": finding.confidence,
        "witness": finding.witness,
        "trials": finding.trials,
        "seconds": finding.seconds,
    }


def audit_mechanism(
    mechanism: str | AuditSubject,
    *,
    seconds: float = 60.0,
    seed: int = 1,
    confidence: float = 0.95,
    audits: Collection[str] = AUDITS,
    progress: Progress | None = None,
    **options: Any,
) -> AuditReport:
    """Look for two neighbouring streams that a mechanism distinguishes by more than its guarantee allows (spec 1).

    Args:
        mechanism: a name from `wevent.mechanisms()`, registered ones included, or a subject.
        seconds: approximate duration of all audits together.
        seed: seed of the choices of the audits; the noise is the mechanism's own.
        confidence: the probability that an honest mechanism is not called broken.
        audits: names out of `AUDITS`.
        progress: called with the current step, seconds done and seconds wanted.
        **options: options of a publisher, as in `wevent.Options`; only with a name.

    Raises:
        UnknownMechanism: for a name that is not registered.
        InvalidOption: for unknown options or audits, and for a mechanism that cannot publish.
    """
    if not 0.5 <= confidence < 1.0:
        raise InvalidOption(
            f"The confidence must be at least 0.5 and below 1: {confidence!r}.", "0.95 is common.", option="confidence"
        )
    chosen = [audits] if isinstance(audits, str) else list(audits)
    if not chosen or not set(chosen) <= set(AUDITS):
        raise InvalidOption(
            f"Unknown audits: {', '.join(chosen) or 'none'}.", f"Choose out of {', '.join(AUDITS)}.", option="audits"
        )
    if isinstance(mechanism, AuditSubject):
        if options:
            raise InvalidOption("A subject takes no options.", "Make it with them.", option=next(iter(options)))
        subject = mechanism
    else:
        subject = build_subject(mechanism, **options)
    _check_publishes(subject)
    begun = time.perf_counter()
    findings: list[Finding] = []
    if "exact" in chosen:
        if progress is not None:
            progress("exact", 0, int(seconds))
        part = _EXACT_PART if "black-box" in chosen else 1.0
        findings += audit_exactly(subject, seconds=seconds * part, seed=seed)
    if "black-box" in chosen:
        effort = Effort(seconds=seconds - (time.perf_counter() - begun) if len(chosen) > 1 else seconds)
        findings += audit_black_box(subject, effort, seed=seed, confidence=confidence, progress=progress)
    return AuditReport(subject.name, dict(subject.options), confidence, findings, time.perf_counter() - begun)


def _check_publishes(subject: AuditSubject) -> None:
    """Check that a publisher gets through slots: where every slot fails, both streams of a pair look the same.

    Raises:
        InvalidOption: with the failure.
    """
    cells = max(2, int(subject.options.get("max_cells_per_user") or 1))
    population = Population({Requirement(2, 1): 4, Requirement(3, 1): 4})
    publisher = subject.make(population, cells, None)
    try:
        for _ in range(4):
            publisher.step(np.ones((len(population), cells), dtype=np.int64))
    except Exception as error:
        raise InvalidOption(
            f"{subject.name} cannot publish a slot ({type(error).__name__}: {error}).",
            "Check it with wevent.checks.check_mechanism first.",
            option="mechanism",
            value=subject.name,
        ) from error
