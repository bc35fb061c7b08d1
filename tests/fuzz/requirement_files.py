"""Requirements files: one sentence that names the line and nobody in it, or promises that can be kept, read alike again."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

from tests.fuzz.oracles import MARKER, empty_folder, taken
from wevent.streams.requirements_file import Requirements, read_requirements

KINDS = ("csv", "tsv", "ndjson", "csv.gz", "ndjson.gz")
MOST_NANO = 50 * 10**9
SEEDS = (
    b"\x00user,window,epsilon\nann,40,0.5\nbob,4,1\n7,10m,1e-3\n",
    b"\x00user,level\nann,High/Small\nbob,Low\n",
    b"\x00user,privacy,window,epsilon,level\nann,High,Small,,\nbob,,40,0.6,\ncy,,,,Low/Large\n",
    b"\x01user\twindow\tepsilon\nann\t40\t0.5\n",
    b'\x02{"user":"ann","window":40,"epsilon":0.5}\n{"user":7,"window":"2h","epsilon":"1"}\n',
    b'\x03user,window,epsilon\r\n"a ""b""",4,50\r\n',
    b'\x04{"user":"ann","level":"High/Small"}\n',
)
WORDS = (
    b"user,",
    b"window",
    b"epsilon",
    b"level",
    b"privacy",
    b"High/Small",
    b"10m",
    b"1e-9",
    b'"',
    b"\xef\xbb\xbf",
    b"\r\n",
)


def check(data: bytes) -> None:
    """The first byte chooses the format; a person with the marker as id is in the last line, if ids come first."""
    kind = KINDS[(data[0] if data else 0) % len(KINDS)]
    path = empty_folder() / f"requirements.{kind}"
    body = data[1:]
    private = []
    is_named = kind.startswith("ndjson") or body.startswith(b"user\t" if kind == "tsv" else b"user,")
    if is_named and b"\n" in body and MARKER.encode() not in body:
        private, body = [MARKER], body.rstrip(b"\n") + b"\n" + _row(kind)
    path.write_bytes(gzip.compress(body, 1, mtime=0) if kind.endswith(".gz") else body)
    found = taken(lambda: read_requirements(path, slot_us=60_000_000), *private)
    if found is not None:
        _check_found(found)
        assert _pairs(read_requirements(_written(found, path.parent))) == _pairs(found), "read otherwise again"


def _row(kind: str) -> bytes:
    if kind.startswith("ndjson"):
        return f'{{"user":"{MARKER}","window":40,"epsilon":0.5}}\n'.encode()
    return ("\t" if kind == "tsv" else ",").join([MARKER, "40", "0.5"]).encode() + b"\n"


def _pairs(found: Requirements) -> dict[str, tuple[int, int]]:
    users, keys = [str(user) for user in list(found.users)], found.keys
    held = [keys.distinct[code] for code in keys.codes.tolist()]
    return dict(zip(users, [(int(window), int(nano)) for window, nano in held], strict=True))


def _check_found(found: Requirements) -> None:
    """Every promise is legal (spec 3), every id there once."""
    pairs = _pairs(found)
    assert len(pairs) == len(found.keys.codes) > 0, "an id twice, or nobody"
    for user, (window, nano) in pairs.items():
        assert user
        assert "\0" not in user
        assert 2 <= 2 * window <= nano <= MOST_NANO, "a promise that nobody can keep"
    assert found.words is None or len(found.words) == len(pairs)


def _written(found: Requirements, folder: Path) -> Path:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["user", "window", "epsilon"])
    writer.writerows((user, window, f"{nano}e-9") for user, (window, nano) in _pairs(found).items())
    path = folder / "again.csv"
    path.write_text(text.getvalue(), encoding="utf-8")
    return path
