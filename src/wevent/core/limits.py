"""How large numbers may get: within these bounds no sum of 64 bits wraps and no noise is cut off (spec 4 and 6).

OpenDP's sampler cuts noise off at ±(2^63 − 1), and a draw that is cut off hides nothing. With a scale of at most 2^52 a draw
reaches 2^62 with a probability below 2·exp(−2^10): never. What noise is added to is at most 2^60: a cell holds each user
once, and a weight is at most 2^20. So a measurement stays below 2^62 + 2^60 < 2^63.

All of it is checked where numbers come in (a population, a publisher's options, the gate), so that nothing which depends on
data or on a draw can ever fail.
"""

from __future__ import annotations

MAX_USERS = 2**40  # registered users of a population, all classes together
MAX_CELLS = 2**21  # cells of a stream; a distance sums at most MAX_USERS·k ≤ 2^61 records over them
MAX_SCALE = 2.0**52  # noise scale, in units of what the noise is added to
MAX_SLOT = 2**53  # slots are counted on in JSON, where larger whole numbers are not exact
MAX_WINDOW = 10_000_000  # slots of a window: the ledger keeps a charge for each
MAX_CYCLE = 1_000_000  # slots of a cycle: more than a week of seconds
MAX_CHANGES = 20_000  # of the kind of day in a calendar: a century of weekends and holidays
MAX_LABEL_BYTES = 256  # of a user id or a cell label, in events, requirements and the registry
MAX_EXACT = 2**53  # whole numbers up to this are floats too: what is compared with survives its way through a journal


def farthest_compared(cells: int) -> int:
    """Return how far from 0 the values that a probe compares with may lie: |c̃ − l| over all cells then stays below 2^63.

    At least 2^41 for any legal number of cells: no value that counts can have is touched.
    """
    return min(MAX_EXACT, 2**62 // cells)
