"""A random pair: settings, containers, everybody's records, and one user's records among them, from one seed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from random import Random
from typing import Any

from tests.support.neighbours.containers import Feed, Record
from tests.support.neighbours.lines import BROKEN, Spelling, csv_broken, json_broken
from tests.support.neighbours.values import SLOT_S, VALUES, Event, World

NAMES = ("anna", "bob", "čeněk", "dora-1", "eve 2", "frank", "gül", "ida", "x:7")
NUMBERS = (11, 23, 35, 47, 58, 62, 79, 84, 96)
CLASSES = ((1, 1.0), (2, 0.5), (3, 2.0), (4, 0.25))
LABELS = ("north", "south", "Großmarkt", "w")
KINDS = (*VALUES, *BROKEN)
PARQUET_TYPES = {
    "iso": ("TIMESTAMPTZ", "VARCHAR"),
    "offset": ("TIMESTAMPTZ", "VARCHAR"),
    "number": ("BIGINT", "DOUBLE", "VARCHAR"),
    "slot": ("BIGINT", "INTEGER", "DOUBLE", "VARCHAR"),
}


@dataclass(frozen=True)
class Pair:
    """Two neighbouring runs: with the target's records, and without.

    Attributes:
        seed: where it came from.
        way: files (the command on files), lines (the command on close lines) or clock (the library, an injected clock).
        world: what is declared.
        options: settings by name, as on the command line.
        feeds: the files, or the input of each run in turn.
        ends: the last slot of each run of the command on files; the second one resumes.
        inputs: names and globs for the command.
    """

    seed: int
    way: str
    world: World
    options: dict[str, Any]
    feeds: tuple[Feed, ...]
    ends: tuple[int, ...]
    inputs: tuple[str, ...] = ()

    def without_target(self) -> Pair:
        """The neighbour."""
        return replace(self, feeds=tuple(feed.without_target() for feed in self.feeds))

    def targets(self) -> list[Record]:
        """The records that make the difference."""
        return [one for feed in self.feeds for one in feed.records if one.target]


def make_pair(seed: int, way: str | None = None) -> Pair:
    """The pair of a seed."""
    chance = Random(f"neighbouring runs {seed}")
    chosen = chance.choices(("files", "lines", "clock"), (6, 3, 2))[0]
    way = way or chosen
    world = _world(chance, way)
    options = _options(chance, way, world)
    if way == "files":
        feeds, inputs = _files(chance, world, options)
        ends = (world.slots,) if chance.random() < 0.7 else (chance.randint(1, world.slots), world.slots)
    else:
        feeds, inputs, ends = _live(chance, way, world, options), (), (world.slots,)
    return Pair(seed, way, world, options, _with_target(chance, world, feeds), ends, inputs)


def pairs_of(kind: str, way: str, only_format: str | None = None, first: int = 0) -> Iterator[Pair]:
    """Pairs that make the difference by one kind of record; everybody else's records are plain, in every file some.

    With a format, all files have it, and the target's records stand in front of everybody else's. Seeds are tried from
    the first one on; most are none.
    """
    for seed in count(first):
        pair = make_pair(seed, way)
        plain = ("normal", "close")
        feeds = tuple(feed.only([one.target or one.kind in plain for one in feed.records]) for feed in pair.feeds)
        if only_format is not None:
            if {feed.spelling.format for feed in feeds} != {only_format}:
                continue
            in_front = [sorted(feed.records, key=lambda one: not one.target) for feed in feeds]
            feeds = tuple(replace(feed, records=tuple(own)) for feed, own in zip(feeds, in_front, strict=True))
        chosen = {one.kind for one in pair.targets()} == {kind} and pair.world.target in pair.world.users
        if chosen and pair.world.times != "slot" and all(feed.without_target().records for feed in feeds):
            yield replace(pair, feeds=feeds, options={**pair.options, "mechanism": "scripted"})


def _world(chance: Random, way: str) -> World:
    known = chance.choice((NAMES, NUMBERS))
    users = tuple(chance.sample(known, chance.randint(2, len(known) - 1)))
    stranger = next(one for one in known if one not in users)
    cells = chance.choice((2, 3, 5, LABELS))
    times = chance.choice(("iso", "iso", "offset", "number", *(("slot",) if way == "files" else ())))
    requirements = tuple(chance.choice(CLASSES) for _ in users)
    target = stranger if chance.random() < 0.15 else chance.choice(users)
    return World(users, requirements, cells, chance.randint(2, 6), target, times)


def _options(chance: Random, way: str, world: World) -> dict[str, Any]:
    options: dict[str, Any] = {
        "mechanism": chance.choice(("scripted", "scripted", "scripted-second")),
        "max_cells_per_user": chance.choice((1, 1, 2)),
        "unknown_users": chance.choice((0, 0, 1, 5)),
        "neighbours": chance.choice(("add_remove", "add_remove", "replace")),
    }
    if chance.random() < 0.2:
        options["smoothing"] = "filter"
    if chance.random() < 0.3:
        options["timezone"] = "UTC"
    if chance.random() < 0.3:
        options["round" if chance.random() < 0.5 else "nonnegative"] = True
    if way == "files":
        options["out"] = chance.choice(("out.ndjson", "out.csv", "out.parquet", "-"))
    else:
        options["grace"] = chance.choice((0, 0, SLOT_S, 5 * SLOT_S))
        options["out"] = chance.choice(("out.ndjson", "-"))
    return options


def _spelling(chance: Random, world: World, kind: str, options: dict[str, Any]) -> Spelling:
    time = "slot" if world.times == "slot" else "time"
    if not chance.randrange(4):
        options.update(user_column="who", cell_column="place at")
    if not chance.randrange(4) and time == "time":
        options["time_column"] = "when"
    names = Event(
        options.get("time_column", time), options.get("user_column", "user"), options.get("cell_column", "cell")
    )
    order = [*names, *(("remark",) if not chance.randrange(3) else ())]
    chance.shuffle(order)
    return Spelling(kind, names, tuple(order))


def _files(chance: Random, world: World, options: dict[str, Any]) -> tuple[list[Feed], tuple[str, ...]]:
    """One to three files of one kind, by name or glob; now and then of different kinds."""
    kind = chance.choice(("csv", "csv", "tsv", "ndjson", "ndjson", "parquet"))
    spelling = _spelling(chance, world, kind, options)
    types = Event(
        chance.choice(PARQUET_TYPES[world.times]),
        chance.choice(("VARCHAR", "BIGINT", "DOUBLE") if isinstance(world.users[0], int) else ("VARCHAR",)),
        chance.choice(("VARCHAR", "BIGINT", "INTEGER") if isinstance(world.cells, int) else ("VARCHAR",)),
    )
    feeds = []
    for number in range(chance.choice((1, 1, 2, 3))):
        own = (
            replace(spelling, format=chance.choice(("csv", "ndjson", "parquet")))
            if not chance.randrange(8)
            else spelling
        )
        ending = {"ndjson": chance.choice((".ndjson", ".jsonl", ".json"))}.get(own.format, "." + own.format)
        packed = ".gz" if own.format != "parquet" and not chance.randrange(4) else ""
        records = tuple(_ordinary(chance, world, own) for _ in range(chance.choice((0, 1, 2, 5, 20))))
        line_end = b"\r\n" if own.format != "parquet" and not chance.randrange(6) else b"\n"
        name = f"events-{number}{ending}{packed}"
        feeds.append(Feed(name, own, records, line_end, bool(chance.randrange(5)), types))
    globbed = chance.random() < 0.4
    return feeds, ("events-*",) if globbed else tuple(feed.name for feed in feeds)


def _live(chance: Random, way: str, world: World, options: dict[str, Any]) -> list[Feed]:
    """Slot after slot, events of it and of its neighbours; one or two runs, the second of which resumes."""
    spelling = _spelling(chance, world, "ndjson", options)
    records: list[Record] = []
    for slot in range(world.slots):
        for moment in sorted(chance.randrange(SLOT_S) for _ in range(chance.choice((0, 1, 3, 8)))):
            second = (slot + chance.choice((0, 0, 0, 0, -1, 1, 2))) * SLOT_S + chance.randrange(SLOT_S)
            one = _ordinary(chance, world, spelling)
            if one.kind == "normal":
                event = world.event(chance, chance.choice(world.others))._replace(time=world.moment(second))
                one = Record("normal", spelling.line(event))
            records.append(one._replace(arrival=slot * SLOT_S + moment))
        if way == "lines":
            closed = world.moment((slot + 1) * SLOT_S)
            records.append(Record("close", json.dumps({"close": closed}).encode()))
    whole = Feed("run-0", spelling, tuple(records))
    if chance.random() < 0.7 or not records or way == "clock":
        return [whole]
    cut = chance.randint(0, len(records))
    parts = [[place < cut for place in range(len(records))], [place >= cut for place in range(len(records))]]
    return [replace(whole.only(part), name=f"run-{number}") for number, part in enumerate(parts)]


def _ordinary(chance: Random, world: World, spelling: Spelling) -> Record:
    """Somebody else's record: mostly a plain event, now and then of any other kind."""
    user = chance.choice(world.others)
    if chance.random() < 0.9:
        return Record("normal", _spelt(spelling, world.event(chance, user)))
    kind = chance.choice([one for one in KINDS if one not in ("huge line", "deep", "huge field", "many events")])
    return _records(chance, replace(world, target=user), spelling, kind)[0]


def _records(chance: Random, world: World, spelling: Spelling, kind: str) -> list[Record]:
    """Records of a kind, by the world's target."""
    if kind in VALUES:
        return [Record(kind, _spelt(spelling, event)) for event in VALUES[kind](chance, world)]
    if spelling.format == "parquet":
        empty = world.event(chance, world.target)._replace(**{chance.choice(Event._fields): None})
        return [Record(kind, empty)]
    broken = json_broken if spelling.format == "ndjson" else csv_broken
    return [Record(kind, broken(kind, chance, world, spelling))]


def _spelt(spelling: Spelling, event: Event) -> bytes | Event:
    return event if spelling.format == "parquet" else spelling.line(event)


def _with_target(chance: Random, world: World, feeds: list[Feed]) -> tuple[Feed, ...]:
    """The target's records put in: first, last, anywhere; at times nothing else is left in the file, or at all."""
    alone = chance.random()
    if alone < 0.08:
        feeds = [feed.only([one.kind == "close" for one in feed.records]) for feed in feeds]
    place = chance.randrange(len(feeds))
    if alone > 0.85:
        feeds[place] = feeds[place].only([one.kind == "close" for one in feeds[place].records])
    kinds = chance.choices(KINDS, k=chance.choice((1, 1, 1, 2, 3)))
    for kind in kinds:
        feed = feeds[place]
        for one in _records(chance, world, feed.spelling, kind):
            where = chance.choice((0, len(feeds[place].records), chance.randint(0, len(feeds[place].records))))
            feeds[place] = _inserted(feeds[place], where, one._replace(target=True))
        place = chance.choice((place, chance.randrange(len(feeds))))
    return tuple(feeds)


def _inserted(feed: Feed, where: int, record: Record) -> Feed:
    """The record at that place; it arrives together with the one before it."""
    arrival = feed.records[where - 1].arrival if where else 0.0
    records = (*feed.records[:where], record._replace(arrival=arrival), *feed.records[where:])
    return replace(feed, records=records)
