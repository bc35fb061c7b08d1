"""The check of memory: an endless stream needs no more of it than a short one."""

from __future__ import annotations

import gc
import sys

import numpy as np

from wevent.checks.adversaries import HUGE, ScriptedDraws
from wevent.checks.subject import Subject, expect, expect_same
from wevent.core.requirements import Population, Requirement

_WARM = 1_000  # slots until caches are full
_TIMES = 200  # how much longer this stream is than the others
_ALLOWED = 33  # slots per memory block that may stay: a publisher keeps nothing per slot


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

    early_blocks, early_state = run(_WARM)
    late_blocks, late_state = run(slots)
    expect_same(_WARM + slots + 1, publisher.slot, "the number of slots")
    limit = slots // _ALLOWED
    expect(late_blocks - early_blocks < limit, f"fewer than {limit} blocks more", late_blocks - early_blocks)
    longer = late_state - early_state  # numbers that became longer
    expect(longer <= 32, "a state of the same size", f"{longer} bytes more")
