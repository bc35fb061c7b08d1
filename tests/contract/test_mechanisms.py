"""One contract for every mechanism: each check of `wevent.checks`; `mechanism` is filled in by conftest.py."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import wevent
from wevent import Population, Publisher, Requirement, SeededNoise
from wevent.checks import CHECKS, check_mechanism

SLOTS = int(os.environ.get("WEVENT_SLOTS", "60"))
EVERYONE = Population({Requirement(1, "0.3"): 300, Requirement(7, 2): 100})


def publisher(mechanism: str) -> Publisher:
    return Publisher(EVERYONE, ["north", "south"], mechanism, noise=SeededNoise(5))


@pytest.mark.parametrize("check", CHECKS)
def test_it_keeps_the_contract(mechanism: str, check: str) -> None:
    long = check == "memory" and not mechanism.startswith("pft")  # 200 times as many; what pft keeps grows for longer
    slots = SLOTS // 3 if long else SLOTS
    assert check_mechanism(mechanism, only=[check], slots=slots) == (check,)


def test_a_registered_mechanism_appears_everywhere() -> None:
    assert wevent.mechanisms()["every-second"] == "twice the even share in every second slot"
    made = publisher("every-second")
    assert made.mechanism == "every-second"
    assert [made.step(np.zeros((2, 2))).fresh for _ in range(4)] == [True, False, True, False]
    assert Publisher.restore(made.state()).mechanism == "every-second"


def test_an_installed_mechanism_keeps_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution with an entry point, as pip would leave it."""
    (tmp_path / "wevent_contract_plugin.py").write_text(
        "from dataclasses import replace\n"
        "from wevent.core.registry import BUILT_IN\n"
        "row = replace(BUILT_IN['pbd'], name='installed', summary='from a package')\n"
    )
    info = tmp_path / "wevent_contract_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wevent-contract-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[wevent.mechanisms]\ninstalled = wevent_contract_plugin:row\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert wevent.mechanisms()["installed"] == "from a package"
    assert check_mechanism("installed", only=["named", "windows", "restored"])
