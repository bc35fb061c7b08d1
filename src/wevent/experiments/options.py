"""Reading the words of the command line: lists, durations."""

from __future__ import annotations

from wevent.errors import InvalidOption

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_list(text: str) -> list[str]:
    """`a,b,c` without blanks and empty entries."""
    return [part.strip() for part in text.split(",") if part.strip()]


def parse_windows(text: str) -> list[int]:
    """Whole numbers of slots.

    Raises:
        InvalidOption: for anything else.
    """
    try:
        windows = [int(part) for part in parse_list(text)]
    except ValueError:
        windows = []
    if not windows:
        raise InvalidOption(
            "windows as whole numbers of slots", f"{text!r}", "For example 40,80,120.", option="windows", value=text
        )
    return windows


def parse_epsilons(text: str) -> list[str]:
    """Epsilons as decimal strings; what they may be is for `Requirement` to say."""
    epsilons = parse_list(text)
    if not epsilons:
        raise InvalidOption(
            "at least one epsilon", f"{text!r}", "For example 0.6,0.8,1.0.", option="epsilons", value=text
        )
    return epsilons


def parse_duration(text: str) -> float:
    """Seconds from `90`, `90s`, `5m`, `1h` or `1d`.

    Raises:
        InvalidOption: for anything else.

    >>> parse_duration("5m")
    300.0
    """
    unit = text[-1:].lower()
    number = text[:-1] if unit in _UNITS_S else text
    try:
        seconds = float(number) * _UNITS_S.get(unit, 1.0)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < 1e10:
        raise InvalidOption(
            "a duration such as 90s, 5m, 1h or 1d",
            f"{text!r}",
            "Give a number and a unit.",
            option="slot_length",
            value=text,
        )
    return seconds
