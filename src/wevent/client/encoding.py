"""Events as the lines that are sent."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from wevent.errors import InvalidOption

Events = bytes | Iterable[Mapping[str, Any]]
"""Lines of NDJSON as bytes, or objects with a time, a user and a cell."""

_WORTH_COMPRESSING = 1024
_UNSENDABLE = (TypeError, ValueError, RecursionError)


def event_lines(events: Events) -> bytes:
    r"""Return lines of NDJSON, each ended by a newline.

    An event that JSON cannot express becomes `null`, and a time without an offset stays without: the service rejects
    that record alone, and its answer counts it.

    >>> event_lines([{"time": 1767225610, "user": 17, "cell": "north"}, {"user": "\ud800"}])
    b'{"time":1767225610,"user":17,"cell":"north"}\nnull\n'
    """
    if isinstance(events, bytes):
        return events if events.endswith(b"\n") or not events else events + b"\n"
    encoder = msgspec.json.Encoder()
    rows = [_timed(event) for event in events]
    try:
        return encoder.encode_lines(rows)
    except _UNSENDABLE:
        return b"".join(_line(encoder, row) + b"\n" for row in rows)


def _line(encoder: msgspec.json.Encoder, row: Any) -> bytes:
    try:
        return encoder.encode(row)
    except _UNSENDABLE:
        return b"null"


def _timed(event: Any) -> Any:
    """Return an event with its times as text."""
    if not isinstance(event, Mapping):
        return None
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in event.items()}


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
