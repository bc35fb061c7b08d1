"""Options and streams of the commands that simulate."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from rich.console import Console

from wevent.cli.flags import INPUT_KEYS, chosen_config, option_flags
from wevent.cli.parameter_types import CANDIDATES, MECHANISMS, Word, parse_list
from wevent.core.options import option_kinds
from wevent.core.requirements import Population, Requirement
from wevent.errors import InvalidOption
from wevent.experiments.datasets.event_file import configured_stream
from wevent.experiments.datasets.recorded import Recorded
from wevent.experiments.requirement_sampling import Registered
from wevent.publishing.configuration import load_settings, read_config
from wevent.publishing.importing import read_wanted
from wevent.settings import Settings
from wevent.settings.values import SECOND_US, calendar_slots, parse_length
from wevent.streams.clock import SlotClock
from wevent.streams.requirements_file import Requirements

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
    """Return the options of commands that run mechanisms.

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
    """Return the values of `simulation_options` as arguments of `wevent.experiments.compare` and `plan`."""
    kinds = option_kinds()
    return {
        "mechanisms": None if given["mechanisms"] is None else parse_list(given["mechanisms"]),
        "options": {name: kind.read(given[name]) for name, kind in kinds.items() if given.get(name) is not None},
        "repeats": given["repeats"],
        "seed": given["seed"],
        "processes": given["jobs"],
    }


def seconds(text: str) -> float:
    """Return the length of a slot."""
    return parse_length(text) / SECOND_US


def say_left_out(console: Console, left_out: Mapping[str, str]) -> None:
    """Print the mechanisms that were not named and do not take the options; those with the same reason together."""
    for reason in dict.fromkeys(left_out.values()):
        names = ", ".join(name for name, own in left_out.items() if own == reason)
        console.print(f"Left out: {names}. {reason}", markup=False, highlight=False, soft_wrap=True)


EVENTS = "events"
"""The stream that a configuration declares."""
_ASSUMED = {"cells": 10, "slot": "1h"}


class Setup(NamedTuple):
    """What is known of the stream.

    Attributes:
        settings: with what nobody said assumed.
        said: the keys that somebody gave a value.
        config: the file that some of them are from.
    """

    settings: Settings
    said: frozenset[str]
    config: Path | None

    @property
    def options(self) -> dict[str, Any]:
        """Return the explicit options of a publisher in the configuration, the mechanism aside."""
        names = [name for name in option_kinds() if name not in ("mechanism", "special_days") and name in self.said]
        found = {name: getattr(self.settings, name) for name in names}
        settings, start = self.settings, self.settings.start_us
        if settings.days and start is not None:  # an automatic start is not known yet: all days are then alike
            clock = SlotClock(start, settings.slot_us)
            found["special_days"] = calendar_slots(settings.days, clock.slot_of, settings.timezone_us)
        return found

    def asked(self) -> Requirements | None:
        """Return the requirements, None without a requirements file."""
        return read_wanted(self.settings)

    def stream(self, asked: Requirements | None) -> Recorded:
        """Return the events of registered users.

        Raises:
            InvalidOption: if nothing names them, or cells are not declared.
        """
        for key, how in (("inputs", "--stream file:PATH"), ("cells", "--cells")):
            if key not in self.said:
                raise InvalidOption(
                    f"The stream has no {key}.", f"Use {how}, or set {key} in a configuration.", option=key
                )
        return configured_stream(self.settings, asked)


def known_setup(given: Mapping[str, Any], name: str | None) -> Setup | None:
    """Return the set-up from the configuration and the input options; None if there is neither.

    ./wevent.toml is looked for unless a stream is named.

    Args:
        given: what stands on the command line.
        name: of the stream, None if it is not named.
    """
    said = {key: given[key] for key in INPUT_KEYS if given.get(key) is not None}
    config = chosen_config(given["config"], {}) if name in (None, EVENTS) else given["config"]
    if config is None and not said and name != EVENTS:
        return None
    values = {} if config is None else read_config(config)
    if name is not None and name.startswith("file:"):
        said["inputs"] = (name.removeprefix("file:"),)
    known = {**values, **said}
    assumed = {key: value for key, value in _ASSUMED.items() if key not in known}
    if "slot_column" in known:
        assumed.pop("slot", None)
    if "start" not in known and "slot_column" not in known:
        assumed["start"] = "auto"  # a simulation may read its clock from the events
    settings = load_settings(config, {"inputs": ("-",) if "inputs" not in known else None, **assumed, **said})
    return Setup(settings, frozenset(known), config)


def population_asked(asked: Requirements) -> Population:
    """Return the population of the requirements."""
    return Population({Requirement.from_nano(*key): size for key, size in asked.keys.sizes().items()})


def registered(asked: Requirements) -> Registered:
    """Everybody with what they ask for."""
    return Registered(
        tuple(Requirement.from_nano(*key) for key in asked.keys.distinct), asked.keys.codes.astype(np.int64)
    )
