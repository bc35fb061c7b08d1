"""Streams to experiment on: invented ones, the two real ones of the paper, and anyone's file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wevent.errors import InvalidOption
from wevent.experiments.streams.file import file_stream
from wevent.experiments.streams.foursquare import foursquare_stream
from wevent.experiments.streams.source import Stream
from wevent.experiments.streams.synthetic import SYNTHETIC, Variant, synthetic_stream
from wevent.experiments.streams.taxi import taxi_stream

REAL = ("taxi", "foursquare")
DEFAULT_USERS, DEFAULT_SLOTS = 10_000, 1_000


@dataclass(frozen=True)
class StreamRequest:
    """Which stream is wanted, in the words of the command line.

    Attributes:
        name: tlns, sin, log, taxi, foursquare or file:PATH.
        users, slots: how many; for recorded streams at most that many, None for all.
        variant: "printed" or "authors", for the synthetic ones.
        data: the folder that holds the raw files of `taxi` and `foursquare`.
        slot_length_s: seconds per slot, for files with a `time` column.
    """

    name: str
    users: int | None = None
    slots: int | None = None
    variant: Variant = "printed"
    data: Path = Path("data")
    slot_length_s: float | None = None


def open_stream(request: StreamRequest) -> Stream:
    """The stream asked for.

    Raises:
        InvalidOption: for an unknown name, or data that is not there; the message says where to get it.
        InvalidEvents: for a file without the columns that are needed.
    """
    if request.name in SYNTHETIC:
        return synthetic_stream(
            request.name,
            users=request.users or DEFAULT_USERS,
            slots=request.slots or DEFAULT_SLOTS,
            variant=request.variant,
        )
    if request.name == "taxi":
        recorded = taxi_stream(request.data / "taxi")
    elif request.name == "foursquare":
        recorded = foursquare_stream(request.data / "foursquare")
    elif request.name.startswith("file:"):
        recorded = file_stream(Path(request.name.removeprefix("file:")), slot_length_s=request.slot_length_s)
    else:
        raise InvalidOption(
            f"a stream out of {', '.join((*SYNTHETIC, *REAL))} or file:PATH",
            f"{request.name!r}",
            "For data of your own write file:events.csv (columns slot,user,cell or time,user,cell).",
            option="stream",
            value=request.name,
        )
    return recorded.limited(users=request.users, slots=request.slots)
