"""A publisher's state: other bytes are refused in one sentence; what is taken goes on alike, and never beyond a window."""

from __future__ import annotations

import numpy as np

from tests.fuzz.oracles import taken
from tests.support.window_checker import violated_windows
from wevent import Population, Publisher, Requirement, SeededNoise

MECHANISMS = ("pbd", "pba", "pft", "uniform", "sample", "pbu")
MAGIC = b"wevent-state\x00"
SLOTS = 3
_CELLS = 4096  # wider ones are sound too, and slow


def _state(mechanism: str) -> bytes:
    people = Population({Requirement(3, 1): 5, Requirement(6, "0.4"): 4})
    publisher = Publisher(people, ["north", "south"], mechanism=mechanism, noise=SeededNoise(7))
    for slot in range(5):
        publisher.step(np.array([[slot % 3, 1], [2, slot % 2]]))
    return publisher.state()


SEEDS = tuple(_state(mechanism)[len(MAGIC) :] for mechanism in MECHANISMS)
WORDS = (
    b"\xcf",
    b"\x93",
    b"population",
    b"declared",
    b"ledger",
    b"measurement",
    b"smoothed",
    b"last_fresh",
    b"pbd",
    b"slot",
)


def check(data: bytes) -> None:
    """The bytes stand behind those that every state begins with."""
    publisher = taken(lambda: Publisher.restore(MAGIC + data))
    if publisher is None or len(publisher.cells) > _CELLS:
        return
    written = publisher.state()
    assert Publisher.restore(written).state() == written, "a state that changes when it is read again"
    _go_on(publisher)


def _go_on(publisher: Publisher) -> None:
    """Whatever was taken over, what is spent from now on fits into every window by itself (spec 4)."""
    counts = np.zeros((len(publisher.population), len(publisher.cells)), dtype=np.int64)
    slots = []
    for _ in range(SLOTS):
        release = publisher.step(counts)
        keys = [requirement.key for requirement in publisher.population.classes]
        charges = zip(release.probe_charges.tolist(), release.publication_charges.tolist(), strict=True)
        slots.append(dict(zip(keys, charges, strict=True)))
        assert np.isfinite(np.asarray(release.histogram, dtype=float)).all(), "a release that is no number"
    assert violated_windows(slots) == []
