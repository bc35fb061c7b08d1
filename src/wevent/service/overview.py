"""How the service is doing, for its administrator: what `wevent status` knows, and whether the publisher keeps up."""

from __future__ import annotations

from typing import Any

from wevent.journal import Journal
from wevent.journal.statement import versions


def look(journal: Journal) -> dict[str, Any]:
    """What the overview says of a journal, by the names of its reply."""
    head = journal.head()
    terms, writer = head.epoch.terms, journal.writer()
    return {
        "stream": terms.stream,
        "mechanism": terms.mechanism,
        "epoch": head.epoch.number,
        "members": sum(journal.registry.sizes().values()),
        "pending_changes": journal.registry.pending(),
        "committed_start": terms.slot_span(head.committed)[0] if head.committed else None,
        "unsafe": list(head.unsafe),
        "writer_since": None if writer is None else writer.since,
        "writer_host": None if writer is None else writer.host,
        "versions": versions(),
    }
