"""The list of options: kinds are read off the list, and every place that stores options has all of them."""

from __future__ import annotations

from dataclasses import fields
from inspect import signature
from typing import Any

import pytest

from tests.support.synthetic import make_journal
from wevent import InvalidOption, Population, Publisher, Requirement
from wevent.cli.publish import command
from wevent.core.options import Options, check_value, option_kinds, option_values
from wevent.journal.terms import Terms, privacy_statement
from wevent.publisher.state import State
from wevent.settings import SETTINGS, Settings

NAMES = [entry.name for entry in fields(Options)]


def test_the_kinds_are_read_off_the_list() -> None:
    assert list(option_kinds()) == NAMES
    assert str(option_kinds()["smoothing"]) == "one of hold, filter"
    assert str(option_kinds()["max_cells_per_user"]) == "a whole number, at least 1"
    assert option_kinds()["neighbours"].permanent
    assert not option_kinds()["refund"].permanent
    assert option_kinds()["refund"].of_mechanism
    assert not option_kinds()["nonnegative"].of_mechanism


@pytest.mark.parametrize("holder", [State, Terms, Settings])
def test_whatever_stores_options_has_all_of_them(holder: Any) -> None:
    assert set(NAMES) <= {entry.name for entry in fields(holder)}


def test_all_can_be_written_in_a_file_or_as_a_flag() -> None:
    assert set(NAMES) <= set(SETTINGS)
    assert set(NAMES) <= {parameter.name for parameter in command.params}


def test_the_statement_says_all_of_them(tmp_path: Any) -> None:
    with make_journal(tmp_path / "j.journal", refund=True) as journal:
        (epoch,) = privacy_statement(journal)["epochs"]
    said = Options(mechanism="pbd", refund=True)
    assert {name: epoch[name] for name in NAMES} == option_values(said)


@pytest.mark.parametrize(("name", "value"), [("refund", 1), ("neighbours", None), ("known_total", 1.0), ("round", "")])
def test_a_value_of_another_kind_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=f"{name} must be"):
        check_value(name, value)


def test_a_message_shows_the_first_of_many_numbers() -> None:
    with pytest.raises(InvalidOption, match=r"1, 2, 3, 4, 5, 6, 7, 8, … \(20001 numbers\)") as caught:
        Publisher(Population({Requirement(3, 1): 1}), 2, seasonality=24, special_days=tuple(range(1, 20_002)))
    assert len(str(caught.value)) < 300


def test_the_publisher_takes_every_option_with_its_default() -> None:
    taken = {name: entry.default for name, entry in signature(Publisher).parameters.items() if name in NAMES}
    assert taken == option_values(Options())
