"""Streams to experiment on: invented ones, the two real ones of the paper, and event files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wevent.errors import InvalidOption
from wevent.experiments.datasets.city import City
from wevent.experiments.datasets.event_file import file_stream
from wevent.experiments.datasets.foursquare import foursquare_stream
from wevent.experiments.datasets.stream import Stream
from wevent.experiments.datasets.synthetic import SYNTHETIC, Variant, synthetic_stream
from wevent.experiments.datasets.taxi import taxi_stream

REAL = ("taxi", "foursquare")
DEFAULT_USERS, DEFAULT_SLOTS = 10_000, 1_000


@dataclass(frozen=True)
class StreamRequest:
    """A stream in the words of the command line.

    Attributes:
        name: tlns, sin, log, city, taxi, foursquare or file:PATH.
        users, slots: how many; for recorded streams at most that many, None for all.
        variant: "printed" or "authors", for the synthetic ones.
        data: the folder that holds the raw files of `taxi` and `foursquare`.
        slot_length_s: seconds per slot, for files with a `time` column.
        max_cells_per_user: how many cells of a user and slot count, for files; elsewhere people are in one.
    """

    name: str
    users: int | None = None
    slots: int | None = None
    variant: Variant = "printed"
    data: Path = Path("data")
    slot_length_s: float | None = None
    max_cells_per_user: int = 1


def open_stream(request: StreamRequest) -> Stream:
    """Return the stream asked for.

    Raises:
        InvalidOption: for an unknown name, or data that is not there; the message says where to get it.
        InvalidInput, InvalidEvents: for a file that cannot be read.
    """
    for name in ("users", "slots"):
        value = getattr(request, name)
        if value is not None and (type(value) is not int or value < 1):
            raise InvalidOption(f"{name} must be a whole number, at least 1.", "Correct it.", option=name, value=value)
    users, slots = request.users or DEFAULT_USERS, request.slots or DEFAULT_SLOTS
    if request.name in SYNTHETIC:
        return synthetic_stream(request.name, users=users, slots=slots, variant=request.variant)
    if request.name == "city":
        return City(users, slots)
    if request.name == "taxi":
        recorded = taxi_stream(request.data / "taxi")
    elif request.name == "foursquare":
        recorded = foursquare_stream(request.data / "foursquare")
    elif request.name.startswith("file:"):
        recorded = file_stream(
            Path(request.name.removeprefix("file:")),
            slot_length_s=request.slot_length_s,
            max_cells_per_user=request.max_cells_per_user,
        )
    else:
        raise InvalidOption(
            f"Unknown stream {request.name!r}.",
            f"Choose from {', '.join((*SYNTHETIC, 'city', *REAL))}, or write file:events.csv for data of your own "
            "(columns slot,user,cell or time,user,cell): file:PATH.",
            option="stream",
            value=request.name,
        )
    return recorded.limited(users=request.users, slots=request.slots)


def as_stream(stream: Stream | StreamRequest | str, options: Mapping[str, Any] | None = None) -> Stream:
    """Return a stream as it is, or the one asked for, read as a publisher with these options counts it.

    Raises:
        InvalidOption, InvalidInput, InvalidEvents: as of `open_stream`.
    """
    request = StreamRequest(stream) if isinstance(stream, str) else stream
    if not isinstance(request, StreamRequest):
        return request
    most = (options or {}).get("max_cells_per_user", request.max_cells_per_user)
    return open_stream(replace(request, max_cells_per_user=most))
