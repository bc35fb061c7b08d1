"""What the commands that simulate have in common: their options, and what they say about mechanisms left out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from wevent.cli.flags import option_flags
from wevent.cli.parameter_types import CANDIDATES, MECHANISMS, Word
from wevent.cli.words import parse_list
from wevent.core.options import option_kinds
from wevent.settings.values import SECOND_US, parse_length

Command = Callable[..., Any]

DATA = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=lambda: Path(os.environ.get("WEVENT_DATA", "data")),
    help="Folder with the raw files of taxi/ and foursquare/.  [default: $WEVENT_DATA or data]",
)
SEED = click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Same seed, same figures.")
VARIANT = click.option(
    "--variant",
    type=Word("printed", "authors"),
    default="printed",
    show_default=True,
    help="Synthetic streams as the paper prints them, or as its authors' code draws them.",
)

_RUNS = (
    click.option("--repeats", default=5, show_default=True, type=click.IntRange(1), help="Runs of each mechanism."),
    SEED,
    click.option(
        "--jobs", default=1, show_default=True, type=click.IntRange(1), help="Processes; the figures stay the same."
    ),
)


def simulation_options(*, baselines: bool = False) -> Callable[[Command], Command]:
    """The options of commands that run mechanisms: which, how often, and what a publisher can be told.

    Args:
        baselines: whether mechanisms that cannot publish may be named, too.
    """
    also = "; also the baselines: spas, rescuedp, fast, pegasus, adapub" if baselines else ""
    which = click.option(
        "--mechanisms",
        type=CANDIDATES if baselines else MECHANISMS,
        default=None,
        help=f"Comma-separated; a word after a colon is an option of its own, as in bd:std or pbd:refund{also}.  "
        "[default: all that take the options]",
    )

    def decorate(command: Command) -> Command:
        command = option_flags(without=("mechanism", "special_days"))(command)
        for option in reversed((which, *_RUNS)):
            command = option(command)
        return command

    return decorate


def runs_wanted(given: Mapping[str, Any]) -> dict[str, Any]:
    """What `simulation_options` say, in the words of `wevent.experiments.compare` and `plan`."""
    kinds = option_kinds()
    return {
        "mechanisms": None if given["mechanisms"] is None else parse_list(given["mechanisms"]),
        "options": {name: kind.read(given[name]) for name, kind in kinds.items() if given.get(name) is not None},
        "repeats": given["repeats"],
        "seed": given["seed"],
        "processes": given["jobs"],
    }


def seconds(text: str) -> float:
    """The length of a slot."""
    return parse_length(text) / SECOND_US


def say_left_out(console: Console, left_out: Mapping[str, str]) -> None:
    """Mechanisms that were not named and do not take the options; those with the same reason together."""
    for reason in dict.fromkeys(left_out.values()):
        names = ", ".join(name for name, own in left_out.items() if own == reason)
        console.print(f"Left out: {names}. {reason}", markup=False, highlight=False, soft_wrap=True)
