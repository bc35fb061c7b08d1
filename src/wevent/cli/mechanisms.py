"""`wevent mechanisms`."""

from __future__ import annotations

import click

from wevent.cli.answers import MechanismsAnswer, as_json
from wevent.cli.console import print_entries
from wevent.publisher.catalogue import SIMULATED_ONLY, mechanisms


@click.command("mechanisms", epilog="Example: wevent mechanisms --json")
@click.option("--json", "wants_json", is_flag=True, help="Print an object, nothing else.")
def command(wants_json: bool) -> None:
    """List mechanisms, and the baselines that can only be compared with."""
    answer = MechanismsAnswer(mechanisms=mechanisms(), baselines=dict(SIMULATED_ONLY))
    if wants_json:
        click.echo(as_json(answer))
        return
    print_entries(answer.mechanisms)
    click.echo("\nSimulated by `wevent compare` only, never published with:")
    print_entries(answer.baselines)
