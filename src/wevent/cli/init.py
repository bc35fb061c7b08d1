"""`wevent init`."""

from __future__ import annotations

from pathlib import Path

import click

from wevent.errors import InvalidSettings
from wevent.experiments.example import FILES, write_example


@click.command("init", epilog="Example: wevent init city && wevent publish --config city/wevent.toml")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write a commented example into DIR: configuration, requirements, cells and a day of invented events.

    It can be published at once, and is a start for a stream of your own. Existing files are never overwritten.
    """
    present = [name for name in FILES if (folder / name).exists()]
    if present:
        raise InvalidSettings(
            "a folder without an example",
            f"{str(folder)!r} with {', '.join(present)}",
            "Choose another folder, or remove these files.",
            key="DIR",
        )
    try:
        written = write_example(folder)
    except OSError as error:
        raise InvalidSettings(
            "a folder that can be written to",
            f"{str(folder)!r} ({error.strerror})",
            "Choose another folder.",
            key="DIR",
        ) from None
    for path in written:
        click.echo(f"Wrote {path}")
    click.echo(f"Next: wevent publish --config {written[0]}")
