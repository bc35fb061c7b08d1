"""The audits of mechanisms: likelihood ratios that are computed, and losses that are proven from outside."""

from __future__ import annotations

import math
import time

from tests.statistical.goodness import repetition
from tests.zoo.bug import Persistence, Subject
from wevent.auditing.audit_subject import Finding
from wevent.auditing.black_box.black_box_audit import Effort, audit_black_box
from wevent.auditing.exact.cases import World
from wevent.auditing.exact.exact_audit import audit_exactly
from wevent.noise import SecureNoise

FIRST_S = 10.0  # how long the black box looks at first; twice as long each time after


def exact(subject: Subject, looking: Persistence, seed: int) -> str | None:
    """Likelihood ratios of transcripts under neighbouring streams, computed; searched and, where tiny, enumerated."""
    assert subject.mechanism is not None
    assert subject.population is not None
    worlds = [World(subject.population, 2, subject.life)] if subject.aided else None
    return _told(
        audit_exactly(
            subject.mechanism,
            seconds=looking.seconds,
            seed=seed,
            rounds=max(1, looking.rounds),
            until_broken=True,
            tiny=not subject.aided,
            worlds=worlds,
        )
    )


def noise(subject: Subject, looking: Persistence, seed: int) -> str | None:
    """A vector of secure noise with 4,096 cells: no value occurs twice, and signs do not follow each other at any lag."""
    return repetition(SecureNoise())


def black_box(subject: Subject, looking: Persistence, seed: int) -> str | None:
    """Runs on neighbouring streams: what they prove of the loss, with a confidence of 95 %."""
    assert subject.mechanism is not None
    begun, share, look_s = time.monotonic(), 0.5, min(FIRST_S, looking.seconds)
    while True:  # longer and longer; each time has its part of the confidence
        found = audit_black_box(subject.mechanism, Effort(seconds=look_s), seed=seed, share=share)
        share, look_s = share / 2, 2 * look_s
        if (told := _told(found)) or time.monotonic() - begun + look_s > looking.seconds:
            return told


def _told(findings: list[Finding]) -> str | None:
    """The worst of what is broken, in words; or that randomness bypasses the source, which no healthy subject's does."""
    broken = [one for one in findings if one.broken]
    if not broken:
        return next((f"{one.obstacle} ({one.audit})" for one in findings if one.verdict == "own randomness"), None)
    worst = max(broken, key=lambda one: one.shown / one.requirement.epsilon)
    promise = worst.requirement
    loss = "a loss without bound" if math.isinf(worst.shown) else f"a loss of {worst.shown:.3g}"
    if worst.shown < promise.epsilon * (1 + 1e-9):
        loss = "a loss above it by less than a billionth"
    return f"{loss} where w = {promise.window}, ε = {promise.epsilon:g} was promised ({worst.audit})"
