"""Events as lines of bytes: well spelt, and broken in every way that a line can be broken without a line break."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.support.neighbours.values import Event, World

DEEP = 100_000


@dataclass(frozen=True)
class Spelling:
    """How a container writes its events.

    Attributes:
        format: csv, tsv, ndjson or parquet.
        names: the names of time, user and cell.
        order: the columns of a csv or tsv file, in their order; others than the three are filled with "x".
    """

    format: str
    names: Event
    order: tuple[str, ...]

    @property
    def delimiter(self) -> str:
        return "\t" if self.format == "tsv" else ","

    def header(self) -> bytes:
        """The first line, for formats that have one."""
        return self.delimiter.join(self.order).encode()

    def line(self, event: Event) -> bytes:
        """A well-formed line, whatever its values."""
        if self.format == "ndjson":
            return json.dumps(dict(zip(self.names, event, strict=True))).encode()
        values = dict(zip(self.names, event, strict=True))
        return self._joined([_field(values.get(name, "x"), self.delimiter) for name in self.order])

    def _joined(self, fields: Sequence[str]) -> bytes:
        return self.delimiter.join(fields).encode("utf-8", "surrogatepass")

    def raw(self, event: Event, raw: dict[str, str]) -> bytes:
        """A csv line in which some fields are written as they are."""
        values = {name: _field(value, self.delimiter) for name, value in zip(self.names, event, strict=True)}
        return self._joined([raw.get(name, values.get(name, "x")) for name in self.order])


def _field(value: Any, delimiter: str) -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
    return '"' + text.replace('"', '""') + '"' if delimiter in text or '"' in text else text


def _cut(line: bytes, chance: Random) -> bytes:
    return line[: chance.randint(1, max(1, len(line) - 1))]


def _put(line: bytes, what: bytes, chance: Random) -> bytes:
    place = chance.randint(0, len(line))
    return line[:place] + what + line[place:]


def _quote(line: bytes, spelling: Spelling, chance: Random, event: Event) -> bytes:
    """A quote that is never closed, or text behind a closed one."""
    name = chance.choice(spelling.order)
    raw = chance.choice(('"', '"x', 'x"', '"x"y', '""x', '"x""', '"""'))
    return spelling.raw(event, {name: raw})


def _csv_return(line: bytes, spelling: Spelling, chance: Random, forged: bytes) -> bytes:
    """A lone carriage return; what follows looks like another user's record."""
    return chance.choice((line + b"\r" + forged, _put(line, b"\r", chance), b"\r" + line))


def _fields(line: bytes, spelling: Spelling, chance: Random) -> bytes:
    extra = spelling.delimiter.encode()
    fewer = line.rsplit(extra, 1)[0]
    return chance.choice((fewer, line + extra + b"more", extra + line, extra * 50, b"x", line + extra * 3_000))


def _csv_odd(line: bytes, spelling: Spelling, chance: Random) -> bytes:
    return chance.choice(
        (b"", b"   ", b"#" + line, spelling.header(), b"\xef\xbb\xbf" + line, b"\\N", b"NULL", line + b" ", b"\x1a")
    )


def csv_broken(kind: str, chance: Random, world: World, spelling: Spelling) -> bytes:
    """A line of a csv or tsv file that is broken in this way."""
    event = world.event(chance, world.target)
    line = spelling.line(event)
    forged = spelling.line(world.event(chance, chance.choice(world.others)))
    broken: dict[str, Callable[[], bytes]] = {
        "broken syntax": lambda: _quote(line, spelling, chance, event),
        "cut off": lambda: _cut(line, chance),
        "nul": lambda: _put(line, b"\0" * chance.choice((1, 5)), chance),
        "lone return": lambda: _csv_return(line, spelling, chance, forged),
        "invalid text": lambda: _put(
            line, chance.choice((b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80")), chance
        ),
        "wrong fields": lambda: _fields(line, spelling, chance),
        "odd line": lambda: _csv_odd(line, spelling, chance),
        "deep": lambda: spelling.raw(event, {spelling.names.user: "[" * DEEP}),
        "huge line": lambda: spelling.raw(event, {spelling.names.cell: chance.choice('x"') * 2_200_000}),
    }
    return broken[kind]()


def json_broken(kind: str, chance: Random, world: World, spelling: Spelling) -> bytes:
    """A line of JSON that is broken in this way."""
    names, event = spelling.names, world.event(chance, world.target)
    line = spelling.line(event)
    forged = spelling.line(world.event(chance, chance.choice(world.others)))
    fields = dict(zip(names, event, strict=True))
    fewer = {name: value for name, value in fields.items() if name != chance.choice(names)}
    deep = chance.choice((b"[", b'{"a":')) * chance.choice((2_000, DEEP))
    broken: dict[str, Callable[[], bytes]] = {
        "broken syntax": lambda: chance.choice(
            (b"{", b'{"', b'"', line + line, line + b"}", line[:-1] + b",}", b"{'a': 1}", line + b" x")
        ),
        "cut off": lambda: _cut(line, chance),
        "nul": lambda: _put(line, b"\0" * chance.choice((1, 5)), chance),
        "lone return": lambda: chance.choice((line + b"\r" + forged, _put(line, b"\r", chance), b"\r")),
        "invalid text": lambda: _put(line, chance.choice((b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf")), chance),
        "wrong fields": lambda: json.dumps(
            chance.choice((fewer, {}, [], [event.time, event.user], None, 5, "x", {"a": 1}))
        ).encode(),
        "odd line": lambda: chance.choice(
            (
                b"",
                b"   ",
                b"\t",
                line.upper(),
                b" " + line + b" ",
                b"// x",
                json.dumps({**fields, "close": world.moment(10**6)}).encode(),
                json.dumps({**fields, names.user: '"close"'}).encode(),
                line[:-1] + b', "close": 1}',
                line[:-1] + b", " + line[1:],
            )
        ),
        "deep": lambda: chance.choice(
            (line[:-1] + b', "more": ' + deep, deep, b'{"%s": ' % names.user.encode() + deep)
        ),
        "huge line": lambda: (
            json.dumps({**fields, "more": chance.choice(("x", '"')) * 17_000_000}).encode()
            if not chance.randrange(4)
            else json.dumps({**fields, "more": [0] * 300_000}).encode()
        ),
    }
    return broken[kind]()


BROKEN = (
    "broken syntax",
    "cut off",
    "nul",
    "lone return",
    "invalid text",
    "wrong fields",
    "odd line",
    "deep",
    "huge line",
)
"""Kinds of lines by how they are broken."""
