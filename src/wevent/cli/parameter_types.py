"""Types of values on the command line: words, mechanisms, files, lists, classes of users; completed by the shell.

Errors are those of the settings: an unknown word passes through to where the setting is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from wevent.core.requirements import Levels, Population, Requirement
from wevent.errors import InvalidOption, did_you_mean

if TYPE_CHECKING:
    from wevent.journal.address import JournalAddress

    _Text = click.ParamType[str]
    _Place = click.ParamType[JournalAddress]
else:  # not generic in older versions of click
    _Text = _Place = click.ParamType


class Word(_Text):
    """One word out of a list.

    Args:
        known: the words.
        checked: whether another word is refused here; if not, whoever reads the setting refuses it.
    """

    name = "word"

    def __init__(self, *known: str, checked: bool = True) -> None:
        self.known, self._checked = known, checked

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(self.known)}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if self._checked and value not in self.known:
            fix = did_you_mean(str(value), self.known, f"Use one of {', '.join(self.known)}.")
            self.fail(f"Unknown value {value!r}. {fix}", param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(word) for word in self.known if word.startswith(incomplete)]


class _MechanismName(_Text):
    """A mechanism; what exists is asked when the shell completes, not when the program starts."""

    name = "mechanism"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from wevent.publisher.catalogue import mechanisms

        return [CompletionItem(name, help=text) for name, text in mechanisms().items() if name.startswith(incomplete)]


class _MechanismNames(_Text):
    """Mechanisms, separated by commas.

    Args:
        baselines: whether those that can only be compared with are among them.
    """

    name = "mechanisms"

    def __init__(self, *, baselines: bool = False) -> None:
        self._baselines = baselines

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, begun = incomplete.rpartition(",")
        items = MECHANISM.shell_complete(ctx, param, begun)
        if self._baselines:
            from wevent.publisher.catalogue import SIMULATED_ONLY

            items += [
                CompletionItem(name, help=text) for name, text in SIMULATED_ONLY.items() if name.startswith(begun)
            ]
        return [CompletionItem(f"{before}{comma}{item.value}", help=item.help) for item in items]


class _FileName(_Text):
    """A file, or a word in its place; whoever reads the setting checks it."""

    name = "file"

    def __init__(self, *words: str) -> None:
        self._words = words

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        words = [CompletionItem(word) for word in self._words if incomplete and word.startswith(incomplete)]
        return [*words, CompletionItem(incomplete, type="file")]


class _Journal(_Place):
    """A journal: a file, or the address of a database; an empty name stays empty (`JournalGroup`)."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from wevent.journal.address import parse_address

        return parse_address(value) if value else Path()

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


MECHANISM = _MechanismName()
MECHANISMS = _MechanismNames()
CANDIDATES = _MechanismNames(baselines=True)
FILE = _FileName()
JOURNAL = _Journal()
STREAM = _FileName("city", "tlns", "sin", "log", "taxi", "foursquare", "daily", "file:")
ASSIGNMENT = Word("types", "equal", "independent", "ratio:", "csv:", checked=False)


def parse_list(text: str) -> list[str]:
    """Return the entries of `a,b,c` without blanks and empty ones."""
    return [part.strip() for part in text.split(",") if part.strip()]


def parse_windows(text: str) -> list[int]:
    """Return windows in slots.

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
    """Read `120:0.6=7000` (window, epsilon, users) or `High/Large=7000` (a level, of the default ones if None).

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
    """Return the planned population; a level named twice counts together."""
    sizes: dict[Requirement, int] = {}
    for requirement, users in classes:
        sizes[requirement] = sizes.get(requirement, 0) + users
    return Population(sizes)
