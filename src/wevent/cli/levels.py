"""`wevent levels`."""

from __future__ import annotations

from pathlib import Path

import click

from wevent.cli.answers import LevelAnswer, LevelsAnswer, as_json
from wevent.cli.console import new_table, print_table
from wevent.cli.flags import chosen_settings
from wevent.cli.parameter_types import JOURNAL
from wevent.errors import InvalidOption
from wevent.journal import JournalAddress, open_journal
from wevent.publishing.views import configured_levels, read_levels
from wevent.schemas import OfferedLevel
from wevent.settings.values import SECOND_US, span_text


@click.command("levels", epilog="Example: wevent levels run.journal")
@click.argument("journal", required=False, type=JOURNAL)
@click.option(
    "--config", type=click.Path(path_type=Path), help="A TOML file: what it offers.  [default: ./wevent.toml]"
)
@click.option("--json", "wants_json", is_flag=True, help="Print one object.")
def command(journal: JournalAddress | None, config: Path | None, wants_json: bool) -> None:
    """List privacy levels and how many users chose each.

    Of a journal: users who are registered now. Of a configuration: users in its requirements file. The number of users per
    level is not public. The number of users counted in each class is: `wevent status` shows it.
    """
    if journal is not None and config is not None:
        raise InvalidOption("A journal and --config exclude each other.", "Give one of them.", option="config")
    if journal is None:
        settings = chosen_settings(config, {})[0]
        declared = settings.levels is not None
        table, notes = configured_levels(settings)
    else:
        with open_journal(journal) as source:
            source.registry.check()
            declared = source.head().epoch.terms.level_table is not None
            table, notes = read_levels(source), ()
    answer = LevelsAnswer(
        slot_seconds=table.slot_length_s,
        declared=declared,
        levels=[_row(row) for row in table.rows if row.level is not None],
        numbers=[_row(row) for row in table.rows if row.level is None],
        notes=list(notes),
    )
    if wants_json:
        click.echo(as_json(answer))
        return
    _print(answer, "registered people" if journal is not None else "people in the requirements file")


def _row(row: OfferedLevel) -> LevelAnswer:
    return LevelAnswer(
        level=row.level,
        window=row.window,
        span=row.span,
        epsilon=row.epsilon,
        odds=row.odds,
        users=row.users,
    )


def _print(answer: LevelsAnswer, whose: str) -> None:
    seconds, rows = answer.slot_seconds, (*answer.levels, *answer.numbers)
    clock = (
        "slots have numbers and no length" if seconds is None else f"a slot is {span_text(round(seconds * SECOND_US))}"
    )
    table = new_table(f"Levels ({clock})", ["level", "protects"], ["window", "epsilon", "users"])
    for row in rows:
        users = "-" if row.users is None else f"{row.users:,}"
        span = f"any {row.window} slots" if row.span is None else f"any {row.span}"
        table.add_row(row.level or "(numbers)", span, f"{row.window}", f"{row.epsilon:g}", users)
    print_table(table)
    said = [*answer.notes]
    if not answer.declared:
        said.append("No [levels] are declared: these are the default words.")
    if rows:
        ends = {row.epsilon: row.odds for row in (min(rows, key=_epsilon), max(rows, key=_epsilon))}
        odds = ", ".join(f"{factor:.3g} at {epsilon:g}" for epsilon, factor in ends.items())
        said.append(
            "epsilon: all that is ever published changes the odds that somebody was there, in such a time, by a factor of "
            f"at most e^epsilon: {odds}."
        )
    said.append(f"users: {whose} with this requirement, by any name.")
    click.echo("\n".join(said))


def _epsilon(row: LevelAnswer) -> float:
    return row.epsilon
