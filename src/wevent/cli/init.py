"""`wevent init`."""

from __future__ import annotations

from pathlib import Path

import click

from wevent.cli.answers import InitAnswer, as_json
from wevent.cli.standard_output import report
from wevent.errors import InvalidSettings
from wevent.experiments.example import FILES, write_example
from wevent.publishing.template import write_template


@click.command("init", epilog="Example: wevent init city && wevent publish --config city/wevent.toml")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--from",
    "events",
    metavar="EVENTS",
    help="Write a configuration and a requirements file to fill in, from the columns of your own events.",
)
@click.option("--json", "wants_json", is_flag=True, help="Print the names of the files as JSON.")
def command(folder: Path | None, events: str | None, wants_json: bool) -> None:
    """Create a configuration, from an example or from your own events.

    Without --from, DIR gets a commented example: configuration, requirements, cells and a day of invented events, ready
    to publish. With --from EVENTS (CSV, NDJSON or Parquet), the names and types of your columns are used, none of their
    values: start, end, cells and requirements stay blank, and DIR is the working directory unless named. Existing files
    are never overwritten.
    """
    if events is not None:
        _fill_in(events, folder or Path(), wants_json=wants_json)
        return
    if folder is None:
        raise InvalidSettings("Neither DIR nor --from EVENTS is given.", "Name a folder for the example.", key="DIR")
    present = [name for name in FILES if (folder / name).exists()]
    if present:
        raise InvalidSettings(
            f"{folder} already contains {', '.join(present)}.",
            "Choose another folder, or remove these files.",
            key="DIR",
        )
    try:
        written = write_example(folder)
    except OSError as error:
        raise _unwritable(folder, error) from None
    _say(InitAnswer(written=[str(path) for path in written], next=f"wevent publish --config {written[0]}"), wants_json)


def _fill_in(events: str, folder: Path, *, wants_json: bool) -> None:
    try:
        written = write_template(events, folder)
    except OSError as error:
        raise _unwritable(folder, error) from None
    names = [str(path) for path in written.files]
    _say(InitAnswer(written=names, next=f"wevent check {names[0]}", blank=written.blank), wants_json)


def _say(answer: InitAnswer, wants_json: bool) -> None:
    lines = [f"Wrote {path}" for path in answer.written]
    if answer.blank:
        config, *requirements = answer.written
        who = f", and who asks for what in {requirements[0]}" if requirements else ""
        lines.append(f"Fill in {', '.join(answer.blank)} in {config}{who}.")
    text = "\n".join([*lines, f"Next: {answer.next}"])
    report(as_json(answer) if wants_json else text, "The files were written.", asked=wants_json)


def _unwritable(folder: Path, error: OSError) -> InvalidSettings:
    return InvalidSettings(f"Cannot write to {str(folder)!r}: {error.strerror}.", "Choose another folder.", key="DIR")
