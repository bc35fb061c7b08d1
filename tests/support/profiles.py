"""Hypothesis profiles: importing this registers them and loads the one that HYPOTHESIS_PROFILE names.

``default`` keeps `make test` short; ``soak`` searches for as long as a night allows. `examples` is for tests that need
another number than most: `soak` multiplies it all the same.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# One example is 300 slots: slow by hypothesis' standards, and no time limit per example on a shared machine.
_SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)

settings.register_profile(
    "default", deadline=None, max_examples=15, print_blob=True, suppress_health_check=_SLOW_IS_FINE
)
settings.register_profile("soak", settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
_TIMES = settings().max_examples / settings.get_profile("default").max_examples


def examples(number: int) -> settings:
    """So many examples in `make test`; as many times more in another profile as of other tests."""
    return settings(deadline=None, max_examples=round(number * _TIMES))
