"""`wevent audit`."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from wevent.auditing.mechanism_audit import AUDITS, audit_mechanism
from wevent.cli.answers import AuditAnswer, ShownAnswer, as_json
from wevent.cli.console import new_table, print_table, progress_bar, remarks
from wevent.cli.flags import option_flags
from wevent.cli.parameter_types import MECHANISM, Word, parse_list
from wevent.cli.pictures import PICTURE, draw
from wevent.core.options import option_kinds
from wevent.errors import ReaderGone


@click.command("audit", epilog="Example: wevent audit pbd --seconds 60 --plot audit.png")
@click.argument("mechanism", type=MECHANISM)
@click.option(
    "--seconds",
    default=60.0,
    show_default=True,
    type=click.FloatRange(1.0),
    help="Approximate duration of all audits together.",
)
@click.option(
    "--audits",
    type=Word(*AUDITS, checked=False),
    default=",".join(AUDITS),
    show_default=True,
    help="Audits to run, separated by commas.",
)
@click.option(
    "--confidence",
    default=0.95,
    show_default=True,
    type=click.FloatRange(0.5, 1.0, max_open=True),
    help="Probability that an honest mechanism is not called broken.",
)
@click.option(
    "--seed",
    default=1,
    show_default=True,
    type=click.IntRange(0),
    help="Seed of the choices of the audits; the noise is the mechanism's own.",
)
@option_flags(without=("mechanism", "special_days"))
@click.option("--plot", type=PICTURE, help="Draw shown losses beside the guarantees into a file.")
@click.option("--json", "wants_json", is_flag=True, help="Print the report as JSON.")
def command(mechanism: str, **given: Any) -> None:
    """Test whether a mechanism keeps its guarantee, with invented streams.

    The mechanism may be one of `wevent mechanisms` or your own, made known by an entry point.

    \b
    exact      computes the probabilities of outputs on neighbouring streams
    black-box  counts an event in runs on neighbouring streams (Clopper-Pearson bound)

    An audit reports the largest loss that it can show. That nothing is found proves nothing.

    Exit code 0: nothing found; 1: the guarantee is broken; 2: a mistake in the input; 3: an audit cannot say.
    """  # noqa: D301  click needs the backslash
    console = remarks(silent=given["wants_json"])
    options = {name: kind.read(given[name]) for name, kind in option_kinds().items() if given.get(name) is not None}
    with progress_bar(console, "seconds") as show:
        result = audit_mechanism(
            mechanism,
            seconds=given["seconds"],
            seed=given["seed"],
            confidence=given["confidence"],
            audits=parse_list(given["audits"]),
            progress=show,
            **options,
        )
    answer = msgspec.convert({**result.to_dict(), "plot": None}, AuditAnswer)
    with suppress(ReaderGone):  # a reader that has seen enough changes no verdict
        if not given["wants_json"]:
            _print(answer)
        if given["plot"] is not None and _draw(console, answer, given["plot"]):
            answer.plot = str(given["plot"])
        if given["wants_json"]:
            click.echo(as_json(answer))
        sys.stdout.flush()
    if not answer.ok:
        sys.exit(1 if answer.verdict == "broken" else 3)


def _print(answer: AuditAnswer) -> None:
    numbers = ("window", "promised ε", "shown ε", "trials", "seconds")
    table = new_table(_title(answer), ["audit", "verdict"], numbers)
    for row in answer.findings:
        table.add_row(*_cells(row))
    print_table(table)
    for row in answer.findings:
        if row.broken:  # of the others --json has them
            click.echo(f"Witness of {row.audit}, window {row.window}, ε {row.epsilon:g}: {row.witness}.")
    for obstacle, audits in _obstacles(answer).items():
        click.echo(f"Obstacle of {', '.join(audits)}: {obstacle}.")
    click.echo(answer.meaning)


def _obstacles(answer: AuditAnswer) -> dict[str, list[str]]:
    """Return the audits by what kept them from computing; a broken guarantee needs no other remark."""
    found: dict[str, list[str]] = {}
    for row in answer.findings:
        if row.obstacle and not row.broken and row.audit not in found.setdefault(row.obstacle, []):
            found[row.obstacle].append(row.audit)
    return found


def _title(answer: AuditAnswer) -> str:
    options = "".join(f", {name.replace('_', ' ')} {value}" for name, value in answer.options.items())
    return f"{answer.mechanism}{options}: what was shown of what is promised ({answer.confidence:.3g} sure)"


def _cells(row: ShownAnswer) -> list[str]:
    return [
        row.audit,
        "BROKEN" if row.broken else row.verdict,
        str(row.window),
        f"{row.epsilon:g}",
        "∞" if row.shown is None else f"{row.shown:.3f}" if row.epsilon >= 0.01 else f"{row.shown:.3g}",
        f"{row.trials:,}",
        f"{row.seconds:.1f}",
    ]


def _draw(console: Console, answer: AuditAnswer, path: Path) -> bool:
    def paint(_: object) -> None:
        from wevent.plotting.audit_figure import ShownLoss, draw_audit

        rows = [
            ShownLoss(
                f"{row.audit}, {row.window} slot{'s' if row.window > 1 else ''}, ε = {row.epsilon:g}",
                row.epsilon,
                math.inf if row.shown is None else row.shown,
                row.broken,
            )
            for row in answer.findings
        ]
        title = (
            f"{answer.mechanism} breaks a promise"
            if answer.verdict == "broken"
            else f"No broken promise of {answer.mechanism} was found" + ("" if answer.ok else "; an audit cannot say")
        )
        draw_audit(title, answer.meaning, rows, path)

    return draw(console, "Shown and promised", path, paint)
