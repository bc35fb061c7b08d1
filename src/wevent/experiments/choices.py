"""Mechanisms as the experiments name them: `pbd`, `ba`, or `ba:std` for the threshold √2/ε."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wevent.core.mechanism import NoiseSource
from wevent.core.requirements import Population
from wevent.core.settings import ThresholdRule
from wevent.errors import InvalidOption
from wevent.publisher.catalogue import find_mechanism
from wevent.publisher.publisher import Publisher


@dataclass(frozen=True)
class Choice:
    """A mechanism with its threshold rule.

    Attributes:
        label: as it was written, and as results name it.
        name: the mechanism's name.
        threshold: None for its own rule.
    """

    label: str
    name: str
    threshold: ThresholdRule | None = None

    @classmethod
    def parse(cls, label: str) -> Choice:
        """Read `name` or `name:std`.

        Raises:
            UnknownMechanism: with the nearest name as a suggestion.
            InvalidOption: for another suffix, or `:std` where there is no such choice.
        """
        name, _, suffix = label.strip().partition(":")
        row = find_mechanism(name)
        if not suffix:
            return cls(name, name)
        if suffix != "std" or row.threshold != "scale":
            raise InvalidOption(
                "a mechanism name, or bd:std or ba:std for their threshold at √2/ε",
                f"{label!r}",
                f"Write {name!r}.",
                option="mechanisms",
                value=label,
            )
        return cls(label.strip(), name, "std")

    def publisher(self, population: Population, cells: int, noise: NoiseSource | None) -> Publisher:
        """A publisher of its kind."""
        return Publisher(population, cells, self.name, noise=noise, threshold=self.threshold)


def parse_choices(labels: Sequence[str]) -> list[Choice]:
    """Several, each once, in order."""
    return [Choice.parse(label) for label in dict.fromkeys(label for label in labels if label.strip())]
