"""`wevent demo` is `wevent compare` on the invented city."""

import json

import pytest

from wevent import mechanisms
from wevent.cli import main
from wevent.publisher.catalogue import SIMULATED_ONLY

pytestmark = pytest.mark.slow


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--users", "100", "--slots", "12", *arguments])
    assert int(ended.value.code or 0) == 0
    return capsys.readouterr()


def test_every_mechanism_is_compared_and_a_picture_is_drawn(tmp_path, capsys):
    plot = tmp_path / "new" / "demo.png"
    printed = run(capsys, "--plot", str(plot))
    for name in mechanisms():
        assert f" {name} " in printed.out
    assert "Simulation on city: 100 users, 12 slots, 8 cells." in printed.err
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_json_for_programs(tmp_path, capsys):
    answer = json.loads(run(capsys, "--json", "--plot", str(tmp_path / "demo.svg")).out)
    assert {row["mechanism"] for row in answer["mechanisms"]} == {*mechanisms(), *SIMULATED_ONLY}
    assert answer["plot"] == str(tmp_path / "demo.svg")
    assert all(0 < row["worst_window_share"] <= 1 for row in answer["mechanisms"])
