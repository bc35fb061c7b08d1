"""Events as the lines that are sent."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from wevent.errors import InvalidEvents, InvalidOption

Events = bytes | Iterable[Mapping[str, Any]]
"""Lines of NDJSON as bytes, or objects with a time, a user and a cell."""

_WORTH_COMPRESSING = 1024


def event_lines(events: Events) -> bytes:
    r"""Lines of NDJSON, each ended by a newline.

    >>> event_lines([{"time": 1767225610, "user": 17, "cell": "north"}])
    b'{"time":1767225610,"user":17,"cell":"north"}\n'

    Raises:
        InvalidEvents: for a time without an offset, or a value that JSON has no word for.
    """
    if isinstance(events, bytes):
        return events if events.endswith(b"\n") or not events else events + b"\n"
    rows = [_timed(event) for event in events]
    try:
        return msgspec.json.Encoder().encode_lines(rows)
    except (TypeError, ValueError, RecursionError):  # the message may quote what somebody did
        raise _no_events() from None


def _timed(event: Mapping[str, Any]) -> dict[str, Any]:
    """Times with their offset, as text."""
    if not isinstance(event, Mapping):
        raise _no_events()
    return {name: moment(value) if isinstance(value, datetime) else value for name, value in event.items()}


def _no_events() -> InvalidEvents:
    return InvalidEvents(
        "events as objects of text, numbers and times", "another value", "Send a time, a user and a cell of each."
    )


def moment(time: datetime) -> str:
    """A time as text; one without an offset has no meaning elsewhere."""
    if time.tzinfo is None or time.utcoffset() is None:
        raise InvalidOption(
            "a time with its offset", "one without", "Say which, such as datetime.now(UTC).", option="time", value=None
        )
    return time.isoformat()


def digest_id(lines: bytes) -> str:
    """The id of a batch that was given none: the same events are the same batch, whenever and by whom they are sent."""
    return f"sha256-{hashlib.sha256(lines).hexdigest()}"


def compressed(content: bytes) -> bytes:
    """Content with gzip, where that is worth it; otherwise the very same object."""
    if len(content) < _WORTH_COMPRESSING:
        return content
    return gzip.compress(content, compresslevel=1, mtime=0)
