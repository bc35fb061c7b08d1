"""Metrics for Prometheus: public numbers of slots and budgets; nothing of events, files or durations.

Differences of totals are counts: a total of events that is read every slot would publish how many there were in it.
"""

from __future__ import annotations

from collections.abc import Iterable

from wevent.core.budget import decimal_text
from wevent.service.replies import LedgerReply

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_Sample = tuple[str, float]


def metrics_text(ledger: LedgerReply, committed: int, fresh: int, behind: int, *, storing: bool) -> str:
    """All metrics.

    Args:
        ledger: the budget of every class.
        committed: the last slot that was released.
        fresh: how many releases were fresh since the service started.
        behind: how many releases are due and not out; negative if releases are ahead of the clock.
        storing: whether batches can be stored.
    """
    labels = [f'{{window="{row.window}",epsilon="{decimal_text(round(row.epsilon * 1e9))}"}}' for row in ledger.classes]
    left = [(label, row.left) for label, row in zip(labels, ledger.classes, strict=True)]
    users = [(label, float(row.users)) for label, row in zip(labels, ledger.classes, strict=True)]
    parts = [
        _metric("wevent_slots_total", "counter", "Slots released.", [("", committed)]),
        _metric("wevent_fresh_slots_total", "counter", "Fresh releases since the service started.", [("", fresh)]),
        _metric(
            "wevent_slots_behind",
            "gauge",
            "Releases that are due and not out; below 0: ahead of the clock.",
            [("", behind)],
        ),
        _metric("wevent_can_store_batches", "gauge", "1 if batches can be stored, 0 if not.", [("", storing)]),
        _metric("wevent_budget_left_epsilon", "gauge", "What the next slot may still charge a class.", left),
        _metric("wevent_users", "gauge", "Users counted in a class.", users),
    ]
    return "".join(parts)


def _metric(name: str, kind: str, text: str, samples: Iterable[_Sample]) -> str:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    lines += [f"{name}{label} {value:.9g}" if value % 1 else f"{name}{label} {value:.0f}" for label, value in samples]
    return "\n".join(lines) + "\n"
