"""`wevent status`."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import click

from wevent.core.budget import NANO
from wevent.journal import Journal, open_journal
from wevent.journal.rebuild import rebuild_publisher
from wevent.journal.statement import privacy_statement

_RECENT = 1000


@click.command("status", epilog="Example: wevent status run.journal")
@click.argument("journal", type=click.Path(path_type=Path))
@click.option("--statement", is_flag=True, help="Print the privacy statement (JSON) and nothing else.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def command(journal: Path, statement: bool, as_json: bool) -> None:
    """Show how far a journal is: slot, fresh rate, and the budget every class has left in its window."""
    with open_journal(journal) as source:
        if statement:
            click.echo(json.dumps(privacy_statement(source), indent=2))
            return
        facts = _facts(source, journal)
    click.echo(json.dumps(facts, indent=2) if as_json else _text(facts))


def _facts(journal: Journal, path: Path) -> dict[str, Any]:
    loaded = journal.load()
    head = loaded.head
    publisher = rebuild_publisher(loaded, journal.epochs(), None)
    recent = islice(journal.releases(max(head.committed - _RECENT + 1, 1)), _RECENT)
    outcomes = [None if record.shown is None else record.outcome for record in recent]
    terms, writer = head.epoch.terms, journal.writer()
    budgets = zip(publisher.population.items(), publisher.ledger.remaining().tolist(), strict=True)
    return {
        "stream": terms.stream,
        "slot": head.committed,
        "slot_start": terms.slot_span(head.committed)[0] if head.committed else None,
        "first_kept": head.first,
        "mechanism": terms.mechanism,
        "epoch": head.epoch.number,
        "fresh_rate": outcomes.count("fresh") / len(outcomes) if outcomes else None,
        "recent_slots": len(outcomes),
        "pending_changes": journal.registry.pending(),
        "classes": [
            {
                "window": held.window,
                "epsilon": held.epsilon,
                "users": size,
                "left": left / NANO,
                "share": left / held.nano,
            }
            for (held, size), left in budgets
        ],
        "backup": head.copied,
        "unsafe": list(head.unsafe),
        "writer": None if writer is None else writer._asdict(),
        "bytes": path.stat().st_size,
    }


def _text(facts: dict[str, Any]) -> str:
    fresh = (
        "-" if facts["fresh_rate"] is None else f"{facts['fresh_rate']:.1%} of the last {facts['recent_slots']} slots"
    )
    writer = facts["writer"]
    started = f", starting {facts['slot_start']}" if facts["slot_start"] else ""
    if not facts["slot"]:
        started = ": nothing published yet"
    lines = [
        f"stream {facts['stream']}, {facts['mechanism']}, epoch {facts['epoch']}",
        f"slot {facts['slot']}" + started,
        f"fresh {fresh}",
        f"writer: {'none' if writer is None else 'process {pid} on {host} since {since}'.format(**writer)}",
    ]
    if facts["pending_changes"]:
        lines.append(f"{facts['pending_changes']} changes of the registry wait for the next slot")
    if facts["backup"]:
        lines.append("a backup: state --released-through SLOT before publishing from it")
    lines += [f"unsafe: {reason}" for reason in facts["unsafe"]]
    lines.append("budget left in the open window:")
    for row in facts["classes"]:
        bar = "█" * round(20 * row["share"])
        lines.append(
            f"  window {row['window']:>6}  epsilon {row['epsilon']:<7g} {row['users']:>9} users  "
            f"{bar:░<20} {row['share']:.0%}"
        )
    return "\n".join(lines)
