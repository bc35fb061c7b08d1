"""Every repair in the table can still be undone: its text is where the table says, once, and its tests exist."""

from __future__ import annotations

from pathlib import Path

import pytest

import wevent
from tests.mutants.table import MUTANTS, Mutant

SOURCE, ROOT = Path(wevent.__file__).parent, Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_it_can_be_undone(mutant: Mutant) -> None:
    assert (SOURCE / mutant.file).read_text(encoding="utf-8").count(mutant.repaired) == 1
    assert [test for test in mutant.tests if not (ROOT / test).exists()] == []
