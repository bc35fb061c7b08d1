"""`wevent audit`: every audit that a mechanism can be held to, and one verdict."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

import numpy as np

from wevent.auditing.audit_subject import AuditSubject, Finding, Verdict, build_subject
from wevent.auditing.black_box.box_audit import Progress, audit_black_box
from wevent.auditing.black_box.command_runs import CommandRuns
from wevent.auditing.black_box.effort import Effort
from wevent.auditing.black_box.library_runs import LibraryRuns
from wevent.auditing.exact.exact_audit import audit_exactly
from wevent.core.registry import BUILT_IN
from wevent.core.requirements import Population, Requirement
from wevent.errors import InvalidOption
from wevent.publisher.catalogue import ENTRY_POINT_GROUP

AUDITS = ("exact", "library", "command", "service")
"""What there is to choose from."""
USUAL = AUDITS[:3]
"""What is tried unless told; a service, too, where its address is named."""
PROVES_NOTHING = "That proves nothing: an audit tries what it tries. Proofs are in the documentation."
VERDICTS: tuple[Verdict, ...] = ("broken", "own randomness", "cannot say", "nothing found")
"""The worst first."""
_MEANINGS: dict[Verdict, str] = {
    "broken": "A promise is broken: see the witness. Audits that found nothing prove nothing.",
    "own randomness": "No broken promise was shown, but there is randomness that does not come from the source of noise: what"
    " is computed cannot cover it. Draw through the source, or review that code as you would review noise.",
    "cannot say": "No broken promise was shown, but an audit could not compute what it should: see the obstacle. This is no"
    " pass.",
    "nothing found": f"Nothing was found. {PROVES_NOTHING}",
}
_COMMAND_S = 30.0  # about a hundred processes
_PARTS = {"exact": 2.0, "library": 4.0, "command": 2.0, "service": 3.0}  # of the time


@dataclass(frozen=True)
class Service:
    """A service to be audited: a test instance, for the audit registers invented people and sends events.

    Attributes:
        url: where it is.
        token: with the roles ingest, enrol and read.
        test_instance: whether somebody says that it is one, also if people are registered there already.
    """

    url: str
    token: str | None = None
    test_instance: bool = False


@dataclass(frozen=True)
class AuditReport:
    """What the audits of a mechanism came to.

    Attributes:
        mechanism: its name.
        options: what it was made with.
        confidence: the probability with which nothing of an honest mechanism is called broken, all audits together.
        findings: what was shown, audit by audit.
        notes: what was not tried, and why.
        seconds: how long it took.
    """

    mechanism: str
    options: dict[str, Any]
    confidence: float
    findings: list[Finding]
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """The worst of the findings' verdicts; "cannot say", too, if nothing could be tried."""
        told = {finding.verdict for finding in self.findings} or {"cannot say"}
        return next(word for word in VERDICTS if word in told)

    @property
    def broken(self) -> bool:
        """Whether something was shown that breaks the promise."""
        return self.verdict == "broken"

    @property
    def ok(self) -> bool:
        """Whether every audit could look, and none found anything; that proves nothing."""
        return self.verdict == "nothing found"

    def to_dict(self) -> dict[str, Any]:
        """Plain types, ready for JSON; a loss that is infinite is None."""
        return {
            "mechanism": self.mechanism,
            "options": {name: option_word(value) for name, value in self.options.items()},
            "ok": self.ok,
            "verdict": self.verdict,
            "confidence": self.confidence,
            "findings": [_plain(finding) for finding in self.findings],
            "notes": self.notes,
            "meaning": self.meaning(),
            "seconds": self.seconds,
        }

    def meaning(self) -> str:
        """What the verdict says and what it does not."""
        return _MEANINGS[self.verdict]


def option_word(value: Any) -> str:
    """An option's value as text."""
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
    audits: Collection[str] | None = None,
    service: Service | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> AuditReport:
    """Look for two neighbouring streams that a mechanism tells apart by more than it promises (spec 1).

    Args:
        mechanism: a name from `wevent.mechanisms()`, registered ones included, or what is to be audited itself.
        seconds: about how long, all audits together.
        seed: of what the audits choose; the mechanism's noise is its own.
        confidence: the probability with which nothing of an honest mechanism is called broken.
        audits: names out of `AUDITS`; `USUAL` unless told, without the command where there is too little time for it.
        service: one that runs; without it the audit of that name starts one of its own.
        progress: told what is at work, seconds done and seconds wanted.
        **options: of a publisher, as `wevent.Options` has them; only with a name.

    Raises:
        UnknownMechanism: for a name that is not registered.
        InvalidOption: for options or audits that there are none of, and for a mechanism that cannot publish.
    """
    if not 0.5 <= confidence < 1.0:
        raise InvalidOption(
            "a confidence of at least 0.5 and below 1", f"{confidence!r}", "0.95 is common.", option="confidence"
        )
    if options and isinstance(mechanism, AuditSubject):
        raise InvalidOption(
            "options in what is to be audited itself",
            ", ".join(sorted(options)),
            "It is made as it is.",
            option="options",
        )
    subject = mechanism if isinstance(mechanism, AuditSubject) else build_subject(mechanism, **options)
    wanted, notes = _possible(_wanted(audits, service), mechanism, service)
    if audits is None and "command" in wanted and seconds < _COMMAND_S:
        wanted.remove("command")
        notes.append(f"command: not tried; its runs take some {_COMMAND_S:g} seconds at least, and fewer were given")
    _check_publishes(subject)
    begun = time.perf_counter()
    parts = sum(_PARTS[name] for name in wanted)
    judged = [name for name in wanted if name != "exact"]  # what is computed needs no part of the confidence
    findings: list[Finding] = []
    for name in wanted:
        run = _Run(
            subject, seconds * _PARTS[name] / parts, seed, confidence, 1.0 / max(len(judged), 1), progress, service
        )
        findings += _AUDIT[name](run)
    return AuditReport(
        subject.name, dict(subject.options), confidence, findings, notes, seconds=time.perf_counter() - begun
    )


def _check_publishes(subject: AuditSubject) -> None:
    """That a publisher of it gets through slots at all: where every slot fails, both streams of a pair look the same.

    Raises:
        InvalidOption: saying how it failed.
    """
    cells = max(2, int(subject.options.get("max_cells_per_user") or 1))
    population = Population({Requirement(2, 1): 4, Requirement(3, 1): 4})
    publisher = subject.make(population, cells, None)
    try:
        for _ in range(4):
            publisher.step(np.ones((len(population), cells), dtype=np.int64))
    except Exception as error:
        raise InvalidOption(
            f"{subject.name} to publish a slot",
            f"{type(error).__name__}: {error}",
            "Hold it to wevent.checks.check_mechanism first: nothing can be said of what fails.",
            option="mechanism",
            value=subject.name,
        ) from error


@dataclass(frozen=True)
class _Run:
    subject: AuditSubject
    seconds: float
    seed: int
    confidence: float
    share: float
    progress: Progress | None
    service: Service | None


def _exactly(run: _Run) -> list[Finding]:
    if run.progress is not None:
        run.progress("exact", 0, int(run.seconds))
    return audit_exactly(run.subject, seconds=run.seconds, seed=run.seed)


def _library(run: _Run) -> list[Finding]:
    return _from_outside(LibraryRuns(run.subject), run)


def _command(run: _Run) -> list[Finding]:
    with CommandRuns(run.subject.name, run.subject.options) as runs:
        return _from_outside(runs, run)


def _service(run: _Run) -> list[Finding]:
    from wevent.auditing.black_box.own_service import own_service  # httpx is an extra
    from wevent.auditing.black_box.service_audit import audit_service
    from wevent.client import Client

    connected: AbstractContextManager[Client] = (
        own_service(run.subject.name, run.subject.options)
        if run.service is None
        else Client(run.service.url, token=run.service.token)
    )
    with connected as client:
        published = client.about().mechanism
        if published != run.subject.name:
            raise InvalidOption(
                f"a service that publishes with {run.subject.name}",
                f"one with {published}",
                "Name the mechanism that it publishes with.",
                option="url",
            )
        return audit_service(
            client,
            seconds=run.seconds,
            confidence=run.confidence,
            share=run.share,
            test_instance=run.service is None or run.service.test_instance,
            progress=run.progress,
        )


def _from_outside(runs: LibraryRuns | CommandRuns, run: _Run) -> list[Finding]:
    return audit_black_box(
        runs,
        Effort(seconds=run.seconds),
        seed=run.seed,
        confidence=run.confidence,
        share=run.share,
        progress=run.progress,
    )


_AUDIT: dict[str, Callable[[_Run], list[Finding]]] = {
    "exact": _exactly,
    "library": _library,
    "command": _command,
    "service": _service,
}


def _possible(wanted: list[str], mechanism: str | AuditSubject, service: Service | None) -> tuple[list[str], list[str]]:
    """Without audits by another process that does not know the mechanism; and what is to be said about that."""
    own = [] if _every_process_knows(mechanism) else ["command", *(["service"] if service is None else [])]
    left_out = [name for name in wanted if name in own]
    reason = "not tried; the mechanism is known to this process alone, no entry point names it"
    return [name for name in wanted if name not in own], [f"{name}: {reason}" for name in left_out]


def _wanted(audits: Collection[str] | None, service: Service | None) -> list[str]:
    if audits is None:
        return [*USUAL, *(["service"] if service is not None else [])]
    chosen = [audits] if isinstance(audits, str) else list(audits)
    for name in chosen:
        if name not in AUDITS:
            raise InvalidOption(
                f"audits out of {', '.join(AUDITS)}", f"{name!r}", "Use these names.", option="audits", value=name
            )
    if not chosen:
        raise InvalidOption("at least one audit", "none", f"Choose out of {', '.join(AUDITS)}.", option="audits")
    return [name for name in AUDITS if name in chosen]


def _every_process_knows(mechanism: str | AuditSubject) -> bool:
    """Whether another process finds it by its name: built in, or installed with an entry point."""
    return isinstance(mechanism, str) and mechanism in {*BUILT_IN, *_installed()}


def _installed() -> Iterator[str]:
    return (point.name for point in entry_points(group=ENTRY_POINT_GROUP))
