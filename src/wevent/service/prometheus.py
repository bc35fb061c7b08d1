"""Prometheus metrics and the administrator's overview: public numbers of slots and budgets, nothing of events.

The difference of two totals is a count: a total of events, read every slot, would publish the number of its events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wevent.core.budget import decimal_text
from wevent.journal import Journal
from wevent.journal.statement import versions
from wevent.schemas import BudgetTable

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics_text(ledger: BudgetTable, committed: int, fresh: int, behind: int, *, storing: bool) -> str:
    """Return all metrics; `behind` is negative if releases are ahead of the clock."""
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


def _metric(name: str, kind: str, text: str, samples: Sequence[tuple[str, float]]) -> str:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    lines += [f"{name}{label} {value:.9g}" if value % 1 else f"{name}{label} {value:.0f}" for label, value in samples]
    return "\n".join(lines) + "\n"


def overview_facts(journal: Journal) -> dict[str, Any]:
    """Return the fields of `Overview` that come from the journal."""
    head = journal.head()
    terms, writer = head.epoch.terms, journal.writer()
    return {
        "stream": terms.stream,
        "mechanism": terms.mechanism,
        "epoch": head.epoch.number,
        "members": sum(journal.registry.sizes().values()),
        "pending_changes": journal.registry.pending(),
        "committed_start": terms.slot_start(head.committed) if head.committed else None,
        "unsafe": list(head.unsafe),
        "writer_since": None if writer is None else writer.since,
        "writer_host": None if writer is None else writer.host,
        "versions": versions(),
    }
