"""Files of events: refused as a whole in one sentence, or counted, by both engines alike and with nobody else touched."""

from __future__ import annotations

import gzip
import secrets
from pathlib import Path

from tests.fuzz.oracles import MARKER, empty_folder, refusals
from tests.support.streams import DAY, MEMORY, SECOND, settings
from wevent import Roster
from wevent.settings.values import format_time
from wevent.streams.clock import SlotClock
from wevent.streams.file_source import FileSource

CLOCK = SlotClock(DAY, 60 * SECOND)
LAST = 3
KINDS = ("csv", "tsv", "ndjson", "csv.gz", "ndjson.gz", "tsv.gz")
OTHERS = [f"other-{secrets.token_hex(8)}" for _ in range(3)]  # nobody guesses them: what is counted there is theirs
PEOPLE = Roster.from_columns([*OTHERS, "u", MARKER], [4, 4, 6, 9, 9], [1, 0.5, 1, 1, 1])
SEEDS = (
    b"\x00time,user,cell\n2026-01-01T00:00:10Z,u,1\n1767225670,u,2\n",
    b'\x00"user",cell,"time"\n"u",1,2026-01-01T00:01:10Z\n"u,1\nu,3,x\n',
    b"\x01time\tuser\tcell\n2026-01-01T00:00:10Z\tu\t1\n",
    b'\x02{"time":"2026-01-01T00:00:10Z","user":"u","cell":1}\n{"cell":2,"user":"u","time":1767225670}\n',
    b"\x03time,user,cell\n2026-01-01T00:00:10Z,u,1\n",
    b'\x40"user",cell,"time"\r\n"u",1,2026-01-01T00:01:10Z\r\n\xff,1\r\n',
    b'\x42{"time":"2026-01-01T00:00:10Z","user":"u","cell":"1"}\n',
    b'\x04\n{"time":1767225610,"user":"Zq7Marker","cell":[1]}\n',
)
WORDS = (b"time,user,cell", b'"', b"\r\n", b"2026-01-01T00:00:10Z", b',"', b"\t", b"\xef\xbb\xbf", b'{"time":')


def check(data: bytes) -> None:
    """The first byte chooses the format; the others' records are the last lines."""
    choice = data[0] if data else 0
    kind = KINDS[choice % 64 % len(KINDS)]
    body = data[1:] + b"\n"
    header, found = _head(body, kind)
    others = [_record(kind, header, OTHERS[number % 3], number) for number in range(6)]
    path = empty_folder() / f"events.{kind}"
    counted = [_count(_write(path, body + b"".join(others)), memory) for memory in MEMORY]
    assert counted[0] == counted[-1], "memory decides the counts"
    alone = _count(_write(path, found + b"".join(others)), "enough")
    assert (counted[0] is None) == (alone is None), "one person's lines decide whether a file is refused"
    if counted[0] is not None and alone is not None:
        assert counted[0][0] == alone[0], "one person's lines changed another's counts"


def _head(body: bytes, kind: str) -> tuple[list[bytes], bytes]:
    """The names of columns in the first line, and that line."""
    first, _, _ = body.partition(b"\n")
    if kind.startswith("ndjson"):
        return [], b""
    delimiter = b"\t" if kind.startswith("tsv") else b","
    return [
        name.strip(b'"\r').removeprefix(b"\xef\xbb\xbf").strip(b'"') for name in first.split(delimiter)
    ], first + b"\n"


def _record(kind: str, header: list[bytes], user: str, number: int) -> bytes:
    time = format_time(DAY + number * 25 * SECOND).encode()
    parts = {b"time": time, b"user": user.encode(), b"cell": b"%d" % (number % 4)}
    if kind.startswith("ndjson"):
        return b'{"time":"%s","user":"%s","cell":%s}\n' % (time, user.encode(), parts[b"cell"])
    return (b"\t" if kind.startswith("tsv") else b",").join(parts.get(name, b"") for name in header) + b"\n"


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content, 1, mtime=0) if path.name.endswith(".gz") else content)
    return path


def _count(path: Path, memory: str) -> tuple[list[object], list[object], dict[str, int]] | None:
    """The others' counts, u's and what was not counted; None if the file is refused."""
    with refusals(*OTHERS, MARKER), MEMORY[memory]():
        source = FileSource(settings([str(path)]), CLOCK, LAST)
        matrices = [one.counts.matrix for one in source.count(PEOPLE, 1, LAST)]
        assert len(matrices) == LAST, "how many slots there are depends on a file"
        assert all(matrix[-1].sum() <= 2 and (matrix >= 0).all() for matrix in matrices), "somebody counted twice"
        for place in source.first_malformed():
            assert place.isprintable()
            assert not any(text in place for text in (*OTHERS, MARKER))
        return [one[:-1].tolist() for one in matrices], [one[-1].tolist() for one in matrices], source.totals()
    return None
