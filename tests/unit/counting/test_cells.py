"""The declared domain."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

from wevent import Cells, InvalidCells, Population, Publisher, Requirement, SeededNoise
from wevent.counting.labels import split_labels


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("a, b ,c", ["a", "b", "c"]),
        ('"a, b",c', ["a, b", "c"]),
        (' "a ""b""" , c', ['a "b"', "c"]),
        ('5" pipe,x', ['5" pipe', "x"]),
        ('"", ,x,', ["", "x"]),
        ("", []),
    ],
)
def test_labels_in_one_line(text: str, labels: list[str]) -> None:
    assert split_labels(text) == labels


@pytest.mark.parametrize("text", ['"a', 'x,"a', '"a"b', '"'])
def test_a_quote_that_does_not_end(text: str) -> None:
    with pytest.raises(InvalidCells, match="double quotes"):
        split_labels(text)


def test_a_number_of_cells() -> None:
    cells = Cells.of(3)
    assert list(cells) == [0, 1, 2]
    assert cells.numbered
    assert cells.declaration() == 3
    assert cells.find(np.array([2, 0, 3, -1])).tolist() == [2, 0, -1, -1]
    assert list(Cells.of(np.int64(3))) == [0, 1, 2]


@pytest.mark.parametrize(
    "labels", [["n", "s"], ("n", "s"), np.array(["n", "s"]), pd.Series(["n", "s"]), pl.Series(["n", "s"])]
)
def test_labels(labels: object) -> None:
    cells = Cells.of(labels)  # type: ignore[arg-type]
    assert list(cells) == ["n", "s"]
    assert len(cells) == 2
    assert cells[1] == "s"
    assert cells.declaration() == ["n", "s"]
    assert cells.find(np.array(["s", "x", "n"])).tolist() == [1, -1, 0]
    assert Cells.of(cells) is cells


def test_labels_that_are_numbers_are_labels() -> None:
    cells = Cells.of([30, 10])
    assert not cells.numbered
    assert cells.find(np.array([10, 0, 30, 1])).tolist() == [1, -1, 0, -1]
    assert cells.find(np.array([10.0, 10.5, np.nan])).tolist() == [1, -1, -1]
    assert cells != Cells.of(2)


def test_equality_is_by_value() -> None:
    assert Cells.of(["a", "b"]) == Cells.of(("a", "b"))
    assert hash(Cells.of(["a", "b"])) == hash(Cells.of(("a", "b")))
    assert Cells.of(["a", "b"]) != Cells.of(["b", "a"])
    assert Cells.of(2) != Cells.of([0, 1])


@pytest.mark.parametrize("wrong", [True, "abc", b"abc", 2.5, None, [[1, 2], [3, 4]], {"a": 1}, [{"a"}], np.eye(2)])
def test_what_is_no_domain(wrong: object) -> None:
    with pytest.raises(InvalidCells):
        Cells.of(wrong)  # type: ignore[arg-type]


def test_numpy_labels_become_plain_ones() -> None:
    """A list of numpy scalars is what indexing a frame gives: releases and states must still be plain."""
    publisher = Publisher(
        Population({Requirement(1, 1): 9}), [np.int64(5), np.int64(6)], "uniform", noise=SeededNoise(1)
    )
    json.dumps(publisher.step([[1, 2]]).to_dict())
    restored = Publisher.restore(publisher.state())
    assert list(restored.cells) == [5, 6]
    assert restored.cells == publisher.cells


def test_another_process_finds_the_same_cells() -> None:
    cells = Cells.of(["north", "south", "0"])
    assert cells.find(["south", "0", "west"]).tolist() == [1, 2, -1]
    program = "import pickle, sys; print(pickle.load(sys.stdin.buffer).find(['south', '0', 'west']).tolist())"
    done = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(cells), capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[1, 2, -1]"
    assert pickle.loads(pickle.dumps(Cells.of(3))) == Cells.of(3)
