"""Reading the words of the command line: lists, classes of users."""

from __future__ import annotations

from collections.abc import Sequence

from wevent.core.requirements import Levels, Population, Requirement
from wevent.errors import InvalidOption


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
            f"Invalid windows {text!r}.", "Write whole numbers of slots, e.g. 40,80,120.", option="windows", value=text
        )
    return windows


def parse_epsilons(text: str) -> list[str]:
    """Epsilons as decimal strings; what they may be is for `Requirement` to say."""
    epsilons = parse_list(text)
    if not epsilons:
        raise InvalidOption(
            f"No epsilon in {text!r}.", "Write at least one, e.g. 0.6,0.8,1.0.", option="epsilons", value=text
        )
    return epsilons


def parse_class(text: str, levels: Levels | None = None) -> tuple[Requirement, int]:
    """`120:0.6=7000` (window, epsilon, users) or `High/Large=7000` (a level, of the default ones if None).

    Raises:
        InvalidOption: for anything else.
        InvalidRequirement: for a level that is not offered, or numbers that no promise can be built on.

    >>> parse_class("120:0.6=7000")
    (Requirement(window=120, epsilon=0.6), 7000)
    """
    level, _, users = text.rpartition("=")
    words = "/".join(word.strip() for word in level.split("/"))
    table = levels or Levels.default()
    if users.strip().isdecimal() and ("/" in words or words in table.combined):
        return table.choose(words), int(users)
    window, colon, epsilon = level.partition(":")
    if users.strip().isdecimal() and colon and window.strip().isdecimal():
        return Requirement(int(window), epsilon.strip()), int(users)
    raise InvalidOption(
        f"Invalid class {text!r}.",
        "Write WINDOW:EPSILON=USERS or LEVEL=USERS, e.g. --class 120:0.6=7000 or --class High/Large=7000.",
        option="class",
        value=text,
    )


def population_of(classes: Sequence[tuple[Requirement, int]]) -> Population:
    """The planned population; a level named twice counts together."""
    sizes: dict[Requirement, int] = {}
    for requirement, users in classes:
        sizes[requirement] = sizes.get(requirement, 0) + users
    return Population(sizes)
