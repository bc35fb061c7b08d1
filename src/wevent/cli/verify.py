"""`wevent verify`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import msgspec
from rich.table import Table

from wevent.cli.answers import VerifyAnswer, Violation, as_json
from wevent.cli.console import new_table, print_table
from wevent.cli.flags import chosen_journal, journal_flags
from wevent.cli.status import elsewhere_sentence
from wevent.errors import ReaderGone
from wevent.journal.address import JournalAddress
from wevent.verification import verify_journal

_SHOWN = 20  # violations


@click.command("verify", epilog="Example: wevent verify run.journal --json")
@journal_flags
@click.option("--json", "wants_json", is_flag=True, help="Print the report as JSON.")
def command(journal: JournalAddress | None, config: Path | None, wants_json: bool) -> None:
    """Verify that no window of a journal exceeds its epsilon.

    Recomputes the spending of every window of every class, the hash chain, the settings and the last slot. Exit code 0
    if the journal is valid, 1 if a violation was found, 2 if the journal cannot be read.
    """
    answer = msgspec.convert(verify_journal(chosen_journal(journal, config)).to_dict(), VerifyAnswer)
    with suppress(ReaderGone):  # a reader that has seen enough changes no verdict
        if wants_json:
            click.echo(as_json(answer))
        else:
            click.echo(f"{answer.slots} slots from slot {answer.first} on, {len(answer.classes)} classes")
            print_table(_table(answer))
            click.echo("\n".join(_lines(answer)))
        sys.stdout.flush()
    if not answer.ok:
        sys.exit(1)


def _table(answer: VerifyAnswer) -> Table:
    table = new_table("Worst window of every class", [], ("window", "epsilon", "worst window spend"))
    for row in answer.classes:
        table.add_row(str(row.window), f"{row.epsilon:g}", f"{row.worst_window_spend:.9f}")
    return table


def _lines(answer: VerifyAnswer) -> Iterator[str]:
    yield from (elsewhere_sentence(one) for one in answer.released_elsewhere)
    if answer.witness_problem is not None:
        yield f"{answer.witness_problem}: the end of the journal was not checked against a witness"
    if answer.write_ahead_slot is not None:
        yield f"slots through {answer.write_ahead_slot} are in the write-ahead record only: the next writer stores them"
    yield from (f"unsafe: {reason}" for reason in answer.unsafe)
    yield from (_said(violation) for violation in answer.violations[:_SHOWN])
    more = len(answer.violations) - _SHOWN
    if more > 0:
        yield f"… and {more} more (see --json)"
    yield "clean: no window of any class spent more than its epsilon" if answer.ok else "not clean"


def _said(violation: Violation) -> str:
    figures = {name: getattr(violation, name) for name in ("window", "epsilon", "spend", "limit")}
    facts = "".join(f", {name} {value}" for name, value in figures.items() if value is not None)
    return f"VIOLATION in slot {violation.slot}: {violation.problem}{facts}"
