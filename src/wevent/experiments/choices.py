"""Mechanisms as experiments name them: `pbd`; with options of their own `ba:std`, `pft:budget`, `pbd:refund:weighting`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wevent.core.mechanism import NoiseSource
from wevent.core.requirements import Population, Requirement
from wevent.core.settings import check_value, option_kinds
from wevent.errors import InvalidOption
from wevent.publisher.catalogue import find_mechanism, mechanisms
from wevent.publisher.publisher import Publisher

OPTIONS = tuple(name for name in option_kinds() if name != "mechanism")
"""What a publisher can be told besides its population, cells, mechanism and noise."""

_WORDS: Mapping[str, tuple[str, Any]] = {
    word: (name, word == name if kind.type is bool else word)
    for name, kind in option_kinds().items()
    for word in ((name, f"no-{name}") if kind.type is bool else kind.choices)
}


@dataclass(frozen=True)
class Choice:
    """A mechanism with its options.

    Attributes:
        label: as it was written, and as results name it.
        name: the mechanism's name.
        options: of `wevent.Publisher`, by name.
    """

    label: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, label: str, options: Mapping[str, Any] | None = None) -> Choice:
        """Read `name`, or `name:word:…` for options of its own, which win over `options`.

        Raises:
            UnknownMechanism: with the nearest name as a suggestion.
            InvalidOption: for another word, or an option that the mechanism does not take.
        """
        name, *words = label.strip().split(":")
        find_mechanism(name)
        own: dict[str, Any] = dict(options or {})
        for word in words:
            if word not in _WORDS:
                raise InvalidOption(
                    f"a mechanism name, or one with words out of {', '.join(_WORDS)}",
                    f"{label!r}",
                    "For example bd:std (its threshold at √2/ε) or pbd:refund.",
                    option="mechanisms",
                    value=label,
                )
            option, value = _WORDS[word]
            own[option] = value
        choice = cls(label.strip(), name, own)
        choice.check()
        return choice

    def check(self) -> None:
        """Refuse options that the mechanism does not take, whoever the users are.

        Raises:
            InvalidOption: naming the option.
        """
        for option, value in self.options.items():
            check_value(option, value)
        most = self.options.get("max_cells_per_user", 1)
        anybody = Population({Requirement(1, 1): 1})
        self.publisher(anybody, most if type(most) is int and most > 0 else 1, None)

    def publisher(self, population: Population, cells: int, noise: NoiseSource | None) -> Publisher:
        """A publisher of its kind; secure noise for None."""
        return Publisher(population, cells, self.name, noise=noise, **self.options)


@dataclass(frozen=True)
class Choices:
    """The mechanisms of an experiment.

    Attributes:
        taken: those that run.
        left_out: mechanisms that nobody named and that do not take the options, with the reason.
    """

    taken: tuple[Choice, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)


def choose(labels: Sequence[str] | str | None, options: Mapping[str, Any] | None = None) -> Choices:
    """The mechanisms of these labels (or the one of this), each once, in order; None for all that take the options.

    Raises:
        UnknownMechanism: with the nearest name as a suggestion.
        InvalidOption: for an option that a named mechanism, or every mechanism, does not take.
    """
    if labels is not None:
        return Choices(tuple(Choice.parse(label, options) for label in named(labels)))
    taken, left_out = [], {}
    refusal: InvalidOption | None = None
    for name in mechanisms():
        try:
            taken.append(Choice.parse(name, options))
        except InvalidOption as error:
            left_out[name] = str(error)
            refusal = error
    if refusal is not None and not taken:
        raise refusal
    return Choices(tuple(taken), left_out)


def named(labels: Sequence[str] | str) -> list[str]:
    """The labels that somebody wrote (or the one), each once, in order.

    Raises:
        InvalidOption: for something else, or none.
    """
    labels = (labels,) if isinstance(labels, str) else labels
    if not isinstance(labels, Sequence) or not all(isinstance(label, str) for label in labels):
        raise InvalidOption(
            "mechanisms by name", type(labels).__name__, "Write ['pft', 'pba'].", option="mechanisms", value=labels
        )
    found = list(dict.fromkeys(label.strip() for label in labels if label.strip()))
    if not found:
        raise InvalidOption("at least one mechanism", "none", "`wevent mechanisms` lists them.", option="mechanisms")
    return found
