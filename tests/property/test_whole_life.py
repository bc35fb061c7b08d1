"""Whole lives of journals: nobody's window is ever overspent, and the audit says the same as the accountant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.accountant import Accountant
from tests.support.lives import Life
from wevent.journal.sqlite.sqlite_registry import SqliteRegistry
from wevent.people.holdout import HoldOut, Restore

LIVES = int(os.environ.get("WEVENT_LIVES", "3"))
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
    for slot, (key, charge) in enumerate([((2, 10), 6), ((2, 10), 4), ((3, 12), 5)], start=1):
        accountant.write(slot, {"u": key}, {key: charge})
    assert [(one.key, one.first, one.spent) for one in accountant.overspent()] == [((3, 12), 1, 15)]
    accountant.write(4, {}, {})
    assert len(accountant.overspent()) == 1
    with pytest.raises(AssertionError, match="twice"):
        accountant.write(4, {}, {})


BROKEN: dict[str, tuple[Any, str, Any]] = {
    "a change waits for nothing": (HoldOut, "first_slot", lambda self, key, asked, past, bucket, since: asked),
    "a restore holds nobody out": (Restore, "doubts", lambda self, bucket: False),
    "a joiner was no stranger": (HoldOut, "as_stranger", lambda self, slot: []),
    "strangers change class at once": (HoldOut, "strangers_from", lambda self: 1 if self.reigns[-1].unknown else None),
    "whom the registry knows is a stranger": (SqliteRegistry, "apart", lambda self, slot: []),
}


HURT = {  # a life in which people do lose too much; in others most often nothing happens
    "a change waits for nothing": 0,
    "a restore holds nobody out": 8,
    "a joiner was no stranger": 2,
    "strangers change class at once": 10,
    "whom the registry knows is a stranger": 1,
}


@pytest.mark.parametrize("broken", BROKEN)
def test_the_audit_finds_what_the_accountant_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """With one of the product's checks disabled people do lose too much in some lives; the audit sees each of them."""
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
