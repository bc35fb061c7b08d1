"""Tables for people."""

import re

import pytest
from rich.table import Table

from wevent.cli.console import new_table, print_table
from wevent.cli.standard_output import as_shown


def test_a_pipe_gets_every_column(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    headings = [f"column number {number}" for number in range(5)]
    table = new_table("Title", ["name"], headings)
    table.add_row("a", *map(str, range(5)))
    print_table(table)
    printed = capsys.readouterr().out
    assert all(heading in printed for heading in headings)
    assert printed.count("Title") == 1


def wide() -> Table:
    table = new_table("A title that is longer than many screens are wide, as it may well be", ["name", "other name"],
                      [f"figure {number}" for number in range(9)], prose=["remark"], caption="A caption, once.")  # fmt: skip
    for row in range(3):
        numbers = [f"{row}{number},123,456.78" for number in range(9)]
        table.add_row("a name of some length", "and another of the same", *numbers, "words that may take several lines")
    return table


@pytest.mark.parametrize("columns", [200, 110, 80, 60, 40])
def test_no_number_is_cut_and_nothing_is_wider_than_the_screen(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    print_table(wide())
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= columns
    assert "…" not in printed
    found = re.findall(r"\d\d,123,456\.78", printed)
    assert sorted(found) == sorted(f"{row}{number},123,456.78" for row in range(3) for number in range(9))
    assert printed.count("A caption, once.") == 1


def test_folded_words_are_all_there(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    table = new_table("Moves", ["from", "to"], ["change"])
    table.add_row("one of many levels", "another of them", "+20,995%")
    print_table(table)
    printed = re.sub(r"\s+", " ", capsys.readouterr().out)
    for word in ("one", "many", "levels", "another", "them", "+20,995%"):
        assert word in printed


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "cp437", "cp850", "shift_jis", "utf-8"])
def test_every_encoding_shows_something_for_every_sign(encoding):
    signs = "█░─━…ε±×·√²≤≥→–—’‘“”µ é 日本 \udcff 🙂"
    shown = as_shown(signs, encoding)
    assert shown.encode(encoding)
    if encoding == "ascii":
        assert shown.startswith("#.--...eps+-x*sqrt^2<=>=->--''\"\"u \\xe9 \\u65e5")
