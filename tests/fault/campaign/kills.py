"""Random SIGKILLs: so many of a kind, each followed by what must hold."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from typing import Any

from tests.fault.campaign.commands import Variant, unchanged
from tests.fault.campaign.lives import Compaction, Epochs, Life, Live
from tests.fault.campaign.registry_lives import Backups, Parquet, Restores, Users
from tests.fault.killing import Broken

KINDS: dict[str, type[Life]] = {
    "files": Life,
    "live": Live,
    "compaction": Compaction,
    "users": Users,
    "backup": Backups,
    "epochs": Epochs,
    "parquet": Parquet,
    "restore": Restores,
}


def kill(
    kind: str, number: int, seed: int, folder: Path, *, every: int = 1, variant: Variant = unchanged
) -> dict[str, Any]:
    """Kill until `number` commands of a kind died.

    Args:
        kind: one of `KINDS`.
        number: how many deaths.
        seed: of everything but the machine's own pace.
        folder: where streams are made; they are removed, but for one that broke.
        every: after so many kills a run that nobody kills must succeed.
        variant: what is wrong with the program.

    Raises:
        Broken: naming seed and life.
    """
    begun, killed, midway, lives = time.monotonic(), 0, 0, 0
    while killed < number:
        place = folder / f"{kind}-{seed}-{lives}"
        place.mkdir(parents=True)
        chance = random.Random(f"{kind} {seed} {lives}")
        try:
            life = KINDS[kind](place, chance, variant)
            died = 0
            for _ in range(life.rounds):
                died += life.round()
                done = killed + died == number
                if done or died % every == 0:
                    life.settle()
                if done:
                    break
        except Broken as error:
            raise Broken(f"killing {kind}, seed {seed}, life {lives} ({place}): {error}") from error
        killed, midway, lives = killed + died, midway + life.midway, lives + 1
        for one in (place, place.with_name(place.name + "-begun")):
            shutil.rmtree(one, ignore_errors=True)
    seconds = round(time.monotonic() - begun, 1)
    return {"faults": killed, "after_something_went_out": midway, "streams": lives, "seed": seed, "seconds": seconds}
