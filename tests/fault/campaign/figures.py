"""The campaign's figures as a page."""

from __future__ import annotations

from collections import Counter
from typing import Any

_HEAD = """# The fault campaign

Made by `make soak` (`python -m tests.fault.campaign`).

A fault is harmless if the next `publish` succeeds with every released slot's bytes unchanged, each slot once, no gap, no
window overspent by the campaign's own accountant, and a clean audit. It is named if `publish` refuses in one sentence
with exit code 2 and changes nothing, or if `verify` finds it. After every kill a run that nobody killed succeeded. What
is known stands below the table.

| kind | faults | harmless | refused | named by audit | known | seconds | commit |
|---|---|---|---|---|---|---|---|
"""


def as_text(figures: dict[str, Any]) -> str:
    """A table of kinds, then the sentences of refusals and what is known."""
    text, sentences, known = _HEAD, Counter[str](), Counter[str]()
    for kind, entry in figures.items():
        refused, unnoticed = entry.get("refused", {}), entry.get("known", {})
        harmless = entry.get("harmless", entry["faults"])
        row = (
            entry["faults"],
            harmless,
            sum(refused.values()),
            entry.get("named_by_audit", 0),
            sum(unnoticed.values()),
        )
        numbers = " | ".join(f"{number:,}" for number in row)
        text += f"| {kind} | {numbers} | {entry['seconds']:,.0f} | {entry.get('commit', '')} |\n"
        sentences.update(refused)
        known.update(unnoticed)
    text += f"\n{sum(entry['faults'] for entry in figures.values()):,} faults in all.\n"
    text += _listed("Refusals by their sentence", sentences) + _listed("Known", known)
    return text


def _listed(title: str, counted: Counter[str]) -> str:
    if not counted:
        return ""
    return f"\n## {title}\n\n" + "".join(f"- {number:,} × {what}\n" for what, number in counted.most_common())
