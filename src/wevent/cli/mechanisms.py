"""`wevent mechanisms`."""

from __future__ import annotations

import json

import click

from wevent.publisher.catalogue import mechanisms


@click.command("mechanisms", epilog="Example: wevent mechanisms --json")
@click.option("--json", "as_json", is_flag=True, help="Print an object, name to description.")
def command(as_json: bool) -> None:
    """List the mechanisms that can publish, own ones included."""
    known = mechanisms()
    if as_json:
        click.echo(json.dumps(known, indent=2))
        return
    width = max(map(len, known))
    for name, summary in known.items():
        click.echo(f"{name:<{width}}  {summary}")
