"""Tokens, personal links and the tokens file: one text admits, every other one is refused without being repeated."""

from __future__ import annotations

import functools
import os

from tests.fuzz.oracles import MARKER, empty_folder, own_folder, refusals
from wevent.errors import WeventError
from wevent.service.tokens import Tokens

SEEDS = (
    b"\x00wev_01234567_" + b"0" * 64,
    b"\x01wel_" + b"A" * 100,
    b"\x02\x05\x01",
    b"\x03\x05\x01",
    b"\x03\xff\x10=",
    b'\x04{"sha256":"0","contents":{"tokens":[]}}',
    b"\x05\x09\x01\x30\x22",
)
WORDS = (
    b"wev_",
    b"wel_",
    b"=",
    b"-",
    b"_",
    b'"tokens":',
    b'"key":',
    b'"sha256":',
    b'"contents":',
    b"\xff",
    b"\xed\xa0\x80",
)


class Issued:
    """A token and a link, and the file that knows them."""

    def __init__(self) -> None:
        self.path = own_folder() / "tokens"
        self.tokens = Tokens(self.path)
        self.token = self.tokens.create(["ingest"]).text
        self.link = self.tokens.make_link(MARKER, 3600).text


@functools.cache
def issued() -> Issued:
    return Issued()


def check(data: bytes) -> None:
    """The first byte says what is sent: a text, the token or link with some bytes changed, or a tokens file."""
    kind, body = (data[0] if data else 0) % 6, data[1:]
    text = body.decode("utf-8", "surrogatepass") if _is_text(body) else body.decode("latin-1")
    if kind in (0, 1):
        _check_text(text)
    elif kind in (2, 3):
        _check_text(_changed((issued().token if kind == 2 else issued().link).encode(), body).decode("latin-1"))
    else:
        _check_file(body if kind == 4 else _changed(issued().path.read_bytes(), body), is_ours=kind == 5)


def _is_text(body: bytes) -> bool:
    try:
        body.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def _changed(sound: bytes, patches: bytes) -> bytes:
    """Pairs of a place and a byte; a place of 255 appends."""
    content = bytearray(sound)
    for place, byte in zip(patches[::2], patches[1::2], strict=False):
        if place == 255:
            content.append(byte)
        else:
            content[place * len(content) // 255 if len(content) > 255 else place % len(content)] = byte
    return bytes(content)


def _check_text(text: str) -> None:
    private = (text, MARKER) if len(text) >= 8 else (MARKER,)
    with refusals(*private) as refused:
        issued().tokens.admit(text)
    known = text in (issued().token, issued().link)
    assert bool(refused) != known, "another text than those that were issued is admitted, or one of them is not"


def _check_file(content: bytes, *, is_ours: bool) -> None:
    """A file that was changed admits nobody: it is refused whole, or says what it said."""
    path = empty_folder() / "tokens"
    path.touch(0o600)
    path.write_bytes(content)
    os.chmod(path, 0o600)
    tokens = Tokens(path)
    with refusals(MARKER, issued().token, issued().link):
        records = tokens.records()
        if is_ours:
            assert records == Tokens(issued().path).records(), "a change of the file was not noticed"
        for text in ("wev_01234567_" + "0" * 64, "wel_" + "A" * 100):
            _must_refuse(tokens.admit, text)


def _must_refuse(admit: object, text: str) -> None:
    try:
        admit(text)  # type: ignore[operator]
    except WeventError:
        return
    raise AssertionError("a text that nobody was given is admitted")
