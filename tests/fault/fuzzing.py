"""Hostile lines and files for both readers, from a seed; what they must not do is checked by the tests."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from tests.support.live_events import pipe_source
from tests.support.streams import DAY, MEMORY, SECOND, ScriptedInbox, Wall, settings
from wevent import Roster
from wevent.errors import WeventError
from wevent.settings.values import format_time
from wevent.streams.clock import SlotClock
from wevent.streams.file_source import FileSource

CLOCK = SlotClock(DAY, 60 * SECOND)
LAST = 3
OTHERS = [900_001, 900_002, "other-a", "other-ü"]
HEADERS = {"csv": b"time,user,cell\n", "tsv": b"time\tuser\tcell\n", "ndjson": b""}
ROSTER = Roster.from_columns([*OTHERS, "u"], [4, 4, 6, 6, 9], [1, 0.5, 1, 1, 1])  # u is in a class of their own

TOKENS = [
    *(
        b'"',
        b'""',
        b"\r",
        b"\r\r",
        b"\0",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b",",
        b"\t",
        b"{",
        b"}",
        b"[",
        b"]",
        b"\\",
        b"\\u0000",
    ),
    *(
        b"\\ud800",
        b" ",
        b":",
        b"\xef\xbb\xbf",
        b"'",
        b'{"x":',
        b'"close"',
        b"\xe2\x80\xa8",
        b"\x85",
        b"\x1c",
        b"#",
        b"\x1a",
        b"0",
    ),
    *(b"1e5", b"-", b".", b"null", b"true", b"NaN", b"Infinity", b"9" * 30, b"\x0b", b"/*", b"//", b"=1+1", b"\x7f"),
]
VALUES: list[Any] = [
    *(
        "u",
        "u\0",
        "",
        " ",
        "007",
        7,
        7.0,
        -0.0,
        2**63,
        2**64,
        10**30,
        1e300,
        5e-324,
        True,
        False,
        None,
        [],
        {},
        [1],
        {"a": {}},
    ),
    *(
        "x" * 256,
        "x" * 257,
        "x" * 5_000,
        "ä" * 129,
        "\ud7ff",
        "\n",
        '"',
        "0" * 19,
        "-" + "9" * 18,
        "1" * 19,
        "nan",
        "-inf",
    ),
]
TIMES: list[Any] = [
    *(
        format_time(DAY + 10 * SECOND),
        DAY // SECOND,
        "2026-01-01T00:00:10",
        "2026-02-30T00:00:00Z",
        "0000-01-01T00:00Z",
    ),
    *(
        "2026-01-01T00:00:10+99:99",
        "2026-01-01 00:00Z",
        "9" * 400,
        -1,
        10**400,
        1e308,
        "1e308",
        "1e999",
        [],
        {},
        None,
        "",
    ),
    *(
        "2026-01-01T00:00:10.1234567891Z",
        "２０２６-01-01T00:00:10Z",
        "2026-01-01T24:00:00Z",
        "x" * 70,
        True,
        "-0",
        "+.5e3",
    ),
]


@dataclass
class Tally:
    """What a campaign came to."""

    lines: int = 0
    files: int = 0
    refused: int = 0


def campaign(folder: Path, inputs: int, seed: int, lines_per_round: int = 200) -> Tally:
    """Rounds of hostile lines among others' records, and of hostile files, until there were so many inputs.

    Raises:
        AssertionError: if somebody else's counts changed.
        Exception: any other than `WeventError` that a reader let through.
    """
    tally = Tally()
    while tally.lines + tally.files < inputs:
        generator = random.Random(f"{seed} {tally.lines + tally.files}")
        hostile_lines(generator, folder, lines_per_round)
        tally.lines += lines_per_round
        for _ in range(6):
            tally.refused += hostile_file(generator, folder)
            tally.files += 1
    return tally


def hostile_lines(generator: random.Random, folder: Path, number: int) -> None:
    """Lines of u's among the others' change nothing for the others, in one format, both engines and live."""
    kind = generator.choice(list(HEADERS))
    good = [(generator.randrange(60 * LAST), generator.choice(OTHERS), generator.randrange(4)) for _ in range(20)]
    for form in (kind, "live"):
        records = [record((format_time(DAY + time * SECOND), user, cell), form) for time, user, cell in good]
        mixed = list(records)
        for _ in range(number):
            mixed.insert(generator.randrange(len(mixed) + 1), hostile_line(generator, form))
        if form == "live":
            assert count_live(mixed, generator) == count_live(records, generator)
            continue
        end = generator.choice([b"\n", b"\r\n"])
        zipped = generator.random() < 0.3
        for memory in MEMORY.values():
            with memory():
                counted = [count_file(write(folder, form, lines, end, zipped)) for lines in (mixed, records)]
            assert counted[0] == counted[1]


def hostile_line(generator: random.Random, kind: str) -> bytes:
    """Bytes without a newline: odd values, odd bytes in a record, or bytes alone."""
    choice = generator.random()
    if choice < 0.1:
        line = generator.randbytes(generator.randrange(80))
    elif choice < 0.2:
        line = b"".join(generator.choices(TOKENS, k=generator.randrange(12)))
    elif choice < 0.23:
        depth = generator.choice([10, 63, 64, 65, 900, 2_000, 50_000])
        line = b'{"time":1767225610,"user":"u","cell":1,"x":' + b"[" * depth + b"]" * depth + b"}"
    else:
        cell = generator.choice([0, 1, "1", 5, *VALUES])
        line = record((generator.choice(TIMES), generator.choice(["u", *VALUES]), cell), kind)
        for _ in range(generator.choice([0, 0, 1, 1, 2, 5])):
            place = generator.randrange(len(line) + 1)
            line = line[:place] + generator.choice(TOKENS) + line[place + generator.choice([0, 0, 1]) :]
    if generator.random() < 0.002:
        line += b"x" * generator.choice([2**20 - 1, 2**20, 2**20 + 1, 3 * 2**20])
    return line.replace(b"\n", b"")


def hostile_file(generator: random.Random, folder: Path) -> bool:
    """A file that is hostile as a whole: it is refused with one of our errors, or counted; returns whether refused."""
    kind = generator.choice([*HEADERS, "csv.gz", "ndjson.gz", "parquet"])
    path = folder / f"hostile.{kind}"
    content = bytearray(sound_file(folder, kind))
    for _ in range(generator.choice([0, 1, 1, 3, 20])):
        change = generator.random()
        place = generator.randrange(len(content) + 1)
        if change < 0.4 and place < len(content):
            content[place] ^= 1 << generator.randrange(8)
        elif change < 0.6:
            content[place:place] = generator.choice([*TOKENS, b"\n"])
        elif change < 0.8:
            del content[place:]
        else:
            content[place : place + generator.randrange(40)] = generator.randbytes(generator.randrange(20))
    path.write_bytes(bytes(content))
    try:
        count_file(path)
    except WeventError as error:
        refusal = str(error)
    else:
        return False
    assert "\n" not in refusal
    return True


def sound_file(folder: Path, kind: str) -> bytes:
    """The same few records in every format."""
    events = [(DAY + time * SECOND, OTHERS[time % 4], time % 4) for time in range(0, 170, 7)]
    if kind == "parquet":
        path = folder / "sound.parquet"
        if not path.exists():
            rows = ", ".join(f"({time}, '{user}', {cell})" for time, user, cell in events)
            query = f'SELECT make_timestamptz(a) AS time, b AS "user", c AS cell FROM (VALUES {rows}) AS t(a, b, c)'
            duckdb.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
        return path.read_bytes()
    plain = kind.removesuffix(".gz")
    lines = [record((format_time(time), user, cell), plain) + b"\n" for time, user, cell in events]
    content = HEADERS[plain] + b"".join(lines)
    return gzip.compress(content, mtime=0) if kind.endswith(".gz") else content


def record(parts: tuple[Any, Any, Any], kind: str) -> bytes:
    """A record as a line without its end."""
    if kind in ("ndjson", "live"):
        named = dict(zip(("time", "user", "cell"), parts, strict=True))
        return json.dumps(named, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return (b"\t" if kind == "tsv" else b",").join(str(part).encode("utf-8", "surrogatepass") for part in parts)


def write(folder: Path, kind: str, lines: list[bytes], end: bytes, zipped: bool) -> Path:
    path = folder / (f"lines.{kind}.gz" if zipped else f"lines.{kind}")
    content = HEADERS[kind] + b"".join(line + end for line in lines)
    path.write_bytes(gzip.compress(content, 1) if zipped else content)
    return path


def count_file(path: Path) -> list[Any]:
    """The others' counts."""
    source = FileSource(settings([str(path)]), CLOCK, LAST)
    return [one.counts.matrix[:-1].tolist() for one in source.count(ROSTER, 1, LAST)]


def count_live(lines: list[bytes], generator: random.Random) -> list[Any]:
    """The others' counts, whatever pieces the lines arrive in."""
    wall = Wall(DAY + 60 * SECOND * (LAST - 1))
    text = b"".join(line + b"\n" for line in lines)
    size = generator.choice([7, 1_000, 2**18]) if len(text) < 100_000 else 2**18
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    inbox = ScriptedInbox([*pieces, 3_600.0], wall)
    source = pipe_source(settings(grace_us=600 * SECOND), CLOCK, LAST, inbox=inbox, now_us=wall)
    return [one.counts.matrix[:-1].tolist() for one in source.count(ROSTER, 1, LAST)]
