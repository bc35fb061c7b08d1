"""THE list of a stream's options: how its releases are made, with defaults and checks.

A publisher's state, a journal's terms, the configuration file, the command's flags and the privacy statement are all made
from this list. A new option is one field here; `wevent.core.suitability` says which mechanisms take it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from wevent.core.limits import MAX_CHANGES, MAX_CYCLE, MAX_SLOT, MAX_USERS
from wevent.core.nearest import did_you_mean
from wevent.errors import InvalidOption

Neighbours = Literal["add_remove", "replace"]
ThresholdRule = Literal["error", "scale", "std"]
ThresholdName = Literal["scale", "std"]
EstimatorName = Literal["sampling", "weighting"]
SmoothingName = Literal["hold", "filter"]

_SHOWN = 8  # of several numbers, in a message


def _about(help: str, **facts: Any) -> dict[str, Any]:  # noqa: A002
    """What people are told of an option, and facts of its `Kind` that are not the usual ones."""
    usual = {"permanent": False, "of_mechanism": False, "least": 0, "most": None, "many": 1, "off": None}
    return {"help": help, **usual, **facts}


@dataclass(frozen=True, kw_only=True)
class Options:
    """How releases are made; public, and fixed for the life of a publisher.

    Attributes:
        mechanism: a name from `wevent.mechanisms()`.
        neighbours: "add_remove" hides a user's presence in a cell, "replace" any change of their record (spec 1).
        max_cells_per_user: k, how many cells one user may be in within a slot.
        refund: charge publications what was really lost, min(e, θ), instead of the full offer.
        threshold: for `bd` and `ba`: "scale" (their default) publishes above Δ/e, "std" above √2·Δ/e.
        estimator: "sampling" or "weighting" instead of the mechanism's own; not for local mechanisms.
        smoothing: "hold" or "filter" instead of the mechanism's own; not for local mechanisms.
        anchors: for `pft`: weigh classes by their budgets, and now and then alike: the difference shows what the former
            is off by where requirement and cell are correlated. Its own, unless `unbiased` is said.
        unbiased: for `pft`: weigh all classes alike in every release (True), or by their budgets in every release (False),
            which is wrong where requirement and cell are correlated.
        cycle: for `pft`: how many slots a day has, or whatever else comes back (one number, or several; 14.4 is one, too):
            what comes back is learnt.
        calendar: with a cycle: the slots with which days of another kind begin and end, in turns (weekends, holidays): these
            days are learnt apart.
        nonnegative: publish no value below 0 (free post-processing, as are the next two).
        known_total: every registered user is present in every slot: publish histograms with this total; "replace" only.
        round: publish whole numbers.
    """

    mechanism: str = field(default="pft", metadata=_about("See `wevent mechanisms`; pft unless told otherwise."))
    neighbours: Neighbours = field(
        default="add_remove", metadata=_about("add_remove (default) or replace.", permanent=True)
    )
    max_cells_per_user: int = field(
        default=1,
        metadata=_about(
            "How many cells a user may be in within a slot; 1 unless told otherwise.", permanent=True, least=1
        ),
    )
    refund: bool = field(default=False, metadata=_about("Charge publications what was really lost.", of_mechanism=True))
    threshold: ThresholdName | None = field(
        default=None, metadata=_about("For bd and ba: scale or std.", of_mechanism=True)
    )
    estimator: EstimatorName | None = field(
        default=None, metadata=_about("sampling or weighting, instead of the mechanism's own.", of_mechanism=True)
    )
    smoothing: SmoothingName | None = field(
        default=None, metadata=_about("hold or filter, instead of the mechanism's own.", of_mechanism=True)
    )
    anchors: bool | None = field(
        default=None,
        metadata=_about(
            "For pft: classes count by their budgets, and now and then alike to learn what that is off by (its own).",
            of_mechanism=True,
        ),
    )
    unbiased: bool | None = field(
        default=None,
        metadata=_about(
            "For pft: all classes always count alike, or always by their budgets: wrong if requirement and cell correlate.",
            of_mechanism=True,
            off="weighted",
        ),
    )
    cycle: tuple[float, ...] = field(
        default=(),
        metadata=_about(
            "For pft: what comes back, such as 1d, or in slots; several with commas. It is learnt.",
            of_mechanism=True,
            least=3,
            most=MAX_CYCLE,
            many=4,
        ),
    )
    calendar: tuple[int, ...] = field(
        default=(),
        metadata=_about(
            "With a cycle: a file of days of another kind, such as weekends and holidays, learnt apart.",
            of_mechanism=True,
            least=1,
            most=MAX_SLOT,
            many=MAX_CHANGES,
        ),
    )
    nonnegative: bool = field(default=False, metadata=_about("Publish no value below 0 (free)."))
    known_total: int | None = field(
        default=None,
        metadata=_about("Everyone is present in every slot: publish this total (free; replace only).", most=MAX_USERS),
    )
    round: bool = field(default=False, metadata=_about("Publish whole numbers (free)."))

    @property
    def sensitivity(self) -> int:
        """Δ: k for add_remove, 2k for replace (spec 1)."""
        return self.max_cells_per_user * (2 if self.neighbours == "replace" else 1)

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> Self:
        """Options from values by name.

        Raises:
            InvalidOption: for a name that is none, or a value outside its kind and range.
        """
        kinds = option_kinds()
        settled = {name: kinds[name].settled(value) if name in kinds else value for name, value in values.items()}
        for name, value in settled.items():
            check_value(name, value)
        return cls(**settled)


@dataclass(frozen=True, slots=True)
class Kind:
    """What values an option takes.

    Attributes:
        choices: the words it may be; empty for others.
        type: str, int, float or bool.
        optional: whether None is a value.
        several: whether it is a tuple of numbers.
        many: how many at most.
        least, most: the range of a number.
        permanent: whether it stays for the life of a journal.
        of_mechanism: whether it belongs to the mechanism: with another mechanism it starts from that one's own again.
        off: the word that says no to a switch.
        help: one line for people who choose.
    """

    choices: tuple[str, ...]
    type: type
    optional: bool
    several: bool
    many: int
    least: int
    most: int | None
    permanent: bool
    of_mechanism: bool
    off: str
    help: str

    def takes(self, value: Any) -> bool:
        """Whether this is a value of the option."""
        if value is None:
            return self.optional
        if self.several:
            return isinstance(value, tuple) and len(value) <= self.many and all(map(self._takes_one, value))
        return self._takes_one(value)

    def _takes_one(self, value: Any) -> bool:
        if type(value) is not self.type:
            return False
        if isinstance(value, (int, float)) and self.type is not bool:
            return value >= self.least and (self.most is None or value <= self.most)
        return not self.choices or value in self.choices

    def settled(self, value: Any) -> Any:
        """A value as it is kept: of several numbers a tuple, each once, where one number or a list was given."""
        numbers = value if isinstance(value, (list, tuple)) else [value]
        if not self.several or any(type(one) not in (int, self.type) or abs(one) > MAX_SLOT for one in numbers):
            return value
        return tuple(dict.fromkeys(self.type(one) for one in numbers))

    def read(self, value: Any) -> Any:
        """A value as people write it: numbers may be text, and `none` takes back what was said earlier."""
        if (self.optional or self.several) and value == "none":
            return () if self.several else None
        return int(value) if self.type is int and isinstance(value, str) and value.isdecimal() else value

    def __str__(self) -> str:
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.type is bool:
            return "True or False"
        if self.type is str:
            return "text"
        kind = "a number" if self.type is float else "a whole number"
        kind += " of slots" * self.several
        number = f"{kind}, at least {self.least}" + ("" if self.most is None else f" and at most {self.most}")
        return f"{number}, or up to {self.many} of them" if self.several else number


@cache
def option_kinds() -> Mapping[str, Kind]:
    """Every option's name and what it takes, in the order of the list."""
    types = get_type_hints(Options)
    return MappingProxyType({entry.name: _kind(entry, types[entry.name]) for entry in fields(Options)})


def option_values(holder: Options) -> dict[str, Any]:
    """The value of every option, by name."""
    return {name: getattr(holder, name) for name in option_kinds()}


def option_text(value: Any) -> str:
    """A value as a message shows it: several numbers as people write them, the first of many, none if there are none."""
    if not isinstance(value, tuple):
        return repr(value)
    shown = ", ".join(repr(one).removesuffix(".0") for one in value[:_SHOWN]) or "none"
    return shown if len(value) <= _SHOWN else f"{shown}, … ({len(value)} numbers)"


def check_value(name: str, value: Any) -> None:
    """Whether an option of this name may have this value.

    Raises:
        InvalidOption: naming the option, or the nearest one if there is none of that name.
    """
    kinds = option_kinds()
    if name not in kinds:
        raise InvalidOption(
            f"an option out of {', '.join(kinds)}",
            repr(name),
            did_you_mean(name, kinds, "Use one of these names."),
            option=name,
            value=value,
        )
    if not kinds[name].takes(value):
        remedy = "Write it in slots." if kinds[name].several else "Leave it out for the default."
        raise InvalidOption(f"{name} to be {kinds[name]}", option_text(value), remedy, option=name, value=value)


def _kind(entry: Field[Any], annotation: Any) -> Kind:
    """From a field `kind` or `kind | None`, kind being bool, int, str or a Literal of words; or a tuple of numbers."""
    parts = get_args(annotation) if type(None) in get_args(annotation) else (annotation,)
    plain = next(part for part in parts if part is not type(None))
    several = get_origin(plain) is tuple
    plain = get_args(plain)[0] if several else plain
    choices = get_args(plain)
    facts = entry.metadata
    return Kind(
        choices,
        str if choices else plain,
        len(parts) > 1,
        several,
        facts["many"],
        facts["least"],
        facts["most"],
        facts["permanent"],
        facts["of_mechanism"],
        facts["off"] or f"no-{entry.name}",
        facts["help"],
    )
