"""`wevent levels`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from wevent.cli.printing import new_table, print_table
from wevent.core.budget import NANO
from wevent.errors import InvalidOption
from wevent.journal import open_journal
from wevent.publishing.configuration import load_settings
from wevent.publishing.offering import Offer, Offered, offer_of_journal, offer_of_settings
from wevent.streams.windows import span_text


@click.command("levels", epilog="Example: wevent levels run.journal")
@click.argument("journal", required=False, type=click.Path(path_type=Path))
@click.option(
    "--config", type=click.Path(path_type=Path), help="A TOML file: what it offers, before there is a journal."
)
@click.option("--json", "as_json", is_flag=True, help="Print one object.")
def command(journal: Path | None, config: Path | None, as_json: bool) -> None:
    """Show which levels a stream offers, what each protects in time, and how many people hold it; all of it is public.

    Of a journal: who is registered now, and how many of them wait. With --config: who is in its requirements file.
    """
    if (journal is None) == (config is None):
        raise InvalidOption(
            "a journal or --config", "neither" if journal is None else "both", "Give one of them.", option="config"
        )
    if config is not None:
        offer = offer_of_settings(load_settings(config, {}))
    else:
        assert journal is not None
        with open_journal(journal) as source:
            offer = offer_of_journal(source)
    if as_json:
        click.echo(json.dumps(_plain(offer), indent=2))
        return
    _print(offer, "registered" if journal is not None else "in the requirements file")


def _plain(offer: Offer) -> dict[str, Any]:
    return {
        "slot_seconds": None if offer.slot_us is None else offer.slot_us / 1_000_000,
        "declared": offer.declared,
        "levels": [_row(row) for row in offer.rows if row.level is not None],
        "numbers": [_row(row) for row in offer.rows if row.level is None],
        "notes": list(offer.notes),
    }


def _row(row: Offered) -> dict[str, Any]:
    window, nano = row.requirement
    return {
        "level": row.level,
        "window": window,
        "span": row.span,
        "epsilon": nano / NANO,
        "users": None if row.size is None else row.size.registered,
        "waiting": None if row.size is None else row.size.waiting,
    }


def _print(offer: Offer, whose: str) -> None:
    clock = "slots have numbers and no length" if offer.slot_us is None else f"a slot is {span_text(offer.slot_us)}"
    table = new_table(f"Levels ({clock})", ["level", "protects"], ["window", "epsilon", "users", "waiting"])
    for row in offer.rows:
        window, nano = row.requirement
        sizes = ("-", "-") if row.size is None else (f"{row.size.registered:,}", f"{row.size.waiting:,}")
        span = f"any {window} slots" if row.span is None else f"any {row.span}"
        table.add_row(row.level or "(numbers)", span, f"{window}", f"{nano / NANO:g}", *sizes)
    print_table(table)
    said = [*offer.notes]
    if not offer.declared:
        said.append("No [levels] are declared: these are the default words.")
    said.append(f"users: how many people {whose} hold the requirement, in whatever words; waiting: not counted yet.")
    click.echo("\n".join(said))
