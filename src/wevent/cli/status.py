"""`wevent status`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import click
from rich.table import Table

from wevent.cli.answers import ClassBudget, RestoreAnswer, SlotsElsewhere, StatusAnswer, WriterAnswer, as_json
from wevent.cli.console import new_table, print_table
from wevent.cli.flags import chosen_journal, journal_flags
from wevent.errors import InvalidJournal, StorageFailed
from wevent.journal import Journal, JournalAddress, open_journal
from wevent.journal.terms import privacy_statement
from wevent.publisher.catalogue import find_mechanism
from wevent.publishing.views import read_budgets

LOST = "changes of the registry may be lost: import it again, or pass --accept-lost-changes"
_RECENT = 1000
_BAR = 10  # signs
_APART = 0.5  # shares that are so far apart need a word


@click.command("status", epilog="Example: wevent status run.journal")
@journal_flags
@click.option("--statement", is_flag=True, help="Print the privacy statement (JSON) and nothing else.")
@click.option("--json", "wants_json", is_flag=True, help="Print everything as JSON.")
def command(journal: JournalAddress | None, config: Path | None, statement: bool, wants_json: bool) -> None:
    """Show progress and remaining budgets."""
    with open_journal(chosen_journal(journal, config)) as source:
        if statement:
            click.echo(json.dumps(privacy_statement(source), indent=2))
            return
        answer = _answer(source)
    if wants_json:
        click.echo(as_json(answer))
        return
    click.echo("\n".join(_lines(answer)))
    print_table(_table(answer))
    click.echo(answer.meaning)


def _answer(journal: Journal) -> StatusAnswer:
    noted = _noted(journal)  # first: the journal may go on meanwhile, and is marked after it does
    loaded = journal.load()
    head = loaded.head
    recent = islice(journal.releases(max(head.committed - _RECENT + 1, 1)), _RECENT)
    outcomes = [None if record.shown is None else record.outcome for record in recent]
    terms, writer = head.epoch.terms, journal.writer()
    budgets = [
        ClassBudget(
            window=row.window,
            epsilon=row.epsilon,
            users=row.users,
            left=row.left,
            share=row.share,
        )
        for row in read_budgets(loaded, journal.epochs()).classes
    ]
    restores = journal.registry.restores()
    doubted = [restore.slot + window - 1 for restore in restores for window, _ in restore.doubted]
    silent = [restore.silent_through for restore in restores]
    return StatusAnswer(
        stream=terms.stream,
        mechanism=terms.mechanism,
        epoch=head.epoch.number,
        slot=head.committed,
        slot_start=terms.slot_span(head.committed)[0] if head.committed else None,
        first_kept=head.first,
        fresh_rate=outcomes.count("fresh") / len(outcomes) if outcomes else None,
        recent_slots=len(outcomes),
        pending_changes=journal.registry.pending(),
        members=sum(journal.registry.sizes().values()),
        released_elsewhere=[_elsewhere(journal, one.slot) for one in restores],
        in_doubt_through=max((slot for slot in doubted if slot >= head.next_slot), default=None),
        silent_through=max((slot for slot in silent if slot >= head.next_slot), default=None),
        changes_lost=journal.changes_lost,
        classes=budgets,
        meaning=_meaning(terms.mechanism, [one.share for one in budgets]),
        backup=head.copied,
        noted_slot=noted if noted >= head.next_slot else None,
        unsafe=list(head.unsafe),
        writer=None if writer is None else WriterAnswer(**writer._asdict()),
        bytes=journal.size(),
    )


def _noted(journal: Journal) -> int:
    """Return the last slot that the witness shows; 0 if nothing can be read there or its draw is about to be stored."""
    try:
        record = journal.witnessed()
    except (InvalidJournal, StorageFailed):  # the address names no folder, or one that this user may not read
        return 0
    is_own = record.journal == journal.identity and not record.follows(journal.head().digest)
    return record.committed if is_own else 0


def _elsewhere(journal: Journal, last: int) -> SlotsElsewhere:
    """Return the slots of a restore, as far as they are kept."""
    first = last
    while first > 1 and journal.is_elsewhere(first - 1):
        first -= 1
    return SlotsElsewhere(first=first, last=last)


def _meaning(mechanism: str, shares: Sequence[float]) -> str:
    """Return the meaning of little or much budget left."""
    if find_mechanism(mechanism).threshold is not None:
        return (
            f"{mechanism} spends more when the stream changes. What is spent comes back when it leaves the window; with "
            "little left, releases are repeated until then."
        )
    planned = (
        f"{mechanism} plans the spending of every window, so little or nothing left (0%) is as it should be: what leaves "
        "the window is spent again, and publishing goes on."
    )
    if max(shares) - min(shares) > _APART:
        planned += " Classes with much left are held to what the strictest one allows."
    return planned


def _lines(answer: StatusAnswer) -> list[str]:
    fresh = "-" if answer.fresh_rate is None else f"{answer.fresh_rate:.1%} of the last {answer.recent_slots} slots"
    writer = answer.writer
    started = f", starting {answer.slot_start}" if answer.slot_start else ""
    lines = [
        f"stream {answer.stream}, {answer.mechanism}, epoch {answer.epoch}",
        f"slot {answer.slot}" + (started if answer.slot else ": nothing published yet"),
        f"fresh {fresh}",
        f"{answer.members:,} members",
        f"writer: {'none' if writer is None else f'process {writer.pid} on {writer.host} since {writer.since}'}",
        f"journal: {answer.bytes:,} bytes, slots from {answer.first_kept} on",
    ]
    if answer.pending_changes:
        lines.append(f"{answer.pending_changes} changes of the registry take effect at the next slot boundary")
    lines += [elsewhere_sentence(one) for one in answer.released_elsewhere]
    lines += doubt_sentences(answer)
    if answer.changes_lost:
        lines.append(LOST)
    if answer.backup:
        lines.append("a backup: state --released-through SLOT before publishing from it")
    if answer.noted_slot is not None:
        lines.append(
            f"behind: slot {answer.noted_slot} is noted outside the journal, so it was put back, or its end is missing; "
            "state --released-through SLOT before publishing from it"
        )
    return lines + [f"unsafe: {reason}" for reason in answer.unsafe]


def elsewhere_sentence(slots: SlotsElsewhere) -> str:
    """Return the effect of a restore on slots that were released elsewhere."""
    which = f"slot {slots.last} was" if slots.first == slots.last else f"slots {slots.first} to {slots.last} were"
    return f"{which} released elsewhere (a backup was restored): charged with the most they could have cost, not drawn"


def doubt_sentences(answer: StatusAnswer | RestoreAnswer) -> list[str]:
    """Return the effect of a restore on the classes that users are counted in."""
    silent, in_doubt = answer.silent_through or 0, answer.in_doubt_through or 0
    sentences = [f"through slot {silent} no user is counted: settings may be lost"] if silent else []
    if in_doubt > silent:
        sentences.append(f"through slot {in_doubt} users are counted in stricter classes")
    return sentences


def _table(answer: StatusAnswer) -> Table:
    headings = ("window", "epsilon", "users", "left", "share")
    table = new_table("Budget left in the open window", [], headings, prose=[""])
    for row in answer.classes:
        bar = "█" * round(_BAR * row.share)
        share = f"{row.share:.0%}"
        table.add_row(
            str(row.window), f"{row.epsilon:g}", f"{row.users:,}", f"{row.left:.3f}", share, f"{bar:░<{_BAR}}"
        )
    return table
