"""Whatever stands in one user's records, a service shows nothing of them but through its noise (spec 1).

A pair is a CSV import and a sequence of batches (JSON arrays, NDJSON, with gzip and without, backlogs, odd elements), with
one user's records and without. `wevent serve` takes both over HTTP, with scripted measurements and an injected clock.
Releases, journal, log, readiness, exit and the answers to all other batches must be equal.

WEVENT_SERVICE_PAIRS says how many pairs, WEVENT_PAIR_SEED repeats one.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.support.neighbours import scripted
from tests.support.neighbours.checking import main_difference
from tests.support.neighbours.seen import differences
from tests.support.neighbours.service_pairs import BACKLOG, JSON, NDJSON, make_service_pair
from tests.support.neighbours.service_runs import compare_services, observe_service
from wevent.service import request_body

PAIRS = int(os.environ.get("WEVENT_SERVICE_PAIRS", "50"))
ONE = os.environ.get("WEVENT_PAIR_SEED")
RESULT = os.environ.get("WEVENT_SERVICE_PAIRS_RESULT")
SEEDS = [int(ONE)] if ONE else list(range(PAIRS))
PARTS = [part for part in (SEEDS[number::10] for number in range(10)) if part]


@pytest.fixture(scope="module", autouse=True)
def figures() -> Iterator[Counter[str]]:
    """Registers the mechanisms; writes the figures at the end, if all pairs ran here and were equal."""
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
            "outcome": "releases, journal, log, readiness, exit and answers to others were equal",
        }
        Path(RESULT).write_text(json.dumps(result, indent=2) + "\n")


@pytest.mark.parametrize("seeds", PARTS, ids=lambda seeds: f"from {seeds[0]}")
def test_neighbouring_services_differ_in_nothing(seeds: list[int], tmp_path: Path, figures: Counter[str]) -> None:
    different = []
    for seed in seeds:
        pair = make_service_pair(seed)
        seen, found = compare_services(pair, tmp_path)
        assert seen.shown["exit code of run 0"] == 0, seen.shown
        assert seen.shown["import"][0] == 200, seen.shown["import"]
        figures["pairs"] += 1
        figures["batches"] += len(pair.batches)
        figures["records of the target"] += sum(batch.targets for batch in pair.batches)
        if found:
            figures["different"] += 1
            name = main_difference(found)
            different.append(f"WEVENT_PAIR_SEED={seed}: {', '.join(found)}\n{name}: {found[name]}")
    if different:
        pytest.fail("\n".join([f"{len(different)} of {len(seeds)} pairs differ", *different]), pytrace=False)


def test_pairs_cover_what_they_must() -> None:
    pairs = [make_service_pair(seed) for seed in range(100)]
    batches = [batch for pair in pairs for batch in pair.batches]
    assert {(batch.kind, batch.packed) for batch in batches} == {
        (kind, way) for kind in (JSON, NDJSON) for way in (True, False)
    }
    assert all(any(batch.targets for batch in pair.batches) for pair in pairs)
    assert any(batch.targets and batch.targets < len(batch.records) for batch in batches if batch.kind == JSON)
    assert any(batch.again for batch in batches)
    assert any(pair.pair.world.slots == BACKLOG for pair in pairs)
    assert sum(one.kind == "odd element" for pair in pairs for one in pair.pair.targets()) > 50


def test_the_same_batches_twice_show_the_same(tmp_path: Path) -> None:
    """What is compared holds no noise, time of day or identity: a difference is the records' doing."""
    pair = make_service_pair(0)
    (one, answers), (other, same) = (observe_service(pair, tmp_path / "run", with_target=True) for _ in range(2))
    assert not differences(pair.pair, one, other)
    assert answers == same


def test_refusing_an_array_for_one_element_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def decoded_as_a_whole(body: bytes) -> bytes:
        try:
            return b"".join(bytes(event) + b"\n" for event in msgspec.json.decode(body, type=list[msgspec.Raw]))
        except RecursionError:
            raise ValueError from None

    monkeypatch.setattr(request_body, "element_lines", decoded_as_a_whole)
    found = [compare_services(make_service_pair(seed), tmp_path)[1] for seed in range(6)]
    assert any(name.startswith("status of batch") for one in found for name in one)
