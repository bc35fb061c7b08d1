"""Memberships that change together are read together: a database elsewhere takes its time to answer each question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.synthetic import CLASSES, make_terms, register
from wevent.journal import SqliteJournal
from wevent.journal.tables.database import Database
from wevent.journal.tables.registry_work import Work
from wevent.journal.terms import class_history
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


def test_applying_many_changes_asks_as_often_as_applying_more(tmp_path: Path) -> None:
    asked = {}
    for users in (100, 300):
        with SqliteJournal(tmp_path / f"{users}.journal", write=True) as journal:
            journal.begin(make_terms())
            register(journal, users)
            classes = class_history(journal.epochs())
            journal.registry.apply(1, classes)
            everybody = [member.user for member in journal.registry.members()]
            journal.registry.ask([Change("remove", user) for user in everybody])
            journal.registry.apply(2, classes)
            journal.registry.ask([Change("set", user, CLASSES[0]) for user in everybody])
            counting: Any = _Counting(journal._database)
            work = Work(counting, journal.registry.salt, bytes(32), classes)
            assert work.apply_queue(3, users) == users
            assert work.changed
            asked[users] = counting.asked
            assert len(journal.registry.members()) == users
    assert asked[300] == asked[100]
