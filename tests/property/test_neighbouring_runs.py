"""Whatever stands in one user's records, a run shows nothing of them but through its noise (spec 1).

A pair is a random set of inputs, with one user's records and without. Both are published for real by a mechanism with
scripted measurements, and everything else must be equal: exit codes, files, bytes, lines, journal, standard error but
for the one line marked private. Nobody else's counts may move either.

WEVENT_PAIRS says how many pairs, WEVENT_PAIR_SEED repeats one.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from tests.support.neighbours import scripted
from tests.support.neighbours.broken_runs import LosesNeighbours, StopsAtMalformed, WritesEvents
from tests.support.neighbours.checking import compare, main_difference, observe, shrunk, told
from tests.support.neighbours.pairs import KINDS, Pair, make_pair, pairs_of
from tests.support.neighbours.runs import Ended, as_a_process, command_runs, in_this_process, library_run
from tests.support.neighbours.seen import differences

PAIRS = int(os.environ.get("WEVENT_PAIRS", "80"))
ONE = os.environ.get("WEVENT_PAIR_SEED")
RESULT = os.environ.get("WEVENT_PAIRS_RESULT")
SEEDS = [int(ONE)] if ONE else list(range(PAIRS))
PARTS = [part for part in (SEEDS[number::8] for number in range(8)) if part]
TOLD = 2  # failing pairs of a part that are told in full


@pytest.fixture(scope="module", autouse=True)
def figures() -> Iterator[Counter[str]]:
    """Registers the mechanisms; what was run is written down at the end, if all of it was run here and held."""
    scripted.register()
    begun, counted = time.time(), Counter[str]()
    yield counted
    scripted.unregister()
    if RESULT and counted["pairs"] >= PAIRS and not counted["different"]:
        result = {
            "command": "make soak",
            **{name: number for name, number in sorted(counted.items()) if number},
            "seconds": round(time.time() - begun, 1),
            "python": platform.python_version(),
            "outcome": "nothing but the private line differed, and nobody else's counts moved",
        }
        Path(RESULT).write_text(json.dumps(result, indent=2) + "\n")


@pytest.mark.parametrize("seeds", PARTS, ids=lambda seeds: f"from {seeds[0]}")
def test_neighbouring_runs_differ_in_nothing(seeds: list[int], tmp_path: Path, figures: Counter[str]) -> None:
    different, published = [], 0
    for seed in seeds:
        pair = make_pair(seed)
        seen, found = compare(pair, tmp_path)
        figures.update(["pairs", f"pairs of {pair.way}", *(f"records: {one.kind}" for one in pair.targets())])
        published += seen.shown["exit code of run 0"] == 0
        if found:
            figures["different"] += 1
            different.append((pair, found))
    if different:
        small = [shrunk(pair, tmp_path) for pair, _ in different[:TOLD]]
        words = [told(pair, compare(pair, tmp_path)[1]) for pair in small]
        words += [f"pair {pair.seed}: {main_difference(found)}" for pair, found in different[TOLD:]]
        pytest.fail("\n".join([f"{len(different)} of {len(seeds)} pairs differ", *words]), pytrace=False)
    figures["published"] += published
    assert published > 0.9 * len(seeds)  # two refusals are equal, too, and show little


def test_processes_differ_in_nothing(tmp_path: Path, figures: Counter[str]) -> None:
    pairs = map(make_pair, count())
    chosen = list(islice((pair for pair in pairs if pair.way != "clock"), max(4, PAIRS // 50)))
    for pair in chosen:
        run = partial(command_runs, run=as_a_process)
        _, found = compare(pair, tmp_path, run)
        if found:
            pytest.fail(told(pair, found), pytrace=False)
        figures["pairs as processes"] += 1


def test_pairs_cover_what_they_must() -> None:
    """The generator alone: every kind of record, container and setting, and containers that one user alone filled."""
    pairs = [make_pair(seed) for seed in range(200)]
    feeds = [feed for pair in pairs for feed in pair.feeds]
    assert {one.kind for pair in pairs for one in pair.targets()} == set(KINDS)
    assert all(pair.targets() for pair in pairs)
    assert {feed.spelling.format for feed in feeds} == {"csv", "tsv", "ndjson", "parquet"}
    assert Counter(pair.way for pair in pairs).keys() == {"files", "lines", "clock"}
    assert {pair.options["max_cells_per_user"] for pair in pairs} >= {1, 2}
    assert {pair.options["unknown_users"] for pair in pairs} >= {0, 1}
    assert {pair.world.times for pair in pairs} == {"iso", "offset", "number", "slot"}
    assert {pair.options["out"] for pair in pairs} == {"-", "out.csv", "out.ndjson", "out.parquet"}
    assert any(feed.name.endswith(".gz") for feed in feeds)
    assert any("*" in name for pair in pairs for name in pair.inputs)
    assert any(len(pair.ends) > 1 for pair in pairs)
    assert any(len(pair.feeds) > 1 for pair in pairs if pair.way == "lines")
    emptied = [feed for feed in feeds if feed.records and not feed.without_target().records]
    assert {feed.spelling.format for feed in emptied} == {"csv", "tsv", "ndjson", "parquet"}
    assert any(not feed.records for feed in feeds)


@pytest.mark.parametrize("way", ["files", "lines", "clock"])
def test_the_same_inputs_twice_show_the_same(way: str, tmp_path: Path) -> None:
    """What is compared holds no noise, time of day or identity: a difference is the records' doing."""
    for seed in range(4):
        pair = make_pair(seed, way)
        assert not differences(pair, observe(pair, tmp_path / "run"), observe(pair, tmp_path / "run"))


def first_of(kind: str, way: str) -> Pair:
    return next(pairs_of(kind, way))


def found_in(pair: Pair, folder: Path, run: Any) -> set[str]:
    return set(compare(pair, folder, run)[1])


@pytest.mark.parametrize("way", ["files", "lines"])
def test_stopping_at_a_malformed_line_is_caught(way: str, tmp_path: Path) -> None:
    run = partial(command_runs, run=in_this_process, extra=("--strict",))
    assert "exit code of run 0" in found_in(first_of("cut off", way), tmp_path, run)


def test_ending_early_is_caught(tmp_path: Path) -> None:
    run = partial(library_run, source=StopsAtMalformed)
    assert {"rows of slots", "bytes of out.ndjson"} <= found_in(first_of("cut off", "clock"), tmp_path, run)


def test_losing_others_is_caught(tmp_path: Path) -> None:
    run = partial(library_run, source=LosesNeighbours)
    assert "counts of others" in found_in(first_of("cut off", "clock"), tmp_path, run)


def test_writing_the_number_of_events_is_caught(tmp_path: Path) -> None:
    def run(pair: Pair, folder: Path) -> list[Ended]:
        return library_run(
            pair, folder, wrap=lambda output, source: WritesEvents(output, source, folder / "out.events")
        )

    assert "bytes of out.events" in found_in(first_of("normal", "clock"), tmp_path, run)


def test_a_clock_read_from_events_is_caught(tmp_path: Path) -> None:
    run = partial(command_runs, run=in_this_process, extra=("--start", "auto"))
    assert "rows of slots" in found_in(first_of("late", "files"), tmp_path, run)


def test_a_mechanism_that_looks_at_counts_is_caught(tmp_path: Path) -> None:
    pair = first_of("many events", "lines")
    leaky = replace(pair, options={**pair.options, "mechanism": "scripted-leaky"})
    run = partial(command_runs, run=in_this_process)
    assert "content of histograms" in found_in(leaky, tmp_path, run)
