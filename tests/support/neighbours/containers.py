"""Feeds: records in their containers. The container stays in place whatever records are taken out of it."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import duckdb

from tests.support.neighbours.lines import Spelling
from tests.support.neighbours.values import Event

TEXTS = Event("VARCHAR", "VARCHAR", "VARCHAR")


class Record(NamedTuple):
    """One physical line, or one row of a Parquet file.

    Attributes:
        kind: which of the kinds of records it is, or "close" for a close line.
        data: the line without its end, or the row.
        target: whether it is one of the records that make the difference.
        arrival: the second it arrives at, where a clock runs.
    """

    kind: str
    data: bytes | Event
    target: bool = False
    arrival: float = 0.0


@dataclass(frozen=True)
class Feed:
    """A file, or one run's standard input.

    Attributes:
        name: the file's name; for live lines only a name.
        spelling: format and columns.
        records: in their order.
        ending: what ends a line.
        ended: whether the last line has its end.
        types: of the Parquet columns.
    """

    name: str
    spelling: Spelling
    records: tuple[Record, ...]
    ending: bytes = b"\n"
    ended: bool = True
    types: Event = TEXTS

    def without_target(self) -> Feed:
        """The same container without the records that make the difference."""
        return self.only([not one.target for one in self.records])

    def only(self, chosen: list[bool]) -> Feed:
        """The same container with some of its records."""
        return replace(self, records=tuple(one for one, stays in zip(self.records, chosen, strict=True) if stays))

    def content(self) -> bytes:
        """All lines, the header first."""
        lines = [self.spelling.header()] if self.spelling.format in ("csv", "tsv") else []
        lines += [one.data for one in self.records if isinstance(one.data, bytes)]
        text = self.ending.join(lines)
        return text + self.ending if lines and self.ended else text

    def write(self, folder: Path) -> None:
        """Put the file there."""
        path = folder / self.name
        if self.spelling.format == "parquet":
            self._write_parquet(path)
        else:
            text = self.content()
            path.write_bytes(gzip.compress(text, 1, mtime=0) if self.name.endswith(".gz") else text)

    def _write_parquet(self, path: Path) -> None:
        """Values that the declared type cannot hold are missing."""
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        of = dict(zip(self.spelling.names, self.types, strict=True))
        columns = ", ".join(f'"{name}" {of.get(name, "VARCHAR")}' for name in self.spelling.order)
        connection.execute(f"CREATE TABLE events ({columns})")
        casts = ", ".join(f"TRY_CAST(? AS {of.get(name, 'VARCHAR')})" for name in self.spelling.order)
        rows = []
        for one in self.records:
            assert isinstance(one.data, Event)
            values = dict(zip(self.spelling.names, one.data, strict=True))
            rows.append([_text(values.get(name, "x")) for name in self.spelling.order])
        if rows:
            connection.executemany(f"INSERT INTO events SELECT {casts}", rows)
        connection.execute(f"COPY events TO '{path}' (FORMAT parquet)")
        connection.close()


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return None if value is None or "\ud800" in value else value
    return json.dumps(value)


def pieces(text: bytes, chance: Random) -> list[bytes]:
    """The bytes as they may arrive: cut anywhere."""
    cuts = sorted(chance.randint(0, len(text)) for _ in range(chance.randint(0, 4)))
    parts = [text[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return [part for part in parts if part]
