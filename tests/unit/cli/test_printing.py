"""Tables for people."""

from wevent.cli.printing import new_table, print_table


def test_a_pipe_gets_every_column(capsys):
    headings = [f"column number {number}" for number in range(5)]
    table = new_table("Title", ["name"], headings)
    table.add_row("a", *map(str, range(5)))
    print_table(table)
    printed = capsys.readouterr().out
    assert all(heading in printed for heading in headings)
