"""The journals under contract: every test of this folder runs for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.journals import JOURNALS, Kept
from tests.support.synthetic import make_terms, register
from wevent.journal import Journal


@pytest.fixture(params=JOURNALS)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    """Where a journal is kept; nothing is there yet."""
    return JOURNALS[request.param](tmp_path)


@pytest.fixture
def fresh(kept: Kept) -> Iterator[Journal]:
    """A journal with terms and ninety people in the queue, and without slots."""
    with kept.open() as journal:
        journal.begin(make_terms())
        register(journal, 90)
        yield journal
