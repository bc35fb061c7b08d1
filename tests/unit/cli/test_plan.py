"""`wevent plan`."""

import json

import pytest
from click.testing import CliRunner

from wevent.cli import main
from wevent.cli.group import cli

pytestmark = pytest.mark.slow

SMALL = ["plan", "--class", "20:0.5=300", "--class", "5:2=699", "--class", "6:1=1", "--slots", "60", "--repeats", "2"]


def test_a_table_advice_warnings_and_a_plot(tmp_path):
    plot = tmp_path / "plan.png"
    result = CliRunner().invoke(
        cli, [*SMALL, "--plot", str(plot), "--mechanisms", "pba,sample"], catch_exceptions=False
    )
    assert result.exit_code == 0
    for text in ("Levels", "Expected errors on daily", "If users moved", "Use ", "Warning: The class"):
        assert text in result.stdout
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_json_is_the_same_for_the_same_seed():
    first, second = (CliRunner().invoke(cli, [*SMALL, "--stream", "log", "--json"]).stdout for _ in range(2))
    assert first == second
    assert [row["users"] for row in json.loads(first)["classes"]] == [699, 1, 300]


def test_mistakes_end_with_exit_code_2(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["plan", "--class", "lots"])
    assert ended.value.code == 2
    assert "--class High/Large=7000" in capsys.readouterr().err


def test_options_of_the_publisher_are_taken():
    rows = [
        json.loads(CliRunner().invoke(cli, [*SMALL, "--mechanisms", "uniform", "--json", *options]).stdout)
        for options in ([], ["--neighbours", "replace"], ["--neighbours", "replace", "--jobs", "2"])
    ]
    plain, replaced, in_processes = (row["mechanisms"][0]["amre"] for row in rows)
    assert replaced == pytest.approx(4 * plain, rel=0.3)  # twice the noise
    assert in_processes == replaced
