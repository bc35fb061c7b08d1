"""Memberships that change together are read together: a database elsewhere takes its time to answer each question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.synthetic import make_terms, register
from wevent.journal import SqliteJournal
from wevent.journal.tables.database import Database
from wevent.journal.tables.registry_work import Work
from wevent.people.declaring import holdout_of
from wevent.people.holdout import Restore
from wevent.people.membership import Change


class _Counting:
    """A database that counts what it is asked."""

    def __init__(self, database: Database) -> None:
        self._database, self.asked = database, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def execute(self, *arguments: Any) -> Any:
        self.asked += 1
        return self._database.execute(*arguments)


@pytest.mark.parametrize("with_erased", [False, True])
def test_holding_many_out_asks_as_often_as_holding_one(tmp_path: Path, with_erased: bool) -> None:
    asked = {}
    for users in (3, 200):
        with SqliteJournal(tmp_path / f"{users}.journal", write=True) as journal:
            journal.begin(make_terms())
            register(journal, users)
            holdout = holdout_of(journal.epochs(), ())
            journal.registry.apply(1, holdout)
            if with_erased:
                journal.registry.ask([Change("erase", journal.registry.members()[0].user)])
                journal.registry.apply(2, holdout)
            counting: Any = _Counting(journal._database)
            work = Work(counting, journal.registry.salt, bytes(32), holdout)
            held = work.hold_out(Restore(9, 8, 0, False, None))
            assert held == users - with_erased
            asked[users] = counting.asked
    assert asked[200] == asked[3]
