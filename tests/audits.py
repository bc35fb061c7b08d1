"""Audit every mechanism with its options, count false alarms, and write docs/results/audit.md.

python -m tests.audits [--seconds 60] [--trials 20000] [--clean 200] [--mechanisms pbd,pba] [--out docs/results/audit.md]
"""

from __future__ import annotations

import argparse
import math
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scipy.stats import binom

import wevent
from wevent.auditing.audit_subject import Finding, build_subject
from wevent.auditing.black_box.black_box_audit import Effort, audit_black_box
from wevent.auditing.mechanism_audit import AuditReport
from wevent.core.builtin_mechanisms import BUILT_IN

CONFIDENCE = 0.95
QUICK = 600  # runs of a quick audit
_CENTRAL: tuple[dict[str, Any], ...] = ({}, {"neighbours": "replace"}, {"max_cells_per_user": 2}, {"nonnegative": True})
_OPTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "pft": (*_CENTRAL, {"class_weights": "equal"}, {"class_weights": "budget"}, {"seasonality": (4.0,)}),
    "pbd": (*_CENTRAL, {"refund": True}, {"estimator": "weighting"}, {"smoothing": "filter"}),
    "pba": (*_CENTRAL, {"refund": True}, {"estimator": "weighting"}, {"smoothing": "filter"}),
    "bd": (*_CENTRAL, {"threshold": "std"}, {"refund": True}),
    "ba": (*_CENTRAL, {"threshold": "std"}, {"refund": True}),
    "pbu": (*_CENTRAL, {"estimator": "weighting"}, {"smoothing": "filter"}),
    "lbu": ({}, {"neighbours": "replace"}),
    "plbu": ({}, {"neighbours": "replace"}),
}


def subjects(chosen: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every mechanism with every option that it takes."""
    for name in chosen:
        yield from ((name, options) for options in _OPTIONS.get(name, _CENTRAL))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.audits")
    parser.add_argument("--seconds", type=float, default=60.0, help="per mechanism; a third with options")
    parser.add_argument("--clean", type=int, default=200, help="quick audits of shipped mechanisms")
    parser.add_argument("--trials", type=int, default=20_000, help="black-box runs of each mechanism")
    parser.add_argument("--mechanisms", type=lambda text: text.split(","), default=list(BUILT_IN))
    parser.add_argument("--out", type=Path, default=Path("docs/results/audit.md"))
    given = parser.parse_args()
    reports = [
        wevent.audit_mechanism(name, seconds=given.seconds / (3 if options else 1), confidence=CONFIDENCE, **options)
        for name, options in subjects(given.mechanisms)
    ]
    outside = {name: black_box(name, given.trials, seed=1) for name in given.mechanisms}
    names = [given.mechanisms[run % len(given.mechanisms)] for run in range(given.clean)]
    alarms = sum(any(one.broken for one in black_box(name, QUICK, seed)) for seed, name in enumerate(names))
    lines = [
        "# Audits of every mechanism",
        "",
        f"Made by `make audit` (version {wevent.__version__}, Python {platform.python_version()}, 2 cores that did other"
        " work too). What the audits do is in [audit a mechanism](../how-to/audit-a-mechanism.md). That nothing was found"
        " proves nothing: the proofs are [here](../explanation/proofs.md).",
        "",
        "## From outside",
        "",
        f"{given.trials:,} runs of each mechanism, inputs and outputs only: the part of the guarantee that they prove to be"
        f" lost, with {CONFIDENCE:.0%} confidence for a whole mechanism.",
        "",
        *outside_table(outside),
        "",
        "## Shown of what is promised",
        "",
        f"About {given.seconds:g} s for every mechanism. Black-box figures are proven with {CONFIDENCE:.0%} confidence;"
        " exact ones are computed.",
        "",
        "| mechanism | audit | window | promised ε | shown ε | part | verdict | trials | seconds |",
        "|---|---|--:|--:|--:|--:|---|--:|--:|",
        *(row(one.mechanism, finding) for one in reports if not one.options for finding in one.findings),
        "",
        "## With options",
        "",
        "The largest part of a guarantee that was shown, over all windows.",
        "",
        "| mechanism | options | verdict | exact | black box | seconds |",
        "|---|---|---|--:|--:|--:|",
        *(options_row(one) for one in reports if one.options),
        "",
        "## False alarms",
        "",
        f"{given.clean} quick black-box audits of shipped mechanisms: {alarms} called broken"
        f" ({alarms / max(given.clean, 1):.1%}; the stated level allows {1 - CONFIDENCE:.0%}).",
    ]
    given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    unlikely = binom.sf(alarms - 1, max(given.clean, 1), 1 - CONFIDENCE) < 1e-4
    broken = any(finding.broken for findings in outside.values() for finding in findings)
    return int(unlikely or broken or not all(report.ok for report in reports))


def black_box(name: str, trials: int, seed: int) -> list[Finding]:
    """Audit with a number of runs, however fast the machine is."""
    return audit_black_box(build_subject(name), Effort(trials=trials), seed=seed, confidence=CONFIDENCE)


def outside_table(outside: dict[str, list[Finding]]) -> Iterator[str]:
    wide = {name: [one for one in findings if one.requirement.epsilon > 1e-6] for name, findings in outside.items()}
    promises = [one.requirement for one in next(iter(wide.values()))]
    yield "| mechanism | " + " | ".join(f"w = {one.window}, ε = {one.epsilon:g}" for one in promises) + " |"
    yield "|---|" + "--:|" * len(promises)
    for name, findings in wide.items():
        yield f"| {name} | " + " | ".join(f"{one.shown / one.requirement.epsilon:.0%}" for one in findings) + " |"


def row(mechanism: str, finding: Finding) -> str:
    promise = finding.requirement
    number = f"{finding.shown:.3f}" if math.isfinite(finding.shown) else "∞"
    cells = [mechanism, finding.audit, promise.window, f"{promise.epsilon:g}", number, part([finding])]
    return f"| {' | '.join(map(str, cells))} | {bold(finding)} | {finding.trials:,} | {finding.seconds:.1f} |"


def options_row(report: AuditReport) -> str:
    options = ", ".join(f"{name} {value}" for name, value in report.options.items())
    exact = [one for one in report.findings if one.audit.startswith("exact")]
    parts = part(exact), part([one for one in report.findings if one not in exact])
    return f"| {report.mechanism} | {options} | {bold(report)} | {parts[0]} | {parts[1]} | {report.seconds:.0f} |"


def bold(judged: Finding | AuditReport) -> str:
    return judged.verdict if judged.verdict == "nothing found" else f"**{judged.verdict}**"


def part(findings: list[Finding]) -> str:
    largest = max(
        (one.shown / one.requirement.epsilon for one in findings if one.requirement.epsilon > 1e-6), default=0
    )
    return f"{largest:.0%}" if math.isfinite(largest) else "∞"


if __name__ == "__main__":
    sys.exit(main())
