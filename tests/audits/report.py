"""The page of `make audit`, from its figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def as_markdown(result: dict[str, Any]) -> str:
    """docs/results/audit.md."""
    parts = (_head(result), _outside(result), _figures(result), _variants(result), _clean(result))
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(result: dict[str, Any]) -> Iterator[str]:
    yield "# Audits of every mechanism"
    yield ""
    yield (
        f"Made by `make audit` (version {result['version']}, Python {result['python']}, 2 cores that did other work too)."
        " What the audits do is in"
        " [audit a mechanism](../how-to/audit-a-mechanism.md). That nothing was found proves nothing: the proofs are"
        " [here](../explanation/proofs.md)."
    )
    yield ""


def _outside(result: dict[str, Any]) -> Iterator[str]:
    yield "## From outside"
    yield ""
    yield (
        f"{result['trials_each']:,} runs of each mechanism through the library, inputs and outputs only: which part of the"
        f" promise they prove to be lost, with {result['confidence']:.0%} confidence for a whole mechanism. How far below"
        " the promise that is says nothing of how much is lost: pairs and events were tried that we thought of."
    )
    yield ""
    promises = [one for one in result["outside"][0]["findings"] if one["epsilon"] > 1e-6]
    yield (
        "| mechanism | "
        + " | ".join(f"w = {one['window']}, ε = {one['epsilon']:g}" for one in promises)
        + " | seconds |"
    )
    yield "|---|" + "--:|" * (len(promises) + 1)
    for row in result["outside"]:
        parts = [f"{one['shown'] / one['epsilon']:.0%}" for one in row["findings"] if one["epsilon"] > 1e-6]
        yield f"| {row['mechanism']} | {' | '.join(parts)} | {row['seconds']:,} |"
    yield ""


def _figures(result: dict[str, Any]) -> Iterator[str]:
    yield "## Shown of what is promised"
    yield ""
    yield (
        f"About {result['seconds_each']:g} s for every mechanism. Black-box figures are proven with"
        f" {result['confidence']:.0%} confidence, all of a mechanism together; exact ones are computed."
    )
    yield ""
    yield "| mechanism | audit | window | promised ε | shown ε | part | verdict | trials | seconds |"
    yield "|---|---|--:|--:|--:|--:|---|--:|--:|"
    for row in result["audits"]:
        if not row["options"]:
            for finding in row["findings"]:
                yield _row(row["mechanism"], finding)
    yield ""


def _row(mechanism: str, finding: dict[str, Any]) -> str:
    shown, promised = finding["shown"], finding["epsilon"]
    number, part = ("∞", "") if shown is None else (f"{shown:.3f}", f"{shown / promised:.0%}")
    verdict = f"**{finding['verdict']}**" if finding["verdict"] != "nothing found" else finding["verdict"]
    cells = (mechanism, finding["audit"], finding["window"], f"{promised:g}", number, part, verdict)
    return "| " + " | ".join(map(str, (*cells, f"{finding['trials']:,}", f"{finding['seconds']:.1f}"))) + " |"


def _variants(result: dict[str, Any]) -> Iterator[str]:
    yield "## With options"
    yield ""
    yield "The largest part of a promise that was shown, over all windows."
    yield ""
    yield "| mechanism | options | verdict | exact | black box | seconds |"
    yield "|---|---|---|--:|--:|--:|"
    for row in result["audits"]:
        if row["options"]:
            options = ", ".join(f"{name} {value}" for name, value in row["options"].items())
            parts = [_most(row, exact=True), _most(row, exact=False)]
            verdict = row["verdict"] if row["ok"] else f"**{row['verdict']}**"
            yield f"| {row['mechanism']} | {options} | {verdict} | {parts[0]} | {parts[1]} | {row['seconds']:.0f} |"
    yield ""


def _most(row: dict[str, Any], *, exact: bool) -> str:
    findings = [one for one in row["findings"] if one["audit"].startswith("exact") == exact and one["epsilon"] > 1e-6]
    if any(one["shown"] is None for one in findings):
        return "∞"
    return f"{max(one['shown'] / one['epsilon'] for one in findings):.0%}" if findings else "-"


def _clean(result: dict[str, Any]) -> Iterator[str]:
    clean = result["clean"]
    yield "## False alarms"
    yield ""
    runs, alarms = clean["runs"], clean["false_alarms"]
    level = 1 - result["confidence"]
    yield (
        f"{runs} quick black-box audits of shipped mechanisms in {clean['seconds']:,} s: {alarms} called broken"
        f" ({alarms / max(runs, 1):.1%}; the stated level allows {level:.0%})."
    )
