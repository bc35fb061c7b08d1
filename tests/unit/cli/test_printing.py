"""Numbers and tables for people."""

import math

import pytest

from wevent.cli.printing import new_table, print_table, short


@pytest.mark.parametrize(
    ("value", "text"),
    [(37_123, "37,100"), (2.543e8, "2.54e+08"), (0.01234, "0.0123"), (0.0, "0"), (99.96, "100"), (math.nan, "-")],
)
def test_numbers_keep_three_digits(value, text):
    assert short(value) == text


def test_a_pipe_gets_every_column(capsys):
    headings = [f"column number {number}" for number in range(5)]
    table = new_table("Title", ["name"], headings)
    table.add_row("a", *map(str, range(5)))
    print_table(table)
    printed = capsys.readouterr().out
    assert all(heading in printed for heading in headings)
