"""`wevent mechanisms`."""

from __future__ import annotations

import click

from wevent.cli.answers import MechanismsAnswer, as_json
from wevent.cli.printing import print_entries
from wevent.publisher.catalogue import mechanisms


@click.command("mechanisms", epilog="Example: wevent mechanisms --json")
@click.option("--json", "wants_json", is_flag=True, help="Print an object, name to description.")
def command(wants_json: bool) -> None:
    """List the mechanisms that can publish, own ones included."""
    answer = MechanismsAnswer(mechanisms=mechanisms())
    if wants_json:
        click.echo(as_json(answer))
        return
    print_entries(answer.mechanisms)
