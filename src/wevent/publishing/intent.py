"""What the operator says for one run of a publication."""

from __future__ import annotations

from dataclasses import dataclass

from wevent.errors import InvalidSettings
from wevent.publishing.staleness import Stated


@dataclass(frozen=True, kw_only=True)
class Intent(Stated):
    """Statements of the operator for one run; none of them is a setting of the stream.

    Attributes:
        declare: "WINDOW,EPSILON" of classes that may have members later.
        new_epoch: go on with another mechanism, cells or levels; every charge stays.
        allow_removals: also if more than one in ten of the registered are no longer in the requirements file.
        start_over: for a journal that is lost, a new one over the same people.
        keep: how many slots the journal keeps; None: all. Not with a Parquet output, which is made from the journal.
    """

    declare: tuple[str, ...] = ()
    new_epoch: bool = False
    allow_removals: bool = False
    start_over: bool = False
    keep: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.declare, (tuple, list)) or not all(isinstance(text, str) for text in self.declare):
            raise InvalidSettings(
                "declare to be several texts 'WINDOW,EPSILON'",
                f"{self.declare!r}" if isinstance(self.declare, str) else type(self.declare).__name__,
                "Write Intent(declare=('40,0.5',)).",
                key="declare",
            )
