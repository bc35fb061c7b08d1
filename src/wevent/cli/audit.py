"""`wevent audit`."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path

import click

from wevent.auditing import Report, audit_journal
from wevent.cli.flags import chosen_journal, journal_flags
from wevent.core.budget import NANO
from wevent.errors import ReaderGone


@click.command("audit", epilog="Example: wevent audit run.journal --json")
@journal_flags
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(journal: Path | None, config: Path | None, as_json: bool) -> None:
    """Re-check every window of every class, every slot, the hash chain and the settings of a journal.

    Exit code 0: nothing found; 1: a violation; 2: the journal cannot be read.
    """
    report = audit_journal(chosen_journal(journal, config))
    with suppress(ReaderGone):  # a reader that has seen enough changes no verdict
        click.echo(json.dumps(report.to_dict(), indent=2) if as_json else _text(report))
        sys.stdout.flush()
    if not report.ok:
        sys.exit(1)


def _text(report: Report) -> str:
    lines = [f"{report.slots} slots from slot {report.first} on, {len(report.classes)} classes"]
    for (window, nano), worst in sorted(report.classes.items()):
        lines.append(f"  window {window:>6}  epsilon {nano / NANO:<9g} worst window spend {worst / NANO:.9f}")
    lines += [f"unsafe: {reason}" for reason in report.unsafe]
    for violation in report.violations[:20]:
        facts = "".join(f", {name} {value}" for name, value in violation.items() if name not in ("slot", "problem"))
        lines.append(f"VIOLATION in slot {violation['slot']}: {violation['problem']}{facts}")
    more = len(report.violations) - 20
    if more > 0:
        lines.append(f"… and {more} more (see --json)")
    lines.append("clean: no window of any class spent more than its epsilon" if report.ok else "not clean")
    return "\n".join(lines)
