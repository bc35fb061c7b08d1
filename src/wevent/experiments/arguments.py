"""What a program hands to `compare` and `plan`, checked before anything runs: a mistake is one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np

from wevent.core.requirements import Population
from wevent.errors import InvalidOption, InvalidPopulation
from wevent.experiments.assign import Assigner, Registered
from wevent.experiments.datasets import StreamRequest
from wevent.experiments.datasets.stream import Stream, times_of
from wevent.settings.values import parse_cycles


def check_arguments(stream: object, options: object, progress: object, **numbers: object) -> None:
    """Refuse what `compare` and `plan` cannot work with.

    Args:
        stream: a stream, a request for one, or its name.
        options: of `wevent.Publisher`, by name, or None.
        progress: what is called before each run.
        numbers: whole numbers by name; seed and timed_slots may be 0, others are at least 1.

    Raises:
        InvalidOption: naming the argument.
    """
    if not isinstance(stream, (str, StreamRequest)) and not all(hasattr(stream, name) for name in _OF_A_STREAM):
        raise _refuse("stream", "a stream, a StreamRequest or a name", stream, "Write 'sin' or 'file:events.csv'.")
    if options is not None and not isinstance(options, Mapping):
        raise _refuse("options", "a mapping of names to values", options, "Write {'neighbours': 'replace'}.")
    if not callable(progress):
        raise _refuse("progress", "something to call", progress, "Leave it out, or give a function.")
    for name, value in numbers.items():
        least = 0 if name in ("seed", "timed_slots") else 1
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
            raise _refuse(name, f"a whole number, at least {least}", value, "Correct the number.")


def in_slots(options: Mapping[str, Any] | None, stream: Stream) -> Mapping[str, Any] | None:
    """Options with a cycle that is a length of time turned into slots of this stream.

    Raises:
        InvalidSettings: if that cannot be, as of `parse_cycles`.
    """
    if options is None or "seasonality" not in options:
        return options
    length = times_of(stream).length
    slot_us = None if length is None else length // timedelta(microseconds=1)
    return {**options, "seasonality": parse_cycles(options["seasonality"], slot_us)}


def check_assigner(assigner: object) -> None:
    """Refuse what is no assigner.

    Raises:
        InvalidOption: with an example of one.
    """
    if assigner is not None and not isinstance(assigner, Assigner | Registered):
        raise _refuse("assigner", "an Assigner", assigner, "Write Assigner('equal', ['0.5', '1'], [24, 48]).")


def check_planned(population: object) -> None:
    """Refuse a population that nobody is in.

    Raises:
        InvalidPopulation: saying how one is written.
    """
    if not isinstance(population, Population):
        raise InvalidPopulation(
            "a Population", type(population).__name__, "Write Population({Requirement(24, 1): 900, …})."
        )
    if not population.users:
        raise InvalidPopulation(
            "a population with at least one user", "classes without any", "Say how many users will hold each level."
        )


_OF_A_STREAM = tuple(name for name in vars(Stream) if not name.startswith("_"))


def _refuse(name: str, expected: str, value: Any, remedy: str) -> InvalidOption:
    shown = f"{value!r}" if isinstance(value, (int, float, str)) or value is None else type(value).__name__
    return InvalidOption(f"{name} to be {expected}", shown, remedy, option=name, value=value)
