"""Words of the command line."""

import pytest

from wevent import Levels, Population, Requirement
from wevent.cli.parameter_types import parse_class, parse_epsilons, parse_list, parse_windows, population_of
from wevent.errors import InvalidOption, InvalidRequirement


def test_lists_have_no_blanks_and_no_empty_entries():
    assert parse_list(" a, b,,c ") == ["a", "b", "c"]
    assert parse_windows("40, 80") == [40, 80]
    assert parse_epsilons("0.6,1.0") == ["0.6", "1.0"]
    for parse, text in ((parse_windows, "40,x"), (parse_windows, ""), (parse_epsilons, " , ")):
        with pytest.raises(InvalidOption):
            parse(text)


def test_classes_are_read_as_numbers_or_words():
    assert parse_class("120:0.6=7000") == (Requirement(120, "0.6"), 7000)
    assert parse_class("High/Large=5") == (Requirement(120, "0.1"), 5)
    assert population_of([parse_class("5:1=2"), parse_class("5:1.0=3")]) == Population({Requirement(5, 1): 5})
    for text in ("120:0.6", "=5", "a:b=5", "120=5", "120:0.6=many", "120:0.6=²"):
        with pytest.raises(InvalidOption):
            parse_class(text)
    with pytest.raises(InvalidRequirement):
        parse_class("Highest/Large=5")


def test_a_class_may_be_a_combined_level():
    levels = Levels(combined={"strict": "High/Large"})
    assert parse_class("strict=5", levels) == parse_class("High / Large=5", levels) == (Requirement(120, "0.1"), 5)
    with pytest.raises(InvalidOption):
        parse_class("strict=5")
