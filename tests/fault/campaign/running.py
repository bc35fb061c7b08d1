"""All kinds of faults by name, and so many of one."""

from __future__ import annotations

from typing import Any

from tests.fault.campaign.commands import load_everything, quick_folder
from tests.fault.campaign.damage import TARGETS, strike
from tests.fault.campaign.kills import KINDS, kill
from tests.fault.campaign.power import SCENARIOS, cut_power

ALL = [f"kill {one}" for one in KINDS]
ALL += [f"power cut {one}" for one in SCENARIOS]
ALL += [f"damage {one}" for one in (*TARGETS, "output")]


def run(kind: str, number: int, seed: int) -> dict[str, Any]:
    """So many faults of one kind."""
    load_everything()
    folder = quick_folder()
    what, _, which = kind.removeprefix("power ").partition(" ")
    if what == "kill":
        result = kill(which, number, seed, folder)
    elif what == "cut":
        result = cut_power(number, seed, folder, names=(which,))
    else:
        result = strike(which, number, seed, folder)
    folder.rmdir()
    return result
