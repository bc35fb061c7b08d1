"""Request bodies with limits on bytes as sent, bytes after decompression, time, and the memory of all bodies together.

A body is decoded only after its size is checked. Access is checked before a byte is read.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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
BODY_S = 30.0  # seconds for a whole body to arrive
SMALL_BYTES = 1 << 16  # limit for a body with one value, such as a requirement
BODY_BYTES = 256 << 20
"""Memory for the largest body that settings allow, compressed and decompressed (`wevent.settings`)."""

_LARGE_BYTES = 1 << 18  # from here on decompression and splitting would delay other requests: a thread does them
_MAX_MEMBERS = 64  # of a gzip body
_GZIP = b"\x1f\x8b"  # first bytes

Struct = TypeVar("Struct", bound=msgspec.Struct)


class MemoryBudget:
    """Memory for all request bodies together; used in one thread."""

    def __init__(self) -> None:
        self._free = BODY_BYTES

    @contextmanager
    def allocation(self) -> Iterator[Callable[[int], None]]:
        """Yield a function that takes bytes for one body. The end of the block gives them back.

        The function raises RequestError if there is no memory (503).
        """
        taken = 0

        def take(count: int) -> None:
            nonlocal taken
            if count > self._free:
                problem = "The service has no memory for another body."
                raise RequestError(503, problem, "Send it again in a second.", {"Retry-After": "1"})
            self._free -= count
            taken += count

        try:
            yield take
        finally:
            self._free += taken


def media_type(headers: Mapping[str, str], *known: str) -> str:
    """Return the declared type of a body; refuse others, and none (415)."""
    declared = headers.get("content-type", "").partition(";")[0].strip().lower()
    if declared not in known:
        fix = f"Send Content-Type: {' or '.join(known)}."
        raise RequestError(415, "The type of the body is not supported.", fix, {"Accept": ", ".join(known)})
    return declared


async def read_body(
    request: Request,
    sent_limit: int = SMALL_BYTES,
    unpacked_limit: int = SMALL_BYTES,
    take: Callable[[int], None] = lambda count: None,
) -> bytes:
    """Return a whole body, decompressed, within limits for the bytes as sent and after decompression.

    `take` is the function of `MemoryBudget.allocation`.

    Raises:
        RequestError: if it is too long (413), too slow (408), incomplete, or not as its headers say (400, 415); if there is
            no memory (503).
    """
    encodings = [value.strip().lower() for value in request.headers.getlist("content-encoding")]
    is_packed = encodings == ["gzip"]
    if not is_packed and encodings not in ([], [""], ["identity"]):
        fix = "Send Content-Encoding: gzip, or leave it out."
        raise RequestError(415, "The encoding of the body is not supported.", fix, {"Accept-Encoding": "gzip"})
    length = request.headers.get("content-length", "")
    if length.isdecimal() and (len(length) > 18 or int(length) > sent_limit):
        raise _too_long(sent_limit, "sent")
    pieces, size = [], 0
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                size += len(piece)
                if size > sent_limit:
                    raise _too_long(sent_limit, "sent")
                take(len(piece))
                pieces.append(piece)
    except TimeoutError:
        problem = f"The body did not arrive within {BODY_S:g} seconds."
        raise RequestError(408, problem, "Send smaller batches.", {"Connection": "close"}) from None
    except ClientDisconnect:
        raise RequestError(400, "The body is incomplete.", "Send it again.") from None
    sent = b"".join(pieces)
    if not is_packed:
        if sent.startswith(_GZIP):  # no text begins so
            raise RequestError(400, "The body is packed with gzip.", "Send Content-Encoding: gzip with it.")
        return sent
    body = await work(unpacked_limit, unpacked, sent, unpacked_limit)  # a few bytes may become many
    take(len(body))
    return body


async def work(size: int, function: Callable[..., bytes], *arguments: object) -> bytes:
    """Return a function of a body; of a large one, called in a thread."""
    if size < _LARGE_BYTES:
        return function(*arguments)
    return await to_thread.run_sync(function, *arguments)


def unpacked(packed: bytes, limit: int) -> bytes:
    """Decompress a gzip body, never to more than `limit` bytes; refuse a longer one (413), and what is not gzip (400)."""
    pieces: list[bytes] = []
    room, members = limit, 0
    try:
        while packed:
            members += 1
            if members > _MAX_MEMBERS:
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
        raise RequestError(400, "The body is not valid gzip, or incomplete.", "Pack it again.") from None
    return b"".join(pieces)


def event_lines(body: bytes, kind: str) -> bytes:
    """Return the events of a batch as lines, each ended by a newline; refuse a JSON body that is no array (400)."""
    if kind == JSON:
        try:
            return element_lines(body)
        except ValueError:
            fix = f"Send [{{…}}, {{…}}], or one object per line as {NDJSON}."
            raise RequestError(400, "The body is not a JSON array of events.", fix) from None
    return body + b"\n" if body and not body.endswith(b"\n") else body


def decoded(body: bytes, kind: type[Struct]) -> Struct:
    """Decode a small JSON body, or refuse it (400)."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        is_json = isinstance(error, msgspec.ValidationError)
        problem = "The body has an unknown key or an invalid value." if is_json else "The body is not valid JSON."
        names = ", ".join(field.encode_name for field in msgspec.structs.fields(kind))
        raise RequestError(400, problem, f"Send a JSON object with keys out of {names}: see /openapi.json.") from None


def _too_long(limit: int, how: str) -> RequestError:
    return RequestError(413, f"The body has more than {limit:,} bytes {how}.", "Send it in several parts.")
