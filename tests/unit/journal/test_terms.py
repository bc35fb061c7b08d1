"""What a journal pins, and what an epoch may change."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tests.support.synthetic import CLASSES, SyntheticSource, make_journal, make_terms, want
from tests.support.window_checker import violated_windows
from wevent.errors import InvalidJournal, InvalidOption, SettingsDiffer
from wevent.journal import SqliteJournal
from wevent.journal.terms import (
    EPOCHAL,
    PERMANENT,
    Epoch,
    Terms,
    decode_terms,
    encode_terms,
    hash_versions,
    privacy_statement,
)
from wevent.outputs import open_output
from wevent.people.membership import Change
from wevent.publishing.loop import Publication, Running
from wevent.publishing.resolve import begin, must_begin
from wevent.verification import verify_journal

SHOWN = {"length_us": "slot", "origin_us": "start"}  # the names people know
OTHERS: dict[str, Any] = {
    "estimator": "weighting",
    "smoothing": "filter",
    "class_weights": "equal",
    "seasonality": (24.0,),
    "special_days": (3, 9),
    "nonnegative": True,
    "known_total": 7,
    "round": True,
    "stream": "other",
    "origin_us": 1,
    "length_us": 5,
    "neighbours": "replace",
    "max_cells_per_user": 2,
    "cells": 3,
    "declared": [(4, 10**9)],
    "mechanism": "pba",
    "refund": True,
    "threshold": "std",
    "levels": {"privacy": {"High": "0.1"}, "window": {"Small": 4}},
    "unknown_users": 7,
}


def publish(path: Path, end: int, cells: int = 3, epoch: Terms | None = None, users: tuple[Change, ...] = ()) -> None:
    with SqliteJournal(path, write=True) as journal:
        if epoch is not None:
            begin(journal, epoch, reconfigure=True)
        journal.registry.ask(users)
        output = open_output(str(path.with_suffix(".ndjson")))
        Publication(journal, SyntheticSource(end, cells), output, running=Running(last=end, batch=4)).run()
        output.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    make_journal(tmp_path / "run.journal").close()
    publish(tmp_path / "run.journal", 20)
    return tmp_path / "run.journal"


def test_every_setting_is_pinned() -> None:
    assert set(OTHERS) == {*PERMANENT, *EPOCHAL} == {entry.name for entry in fields(Terms)}


@pytest.mark.parametrize("name", OTHERS)
def test_another_setting_is_refused_by_name(path: Path, name: str) -> None:
    with SqliteJournal(path, write=True) as journal:
        with pytest.raises(SettingsDiffer, match=SHOWN.get(name, name)) as caught:
            must_begin(journal, make_terms(**{name: OTHERS[name]}), reconfigure=False)
        assert caught.value.facts["names"] == (name,)
        assert caught.value.facts["permanent"] == ((name,) if name in PERMANENT else ())
        must_begin(journal, make_terms(), reconfigure=False)


@pytest.mark.parametrize("name", PERMANENT)
def test_no_epoch_changes_what_charges_rest_on(path: Path, name: str) -> None:
    with SqliteJournal(path, write=True) as journal, pytest.raises(SettingsDiffer, match="life of a journal"):
        must_begin(journal, make_terms(**{name: OTHERS[name]}), reconfigure=True)


@pytest.mark.parametrize(
    "changes",
    [{"mechanism": "pba"}, {"mechanism": "uniform"}, {"cells": 5}, {"mechanism": "sample", "cells": ["a", "b"]}],
)
def test_an_epoch_inherits_every_charge(path: Path, changes: dict[str, Any]) -> None:
    cells = changes.get("cells", 3)
    number = cells if isinstance(cells, int) else len(cells)
    publish(path, 27, number, make_terms(**changes))
    publish(path, 60, number)
    assert verify_journal(path).ok
    with SqliteJournal(path) as journal:
        records = list(journal.releases())
        assert [record.epoch.number for record in records] == [1] * 20 + [2] * 40
        keys = [(one.window, one.nano) for one in records[0].group.population.classes]
        charged = [(record.probe + record.publication).tolist() for record in records]
        assert not violated_windows([dict(zip(keys, ((0, one) for one in row), strict=True)) for row in charged])
        assert len(privacy_statement(journal)["epochs"]) == 2


def test_an_epoch_that_came_to_no_slot_changes_nothing(path: Path) -> None:
    """Whatever comes with an epoch is stored in the transaction of its first slot, or not at all."""

    class Fault(Exception):
        pass

    def fail(step: str) -> None:
        if step == "stepped":  # a later one leaves a write-ahead record, which the next writer stores
            raise Fault

    wide = Change("set", "u0", (30, 10**9))
    terms = make_terms(mechanism="pba", declared=sorted([*CLASSES, wide.key]))
    with SqliteJournal(path, write=True) as journal:
        wanted = want(["u0"], [wide.key], b"digest")
        begin(journal, terms, reconfigure=True, wanted=wanted, unsafe=("start auto",), allow_removals=True)
        assert journal.head().epoch.terms == terms
        publication = Publication(
            journal, SyntheticSource(40), open_output(str(path.with_suffix(".ndjson"))), running=Running(at=fail)
        )
        with pytest.raises(Fault):
            publication.run()
    with SqliteJournal(path) as journal:
        head = journal.head()
        assert (head.epoch.number, head.epoch.terms, head.unsafe, head.committed) == (1, make_terms(), (), 20)
        assert journal.registry.pending() == 0
        assert journal.imported() == b""
    publish(path, 40)
    publish(path, 41, epoch=make_terms(mechanism="ba"))
    assert verify_journal(path).ok


def test_a_start_that_came_to_no_slot_binds_nobody(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    make_journal(path, mechanism="pba", stream="mistaken").close()
    with SqliteJournal(path, write=True) as journal:
        begin(journal, make_terms(), reconfigure=False)
        assert [one.terms for one in journal.epochs()] == [make_terms()]
        assert journal.registry.pending() == 90
    publish(path, 5)
    with SqliteJournal(path, write=True) as journal, pytest.raises(SettingsDiffer):
        begin(journal, make_terms(mechanism="pba", stream="mistaken"), reconfigure=True)
    assert verify_journal(path).ok


def test_options_that_do_not_fit_start_nothing(tmp_path: Path) -> None:
    with SqliteJournal(tmp_path / "new.journal", write=True) as journal:
        with pytest.raises(InvalidOption):
            must_begin(journal, make_terms(threshold="std"), reconfigure=False)
        assert journal.is_new


def test_an_edited_level_table_is_a_change_for_its_holders(tmp_path: Path) -> None:
    levels = {"privacy": {"High": "0.4"}, "window": {"Small": 3}}
    path = tmp_path / "run.journal"
    with make_journal(path, levels=levels) as journal:
        journal.registry.ask([Change("set", "worded", (3, 400_000_000), "High/Small")])
    publish(path, 10)
    edited = {"privacy": {"High": "0.6"}, "window": {"Small": 8}}
    publish(path, 12, epoch=make_terms(levels=edited))
    with SqliteJournal(path) as journal:
        (worded,) = [one for one in journal.registry.members() if one.user == "worded"]
        assert worded.key == (8, 600_000_000)
        assert worded.first == 12  # the epoch is stored with slot 11, the change takes effect after it
        assert {one.first for one in journal.registry.members() if one.user != "worded"} == {1}


def test_a_larger_window_of_a_later_epoch_is_charged_from_its_first_slot_on(path: Path) -> None:
    wide = (30, 10**9)
    epoch = make_terms(declared=sorted([*CLASSES, wide]))
    publish(path, 60, epoch=epoch, users=(Change("set", "new", wide),))
    with SqliteJournal(path) as journal:
        sizes = [
            {(one.window, one.nano): size for one, size in record.group.population.items()}.get(wide)
            for record in journal.releases()
        ]
    assert sizes[19] is None
    assert sizes[20:] == [0] + [1] * 39  # the change takes effect after the first slot of the epoch


def test_terms_survive_storage() -> None:
    for name, value in OTHERS.items():
        terms = make_terms(**{name: value})
        assert decode_terms(encode_terms(terms)) == terms


def test_versions_have_a_hash_of_all_of_them() -> None:
    first, second = Epoch(1, 1, make_terms()), Epoch(2, 5, make_terms(mechanism="pba"))
    hashes = [
        hash_versions(found) for found in ([first], [first, second], [first, Epoch(2, 6, second.terms)], [second])
    ]
    assert len(set(hashes)) == 4
    assert hash_versions([Epoch(1, 1, make_terms(), encode_terms(make_terms()))]) == hashes[0]


def test_the_statement_says_what_is_promised(path: Path) -> None:
    with SqliteJournal(path, write=True) as journal:
        journal.note_unsafe(("start auto",))
        journal.note_unsafe(("start auto",))
        found = privacy_statement(journal)
    assert found["unsafe"] == ["start auto"]
    assert found["sensitivity"] == 1
    assert "up to twice epsilon" in found["neighbouring_streams"]
    assert found["epochs"][0]["classes"][0] == {"window": 3, "epsilon": 0.4}


def test_a_journal_from_before_an_option_keeps_its_digest() -> None:
    text = encode_terms(make_terms()).replace(b'"refund":false,', b"")
    assert decode_terms(text).refund is False
    assert Epoch(1, 1, decode_terms(text), text).digest == hashlib.sha256(text).digest()


def test_a_journal_with_an_option_of_a_later_version_is_refused() -> None:
    text = encode_terms(make_terms()).replace(b'"refund":false', b'"refund":false,"rebate":true')
    with pytest.raises(InvalidJournal, match=r"options of the journal: rebate\. Upgrade"):
        decode_terms(text)
