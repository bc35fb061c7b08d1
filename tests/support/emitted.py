"""What an emitted line says that a slot cost, for checkers that share nothing with the code that wrote it."""

from __future__ import annotations

import json
from decimal import Decimal

Key = tuple[int, int]


def charges_of(line: bytes) -> dict[Key, tuple[int, int]]:
    """(window, nano-epsilons) of each class → (0, what the slot cost it in nano-epsilons)."""
    fields = json.loads(line, parse_float=Decimal)
    keys = [(held["window"], nano(held["epsilon"])) for held in fields["classes"]]
    return {key: (0, nano(spent)) for key, spent in zip(keys, fields["charges"], strict=True)}


def nano(epsilon: Decimal | int) -> int:
    """An epsilon in whole nano-epsilons: what is finer, no ledger can charge."""
    found = epsilon * 10**9
    assert found == int(found), f"an epsilon of {epsilon}"
    return int(found)
