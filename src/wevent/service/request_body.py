"""Request bodies with limits on bytes as sent, bytes after decompression, and time.

No body is decoded before its size is known to be within the limits. Access is checked before a byte is read.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec
from anyio import to_thread
from fastapi import Request
from starlette.requests import ClientDisconnect

from wevent.service.problems import RequestError
from wevent.streams.json_lines import element_lines

NDJSON = "application/x-ndjson"
JSON = "application/json"
CSV = "text/csv"
BODY_S = 30.0
"""Seconds for a whole body to arrive."""

SMALL_BYTES = 1 << 16
"""Limit for a body with one value, such as a requirement."""

_LARGE_BYTES = 1 << 18  # from here on decompression and splitting would delay other requests: a thread does them
_MOST_MEMBERS = 64  # members of a gzip body
_GZIP = b"\x1f\x8b"  # first bytes

Struct = TypeVar("Struct", bound=msgspec.Struct)


def media_type(headers: Mapping[str, str], *known: str) -> str:
    """Return the declared type of a body.

    Raises:
        RequestError: for another type, or none (415).
    """
    said = headers.get("content-type", "").partition(";")[0].strip().lower()
    if said not in known:
        raise RequestError(
            415,
            f"a body of type {' or '.join(known)}",
            "none said" if not said else "another one",
            f"Send Content-Type: {known[0]}.",
            headers={"Accept": ", ".join(known)},
        )
    return said


async def read_body(
    request: Request,
    sent_limit: int = SMALL_BYTES,
    unpacked_limit: int = SMALL_BYTES,
    take: Callable[[int], None] = lambda count: None,
) -> bytes:
    """Return a whole body, decompressed.

    Args:
        request: whose body it is.
        sent_limit: bytes as they are sent.
        unpacked_limit: bytes after decompression.
        take: called with the bytes that it needs, of `MemoryBudget.allocation`.

    Raises:
        RequestError: if it is too long, sent or unpacked (413), came too slowly (408), is packed in another way than gzip
            (415), or is no such, or is one and does not say so (400); or if there is no room for it (503).
    """
    packed = _is_packed(request)
    length = request.headers.get("content-length", "")
    if length.isdecimal() and (len(length) > 18 or int(length) > sent_limit):
        raise _too_long(sent_limit, "sent")
    sent = await _sent(request, sent_limit, take)
    if not packed:
        if sent.startswith(_GZIP):  # no text begins so
            raise RequestError(
                400, "a body as its headers say", "one that is packed with gzip", "Send Content-Encoding: gzip with it."
            )
        return sent
    if unpacked_limit < _LARGE_BYTES:
        whole = unpacked(sent, unpacked_limit)
    else:  # a few bytes may become many
        whole = await to_thread.run_sync(unpacked, sent, unpacked_limit)
    take(len(whole))
    return whole


async def _sent(request: Request, limit: int, take: Callable[[int], None]) -> bytes:
    pieces, size, seconds = [], 0, BODY_S
    try:
        async with asyncio.timeout(seconds):
            async for piece in request.stream():
                size += len(piece)
                if size > limit:
                    raise _too_long(limit, "sent")
                take(len(piece))
                pieces.append(piece)
    except TimeoutError:
        raise RequestError(
            408,
            f"a body within {seconds:g} seconds",
            "one that is still arriving",
            "Send smaller batches.",
            headers={"Connection": "close"},
        ) from None
    except ClientDisconnect:
        raise RequestError(400, "a whole body", "a part of one", "Send it again.") from None
    return b"".join(pieces)


def _is_packed(request: Request) -> bool:
    encodings = [value.strip().lower() for value in request.headers.getlist("content-encoding")]
    if encodings in ([], [""], ["identity"]):
        return False
    if encodings == ["gzip"]:
        return True
    raise RequestError(
        415,
        "a body that is packed with gzip or not at all",
        "one that is packed in another way",
        "Send Content-Encoding: gzip, or leave it out.",
        headers={"Accept-Encoding": "gzip"},
    )


def unpacked(packed: bytes, limit: int) -> bytes:
    """Decompress a gzip body, never to more than `limit` bytes.

    Raises:
        RequestError: if there are more (413), or it is no gzip (400).
    """
    pieces: list[bytes] = []
    room, members = limit, 0
    try:
        while packed:
            members += 1
            if members > _MOST_MEMBERS:
                raise zlib.error
            opened = zlib.decompressobj(wbits=31)
            piece = opened.decompress(packed, room + 1)
            room -= len(piece)
            if room < 0:
                raise _too_long(limit, "unpacked")
            if not opened.eof:
                raise zlib.error
            pieces.append(piece)
            packed = opened.unused_data
    except zlib.error:
        raise RequestError(
            400, "a gzip body", "one that is none, or is cut", "Pack it again (Content-Encoding: gzip)."
        ) from None
    return b"".join(pieces)


async def read_lines(body: bytes, kind: str) -> bytes:
    """Return `event_lines` of a body; of a large one, from a thread."""
    if len(body) < _LARGE_BYTES:
        return event_lines(body, kind)
    return await to_thread.run_sync(event_lines, body, kind)


def event_lines(body: bytes, kind: str) -> bytes:
    """Return the events of a batch as lines, each ended by a newline, without decoding them.

    Raises:
        RequestError: if a JSON body is no array of balanced elements (400).
    """
    if kind == JSON:
        try:
            return element_lines(body)
        except ValueError:
            raise RequestError(
                400,
                "a JSON array of events",
                "something else",
                f"Send [{{…}}, {{…}}], or one object per line as {NDJSON}.",
            ) from None
    return body + b"\n" if body and not body.endswith(b"\n") else body


def decoded(body: bytes, kind: type[Struct]) -> Struct:
    """Decode a small JSON body.

    Raises:
        RequestError: if it is no such (400); the body is not repeated.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        names = ", ".join(field.encode_name for field in msgspec.structs.fields(kind))
        received = "a body that is not" if not isinstance(error, msgspec.ValidationError) else "another one"
        raise RequestError(
            400, f"a JSON object with keys out of {names}", received, "Correct the body: see /openapi.json."
        ) from None


def _too_long(limit: int, how: str) -> RequestError:
    return RequestError(413, f"a body of at most {limit:,} bytes {how}", "a longer one", "Send it in several parts.")
