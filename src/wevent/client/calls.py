"""Parts of requests of the API, without input or output: paths, parameters, batches of events."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

import msgspec

from wevent.errors import InvalidOption, ServiceRefused
from wevent.schemas import BatchResult

User = str | int
Place = int | str | datetime
"""A slot by its number, or by a time in it."""
Events = bytes | Iterable[Mapping[str, Any]]
"""Lines of NDJSON as bytes, or objects with a time, a user and a cell."""

_BATCH_ID = re.compile(r"[!-~]{1,200}")
_LEAST_LIMIT = 1 << 10  # bytes: no service refuses fewer for their size
_UNSENDABLE = (TypeError, ValueError, RecursionError)


def user_path(user: User | None, rest: str = "") -> str:
    """Return the path of a user; of None, the path of the user of a personal link."""
    if user is None:
        return f"/v1/me{rest}"
    text = str(user)
    if not text:
        raise InvalidOption("the id of a person", "an empty one", "Name a person.", option="user", value=None)
    return f"/v1/users/{quote(text, safe='').replace('.', '%2E')}{rest}"


def release_params(first: Place | None, last: Place | None, cells: Iterable[str] | None, limit: int) -> dict[str, str]:
    """Return the parameters of a page of releases."""
    params = {"from": _slot_text(first), "to": _slot_text(last), "cells": _cell_list(cells), "limit": str(limit)}
    return {name: value for name, value in params.items() if value is not None}


def _slot_text(place: Place | None) -> str | None:
    if isinstance(place, datetime) and place.utcoffset() is None:
        raise InvalidOption(
            "a time with its offset", "one without", "Say which, such as datetime.now(UTC).", option="time", value=None
        )
    return place.isoformat() if isinstance(place, datetime) else None if place is None else str(place)


def _cell_list(cells: Iterable[str] | None) -> str | None:
    """Return labels with commas between them; a label with a comma or a quote is in double quotes."""
    if cells is None:
        return None
    return ",".join('"' + cell.replace('"', '""') + '"' if set(cell) & {",", '"'} else cell for cell in map(str, cells))


def flag_params(**flags: bool) -> dict[str, str]:
    """Return the parameters of the flags that are set."""
    return {name: "true" for name, flag in flags.items() if flag}


def batch_headers(lines: bytes, batch_id: str | None) -> dict[str, str]:
    """Return the headers of a batch of events. Its id stays the same in every attempt, so the batch is accepted once."""
    if batch_id is not None and not _BATCH_ID.fullmatch(batch_id):
        raise InvalidOption(
            "a batch id of at most 200 visible ASCII characters",
            "another one",
            "Leave blanks out, or leave the id to the client.",
            option="batch_id",
            value=None,
        )
    return {"content-type": "application/x-ndjson", "idempotency-key": batch_id or _digest_id(lines)}


def split(refusal: ServiceRefused, lines: bytes, batch_id: str | None) -> list[tuple[bytes, str | None]]:
    """Return the halves of a batch that was refused for its size, each with an id of its own; none for a single line.

    A half gets the same id in every attempt, also if the whole batch is sent again.

    Raises:
        ServiceRefused: if the batch was refused for another reason.
    """
    if refusal.facts["status"] != 413 or len(lines) <= _LEAST_LIMIT:
        raise refusal
    middle = len(lines) // 2
    cut = lines.rfind(b"\n", 0, middle) + 1 or lines.find(b"\n", middle) + 1
    if cut == len(lines):
        return []
    halves = [lines[:cut], lines[cut:]]
    return [(half, batch_id and _digest_id(batch_id.encode() + b"\n" + half)) for half in halves]


def add_up(results: Sequence[BatchResult]) -> BatchResult:
    """Return the result of a batch from the results of its parts; without any, the batch is one record too long to send."""
    if not results:
        return BatchResult(0, {"no_record": 1})
    rejected = sum((Counter(result.rejected) for result in results), Counter[str]())
    return BatchResult(sum(result.accepted for result in results), dict(rejected))


def _digest_id(lines: bytes) -> str:
    """Return the id of a batch without one: the same events are the same batch in every run."""
    return f"sha256-{hashlib.sha256(lines).hexdigest()}"


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
