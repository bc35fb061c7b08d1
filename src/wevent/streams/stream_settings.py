"""What a source must be told: the part of the settings that concerns events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from wevent.counting.cells import Cells

if TYPE_CHECKING:
    from wevent.streams.frames import FrameTable

ENGINES = ("auto", "spark")
"""What may count files; `spark` needs an extra (`wevent.spark`)."""


def default_columns() -> Mapping[str, str]:
    """Each column under its own name."""
    return MappingProxyType({"time": "time", "user": "user", "cell": "cell"})


@dataclass(frozen=True, kw_only=True)
class StreamSettings:
    """Checked and resolved: times and lengths in microseconds.

    Attributes:
        inputs: file names and globs, or "-" for live lines on standard input.
        cells: the declared cells.
        slot_us: the length of a slot.
        start_us: where slot 1 starts; None: read from the data (`start_auto`), or now (live).
        end_us: where the last slot ends; None: read from the data (`start_auto`), or never (live).
        start_auto: whether the clock may be read from the data, which is unsafe.
        slot_column: the column with slot numbers of data already slotted.
        columns: the names of the columns "time", "user" and "cell".
        timezone_us: the offset of times that carry none; None refuses them.
        time_unit: what numbers as times count since 1970: s, ms or us.
        grace_us: how long after its end a live slot stays open.
        due_us: how long after its end the release of a live slot goes out; None: soon after it has closed.
        close: what closes a live slot: the wall "clock", or "lines" from the sender.
        max_cells_per_user: k.
        strict: stop at the first malformed line.
        engine: what counts files, one of `ENGINES`.
        frame: events of a data frame, instead of inputs.
    """

    inputs: tuple[str, ...]
    cells: Cells
    slot_us: int
    start_us: int | None = None
    end_us: int | None = None
    start_auto: bool = False
    slot_column: str | None = None
    columns: Mapping[str, str] = field(default_factory=default_columns)
    timezone_us: int | None = None
    time_unit: str = "s"
    grace_us: int = 0
    due_us: int | None = None
    close: str = "clock"
    max_cells_per_user: int = 1
    strict: bool = False
    engine: str = "auto"
    frame: FrameTable | None = field(default=None, compare=False)

    @property
    def is_live(self) -> bool:
        """Whether events arrive while slots are published, instead of being in files or a frame."""
        return self.inputs == ("-",)
