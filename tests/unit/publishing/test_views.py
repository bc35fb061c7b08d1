"""The budget that is shown is the one that the publisher has, with or without changes of the population."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.publications import publish
from tests.support.synthetic import make_journal
from wevent.core.budget import NANO
from wevent.journal import Journal, open_journal
from wevent.journal.rebuild import rebuild_publisher
from wevent.publishing import registrations
from wevent.publishing.registrations import Requested
from wevent.publishing.views import BudgetView, read_budgets
from wevent.schemas import BudgetTable


def published(journal: Journal) -> list[tuple[int, float, int, float]]:
    """As a publisher that goes on would have it."""
    publisher = rebuild_publisher(journal.load(), journal.epochs(), None)
    rows = zip(publisher.population.items(), publisher.ledger.remaining().tolist(), strict=True)
    return [(held.window, held.epsilon, users, left / NANO) for (held, users), left in rows]


def shown(table: BudgetTable) -> list[tuple[int, float, int, float]]:
    return [(row.window, row.epsilon, row.users, row.left) for row in table.classes]


def read(journal: Journal) -> BudgetTable:
    return read_budgets(journal.load(), journal.epochs())


@pytest.mark.parametrize("mechanism", ["pbd", "pba", "pft", "uniform"])
def test_it_is_the_publishers_own(tmp_path: Path, mechanism: str) -> None:
    path = tmp_path / "run.journal"
    with make_journal(path, users=9, mechanism=mechanism) as journal:
        assert shown(read(journal)) == published(journal)
        assert read(journal).slot == 0
        publish(journal, tmp_path / "o.ndjson", 5)
        assert shown(read(journal)) == published(journal)
    registrations.choose(path, "u0", Requested("8", "0.6"))
    registrations.leave(path, "u2")
    with open_journal(path, write=True) as journal:
        view = BudgetView()
        assert view.read(journal).slot == 5
        publish(journal, tmp_path / "o.ndjson", 7)
        followed = view.read(journal)
        assert followed.slot == 7
        assert followed == read(journal)
        assert shown(followed) == published(journal)
        assert all(0 <= row.share <= 1 for row in followed.classes)


def test_it_goes_on_when_slots_were_dropped_that_it_had_not_seen(tmp_path: Path) -> None:
    with make_journal(tmp_path / "run.journal", users=9) as journal:
        publish(journal, tmp_path / "o.ndjson", 3)
        view = BudgetView()
        assert view.read(journal).slot == 3
        publish(journal, tmp_path / "o.ndjson", 600)
        assert journal.compact(20) > 4
        followed = view.read(journal)
        assert followed.slot == 600
        assert shown(followed) == published(journal)
