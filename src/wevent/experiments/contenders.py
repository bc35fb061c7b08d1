"""What can be compared: mechanisms that publish, and peers, which are simulated only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wevent.core.nearest import nearest
from wevent.core.settings import Options, check_value, option_text
from wevent.errors import InvalidOption, UnknownMechanism
from wevent.experiments.choices import Choice, choose, named
from wevent.experiments.peers import PEERS, Peer
from wevent.publisher.catalogue import SIMULATED_ONLY


@dataclass(frozen=True)
class PeerChoice:
    """A peer, as experiments name it.

    Attributes:
        label: as it was written, and as results name it.
        peer: what runs.
    """

    label: str
    peer: Peer

    @classmethod
    def parse(cls, label: str, options: Mapping[str, Any] | None = None, *, secure: bool = False) -> PeerChoice:
        """The peer of this label.

        Raises:
            InvalidOption: for a variant that does not exist, for options (a peer takes none) and for secure noise.
        """
        label = label.strip()
        if label not in PEERS:
            raise InvalidOption(
                f"a peer out of {', '.join(PEERS)}",
                f"{label!r}",
                "Leave the word out.",
                option="mechanisms",
                value=label,
            )
        usual = Options()
        for option, value in (options or {}).items():
            check_value(option, value)
            if value != getattr(usual, option):
                raise InvalidOption(
                    "no options for a peer",
                    f"{option}={option_text(value)}",
                    _REMEDY,
                    option=option,
                    value=value,
                )
        if secure:
            raise InvalidOption(
                "seeded noise for a peer, which serves nobody",
                "secure=True",
                _REMEDY,
                option="secure",
                value=True,
            )
        return cls(label, PEERS[label])


_REMEDY = "Leave the option out, or the peer."

Contender = Choice | PeerChoice


@dataclass(frozen=True)
class Contenders:
    """What a comparison runs.

    Attributes:
        taken: those that run.
        left_out: what nobody named and does not take the options, with the reason.
    """

    taken: tuple[Contender, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)


def choose_contenders(
    labels: Sequence[str] | str | None, options: Mapping[str, Any] | None = None, *, secure: bool = False
) -> Contenders:
    """Mechanisms and peers of these labels (or the one of this), in order; None for all that take the options.

    Raises:
        UnknownMechanism: with the nearest name as a suggestion.
        InvalidOption: for an option that one that is named, or every mechanism, does not take.
    """
    if labels is not None:
        return Contenders(tuple(_contender(label, options, secure) for label in named(labels)))
    choices = choose(None, options)
    taken: list[Contender] = [*choices.taken]
    left_out = dict(choices.left_out)
    for label in SIMULATED_ONLY:
        try:
            taken.append(PeerChoice.parse(label, options, secure=secure))
        except InvalidOption as error:
            left_out[label] = str(error)
    return Contenders(tuple(taken), left_out)


def _contender(label: str, options: Mapping[str, Any] | None, secure: bool) -> Contender:
    if label.partition(":")[0] in SIMULATED_ONLY:
        return PeerChoice.parse(label, options, secure=secure)
    try:
        return Choice.parse(label, options)
    except UnknownMechanism as error:
        near = nearest(str(error.facts["name"]), known := (*error.facts["known"], *SIMULATED_ONLY), always=True)
        raise UnknownMechanism(
            error.problem,
            f"Did you mean {near!r}?",
            name=error.facts["name"],
            suggestion=near,
            known=known,
        ) from None
