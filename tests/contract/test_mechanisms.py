"""One contract for every mechanism: each check of `wevent.checks`; `mechanism` is filled in by conftest.py."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import wevent
from wevent import InvalidRequirement, Population, Publisher, Requirement, SeededNoise
from wevent.checks import CHECKS, check_mechanism
from wevent.publisher.catalogue import find_mechanism

SLOTS = int(os.environ.get("WEVENT_SLOTS", "60"))
EVERYONE = Population({Requirement(1, "0.3"): 300, Requirement(7, 2): 100})


def publisher(mechanism: str) -> Publisher:
    return Publisher(EVERYONE, ["north", "south"], mechanism, noise=SeededNoise(5))


@pytest.mark.parametrize("check", CHECKS)
def test_it_keeps_the_contract(mechanism: str, check: str) -> None:
    long = check == "memory" and not mechanism.startswith("pft")  # 200 times as many; what pft keeps grows for longer
    slots = SLOTS // 3 if long else SLOTS
    assert check_mechanism(mechanism, only=[check], slots=slots) == (check,)


TINY, USUAL, CORNER = Requirement.from_nano(1, 2), Requirement(50, 1), Requirement.from_nano(50, 2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sizes", [(30, 3000, 5), (300, 3000, 900), (0, 0, 9)])
def test_a_corner_without_a_share_silences_only_itself(mechanism: str, sizes: tuple[int, ...]) -> None:
    """The corner (spec 15.1) has 2 nano-epsilons for 50 slots. A shared budget of that is refused at the start."""
    counted = dict(zip((TINY, USUAL, CORNER), sizes, strict=True))
    population = Population(counted, {**counted, CORNER: 0})  # all users of the corner are in transition
    if find_mechanism(mechanism).shared_budget:
        with pytest.raises(InvalidRequirement, match="100e-9"):
            Publisher(population, 2, mechanism)
        return
    made = Publisher(population, 2, mechanism, noise=SeededNoise(5))
    with np.errstate(all="raise"):
        releases = [made.step(np.stack([population.sizes // 3, population.sizes // 4], axis=1)) for _ in range(60)]
    charges = np.array([release.charges for release in releases])
    for row, requirement in enumerate(population.classes):
        windows = [charges[first : first + requirement.window, row].sum() for first in range(len(charges))]
        assert max(windows) <= requirement.nano
    state = made.state()
    assert Publisher.restore(state).state() == state
    alike = mechanism == "pft-alike"  # all classes weigh as little as the strictest with members
    assert any(release.fresh for release in releases) or sizes[1] == 0 or alike


ORDERED = Population({Requirement(w, e): 50 for w in (2, 4, 9) for e in ("0.3", "0.8", "2")})


@pytest.mark.parametrize("refund", [False, True])
def test_no_slot_charges_a_stricter_class_more(mechanism: str, refund: bool) -> None:
    """Spec 15.1 rule 3, with half of the classes empty from slot 20 on."""
    refund = refund and not find_mechanism(mechanism).local  # reports are not refunded
    made = Publisher(ORDERED, 2, mechanism, noise=SeededNoise(5), refund=refund)
    pairs = [
        (row, other)
        for row, one in enumerate(ORDERED.classes)
        for other, looser in enumerate(ORDERED.classes)
        if one.window >= looser.window and one.nano <= looser.nano
    ]
    stricter, looser = np.array(pairs).T
    random = np.random.default_rng(5)
    for slot in range(1, SLOTS + 1):
        if slot == 20:
            sizes = {one: 50 * (row % 2) for row, one in enumerate(ORDERED.classes)}
            made.update(Population(sizes), turnover=250)
        release = made.step(random.integers(0, made.population.sizes[:, None] // 2 + 1, (9, 2)))
        for charges in (release.probe_charges, release.publication_charges):
            assert (charges[stricter] <= charges[looser]).all()


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
        "from wevent.core.builtin_mechanisms import BUILT_IN\n"
        "row = replace(BUILT_IN['pbd'], name='installed', summary='from a package')\n"
    )
    info = tmp_path / "wevent_contract_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wevent-contract-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[wevent.mechanisms]\ninstalled = wevent_contract_plugin:row\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert wevent.mechanisms()["installed"] == "from a package"
    assert check_mechanism("installed", only=["windows", "restored"])
