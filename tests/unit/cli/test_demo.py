"""`wevent demo`, the real command."""

import json

import pytest

from wevent import mechanisms
from wevent.cli import main

pytestmark = pytest.mark.slow

SMALL = ["demo", "--users", "100", "--slots", "12"]


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main([*SMALL, *arguments])
    return int(ended.value.code or 0)


def test_every_mechanism_is_in_the_table_and_a_picture_is_drawn(tmp_path, capsys):
    plot = tmp_path / "new" / "demo.png"
    assert run("--plot", str(plot)) == 0
    printed = capsys.readouterr()
    for name in mechanisms():
        assert f" {name} " in printed.out
    assert "100 users in 8 districts" in printed.err
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_json_for_programs(tmp_path, capsys):
    assert run("--json", "--plot", str(tmp_path / "demo.svg")) == 0
    rows = json.loads(capsys.readouterr().out)["mechanisms"]
    assert {row["mechanism"] for row in rows} == set(mechanisms())
    errors = [row["mean_squared_error"] for row in rows]
    assert errors == sorted(errors)
    for row in rows:
        assert list(row)[2:] == ["mean_absolute_error", "fresh", "worst_window_share"]
        assert 0 <= row["fresh"] <= 12
        assert 0 < row["worst_window_share"] <= 1


def test_noise_is_secure_and_not_the_same_twice(tmp_path, capsys):
    printed = []
    for _ in range(2):
        assert run("--json", "--plot", str(tmp_path / "demo.png")) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] != printed[1]
