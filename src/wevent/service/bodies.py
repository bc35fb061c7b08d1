"""Bodies of requests, taken in bounded: so many bytes as sent, so many unpacked, within so much time.

Nothing is looked at before it is known to be small enough; who is asking was checked before a byte is read.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from anyio import to_thread
from fastapi import Request
from starlette.requests import ClientDisconnect

from wevent.service.body_room import BodyPlace
from wevent.service.problems import RequestRefused
from wevent.streams.records.json_array import element_lines

NDJSON = "application/x-ndjson"
JSON = "application/json"
CSV = "text/csv"
BODY_S = 30.0
"""A whole body has to arrive in so many seconds."""

SMALL_BYTES = 1 << 16
"""The most that a body may have that says one thing, such as a requirement."""

_LARGE_BYTES = 1 << 18  # from here on unpacking and splitting would hold up other requests: it goes to a thread
_MOST_MEMBERS = 64  # parts that a gzip body may be put together from
_GZIP = b"\x1f\x8b"  # what it begins with

Struct = TypeVar("Struct", bound=msgspec.Struct)


@dataclass(frozen=True)
class BodyLimits:
    """How much a body may have.

    Attributes:
        sent: bytes as they are sent.
        unpacked: bytes after decompression.
        seconds: how long it may take to arrive.
    """

    sent: int
    unpacked: int
    seconds: float = BODY_S


SMALL = BodyLimits(SMALL_BYTES, SMALL_BYTES)


def media_type(headers: Mapping[str, str], *known: str) -> str:
    """What the body is said to be, out of some types.

    Raises:
        RequestRefused: for another type, or none (415).
    """
    said = headers.get("content-type", "").partition(";")[0].strip().lower()
    if said not in known:
        raise RequestRefused(
            415,
            f"a body of type {' or '.join(known)}",
            "none said" if not said else "another one",
            f"Send Content-Type: {known[0]}.",
            headers={"Accept": ", ".join(known)},
        )
    return said


async def read_body(request: Request, limits: BodyLimits, place: BodyPlace | None = None) -> bytes:
    """A whole body, unpacked.

    Args:
        request: whose body it is.
        limits: how much it may have.
        place: what it takes of the room for all bodies; None for a small one.

    Raises:
        RequestRefused: if it is too long, sent or unpacked (413), came too slowly (408), is packed in another way than gzip
            (415), or is no such, or is one and does not say so (400); or if there is no room for it (503).
    """
    packed = _is_packed(request)
    length = request.headers.get("content-length", "")
    if length.isdecimal() and (len(length) > 18 or int(length) > limits.sent):
        raise _too_long(limits.sent, "sent")
    sent = await _sent(request, limits, place)
    if not packed:
        if sent.startswith(_GZIP):  # no text begins so
            raise RequestRefused(
                400, "a body as its headers say", "one that is packed with gzip", "Send Content-Encoding: gzip with it."
            )
        return sent
    if limits.unpacked < _LARGE_BYTES:
        whole = unpacked(sent, limits.unpacked)
    else:  # a few bytes may become many
        whole = await to_thread.run_sync(unpacked, sent, limits.unpacked)
    if place is not None:
        place.take(len(whole))
    return whole


async def _sent(request: Request, limits: BodyLimits, place: BodyPlace | None) -> bytes:
    pieces, number = [], 0
    try:
        async with asyncio.timeout(limits.seconds):
            async for piece in request.stream():
                number += len(piece)
                if number > limits.sent:
                    raise _too_long(limits.sent, "sent")
                if place is not None:
                    place.take(len(piece))
                pieces.append(piece)
    except TimeoutError:
        raise RequestRefused(
            408,
            f"a body within {limits.seconds:g} seconds",
            "one that is still arriving",
            "Send smaller batches.",
            headers={"Connection": "close"},
        ) from None
    except ClientDisconnect:
        raise RequestRefused(400, "a whole body", "a part of one", "Send it again.") from None
    return b"".join(pieces)


def _is_packed(request: Request) -> bool:
    encodings = [value.strip().lower() for value in request.headers.getlist("content-encoding")]
    if encodings in ([], [""], ["identity"]):
        return False
    if encodings == ["gzip"]:
        return True
    raise RequestRefused(
        415,
        "a body that is packed with gzip or not at all",
        "one that is packed in another way",
        "Send Content-Encoding: gzip, or leave it out.",
        headers={"Accept-Encoding": "gzip"},
    )


def unpacked(packed: bytes, most: int) -> bytes:
    """The contents of a gzip body; never more than `most` bytes are made of it.

    Raises:
        RequestRefused: if there are more (413), or it is no gzip (400).
    """
    pieces: list[bytes] = []
    room, members = most, 0
    try:
        while packed:
            members += 1
            if members > _MOST_MEMBERS:
                raise zlib.error
            opened = zlib.decompressobj(wbits=31)
            piece = opened.decompress(packed, room + 1)
            room -= len(piece)
            if room < 0:
                raise _too_long(most, "unpacked")
            if not opened.eof:
                raise zlib.error
            pieces.append(piece)
            packed = opened.unused_data
    except zlib.error:
        raise RequestRefused(
            400, "a gzip body", "one that is none, or is cut", "Pack it again (Content-Encoding: gzip)."
        ) from None
    return b"".join(pieces)


def event_lines(body: bytes, kind: str) -> bytes:
    """Return the events of a batch as lines, each ended by a newline, without decoding them.

    Args:
        body: unpacked.
        kind: its media type.

    Raises:
        RequestRefused: if a JSON body is no array of balanced elements (400).
    """
    if kind == JSON:
        try:
            return element_lines(body)
        except ValueError:
            raise RequestRefused(
                400,
                "a JSON array of events",
                "something else",
                f"Send [{{…}}, {{…}}], or one object per line as {NDJSON}.",
            ) from None
    return body + b"\n" if body and not body.endswith(b"\n") else body


def decoded(body: bytes, kind: type[Struct]) -> Struct:
    """A small JSON body as what it stands for.

    Raises:
        RequestRefused: if it is no such (400); what was sent is not repeated.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        names = ", ".join(field.encode_name for field in msgspec.structs.fields(kind))
        received = "a body that is not" if not isinstance(error, msgspec.ValidationError) else "another one"
        raise RequestRefused(
            400, f"a JSON object with keys out of {names}", received, "Correct the body: see /openapi.json."
        ) from None


async def in_thread_if_large(function: Any, body: bytes, *arguments: Any) -> Any:
    """Call a function of a body: where it would hold up other requests, in a thread."""
    if len(body) < _LARGE_BYTES:
        return function(body, *arguments)
    return await to_thread.run_sync(function, body, *arguments)


def _too_long(most: int, how: str) -> RequestRefused:
    return RequestRefused(413, f"a body of at most {most:,} bytes {how}", "a longer one", "Send it in several parts.")
