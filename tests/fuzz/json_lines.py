"""Lines of JSON as they arrive live: what is made of a line depends on that line alone (spec 1)."""

from __future__ import annotations

from tests.fuzz.decoded_lines import check_alone
from wevent.counting.labels import Cells
from wevent.streams.json_lines import ObjectDecoder
from wevent.streams.times import TimeReader

CELLS = Cells.of(["north", "süd", "7", "40"])
COLUMNS = {"time": "time", "user": "user", "cell": "cell"}
SEEDS = (
    b'{"time":"2026-01-01T00:00:10Z","user":"ann","cell":"north"}\n{"time":1767225610,"user":7,"cell":7}\n',
    b'{"time": 1767225610.5, "user": "7", "cell": 40, "more": [1, {"a": null}]}\n\n{"close": 60}\n',
    b'{"cell":"s\xc3\xbcd","user":"\\u00e4","time":"2026-01-01T00:00:10.25+01:00"}\r\n{"time":',
    b"".join(b'{"time":"2026-01-01T00:00:%02dZ","user":"u%d","cell":"north"}\n' % (n, n) for n in range(40)),
    b"".join(b'{"user":%d,"cell":7,"time":%d}\n' % (n, 1767225600 + n) for n in range(40)) + b'{"user":"\\"',
)
WORDS = (
    b'"time":',
    b'"user":',
    b'"cell":',
    b'"close":',
    b"north",
    b"\\u0000",
    b"\\ud800",
    b"\xef\xbb\xbf",
    b"1e308",
    b"+01:00",
)


def check(data: bytes) -> None:
    lines = [line + b"\n" for line in data.split(b"\n")]
    check_alone(lines, lambda: ObjectDecoder(COLUMNS, CELLS, TimeReader(None, "s")))
