"""Whole lives of journals: no window is ever overspent, and the audit says the same as the accountant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.accountant import Accountant
from tests.support.broken_lives import BROKEN, HURT, NOTICED
from tests.support.lives import Life

LIVES = int(os.environ.get("WEVENT_LIVES", "5"))
SLOTS = 400


@pytest.mark.parametrize("seed", range(LIVES))
def test_no_promise_is_ever_broken(tmp_path: Path, seed: int) -> None:
    life = Life(tmp_path, seed)
    life.live(SLOTS)
    print(life.did)
    assert life.accountant.overspent() == []
    assert life.findings == []
    assert life.epochs > 1, "epochs were asked for and none came into force"


def test_the_accountant_adds_up() -> None:
    accountant = Accountant()
    for slot, (key, loss) in enumerate([((2, 10), 6), ((2, 10), 5), ((3, 12), 5)], start=1):
        accountant.write(slot, {"u": key}, {"u": loss})
    assert [(one.key, one.first, one.spent) for one in accountant.overspent()] == [((2, 10), 1, 11)]
    accountant.write(4, {}, {"u": 8})  # within the span that began in slot 3
    assert [(one.key, one.first, one.spent) for one in accountant.overspent()[1:]] == [((3, 12), 3, 13)]
    with pytest.raises(AssertionError, match="twice"):
        accountant.write(4, {}, {})


@pytest.mark.parametrize("broken", BROKEN)
def test_the_audit_finds_what_the_accountant_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """With one of the product's checks disabled users do lose too much in some lives; the audit sees each of them."""
    monkeypatch.setattr(*BROKEN[broken])
    for number, seed in enumerate([HURT[broken], *range(40)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        life = Life(folder, seed)
        life.live(150)
        if life.accountant.overspent():
            assert life.findings, f"life {seed}: the accountant found what the audit did not"
            return
    pytest.fail(f"no life was hurt although {broken}: the test cannot fail")


@pytest.mark.parametrize("broken", NOTICED)
def test_a_broken_deployment_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    monkeypatch.setattr(*NOTICED[broken])
    for number, seed in enumerate([HURT[broken], *range(40)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        life = Life(folder, seed)
        try:
            life.live(150)
        except AssertionError as error:
            if "went out with other numbers" not in str(error):
                raise
            return
        if life.accountant.overspent():
            return
    pytest.fail(f"no life noticed that {broken}")
