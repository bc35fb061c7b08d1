"""The mechanisms with a replicate axis: many repeats of one setting step together in numpy. For simulation only.

The publishing path has no part in this: it is a second implementation, with float probabilities and seeded noise, kept
for speed and tested equal to the first one: exactly on budgets for given decisions, in distribution on releases.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from wevent.experiments.reproduce.replicated.probing import absorption, distribution
from wevent.experiments.reproduce.replicated.replicates import ReplicatedRun, Replicates
from wevent.experiments.reproduce.replicated.steady import randomized, sample, uniform

Engine = Callable[[Replicates, np.random.Generator], ReplicatedRun]

ENGINES: dict[str, Engine] = {
    "pbd": lambda replicates, generator: distribution(replicates, generator),
    "pba": lambda replicates, generator: absorption(replicates, generator),
    "bd": lambda replicates, generator: distribution(replicates, generator, shared=1.0),
    "ba": lambda replicates, generator: absorption(replicates, generator, shared=1.0),
    "bd:std": lambda replicates, generator: distribution(replicates, generator, shared=2.0**0.5),
    "ba:std": lambda replicates, generator: absorption(replicates, generator, shared=2.0**0.5),
    "uniform": lambda replicates, generator: uniform(replicates, generator, shared=True),
    "pbu": lambda replicates, generator: uniform(replicates, generator, shared=False),
    "sample": sample,
    "lbu": lambda replicates, generator: randomized(replicates, generator, shared=True),
    "plbu": lambda replicates, generator: randomized(replicates, generator, shared=False),
}
"""Mechanism names (with `:std` for the threshold √2/ε) that can run replicated."""
