"""`wevent init`."""

from __future__ import annotations

from pathlib import Path

import click

from wevent.cli.answers import InitAnswer, as_json
from wevent.cli.standard_output import report
from wevent.errors import InvalidSettings
from wevent.experiments.example import FILES, write_example


@click.command("init", epilog="Example: wevent init city && wevent publish --config city/wevent.toml")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--json", "wants_json", is_flag=True, help="Print the names of the files as JSON.")
def command(folder: Path, wants_json: bool) -> None:
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
    answer = InitAnswer(written=[str(path) for path in written], next=f"wevent publish --config {written[0]}")
    text = "\n".join([*(f"Wrote {path}" for path in answer.written), f"Next: {answer.next}"])
    report(as_json(answer) if wants_json else text, "The example was written.", asked=wants_json)
