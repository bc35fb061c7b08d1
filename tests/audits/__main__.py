"""Audit every mechanism with its options, count false alarms, and write docs/results/audit.json and audit.md.

`python -m tests.audits [--seconds 60] [--trials 20000] [--clean 200] [--mechanisms pbd,pba] [--parts outside]
[--out docs/results/audit]`: of parts that are not named, the figures that are there stay.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scipy.stats import binom

import wevent
from tests.audits.report import as_markdown
from wevent.auditing.audit_subject import build_subject
from wevent.auditing.black_box.box_audit import audit_black_box
from wevent.auditing.black_box.effort import Effort
from wevent.auditing.black_box.library_runs import LibraryRuns
from wevent.core.registry import BUILT_IN

CONFIDENCE = 0.95
QUICK = 600  # runs of a clean quick audit
PARTS = ("audits", "outside", "clean")
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


def subjects(chosen: list[str] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every mechanism with every option that it takes."""
    for name in BUILT_IN:
        if chosen is None or name in chosen:
            yield from ((name, options) for options in _OPTIONS.get(name, _CENTRAL))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="for a mechanism without options; others get a third"
    )
    parser.add_argument(
        "--clean", type=int, default=200, help="quick runs on shipped mechanisms, to count false alarms"
    )
    parser.add_argument("--trials", type=int, default=20_000, help="runs of each mechanism from outside")
    parser.add_argument("--mechanisms", type=lambda text: text.split(","))
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(PARTS))
    parser.add_argument("--out", type=Path, default=Path("docs/results/audit"))
    given = parser.parse_args()
    file = given.out.with_suffix(".json")
    result = json.loads(file.read_text(encoding="utf-8")) if file.exists() and set(given.parts) != set(PARTS) else {}
    result |= {"version": wevent.__version__, "python": platform.python_version(), "confidence": CONFIDENCE}
    names = given.mechanisms or list(BUILT_IN)
    if "audits" in given.parts:
        rows = [_audited(name, options, given.seconds) for name, options in subjects(given.mechanisms)]
        result |= {"seconds_each": given.seconds, "audits": rows}
    if "outside" in given.parts:
        result |= {"trials_each": given.trials, "outside": [_outside(name, given.trials) for name in names]}
    if "clean" in given.parts:
        result["clean"] = _clean(given.clean, names)
    file.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    given.out.with_suffix(".md").write_text(as_markdown(result), encoding="utf-8")
    alarms = result["clean"]["false_alarms"]
    unlikely = binom.sf(alarms - 1, max(result["clean"]["runs"], 1), 1 - CONFIDENCE) < 1e-4
    return int(unlikely or not all(row["ok"] for row in [*result["audits"], *result["outside"]]))


def _audited(name: str, options: dict[str, Any], seconds: float) -> dict[str, Any]:
    """All audits of a mechanism on its own, those that need no process of a variant."""
    audits = ["exact", "library"] if options else ["exact", "library", "command", "service"]
    found = wevent.audit_mechanism(
        name, seconds=seconds / 3 if options else seconds, audits=audits, confidence=CONFIDENCE, **options
    )
    print(name, options or "", found.verdict, f"{found.seconds:.0f} s", flush=True)
    told = found.to_dict()
    for finding in told["findings"]:
        if not finding["broken"]:
            del finding["witness"]  # long, and of no use
    return told


def _outside(name: str, trials: int) -> dict[str, Any]:
    """What a number of runs shows, however fast the machine is."""
    begun = time.time()
    findings = audit_black_box(LibraryRuns(build_subject(name)), Effort(trials=trials), seed=1, confidence=CONFIDENCE)
    told = [
        {"window": one.requirement.window, "epsilon": one.requirement.epsilon, "shown": one.shown, "event": one.witness}
        for one in findings
    ]
    print(name, "from outside", [round(one["shown"] / one["epsilon"], 2) for one in told], flush=True)
    ok = not any(one.broken for one in findings)
    return {"mechanism": name, "ok": ok, "findings": told, "seconds": round(time.time() - begun)}


def _clean(number: int, names: list[str]) -> dict[str, Any]:
    """Quick audits of honest mechanisms: how many are called broken."""
    alarms: list[dict[str, Any]] = []
    begun = time.time()
    for run in range(number):
        name = names[run % len(names)]
        findings = audit_black_box(
            LibraryRuns(build_subject(name)), Effort(trials=QUICK), seed=run, confidence=CONFIDENCE
        )
        alarms += [
            {"mechanism": name, "seed": run, "shown": one.shown, "witness": one.witness}
            for one in findings
            if one.broken
        ]
        print(f"clean {run + 1} of {number}: {len(alarms)} false alarms", end="\r", flush=True)
    false = len({(alarm["mechanism"], alarm["seed"]) for alarm in alarms})
    return {"runs": number, "false_alarms": false, "alarms": alarms, "seconds": round(time.time() - begun)}


if __name__ == "__main__":
    sys.exit(main())
