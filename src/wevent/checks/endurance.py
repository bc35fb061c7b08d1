"""The check of memory: an endless stream needs no more of it than a short one."""

from __future__ import annotations

import gc
import sys
from itertools import pairwise

import numpy as np

from wevent.checks.adversaries import HUGE, ScriptedDraws
from wevent.checks.subject import Subject, expect, expect_same
from wevent.core.requirements import Population, Requirement

_WARM = 1_000  # slots until caches are full
_TIMES = 200  # how much longer this stream is than the others
_ALLOWED = 33  # slots per memory block that may stay: a publisher keeps nothing per slot
_PARTS = 4  # of it: what a publisher keeps grows in each of them, what other threads of the process keep does not


def memory(subject: Subject) -> None:
    """Over thousands of slots the number of live memory blocks stays, and so does the size of the state."""
    population = Population({Requirement(5, 1): 50})
    publisher = subject.publisher(ScriptedDraws([0], (HUGE, -HUGE, -HUGE)), population, 2)
    counts = np.array([[20, 10]])
    slots = _TIMES * subject.slots

    def run(number: int) -> tuple[int, int]:
        for _ in range(number):
            publisher.step(counts)
        gc.collect()
        return sys.getallocatedblocks(), len(publisher.state())

    looks = [run(_WARM), *(run(slots // _PARTS) for _ in range(_PARTS))]
    expect_same(_WARM + slots // _PARTS * _PARTS + 1, publisher.slot, "the number of slots")
    limit = slots // _PARTS // _ALLOWED
    more = min(late - early for (early, _), (late, _) in pairwise(looks))
    expect(more < limit, f"fewer than {limit} blocks more in some {slots // _PARTS} slots", more)
    longer = looks[-1][1] - looks[0][1]  # numbers that became longer
    expect(longer <= 32, "a state of the same size", f"{longer} bytes more")
