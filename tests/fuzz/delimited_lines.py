"""Lines of CSV and TSV: what is made of a line depends on that line alone (spec 1)."""

from __future__ import annotations

from tests.fuzz.decoded_lines import check_alone
from wevent.counting.labels import Cells
from wevent.streams.decoding import DelimitedDecoder
from wevent.streams.times import SlotReader, TimeReader

CELLS = Cells.of(["north", "süd", "7", "40"])
HEADER = ("user", "note", "cell", "time")
WANTED = ("time", "user", "cell")
SEEDS = (
    b"\x00ann,,north,2026-01-01T00:00:10Z\n7,x,7,1767225610\n",
    b'\x00"a ""quoted"" id",note,"s\xc3\xbcd","2026-01-01T00:00:10.25+01:00"\r\n"open,x,7,1\nbob,,40,+.5e3\n',
    b"\x01ann\t\tnorth\t2026-01-01 00:00:10\n7\tx\t40\t1767225610.5\n",
    b"\x02ann,,north,3\n7,x,7,12\n",
)
WORDS = (b'"', b'""', b',"', b'",', b"\t", b"\r\n", b"north", b"2026-01-01T00:00:10Z", b"1e308", b"\xef\xbb\xbf")


def check(data: bytes) -> None:
    """The first byte chooses comma or tab, and whether times are slots."""
    choice = data[0] if data else 0
    delimiter = "\t" if choice & 1 else ","
    times = SlotReader() if choice & 2 else TimeReader(0 if choice & 4 else None, "us" if choice & 8 else "s")
    lines = [line + b"\n" for line in data[1:].split(b"\n")]
    check_alone(lines, lambda: DelimitedDecoder(HEADER, WANTED, delimiter, CELLS, times))
