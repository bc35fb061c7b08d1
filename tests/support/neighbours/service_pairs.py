"""Pairs over HTTP: the records of a pair in batches of every format, at moments of an injected clock."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, replace
from random import Random

from tests.support.neighbours.containers import Record
from tests.support.neighbours.pairs import Pair, make_pair
from tests.support.neighbours.values import SLOT_S
from wevent.streams.json_lines import element_lines

NDJSON, JSON, CSV = "application/x-ndjson", "application/json", "text/csv"
BACKLOG = 60  # slots
ODD = (
    b'{"more":NaN,%b}',
    b'{"more":-Infinity,%b}',
    b'{"more":"\\ud83d",%b}',
    b'{"more":' + b"[" * 1000 + b"]" * 1000 + b",%b}",
    b'{"more":' + b'{"a":[' * 50_000 + b"]}" * 50_000 + b",%b}",
    b'{"more":"a\tb",%b}',
    b'{"more":"a\nb",%b}',
    b'{"more":"' + b"," * 200_000 + b'",%b}',
    b'{"more":"' + b"x" * 1_200_000 + b'",%b}',
    b'{"more":"\xff",%b}',
    b'{"more":"\0",%b}',
    b'{"more":{1],%b}',
    b'{"more":"]}\\",[{",%b}',
    b'{"more":1e999,%b}',
    b'{"more":1' + b"0" * 5000 + b",%b}",
    *(b"null", b"17", b'"text"', b"[[]]", b"{}", b"x", b"{} {}", b"", b"\xef\xbb\xbf{%b}"),
)
"""Elements of an array around the fields of an event: most cannot be decoded, and none breaks the array."""


@dataclass(frozen=True)
class SentBatch:
    """One request.

    Attributes:
        arrival: second of the stream.
        kind: media type.
        packed: whether it is compressed.
        sender: number of the token.
        records: lines, or elements.
        again: whether it is sent twice.
    """

    arrival: float
    kind: str
    packed: bool
    sender: int
    records: tuple[Record, ...]
    again: bool

    @property
    def targets(self) -> int:
        """The number of records that make the difference."""
        return sum(one.target for one in self.records)

    def body(self, *, with_target: bool) -> bytes:
        rows = [one.data for one in self.records if isinstance(one.data, bytes) and (with_target or not one.target)]
        text = b"[" + b", ".join(rows) + b"]" if self.kind == JSON else b"".join(row + b"\n" for row in rows)
        return gzip.compress(text, 1, mtime=0) if self.packed else text


@dataclass(frozen=True)
class ServicePair:
    """A pair, and its records as batches; `joining` is a file of requirements that is imported before the first one."""

    pair: Pair
    batches: tuple[SentBatch, ...]
    joining: bytes


def make_service_pair(seed: int) -> ServicePair:
    """Return the pair of a seed."""
    pair = make_pair(seed, "clock")
    chance = Random(f"batches {seed}")
    options = {**pair.options, "out": "out.ndjson"}
    world = pair.world
    records = list(pair.feeds[0].records)
    if not chance.randrange(3):  # slots that all stay open, and the target in each of them
        world, options = replace(world, slots=BACKLOG), {**options, "grace": BACKLOG * SLOT_S}
        late = (BACKLOG - 0.5) * SLOT_S
        spelling = pair.feeds[0].spelling
        for slot in range(BACKLOG):
            event = world.event(chance, world.target)._replace(time=world.moment((slot + 0.5) * SLOT_S))
            records.append(Record("backlog", spelling.line(event), target=True, arrival=late))
        other = world.event(chance, chance.choice(world.others))._replace(time=world.moment(late))
        records.insert(chance.randrange(len(records)), Record("normal", spelling.line(other), arrival=late))
    batches = []
    for arrival in sorted({one.arrival for one in records}):
        group = [one for one in records if one.arrival == arrival]
        kind = chance.choice((NDJSON, JSON, JSON))
        if kind == JSON:
            group = [found for one in group if (found := _framed(one, pair, chance)) is not None]
        batches.append(
            SentBatch(
                arrival, kind, not chance.randrange(3), chance.randrange(2), tuple(group), not chance.randrange(4)
            )
        )
    own = [place for place, batch in enumerate(batches) if batch.kind == JSON]
    if own:  # at least one of the odd elements
        place = chance.choice(own)
        group = [*batches[place].records]
        odd = Record("odd element", _odd(pair, chance), target=True)
        group.insert(chance.randint(0, len(group)), odd)
        batches[place] = replace(batches[place], records=tuple(group))
    pair = replace(pair, world=world, options=options)
    window, epsilon = chance.choice(world.requirements)
    joining = f"user,window,epsilon\nnewcomer,{window},{epsilon}\n".encode()
    return ServicePair(_with_records(pair, batches), tuple(batches), joining)


def _framed(record: Record, pair: Pair, chance: Random) -> Record | None:
    """Return a record that can stand in an array; somebody else's that cannot is left out, the target's replaced."""
    assert isinstance(record.data, bytes)
    try:
        if element_lines(b"[" + record.data + b"]").count(b"\n") < 2:
            return record
    except ValueError:
        pass
    return record._replace(data=_odd(pair, chance)) if record.target else None


def _odd(pair: Pair, chance: Random) -> bytes:
    line = pair.feeds[0].spelling.line(pair.world.event(chance, pair.world.target))
    return chance.choice(ODD).replace(b"%b", line[1:-1])


def _with_records(pair: Pair, batches: list[SentBatch]) -> Pair:
    records = tuple(one for batch in batches for one in batch.records)
    return replace(pair, feeds=(replace(pair.feeds[0], records=records),))
