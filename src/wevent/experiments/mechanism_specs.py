"""Mechanisms as experiments name them: `pbd`; with options of their own `ba:std`, `pft:budget`; and baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

from wevent.core.mechanism import NoiseSource
from wevent.core.options import Options, check_value, option_kinds, option_text
from wevent.core.requirements import Population, Requirement
from wevent.errors import InvalidOption, UnknownMechanism, find_nearest
from wevent.experiments.baselines import BASELINES, Baseline
from wevent.experiments.datasets.stream import Stream
from wevent.publisher.catalogue import SIMULATED_ONLY, find_mechanism, mechanisms
from wevent.publisher.publisher import Publisher
from wevent.settings.values import parse_cycles

_WORDS: Mapping[str, tuple[str, Any]] = {
    word: (name, word == name if kind.type is bool else word)
    for name, kind in option_kinds().items()
    for word in ((name, f"no-{name}") if kind.type is bool else kind.choices)
}


@dataclass(frozen=True)
class MechanismSpec:
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
    def parse(cls, label: str, options: Mapping[str, Any] | None = None) -> MechanismSpec:
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
                    f"Unknown word {word!r} in mechanism {label!r}.",
                    f"The words are {', '.join(_WORDS)}, for example bd:std or pbd:refund.",
                    option="mechanisms",
                    value=label,
                )
            option, value = _WORDS[word]
            own[option] = value
        for option, value in own.items():
            check_value(option, value)
        spec = cls(label.strip(), name, own)
        limit = own.get("max_cells_per_user", 1)
        spec.publisher(Population({Requirement(1, 1): 1}), limit if type(limit) is int and limit > 0 else 1, None)
        return spec

    def publisher(self, population: Population, cells: int, noise: NoiseSource | None) -> Publisher:
        """Return a new publisher; secure noise for None."""
        return Publisher(population, cells, self.name, noise=noise, **self.options)


@dataclass(frozen=True)
class BaselineSpec:
    """A baseline; `label` is as it was written, and as results name it."""

    label: str
    baseline: Baseline

    @classmethod
    def parse(cls, label: str, options: Mapping[str, Any] | None = None) -> BaselineSpec:
        """Find the baseline of this label.

        Raises:
            InvalidOption: for an unknown variant, and for options: a baseline takes none.
        """
        label = label.strip()
        if label not in BASELINES:
            raise InvalidOption(
                f"Unknown baseline {label!r}.", f"Choose from {', '.join(BASELINES)}.", option="mechanisms", value=label
            )
        usual = Options()
        for option, value in (options or {}).items():
            check_value(option, value)
            if value != getattr(usual, option):
                raise InvalidOption(
                    f"A baseline takes no options, so not {option}={option_text(value)}.",
                    "Leave the option out, or the baseline.",
                    option=option,
                    value=value,
                )
        return cls(label, BASELINES[label])


Spec = MechanismSpec | BaselineSpec


class SelectedMechanisms(NamedTuple):
    """The mechanisms of an experiment, and those left out because they do not take the options, with the reason."""

    taken: tuple[Spec, ...]
    left_out: Mapping[str, str]


def select(
    labels: Sequence[str] | str | None, options: Mapping[str, Any] | None = None, *, baselines: bool = False
) -> SelectedMechanisms:
    """Return the mechanisms of these labels (or the one of this), each once; None for all that take the options.

    Args:
        labels: names, or names with words.
        options: of `wevent.Publisher`, for all.
        baselines: whether baselines may be among them.

    Raises:
        UnknownMechanism: with the nearest name as a suggestion.
        InvalidOption: for an option that a named mechanism, or every mechanism, does not take.
    """
    if labels is not None:
        return SelectedMechanisms(tuple(_parse(label, options, baselines) for label in split_labels(labels)), {})
    taken: list[Spec] = []
    left_out: dict[str, str] = {}
    refusal: InvalidOption | None = None
    for name in mechanisms():
        try:
            taken.append(MechanismSpec.parse(name, options))
        except InvalidOption as error:
            left_out[name], refusal = str(error), error
    if refusal is not None and not taken:
        raise refusal
    for label in SIMULATED_ONLY if baselines else ():
        try:
            taken.append(BaselineSpec.parse(label, options))
        except InvalidOption as error:
            left_out[label] = str(error)
    return SelectedMechanisms(tuple(taken), left_out)


def _parse(label: str, options: Mapping[str, Any] | None, baselines: bool) -> Spec:
    if baselines and label.partition(":")[0] in SIMULATED_ONLY:
        return BaselineSpec.parse(label, options)
    try:
        return MechanismSpec.parse(label, options)
    except UnknownMechanism as error:
        known = (*error.facts["known"], *(SIMULATED_ONLY if baselines else ()))
        if not baselines:
            raise
        near, _ = find_nearest(str(error.facts["name"]), known)
        raise UnknownMechanism(
            error.problem, f"Did you mean {near!r}?", name=error.facts["name"], suggestion=near, known=known
        ) from None


def split_labels(labels: Sequence[str] | str) -> list[str]:
    """Return the labels (or the one), each once, in order.

    Raises:
        InvalidOption: for no labels.
    """
    labels = (labels,) if isinstance(labels, str) else labels
    if not isinstance(labels, Sequence) or not all(isinstance(label, str) for label in labels):
        raise InvalidOption(
            "Mechanisms must be given by name.", "Write ['pft', 'pba'].", option="mechanisms", value=labels
        )
    found = list(dict.fromkeys(label.strip() for label in labels if label.strip()))
    if not found:
        raise InvalidOption("No mechanism is named.", "`wevent mechanisms` lists them.", option="mechanisms")
    return found


def options_in_slots(options: Mapping[str, Any] | None, stream: Stream) -> Mapping[str, Any] | None:
    """Return the options with a cycle that is a length of time turned into slots of this stream.

    Raises:
        InvalidSettings: if the cycle is no number of slots, as of `parse_cycles`.
    """
    if options is None or "seasonality" not in options:
        return options
    length = stream.times.length
    slot_us = None if length is None else length // timedelta(microseconds=1)
    return {**options, "seasonality": parse_cycles(options["seasonality"], slot_us)}
