"""The options of a publisher, and the form in which options and settings are declared: a field made by `setting`.

A publisher's state, the pinned configuration, the flags of commands and the privacy statement follow from the fields of
`Options`. `wevent.core.builtin_mechanisms` lists the mechanisms that take an option; `wevent.settings` has all other
settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from wevent.core.limits import MAX_CHANGES, MAX_CYCLE, MAX_SLOT, MAX_USERS
from wevent.errors import InvalidOption, did_you_mean

Neighbours = Literal["add_remove", "replace"]
ThresholdRule = Literal["error", "scale", "std"]
ThresholdName = Literal["scale", "std"]
EstimatorName = Literal["sampling", "weighting"]
SmoothingName = Literal["hold", "filter"]
ClassWeights = Literal["calibrated", "equal", "budget"]

_SHOWN = 8  # of several numbers, in a message


@dataclass(frozen=True, slots=True)
class Kind:
    """Values that an option or a setting takes.

    Attributes:
        help: one line for users.
        key: its name for users; empty if it is the name of the field.
        form: the values in words; empty if the other attributes tell them.
        shown: the default in words; empty if there is none.
        least, most: the range of a number.
        many: maximum length of a tuple.
        permanent: whether it stays for the life of a journal.
        of_mechanism: whether it belongs to the mechanism: with another mechanism it starts from its default.
        field: the field that holds it.
        type: str, int, float or bool.
        choices: the words it may be; empty for others.
        optional: whether None is a value.
        several: whether it is a tuple.
    """

    help: str
    key: str = ""
    form: str = ""
    shown: str = ""
    least: int = 0
    most: int | None = None
    many: int = 1
    permanent: bool = False
    of_mechanism: bool = False
    field: str = ""
    type: type = str
    choices: tuple[str, ...] = ()
    optional: bool = False
    several: bool = False

    def takes(self, value: Any) -> bool:
        """Return whether this is a value of the option."""
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
        """Return a value as it is stored: one number or a list becomes a tuple, each number once."""
        numbers = value if isinstance(value, (list, tuple)) else [value]
        if not self.several or any(type(one) not in (int, self.type) or abs(one) > MAX_SLOT for one in numbers):
            return value
        return tuple(dict.fromkeys(self.type(one) for one in numbers))

    def read(self, value: Any) -> Any:
        """Return a value that may be written as text; `none` takes back an earlier value, unless any text is a value."""
        if (self.optional or self.several) and value == "none" and (self.choices or self.type is not str):
            return () if self.several else None
        return int(value) if self.type is int and isinstance(value, str) and value.isdecimal() else value

    def __str__(self) -> str:
        if self.form:
            return self.form
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.type is bool:
            return "True or False"
        if self.type is str:
            return "text"
        kind = "a number" if self.type is float else "a whole number"
        kind += " of slots" * self.several
        number = f"{kind}, at least {self.least:,}" + ("" if self.most is None else f" and at most {self.most:,}")
        return f"{number}, or up to {self.many} of them" if self.several else number


def setting(default: Any, help: str, **facts: Any) -> Any:  # noqa: A002
    """Return a field of a dataclass that users can set.

    Args:
        default: the default, or a function that makes it; MISSING if there is none.
        help: one line for users.
        facts: other attributes of the `Kind`, except for those that the type of the field gives.
    """
    metadata = {"kind": Kind(help=help, **facts)}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


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
        class_weights: for `pft`: "calibrated" (its default) weighs classes by their budgets and corrects the bias with
            periodic equal-weight measurements; "equal" weighs all classes alike in every release; "budget" weighs by
            budgets in every release, which is wrong where requirement and cell are correlated.
        seasonality: for `pft`: slots of the periods to learn, such as those of a day (one number, or several; 14.4 is one).
        special_days: with seasonality: the slots with which days of another kind begin and end, in turns (such as holidays):
            these days are learnt apart.
        nonnegative: publish no value below 0 (free post-processing, as are the next two).
        known_total: every registered user is present in every slot: publish histograms with this total; "replace" only.
        round: publish whole numbers.
    """

    mechanism: str = setting("pft", "Mechanism, as of `wevent mechanisms`.")
    neighbours: Neighbours = setting("add_remove", "Neighbouring relation.", permanent=True)
    max_cells_per_user: int = setting(
        1, "Number of cells that a user may be in within a slot.", permanent=True, least=1
    )
    refund: bool = setting(False, "Charge publications what was really lost.", of_mechanism=True)
    threshold: ThresholdName | None = setting(None, "Threshold rule of bd and ba.", of_mechanism=True, shown="scale")
    estimator: EstimatorName | None = setting(
        None, "Estimator of a slot.", of_mechanism=True, shown="the mechanism's own"
    )
    smoothing: SmoothingName | None = setting(
        None, "Smoother of releases.", of_mechanism=True, shown="the mechanism's own"
    )
    class_weights: ClassWeights | None = setting(
        None,
        "For pft: weights of classes, by budget and calibrated, always equal, or always by budget.",
        of_mechanism=True,
        shown="calibrated",
    )
    seasonality: tuple[float, ...] = setting(
        (),
        "For pft: periods to learn, e.g. 1d, or in slots; up to four, with commas.",
        of_mechanism=True,
        least=3,
        most=MAX_CYCLE,
        many=4,
    )
    special_days: tuple[int, ...] = setting(
        (),
        "With seasonality: file of days to learn apart, such as weekends and holidays.",
        of_mechanism=True,
        least=1,
        most=MAX_SLOT,
        many=MAX_CHANGES,
    )
    nonnegative: bool = setting(False, "Publish no value below 0 (free).")
    known_total: int | None = setting(
        None, "Publish this total: every user is present in every slot (free; replace only).", most=MAX_USERS
    )
    round: bool = setting(False, "Publish whole numbers (free).")

    @property
    def sensitivity(self) -> int:
        """Δ: k for add_remove, 2k for replace (spec 1)."""
        return self.max_cells_per_user * (2 if self.neighbours == "replace" else 1)

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> Self:
        """Return options from values by name.

        Raises:
            InvalidOption: for a name that is none, or a value outside its kind and range.
        """
        kinds = option_kinds()
        settled = {name: kinds[name].settled(value) if name in kinds else value for name, value in values.items()}
        for name, value in settled.items():
            check_value(name, value)
        return cls(**settled)


@cache
def kinds(holder: type[Any]) -> Mapping[str, Kind]:
    """Return the kind of every field of a dataclass that users can set, by key, in order."""
    types = get_type_hints(holder)
    found = [_complete(entry, types[entry.name]) for entry in fields(holder) if "kind" in entry.metadata]
    return MappingProxyType({kind.key: kind for kind in found})


def option_kinds() -> Mapping[str, Kind]:
    """Return the kind of every option of a publisher, by name."""
    return kinds(Options)


def option_values(holder: Options) -> dict[str, Any]:
    """Return the value of every option, by name."""
    return {name: getattr(holder, name) for name in option_kinds()}


def option_text(value: Any) -> str:
    """Return a value for a message: of several numbers the first ones, with commas."""
    if not isinstance(value, tuple):
        return repr(value)
    shown = ", ".join(repr(one).removesuffix(".0") for one in value[:_SHOWN]) or "none"
    return shown if len(value) <= _SHOWN else f"{shown}, … ({len(value)} numbers)"


def check_value(name: str, value: Any) -> None:
    """Refuse a value that an option does not take, and a name that is no option."""
    kinds = option_kinds()
    if name not in kinds:
        raise InvalidOption(
            f"Unknown option {name!r}.",
            did_you_mean(name, kinds, f"Options: {', '.join(kinds)}."),
            option=name,
            value=value,
        )
    if not kinds[name].takes(value):
        remedy = "Give a number of slots." if kinds[name].several else "Leave it out for the default."
        raise InvalidOption(
            f"{name} must be {kinds[name]}; it is {option_text(value)}.", remedy, option=name, value=value
        )


def _complete(entry: Field[Any], annotation: Any) -> Kind:
    """Return the kind of a field `T` or `T | None`, T being bool, int, str, a Literal of words or a tuple."""
    parts = get_args(annotation) if type(None) in get_args(annotation) else (annotation,)
    plain = next(part for part in parts if part is not type(None))
    several = get_origin(plain) is tuple
    plain = get_args(plain)[0] if several else plain
    choices = get_args(plain) if get_origin(plain) is Literal else ()
    kind: Kind = entry.metadata["kind"]
    default = "" if entry.default in (MISSING, None, ()) else str(entry.default)
    return replace(
        kind,
        field=entry.name,
        key=kind.key or entry.name,
        shown=kind.shown or (default.lower() if plain is bool else default),
        type=str if choices else plain,
        choices=choices,
        optional=len(parts) > 1,
        several=several,
    )
