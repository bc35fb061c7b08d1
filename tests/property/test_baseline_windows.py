"""Every window of every baseline holds, recounted from what was really drawn, not from what was charged."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.uncorrected_baselines import UNCORRECTED, spent
from wevent import Requirement
from wevent.experiments.baselines import BASELINES, BaselineAccountant, BaselineNoise, BaselineOverspent

SLOTS = 150


class Watched(BaselineNoise):
    """Notes every draw: its slot, what it was paid with, and the sensitivity."""

    def __init__(self, seed: Any) -> None:
        super().__init__(seed)
        self.slot = 0
        self.draws: list[tuple[int, Any, Any]] = []

    def laplace(self, charge: Any, sensitivity: Any, size: int) -> Any:
        self.draws.append((self.slot, charge, sensitivity))
        return super().laplace(charge, sensitivity, size)


def losses(label: str, draws: list[tuple[int, Any, Any]]) -> list[tuple[int, int, int]]:
    """First slot read, last slot read, nano-epsilons, of every charge that something was drawn with."""
    used: dict[int, list[tuple[int, Any, Any]]] = defaultdict(list)
    for draw in draws:
        used[id(draw[1])].append(draw)
    found = []
    for own in used.values():
        slots, nano = [slot for slot, _, _ in own], own[0][1].nano
        if np.ndim(own[0][2]) == 0 and own[0][2] == 1:  # a release
            assert len(own) == 1, "a charge is for one release"
            found.append((slots[0], slots[0], nano))
        elif label == "spas":  # one threshold of scale 2Δ/e, tests of 4Δ/e; a test reads the slot before, too
            assert [sensitivity for _, _, sensitivity in own][:2] == [2 * own[1][2] // 4, own[1][2]]
            assert len({sensitivity for _, _, sensitivity in own[1:]}) == 1
            found.append((slots[0] - 1, slots[-1], nano))
        else:  # grouping: tests and thresholds of one slot, paid in that slot
            assert len(set(slots)) == 1
            found.append((slots[0], slots[0], nano))
    return found


@st.composite
def streams(draw: st.DrawFn) -> Any:
    """Counts that stay, drift, flicker and jump, from a seed."""
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    cells, size = draw(st.integers(1, 6)), draw(st.sampled_from([3, 40, 1_000, 100_000]))
    level = generator.integers(0, size, cells)
    kind = draw(st.sampled_from(["stay", "flicker", "jump", "mixed"]))
    noise = {"stay": 0.0, "flicker": 1.0, "jump": 0.01, "mixed": 0.2}[kind]
    jumps = generator.random(SLOTS) < {"stay": 0.0, "flicker": 0.0, "jump": 0.05, "mixed": 0.02}[kind]
    rows = []
    for jumped in jumps:
        level = generator.integers(0, size, cells) if jumped else level
        rows.append(np.maximum(0, level + np.rint(generator.normal(0, noise * size, cells)).astype(np.int64)))
    return np.array(rows)


@pytest.mark.parametrize("label", BASELINES)
@given(streams(), st.integers(1, 60), st.sampled_from(["0.05", "0.3", "1", "7.7"]), st.integers(0, 99))
def test_no_window_loses_more_than_epsilon(label: str, stream: Any, window: int, epsilon: str, seed: int) -> None:
    requirement = Requirement(window, epsilon)
    noise, accountant = Watched([seed]), BaselineAccountant(requirement)
    peer = BASELINES[label].start(stream.shape[1], accountant, noise)
    for counts in stream:
        noise.slot += 1
        peer.step(counts)
    lost = dict.fromkeys(range(1, SLOTS + 1), 0)  # by the first slot of a window
    for first, last, nano in losses(label, noise.draws):
        for start in range(max(1, first - window + 1), last + 1):
            lost[start] += nano
    assert max(lost.values()) <= requirement.nano
    assert max(lost.values()) == accountant.worst_window(window)


@pytest.mark.parametrize("label", UNCORRECTED)
def test_what_public_code_spends_is_caught(label: str) -> None:
    requirement = Requirement(120, 1)
    stream = np.random.default_rng(5).integers(0, 2_000, (600, 6))
    stream[:130] = stream[240:360] = 500  # calm, then wild
    assert spent(label, stream, requirement, 1) > 1.05
    peer = UNCORRECTED[label](6, BaselineAccountant(requirement), BaselineNoise([1]))
    with pytest.raises(BaselineOverspent):
        list(map(peer.step, stream))
