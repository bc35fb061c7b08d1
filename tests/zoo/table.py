"""What each audit saw of each bug, and the page that says so."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import replace
from typing import NamedTuple

from tests.zoo.audits import AUDITS, look
from tests.zoo.bug import Bug, Persistence
from tests.zoo.bugs import BUGS

CAN_BE_AIDED = ("exact", "journal", "lives", "pairs of runs")
_LEAST_S = 2.0  # how long a healthy subject is looked at, at least


class Look(NamedTuple):
    """One audit of one bug.

    Attributes:
        bug, audit: which.
        seen: what it saw of the bug; None: nothing.
        aided: whether it had to be told where to begin.
        seconds: how long that took.
        alarm: what it saw without the bug, where there is nothing to be seen.
        healthy_s: how long it looked there.
    """

    bug: Bug
    audit: str
    seen: str | None
    aided: bool
    seconds: float
    alarm: str | None
    healthy_s: float

    def line(self) -> str:
        """For the terminal."""
        alarm = f"; FALSE ALARM: {self.alarm}" if self.alarm else ""
        return f"{self.bug.name} | {self.audit} | {self.seconds:.1f} s | {self.seen or 'nothing'}{alarm}"


def looked_at(bug: Bug, audit: str, seconds: float, seed: int) -> Look:
    """Point an audit at a bug, then as long at the healthy counterpart."""
    for aided in (False, True) if audit in CAN_BE_AIDED else (False,):
        begun = time.perf_counter()
        seen = look(audit, replace(bug.broken, aided=aided), Persistence(seconds=seconds), seed)
        taken = time.perf_counter() - begun
        if seen:
            break
    begun = time.perf_counter()
    as_long = Persistence(seconds=max(_LEAST_S, min(taken, seconds)))
    alarm = look(audit, replace(bug.healthy, aided=aided), as_long, seed)
    return Look(bug, audit, seen, aided and seen is not None, taken, alarm, time.perf_counter() - begun)


def page(looks: list[Look], seconds: float, seed: int) -> str:
    """The page as Markdown."""
    bugs = [bug for bug in BUGS if any(one.bug is bug for one in looks)]
    audits = [name for name in AUDITS if any(one.audit == name for one in looks)]
    caught = {one.bug.name for one in looks if one.seen}
    healthy = sum(one.alarm is None for one in looks)
    lines = [
        "# Broken on purpose",
        "",
        f"`python -m tests.zoo --seconds {seconds:g} --seed {seed} --out docs/results/zoo.md`",
        "",
        "Plausible bugs, each put into the code at run time, and what the audits see of it. An audit is pointed at the "
        "product with a bug and, for as long, at its healthy counterpart.",
        "",
        f"{len(caught)} of {len(bugs)} bugs are caught. {healthy} of {len(looks)} healthy counterparts pass. "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores that did other work too, "
        f"Python {platform.python_version()}.",
        "",
        f"Seconds to detection; “no” is nothing within about {seconds:g} s, which proves nothing; a dash: not meant for it. "
        "†: only when it was told where to begin (the population of the exact audit, the decisions behind a journal, the "
        "seed of a life, the kind of record), and nothing before that in the same time. Journals of mechanisms are always "
        "those of a population in which the bug can matter.",
        "",
        f"| bug | {' | '.join(audits)} |",
        f"|---|{'---|' * len(audits)}",
    ]
    lines += [_row(bug, audits, looks) for bug in bugs]
    lines += ["", "## The bugs", ""]
    for bug in bugs:
        lines += [f"### {bug.name[0].upper()}{bug.name[1:]}", "", f"{bug.sentence} From: {bug.origin}.", ""]
        lines += [f"- {one.audit}: {one.seen}" for one in looks if one.bug is bug and one.seen]
        lines += [""]
    lines += ["## The audits", ""]
    lines += [f"- **{name}**: {(AUDITS[name].__doc__ or '').strip()}" for name in audits]
    return "\n".join(lines) + "\n"


def _row(bug: Bug, audits: list[str], looks: list[Look]) -> str:
    found = {one.audit: one for one in looks if one.bug is bug}
    cells = ["—" if name not in found else _cell(found[name]) for name in audits]
    return f"| {bug.name} | {' | '.join(cells)} |"


def _cell(one: Look) -> str:
    return f"**{one.seconds:.1f}**{' †' * one.aided}" if one.seen else "no"
