"""Point every audit that is meant for a bug at the product with the bug and without; exit code 1 if one goes unseen.

python -m tests.zoo [--only NAME] [--seconds 60] [--seed 1] [--out docs/results/zoo.md]
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tests.support import quick_disk
from tests.zoo.audits import AUDITS, look
from tests.zoo.bug import Bug, Persistence
from tests.zoo.bugs import BUGS

CAN_BE_AIDED = ("exact", "journal", "lives", "pairs of runs")
_LEAST_S = 2.0  # how long a healthy subject is looked at, at least


class Look(NamedTuple):
    """One audit of one bug: what it saw with the bug, in which time and whether aided, and what it saw without."""

    bug: Bug
    audit: str
    seen: str | None
    aided: bool
    seconds: float
    alarm: str | None


def look_at(bug: Bug, audit: str, seconds: float, seed: int) -> Look:
    """Point an audit at a bug, unaided first, then as long at the healthy counterpart."""
    for aided in (False, True) if audit in CAN_BE_AIDED else (False,):
        begun = time.perf_counter()
        seen = look(audit, replace(bug.broken, aided=aided), Persistence(seconds=seconds), seed)
        taken = time.perf_counter() - begun
        if seen:
            break
    as_long = Persistence(seconds=max(_LEAST_S, min(taken, seconds)))
    alarm = look(audit, replace(bug.healthy, aided=aided), as_long, seed)
    return Look(bug, audit, seen, aided and seen is not None, taken, alarm)


def page(looks: list[Look], command: str, seconds: float) -> str:
    """Return the page as Markdown."""
    bugs = list(dict.fromkeys(one.bug.name for one in looks))
    caught = {one.bug.name for one in looks if one.seen}
    passed = sum(one.alarm is None for one in looks)
    lines = [
        "# Broken on purpose",
        "",
        f"`{command}`",
        "",
        "Plausible bugs, each put into the code at run time, and the audits that are meant for them. An audit is pointed at"
        " the product with a bug and, for as long, at its healthy counterpart.",
        "",
        f"{len(caught)} of {len(bugs)} bugs are caught. {passed} of {len(looks)} healthy counterparts pass.",
        "",
        f"Seconds to detection; “no” is nothing within about {seconds:g} s, which proves nothing. †: only when it was told"
        " where to begin (the population of the exact audit, the decisions behind a journal, the seed of a life, the kind of"
        " record), and nothing before that in the same time.",
        "",
        "| bug | from | audit | seconds | seen |",
        "|---|---|---|--:|---|",
    ]
    for one in looks:
        found = f"**{one.seconds:.1f}**{' †' * one.aided}" if one.seen else "no"
        name = f"{one.bug.name}: {one.bug.sentence}"
        lines.append(f"| {name} | {one.bug.origin} | {one.audit} | {found} | {one.seen or ''} |")
    lines += ["", "## The audits", ""]
    lines += [f"- **{name}**: {(audit.__doc__ or '').strip()}" for name, audit in AUDITS.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.zoo")
    parser.add_argument("--only", default="", help="bugs whose name has this word")
    parser.add_argument("--seconds", type=float, default=60.0, help="the most that one audit may take of one bug")
    parser.add_argument("--seed", type=int, default=1, help="of what audits choose; noise is not seeded")
    parser.add_argument("--out", type=Path, help="write the table as Markdown")
    given = parser.parse_args()
    logging.disable(logging.WARNING)  # lives restore backups all the time, and say so
    quick_disk.use()
    looks: list[Look] = []
    for bug in (bug for bug in BUGS if given.only in bug.name):
        for audit in bug.audits:
            one = look_at(bug, audit, given.seconds, given.seed)
            looks.append(one)
            alarm = f"; FALSE ALARM: {one.alarm}" if one.alarm else ""
            print(f"{bug.name} | {audit} | {one.seconds:.1f} s | {one.seen or 'nothing'}{alarm}", flush=True)
    if given.out:
        command = f"python -m tests.zoo --seconds {given.seconds:g} --seed {given.seed} --out {given.out}"
        given.out.write_text(page(looks, command, given.seconds), encoding="utf-8")
    caught = {one.bug.name for one in looks if one.seen}
    missed = {one.bug.name for one in looks} - caught
    alarms = [one for one in looks if one.alarm]
    print(f"{len(caught)} bugs caught, {len(missed)} missed, {len(alarms)} false alarms")
    sys.exit(1 if missed or alarms else 0)


if __name__ == "__main__":
    main()
