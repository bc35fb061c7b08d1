"""Texts as bytes: the same as Python strings and a dictionary, whatever the texts are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wevent.counting.labels import LabelIndex, Labels
from wevent.counting.string_column import StringColumn, StringIndex

texts = st.lists(
    st.one_of(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40),
        st.sampled_from(["", "a", "aaaaaaaa", "aaaaaaab", "aaaaaaaaa", "ü" * 128, "x" * 255, "x" * 256]),
    ),
    max_size=60,
)


@given(texts)
def test_texts_come_back(given: list[str]) -> None:
    spelled = StringColumn.from_texts(given)
    assert spelled.texts() == given
    assert spelled.where(np.arange(len(given))[::2]).compact().texts() == given[::2]
    assert (
        StringColumn.joined([spelled, spelled.where(slice(1, 3)), StringColumn.from_texts(())]).texts()
        == given + given[1:3]
    )
    assert [given[place] for place in spelled.order().tolist()] == sorted(given, key=str.encode)


@given(texts, texts)
def test_an_index_finds_what_a_dictionary_finds(known: list[str], asked: list[str]) -> None:
    index = StringIndex(StringColumn.from_texts(known))
    assert index.duplicates == len(known) - len(set(known))
    found = index.find(StringColumn.from_texts(asked + known)).tolist()
    assert [None if place < 0 else known[place] for place in found] == [
        text if text in known else None for text in asked + known
    ]


@given(texts, texts)
def test_texts_that_stand_between_others_are_the_same_texts(before: list[str], asked: list[str]) -> None:
    together = StringColumn.from_texts(before + asked)
    index = StringIndex(StringColumn.from_texts(asked))
    inner = together.where(slice(len(before), None))
    assert [asked[place] for place in index.find(inner).tolist()] == asked


def test_few_long_texts_among_many_are_found_too() -> None:
    known = [f"user-{number}" for number in range(2_000)] + ["l" * 100, "m" * 200]
    index = StringIndex(StringColumn.from_texts(known))
    assert index.find(StringColumn.from_texts([*known[::-1], "l" * 101])).tolist() == [*range(len(known))[::-1], -1]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-1", -1),
        ("10", 10),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, None),
        ("01", None),
        ("-0", None),
        ("", None),
        ("-", None),
        ("1a", None),
        ("+1", None),
        ("٣", None),
    ],
)
def test_whole_numbers(text: str, number: int | None) -> None:
    spelled = StringColumn.from_texts(["7", text, "8"])
    numbers, whole = spelled.whole_numbers()
    assert whole.tolist() == [True, number is not None, True]
    assert number is None or numbers[1] == number


@given(st.lists(st.one_of(st.integers(-5, 5), st.sampled_from(["1", "01", "-0", "x", "y", None])), max_size=30))
def test_equal_labels_have_equal_codes(values: list[int | str | None]) -> None:
    labels = Labels.of_values(values)
    codes = Labels.joined([labels, labels[::-1]]).codes().tolist()
    spelled = [None if value is None else str(value) for value in [*values, *values[::-1]]]
    assert [[one == other for other in codes] for one in codes] == [[one == two for two in spelled] for one in spelled]


def test_a_lookup_of_numbers_and_texts_finds_each_as_text() -> None:
    lookup = LabelIndex(["7", "x", 12, "007"])
    assert lookup.find(["007", 7, "12", "y", None, "x"]).tolist() == [3, 0, 2, -1, -1, 1]


def test_labels_that_begin_alike_have_places_of_their_own() -> None:
    """A table of few places takes them from bits that depend on every byte."""
    labels = StringColumn.from_texts([f"zone-{number:03}" for number in range(100)])
    index = StringIndex(labels)
    assert len(set(index._places(labels.words(1)).tolist())) > 50
