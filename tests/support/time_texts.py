"""Texts that are times, numbers, or nearly one: what every reader of times has to agree on."""

from __future__ import annotations

import random
from collections.abc import Iterator

from wevent.settings import StreamSettings
from wevent.streams.decoding import NO_OFFSET
from wevent.streams.file_source import open_readers

MADE = 6_000
PARTS: tuple[tuple[str, ...], ...] = (
    ("2026", "2026", "2026", "1970", "0001", "0000", "9999", "1900", "2000", "1582", "1969", "20260", "-2026", "٢٠٢٦"),
    ("-", "-", "-", "-", "-", "/", ""),
    ("01", "02", "03", "11", "12", "00", "13", "1"),
    ("-", "-", "-", "-", "-", "/"),
    ("01", "08", "28", "29", "30", "31", "00", "32", "7"),
    ("T", "T", "T", "t", " ", " ", "  ", "", "_"),
    ("00", "01", "02", "12", "19", "23", "24", "7"),
    (":", ":", ":", ":", ""),
    ("00", "30", "59", "60", "9"),
    ("", ":00", ":07", ":59", ":60", ":5", ":"),
    ("", "", "", ".", ".5", ".123456", ".999999999", ".9999995", ".0000000001", ",5"),
    (
        "", "", "Z", "Z", "Z", "z", "+00", "-00", "+02", "-05", "+0200", "-0230", "+05:30", "-03:30", "+17:59", "+18",
        "-18:00", "+18:01", "-18:01", "+19", "-2200", "+23:59", "-23:59", "+24", "+24:00", "+2:00",
        "+02:60", "+020000", "+02:00:00", " Z", " +02:00", "UTC", "[Europe/Paris]", "Z\n", "\n", "\r\n", " ", "\0",
    ),
)  # fmt: skip
NUMBERS: tuple[tuple[str, ...], ...] = (
    ("", "", "", "-", "+", " ", "--"),
    ("", "0", "5", "007", "1767225605", "1767225605123", "1767225605123456", "9007199254740993", "123456789012345678",
     "999999999999999999", "4000000000000", "4000000000001", "9223372036854", "9223372036854775807", "9223372036854775808",
     "170141183460469231731687303715884105728", "9" * 39, "9" * 62, "0" * 50 + "1767225605", "0" * 55 + "1767225605",
     "1_000", "1,000", "0x10", "١", "NaN", "inf", "Infinity"),
    ("", "", "", ".", ".0", ".5", ".25", ".123456", ".1234565", ".1234575", ".9999995", ".00000050000001", ".0000005"),
    ("", "", "", "", "e0", "E3", "e+2", "e-3", "e-999", "e999", "e1000", "e300", "e-320", "e", "d", "f", "L"),
    ("", "", "", "", " ", "\n", "s"),
)  # fmt: skip


def time_texts() -> Iterator[str]:
    """Times, numbers, and what is nearly one; always the same ones."""
    chance = random.Random(14)
    for _ in range(MADE):
        parts = chance.choice((PARTS, NUMBERS))
        usual = [part[0] for part in parts]
        odd = set(chance.sample(range(len(parts)), chance.randint(1, 4)))  # all parts at random are hardly ever a time
        if parts is PARTS:
            odd.add(len(parts) - 1)
            usual[9] = chance.choice((":00", ":59", ""))
        else:
            odd.add(1)
        text = "".join(chance.choice(part) if place in odd else usual[place] for place, part in enumerate(parts))
        if chance.random() < 0.1:
            place = chance.randrange(len(text) + 1)
            text = text[:place] + chance.choice(" 0\0\n-+:é.Zz") + text[place + 1 :]
        yield text
    yield from ("", "0", "\ud7ff", "2026-01-01T00:00:00Z".ljust(64), "2026-01-01T00:00:00." + "1" * 60 + "Z", "0" * 65)


def read_table(chosen: StreamSettings, count: int) -> tuple[list[int | None], list[int]]:
    """Return the time of each of some rows of a Parquet file, and the rows whose time lacks an offset."""
    times: list[int | None] = [None] * count
    lacking = []
    for reader in open_readers(chosen):
        for first, decoded, _ in reader.pieces():
            malformed = dict(zip(decoded.malformed.tolist(), decoded.problems.tolist(), strict=True))
            rows = [row for row in range(len(decoded.batch.times) + len(malformed)) if row not in malformed]
            for row, time in zip(rows, decoded.batch.times.tolist(), strict=True):
                times[first - 1 + row] = time
            lacking += [first - 1 + row for row, problem in malformed.items() if problem == NO_OFFSET]
    return times, lacking


def differing(
    expected: dict[str, int | None], found: dict[str, int | None]
) -> list[tuple[str, int | None, int | None]]:
    """What is read otherwise: the text, the time it is, and the time that was found."""
    assert len(found) == len(expected)
    return [(text, time, found[text]) for text, time in expected.items() if found[text] != time]
