"""The audits of mechanisms: likelihood ratios that are computed, and losses that are proven from outside."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

from tests.statistical.goodness import repetition
from tests.zoo.bug import Persistence, Subject
from wevent.auditing.audit_subject import Finding
from wevent.auditing.black_box.box_audit import audit_black_box
from wevent.auditing.black_box.command_runs import CommandRuns
from wevent.auditing.black_box.effort import Effort
from wevent.auditing.black_box.library_runs import LibraryRuns
from wevent.auditing.exact.cases import World
from wevent.auditing.exact.exact_audit import audit_exactly
from wevent.noise import SecureNoise

ROOT = Path(__file__).parents[2]
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


def library(subject: Subject, looking: Persistence, seed: int) -> str | None:
    """Runs through the library on neighbouring streams: what they prove of the loss, with a confidence of 95 %."""
    assert subject.mechanism is not None
    return _from_outside(LibraryRuns(subject.mechanism), looking.seconds, seed)


def command(subject: Subject, looking: Persistence, seed: int) -> str | None:
    """The same through `wevent publish`, on files in which one person's records are plain or odd."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    before = dict(os.environ)
    os.environ.update(PYTHONPATH=path, WEVENT_ZOO=subject.command)
    try:
        module = "tests.zoo.broken_command" if subject.command else "wevent"
        with CommandRuns("uniform", {}, module=module) as runs:
            return _from_outside(runs, looking.seconds, seed)
    finally:
        os.environ.clear()
        os.environ.update(before)


def _from_outside(runs: LibraryRuns | CommandRuns, seconds: float, seed: int) -> str | None:
    """Longer and longer; each time has its part of the confidence."""
    begun, share, look_s = time.monotonic(), 0.5, min(FIRST_S, seconds)
    while True:
        found = audit_black_box(runs, Effort(seconds=look_s), seed=seed, share=share)
        share, look_s = share / 2, 2 * look_s
        if (told := _told(found)) or time.monotonic() - begun + look_s > seconds:
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
