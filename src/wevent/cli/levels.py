"""`wevent levels`."""

from __future__ import annotations

import math
from pathlib import Path

import click

from wevent.cli.answers import LevelAnswer, LevelsAnswer, as_json
from wevent.cli.flags import chosen_settings
from wevent.cli.parameter_types import JOURNAL
from wevent.cli.printing import new_table, print_table
from wevent.core.budget import NANO
from wevent.errors import InvalidOption
from wevent.journal import JournalPlace, open_journal
from wevent.publishing.views import LevelOffer, LevelRow, configured_offer, read_offer
from wevent.streams.clock import SECOND_US
from wevent.streams.windows import span_text


@click.command("levels", epilog="Example: wevent levels run.journal")
@click.argument("journal", required=False, type=JOURNAL)
@click.option(
    "--config", type=click.Path(path_type=Path), help="A TOML file: what it offers.  [default: ./wevent.toml]"
)
@click.option("--json", "wants_json", is_flag=True, help="Print one object.")
def command(journal: JournalPlace | None, config: Path | None, wants_json: bool) -> None:
    """Show the levels of a stream and how many users chose each.

    Of a journal: users who are registered now. Of a configuration: users in its requirements file. The number of users per
    level is not public. The number of users counted in each class is: `wevent status` shows it.
    """
    if journal is not None and config is not None:
        raise InvalidOption("a journal or --config", "both", "Give one of them.", option="config")
    if journal is None:
        offer = configured_offer(chosen_settings(config, {})[0])
    else:
        with open_journal(journal) as source:
            source.registry.check()
            offer = read_offer(source)
    answer = _answer(offer)
    if wants_json:
        click.echo(as_json(answer))
        return
    _print(answer, "registered people" if journal is not None else "people in the requirements file")


def _answer(offer: LevelOffer) -> LevelsAnswer:
    return LevelsAnswer(
        slot_seconds=None if offer.slot_us is None else offer.slot_us / SECOND_US,
        declared=offer.declared,
        levels=[_row(row) for row in offer.rows if row.level is not None],
        numbers=[_row(row) for row in offer.rows if row.level is None],
        notes=list(offer.notes),
    )


def _row(row: LevelRow) -> LevelAnswer:
    window, nano = row.requirement
    return LevelAnswer(
        level=row.level,
        window=window,
        span=row.span,
        epsilon=nano / NANO,
        odds=math.exp(nano / NANO),
        users=row.size,
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
